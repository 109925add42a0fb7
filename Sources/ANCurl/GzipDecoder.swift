// SPDX-License-Identifier: MIT

import ANSystem

/// A decoder for gzip that concatenates the contents of all members (RFC 1952 §2.2).
///
/// Bytes after a member that do not begin another one, such as padding, are not part of the stream, as in gzip(1).
struct GzipDecoder: ~Copyable, StreamDecoder {
    private var inflater: Inflater
    private var state = State.member

    init() throws(SystemError) {
        inflater = try Inflater(format: .gzip)
    }

    mutating func step(
        _ input: borrowing RawSpan, into output: inout MutableRawSpan
    ) throws(SystemError) -> DecodingStep {
        var step = DecodingStep()
        let next = input.isEmpty ? nil : unsafe input.unsafeLoad(as: UInt8.self)
        switch (state, next) {
        case (.member, _):
            step = try inflater.step(input, into: &output)
            if step.isComplete { state = .afterMember }
        case (.afterMember, Self.magic[0]):
            state = .afterFirstByte
            step.consumed = 1
        case (.afterFirstByte, Self.magic[1]):
            // Without room, zlib would not take the first bytes of the member.
            guard !output.isEmpty else { break }
            try inflater.reset()
            _ = try unsafe inflater.step(Self.magic.span.bytes, into: &output)
            state = .member
            step.consumed = 1
        case (.afterFirstByte, nil):
            break
        case (.afterMember, nil), (.afterEnd, _):
            step.isComplete = true
        case (.afterMember, _), (.afterFirstByte, _):
            state = .afterEnd
            step.isComplete = true
        }
        return step
    }

    /// The bytes with which a member begins (RFC 1952 §2.3.1).
    private static let magic: [UInt8] = [0x1F, 0x8B]

    private enum State {
        /// Within a member.
        case member
        /// After a member, where another may begin.
        case afterMember
        /// After a member and a byte with which another may begin.
        case afterFirstByte
        /// After bytes that begin no member.
        case afterEnd
    }
}
