// SPDX-License-Identifier: MIT

package import ANHTTP
package import ANSystem
package import FoundationEssentials
import Glibc

/// An incremental decoder for the content codings of a response body (RFC 9110 §8.4), with limits on the decoded size.
///
/// Used by one task at a time, which pushes raw bytes and drains decoded ones:
///
/// ```swift
/// while let raw = try await rawBytes.next() {
///     decoder.push(raw)
///     while let chunk = try decoder.next() { use(chunk) }
/// }
/// try decoder.finish()
/// ```
///
/// Memory is bounded: the raw bytes that are not decoded yet, and for each coding 64 KiB of output and the decoder's state,
/// which is about 40 KiB for gzip and deflate, and a window of at most 16 MiB for Brotli and 8 MiB for Zstandard.
///
/// | coding | decoded | bytes after the end |
/// |---|---|---|
/// | gzip, x-gzip | any number of members (RFC 1952 §2.2) | ignored, as gzip(1) does |
/// | deflate | zlib (RFC 1950) or raw deflate (RFC 1951), told apart by the first two bytes | ignored |
/// | br | one stream (RFC 7932) | ignored |
/// | zstd | any number of frames (RFC 8878), windows up to 8 MiB (RFC 9659) | malformed |
///
/// After a gzip member, bytes that begin with 1F 8B are decoded as another member; so a body cut off in it is truncated.
/// A reader that counts the decoded bytes would wait without end for a body of members without content, or of ignored
/// bytes: 16 times the decoded bytes and 1 MiB more are permitted.
package final class ContentDecoder: Sendable {
    /// Held while a step decodes; contended only by concurrent use, which is a programming error.
    private let state: Lock<State>

    /// The value of `Accept-Encoding`: `gzip, deflate, br, zstd`, without those whose libraries are missing on the
    /// system.
    package static let supportedCodings = Coding.allCases.filter(\.isAvailable).map(\.rawValue).joined(separator: ", ")

    /// The maximum number of codings of one body: 5, as in libcurl.
    package static let maximumCodingCount = 5

    /// Creates a decoder for a body with these values of `Content-Encoding`; `nil` if it has no coding to decode.
    ///
    /// Names are case-insensitive. `identity` and empty list members are ignored.
    ///
    /// - Throws: ``Failure/unknownCoding(_:)``, ``Failure/tooManyCodings``, or ``Failure/system(_:)``.
    package init?(contentEncoding fields: [String], limit: DecompressionLimit) throws(Failure) {
        var stages: [Stage] = []
        // Codings are listed in the order in which they were applied.
        for name in Coding.names(in: fields).reversed() {
            guard let coding = Coding(name: name), coding.isAvailable else { throw .unknownCoding(name) }
            guard stages.count < Self.maximumCodingCount else { throw .tooManyCodings }
            stages.append(try Stage(coding))
        }
        guard !stages.isEmpty else { return nil }
        state = Lock(State(stages: stages, limit: limit))
    }

    /// Appends raw bytes to be decoded.
    package func push(_ raw: Data) {
        state.withLock { $0.push(raw) }
    }

    /// Returns the next decoded bytes; `nil` if more raw bytes are needed.
    ///
    /// They are empty if a bounded amount of work has had no result; the caller can check for cancellation, and goes on with
    /// another call. A chunk that would exceed a limit is not returned. After a failure, every later call throws the same
    /// error.
    ///
    /// - Parameter count: The maximum number of bytes to return, at least 1. No chunk exceeds 64 KiB.
    /// - Throws: ``Failure/malformed(_:)``, ``Failure/empty(_:)``, ``Failure/tooLarge(_:)`` or ``Failure/system(_:)``.
    package func next(upTo count: Int = .max) throws(Failure) -> Data? {
        try state.withLock { state throws(Failure) in try state.next(upTo: max(1, count)) }
    }

    /// Checks at the end of the body that it is complete. Call it after ``next(upTo:)`` has returned `nil`.
    ///
    /// An empty body is complete in any coding.
    ///
    /// - Throws: ``Failure/truncated(_:)`` if a coding's stream has not ended.
    package func finish() throws(Failure) {
        try state.withLock { state throws(Failure) in try state.finish() }
    }

    /// The reason for which a body cannot be decoded.
    package enum Failure: Error, Hashable {
        /// The coding is unknown, or the system lacks the library for it.
        case unknownCoding(String)
        /// There are more than ``ContentDecoder/maximumCodingCount`` codings.
        case tooManyCodings
        /// The bytes violate the coding's format, or a checksum or length does not match.
        case malformed(Coding)
        /// The body ended before the coding's stream did.
        case truncated(Coding)
        /// The bytes have too little content.
        case empty(Coding)
        /// The decoded body exceeds a limit.
        case tooLarge(TransportError.SizeLimit)
        /// A system error in the decoder, such as lack of memory.
        case system(SystemError)
    }
}

