// SPDX-License-Identifier: MIT

public import ANHTTP
import ANSystem
import FoundationEssentials
import HTTPTypes

/// A content coding for request bodies. See RFC 9110 §8.4.1.
@nonexhaustive
public enum ContentCoding: Hashable, Sendable {
    /// The gzip format (RFC 1952).
    case gzip
    /// The zlib format (RFC 1950), called deflate in HTTP.
    case deflate

    /// The name of the coding in `Content-Encoding`.
    public var name: String {
        switch self {
        case .gzip: "gzip"
        case .deflate: "deflate"
        }
    }

    var format: Deflater.Format {
        switch self {
        case .gzip: .gzip
        case .deflate: .zlib
        }
    }
}

extension Request {
    /// Compresses the body and sets `Content-Encoding`.
    ///
    /// Nothing is changed if there is no body, if its known length is below `minimumSize`, or if `Content-Encoding` is
    /// already set. Servers do not announce support for compressed requests; one that does not support them usually
    /// responds with status 415.
    ///
    /// - Parameters:
    ///   - coding: The content coding; gzip by default.
    ///   - level: The compression level, from 1 (fastest) to 9 (smallest); 6 by default. Values out of range are
    ///     clamped.
    ///   - minimumSize: The size in bytes from which bodies are compressed; 1 KiB by default.
    public mutating func compressBody(_ coding: ContentCoding = .gzip, level: Int = 6, minimumSize: Int64 = 1 << 10) {
        guard hasBody, headers.first(.contentEncoding) == nil else { return }
        if let length = body.length, length < minimumSize { return }
        body = body.compressed(coding, level: level)
        headers.append(HTTPField(name: .contentEncoding, value: coding.name))
        headers[.contentLength] = nil
    }
}

extension RequestBody {
    /// Returns the body in a content coding, which the request must declare. See
    /// ``Request/compressBody(_:level:minimumSize:)``, which does both.
    ///
    /// Data of up to 1 MiB is compressed immediately, and its length is known. Everything else is compressed while it
    /// is sent, outside of the network's thread and with little memory; its length is unknown, so it is sent chunked.
    /// It is replayable if the original body is.
    ///
    /// - Parameters:
    ///   - coding: The content coding; gzip by default.
    ///   - level: The compression level, from 1 (fastest) to 9 (smallest); 6 by default. Values out of range are
    ///     clamped.
    public func compressed(_ coding: ContentCoding = .gzip, level: Int = 6) -> RequestBody {
        switch content {
        case .none: return self
        case .bytes(let data) where data.count <= 1 << 20:
            if let compressed = try? CompressingReader.compress(data, coding, level: level) {
                return .bytes(compressed)
            }
        case .bytes, .file, .stream: break
        }
        let segment = BodySegment(self)
        return .stream(length: nil, isReplayable: isReplayable) {
            let reader = try CompressingReader(SegmentReader.make([segment]), coding, level: level)
            return BodyReader { try await reader.nextChunk() }
        }
    }
}

/// A reader that compresses the bytes of another one.
final class CompressingReader {
    private let reader: BodyReader
    private var deflater: Deflater
    /// The bytes of the last chunk that were not compressed yet.
    private var input = Data()
    private var output = Data(count: 64 << 10)
    private var isEnd = false
    private var isFinished = false

    init(_ reader: BodyReader, _ coding: ContentCoding, level: Int) throws(SystemError) {
        self.reader = reader
        deflater = try Deflater(format: coding.format, level: min(max(level, 1), 9))
    }

    /// Returns bytes in compressed form.
    static func compress(_ data: Data, _ coding: ContentCoding, level: Int) throws(SystemError) -> Data {
        let reader = try CompressingReader(BodyReader { nil }, coding, level: level)
        reader.input = data
        reader.isEnd = true
        var result = Data()
        while !reader.isFinished { result.append(try reader.fill().output) }
        return result
    }

    /// Returns the next chunk; `nil` at the end.
    func nextChunk() async throws -> Data? {
        while !isFinished {
            let (output, needsInput) = try fill()
            if !output.isEmpty { return output }
            guard needsInput else { continue }
            if let chunk = try await reader.next() { input = chunk } else { isEnd = true }
        }
        return nil
    }

    /// Compresses available input, up to the size of a chunk.
    private func fill() throws(SystemError) -> (output: Data, needsInput: Bool) {
        var bytes = output.mutableBytes
        let step = try deflater.step(input.bytes, isEnd: isEnd, into: &bytes)
        input = input.dropFirst(step.consumed)
        isFinished = step.isFinished
        var chunk = Data(capacity: step.produced)
        chunk.append(output.prefix(step.produced))
        return (chunk, needsInput: input.isEmpty && !isEnd)
    }
}
