// SPDX-License-Identifier: MIT

import ANSystem

/// A decoder for gzip that concatenates the contents of all members (RFC 1952 §2.2).
///
/// Bytes after a member that do not start another one, such as padding, are ignored, as in gzip(1).
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
            // Without room for output, zlib would not read the first bytes of the member.
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

    /// The bytes with which a member starts (RFC 1952 §2.3.1).
    private static let magic: [UInt8] = [0x1F, 0x8B]

    private enum State {
        /// Within a member.
        case member
        /// After a member, where another may begin.
        case afterMember
        /// After a member and the first byte of the magic number.
        case afterFirstByte
        /// After bytes that do not start a member.
        case afterEnd
    }
}

/// A decoder for the `deflate` coding: zlib (RFC 9110 §8.4.1.2) or, as some servers send it, raw deflate (RFC 1951).
///
/// The first two bytes distinguish them: interpreted as raw deflate, a zlib header is a stored block with nonzero
/// padding, which compressors do not produce.
struct DeflateDecoder: ~Copyable, StreamDecoder {
    private var inflater: Inflater
    private var start = Start.none

    init() throws(SystemError) {
        inflater = try Inflater(format: .zlib)
    }

    mutating func step(
        _ input: borrowing RawSpan, into output: inout MutableRawSpan
    ) throws(SystemError) -> DecodingStep {
        guard start != .complete else { return try inflater.step(input, into: &output) }
        var step = DecodingStep()
        // Two bytes decode to at most one, for which there must be room.
        guard !input.isEmpty, !output.isEmpty else { return step }
        let byte = unsafe input.unsafeLoad(as: UInt8.self)
        if case .first(let first) = start {
            if !Self.isZlib(first, byte) { inflater = try Inflater(format: .deflate) }
            start = .complete
            step = try unsafe inflater.step([first, byte].span.bytes, into: &output)
        } else {
            start = .first(byte)
        }
        step.consumed = 1
        return step
    }

    /// Whether the bytes are CMF and FLG: method deflate, a window of at most 32 KiB, and a value divisible by 31 (RFC
    /// 1950 §2.2).
    private static func isZlib(_ first: UInt8, _ second: UInt8) -> Bool {
        first & 15 == 8 && first >> 4 <= 7 && (UInt16(first) << 8 | UInt16(second)).isMultiple(of: 31)
    }

    /// The progress in receiving the first two bytes.
    private enum Start: Equatable {
        case none
        case first(UInt8)
        case complete
    }
}
