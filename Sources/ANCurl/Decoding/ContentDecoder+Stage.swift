// SPDX-License-Identifier: MIT

import ANSystem
import FoundationEssentials
import Glibc

extension ContentDecoder {
    /// A decoder for one coding, with its output that has not been taken yet.
    struct Stage: Sendable {
        let coding: Coding
        private let decoder: any SharedDecoder
        private var buffer = Data(count: 64 << 10)
        /// The range of the buffer that has not been taken yet.
        private var unread = 0..<0
        /// Whether the decoder may have more output without more input.
        private(set) var mayHoldMore = false
        /// Whether the coding's stream is complete at this point.
        private(set) var isComplete = false
        /// The number of bytes decoded so far.
        private(set) var producedCount = 0

        init(_ coding: Coding) throws(Failure) {
            self.coding = coding
            do {
                decoder =
                    switch coding {
                    case .gzip: DecoderBox(try GzipDecoder())
                    case .deflate: DecoderBox(try DeflateDecoder())
                    case .brotli: DecoderBox(try BrotliDecoder())
                    case .zstd: DecoderBox(try ZstdDecoder())
                    }
            } catch {
                throw .system(error)
            }
        }

        var hasOutput: Bool { !unread.isEmpty }

        /// The output that has not been taken yet.
        var output: Data { buffer[unread] }

        mutating func dropOutput(_ count: Int) {
            unread = (unread.lowerBound + count)..<unread.upperBound
        }

        /// Removes up to `count` bytes of the output and returns a copy of them.
        mutating func takeOutput(upTo count: Int) -> Data {
            // A slice would retain the buffer, so that the next step would have to copy it.
            let taken = Data(output.prefix(count))
            dropOutput(taken.count)
            return taken
        }

        /// Decodes some of the input into the empty buffer; returns the number of bytes consumed.
        mutating func step(_ input: Data) throws(Failure) -> Int {
            let step: DecodingStep
            do {
                var bytes = buffer.mutableBytes
                step = try decoder.step(input.bytes, into: &bytes)
            } catch {
                throw error.code == EBADMSG ? .malformed(coding) : .system(error)
            }
            unread = 0..<step.produced
            producedCount += step.produced
            mayHoldMore = step.produced == buffer.count
            isComplete = step.isComplete
            guard step.consumed == 0, step.produced == 0 else { return step.consumed }
            // A decoder that consumes no input is at the end of its stream, where the rest is ignored; otherwise the
            // input is malformed.
            guard isComplete || input.isEmpty else { throw .malformed(coding) }
            return input.count
        }
    }

    /// A reference to a decoder, needed because arrays cannot hold noncopyable values.
    private protocol SharedDecoder: AnyObject, Sendable {
        /// Steps the decoder.
        func step(
            _ input: borrowing RawSpan, into output: inout MutableRawSpan
        ) throws(SystemError) -> DecodingStep
    }

    private final class DecoderBox<Decoder: StreamDecoder & ~Copyable>: SharedDecoder {
        /// Guarded by the lock of ``ContentDecoder``.
        private nonisolated(unsafe) var decoder: Decoder

        init(_ decoder: consuming Decoder) {
            unsafe self.decoder = decoder
        }

        func step(
            _ input: borrowing RawSpan, into output: inout MutableRawSpan
        ) throws(SystemError) -> DecodingStep {
            try unsafe decoder.step(input, into: &output)
        }
    }
}
