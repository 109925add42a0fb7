// SPDX-License-Identifier: MIT

/// Decodes a compressed stream as its bytes come.
///
/// A decoder belongs to one owner, and has no ties to a thread.
package protocol StreamDecoder: ~Copyable, Sendable {
    /// Takes input as far as the output has room.
    ///
    /// A step that leaves room in the output has written all that its input decodes to. One that leaves none may hold more,
    /// and is to be followed by another, without input if there is none.
    ///
    /// - Throws: `EBADMSG` for malformed input, `ENOMEM`. After an error the decoder cannot be used any more.
    mutating func step(
        _ input: borrowing RawSpan, into output: inout MutableRawSpan
    ) throws(SystemError) -> DecodingStep
}

/// The result of one step of a ``StreamDecoder``.
package struct DecodingStep: Hashable, Sendable {
    /// The number of bytes taken from the input.
    package var consumed = 0
    /// The number of bytes written to the output.
    package var produced = 0
    /// Whether the bytes so far are complete: the stream may end here.
    package var isComplete = false

    /// Creates a step that did nothing.
    package init() {}
}
