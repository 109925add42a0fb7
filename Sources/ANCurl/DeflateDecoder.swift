// SPDX-License-Identifier: MIT

import ANSystem

/// A decoder for HTTP's `deflate`: zlib (RFC 9110 §8.4.1.2) or, as some servers send it, raw deflate (RFC 1951).
///
/// The first two bytes tell them apart: read as raw deflate, zlib's header is a stored block with nonzero padding, which
/// compressors do not write.
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
        // Two bytes decode to one at most, for which there has to be room.
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

    /// Whether these are CMF and FLG: deflate, a window of at most 32 KiB, and a number divisible by 31 (RFC 1950 §2.2).
    private static func isZlib(_ first: UInt8, _ second: UInt8) -> Bool {
        first & 15 == 8 && first >> 4 <= 7 && (UInt16(first) << 8 | UInt16(second)).isMultiple(of: 31)
    }

    /// How much of the first two bytes has arrived.
    private enum Start: Equatable {
        case none
        case first(UInt8)
        case complete
    }
}