extension ContentDecoder {
    /// A content coding; the raw value is its name in `Content-Encoding`.
    package enum Coding: String, CaseIterable, Sendable {
        /// The gzip format (RFC 1952).
        case gzip
        /// The zlib format (RFC 1950) or raw deflate (RFC 1951).
        case deflate
        /// The Brotli format (RFC 7932).
        case brotli = "br"
        /// The Zstandard format (RFC 8878).
        case zstd

        /// Creates a coding from its name; `nil` if it is unknown.
        init?(name: String) {
            // `x-gzip` is an alias of `gzip` (RFC 9110 §8.4.1.3).
            self.init(rawValue: name == "x-gzip" ? "gzip" : name)
        }

        /// Whether the coding's library is available in this process.
        package var isAvailable: Bool {
            switch self {
            case .gzip, .deflate: true
            case .brotli: BrotliDecoder.isAvailable
            case .zstd: ZstdDecoder.isAvailable
            }
        }

        /// Returns the lowercase names in lists of codings, without `identity`.
        static func names(in fields: [String]) -> [String] {
            fields.flatMap { $0.lowercased().split(at: ",") }.map(\.trimmingBlanks)
                .filter { !$0.isEmpty && $0 != "identity" }
        }
    }
}

extension ContentDecoder {
    /// The chain of decoders, with the raw bytes that enter the first.
    private struct State {
        /// The stages in decoding order, which is the reverse of the order in which the codings were applied.
        var stages: [Stage]
        let limit: DecompressionLimit
        /// The raw bytes not yet consumed.
        var raw = Data()
        /// The work that the current call of ``next(upTo:)`` has done.
        private var work = 0
        var failure: Failure?

        init(stages: [Stage], limit: DecompressionLimit) {
            self.stages = stages
            self.limit = limit
        }

        mutating func push(_ data: Data) {
            if raw.isEmpty { raw = data } else { raw.append(data) }
        }

        mutating func next(upTo count: Int) throws(Failure) -> Data? {
            let last = stages.count - 1
            return try failing { state throws(Failure) in
                state.work = 0
                return switch try state.fill(last) {
                case .output: state.stages[last].takeOutput(upTo: count)
                case .pausing: Data()
                case .needingInput: nil
                }
            }
        }

        mutating func finish() throws(Failure) {
            try failing { state throws(Failure) in
                guard state.stages[0].consumedCount > 0 || !state.raw.isEmpty else { return }
                for stage in state.stages where !stage.isComplete { throw .truncated(stage.coding) }
            }
        }

        /// Throws the earlier failure, if any; otherwise runs `body` and records its failure.
        private mutating func failing<Result>(
            _ body: (inout State) throws(Failure) -> Result
        ) throws(Failure) -> Result {
            if let failure { throw failure }
            do {
                return try body(&self)
            } catch {
                failure = error
                throw error
            }
        }

