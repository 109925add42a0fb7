// SPDX-License-Identifier: MIT

/// An incremental decoder of a compressed stream, not bound to a thread.
package protocol StreamDecoder: ~Copyable, Sendable {
    /// Decodes input as far as the output has room.
    ///
    /// A step may consume only part of the input. With input and room it makes progress, unless its stream has ended. After a
    /// step that filled the output there may be more to write, even without input.
    ///
    /// - Throws: `EBADMSG` for malformed input, `ENOMEM`. After an error the decoder must not be used any more.
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
    /// Whether the stream may end here.
    package var isComplete = false

    /// Creates a step that did nothing.
    package init() {}
}