        /// Decodes until a stage has output, needs more raw bytes, or the call has done enough.
        private mutating func fill(_ index: Int) throws(Failure) -> Filling {
            while !stages[index].hasOutput {
                guard work < Self.workOfCall else { return .pausing }
                if !stages[index].mayHoldMore {
                    let input: Filling = try index > 0 ? fill(index - 1) : raw.isEmpty ? .needingInput : .output
                    guard input == .output else { return input }
                }
                try step(index)
            }
            return .output
        }

        /// The result of decoding with one stage.
        private enum Filling {
            /// The stage has output.
            case output
            /// The call has done its work, and the stage has no output yet.
            case pausing
            /// The stage has no output before more raw bytes are pushed.
            case needingInput
        }

        private mutating func step(_ index: Int) throws(Failure) {
            let step: DecodingStep
            if index == 0 {
                step = try stages[0].step(raw.prefix(64 << 10))
                raw = raw.dropFirst(step.consumed)
                guard stages[0].consumedCount >> 4 <= stages[stages.count - 1].producedCount + 64 << 10 else {
                    throw .empty(stages[0].coding)
                }
            } else {
                step = try stages[index].step(stages[index - 1].output)
                stages[index - 1].dropOutput(step.consumed)
            }
            work += step.consumed + step.produced + Self.workOfStep
            // Intermediate output counts as well: it may be huge even if the final output is small.
            if let bound = limit.bound(passedBy: decodedCount(by: index), from: stages[0].consumedCount) {
                throw .tooLarge(bound)
            }
        }

        /// The number of bytes decoded by a stage, for the limit.
        ///
        /// Those of the stage before it that it decodes to nothing count as well: they may be members, frames or blocks
        /// without content, which take much longer than their bytes suggest.
        private func decodedCount(by index: Int) -> Int {
            let produced = stages[index].producedCount
            guard index > 0 else { return produced }
            return produced + max(0, stages[index].consumedCount - produced - Self.largestBlock) * Self.costOfNothing
        }

        /// The work of one call, in bytes consumed and produced.
        private static let workOfCall = 1 << 20
        /// The bytes that take as long as a step without any.
        private static let workOfStep = 64
        /// What a decoder may take before its first output: a block of zstd (RFC 8878 §3.1.1.2.4), and some more.
        private static let largestBlock = 160 << 10
        /// The number of decoded bytes as which a byte counts that is decoded to nothing: 1,000 for the shortest member of
        /// gzip.
        private static let costOfNothing = 50
    }
}

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
        /// The numbers of bytes consumed and decoded so far.
        private(set) var (consumedCount, producedCount) = (0, 0)

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

        /// Decodes some of the input into the empty buffer.
        mutating func step(_ input: Data) throws(Failure) -> DecodingStep {
            var step: DecodingStep
            do {
                var bytes = buffer.mutableBytes
                step = try decoder.step(input.bytes, into: &bytes)
            } catch {
                throw error.code == EBADMSG ? .malformed(coding) : .system(error)
            }
            if step.consumed == 0, step.produced == 0 {
                // A decoder that consumes no input is at the end of its stream, where the rest is ignored; otherwise the
                // input is malformed.
                guard step.isComplete || input.isEmpty else { throw .malformed(coding) }
                step.consumed = input.count
            }
            unread = 0..<step.produced
            consumedCount += step.consumed
            producedCount += step.produced
            mayHoldMore = step.produced == buffer.count
            isComplete = step.isComplete
            return step
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

extension DecompressionLimit {
    /// Returns the bound exceeded by `decoded` bytes unpacked from `received` ones; `nil` if they are within the limit.
    ///
    /// A ratio below 1 counts as 1.
    package func bound(passedBy decoded: Int, from received: Int) -> TransportError.SizeLimit? {
        if let maximumSize, decoded > maximumSize { return .decompressed(limit: maximumSize) }
        guard let maximumRatio, decoded > ratioThreshold else { return nil }
        let (most, overflows) = received.multipliedReportingOverflow(by: max(1, maximumRatio))
        return !overflows && decoded > most ? .decompressionRatio(limit: maximumRatio) : nil
    }
}
