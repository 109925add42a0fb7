// SPDX-License-Identifier: MIT

public import ANHTTP
import ANSystem
import FoundationEssentials
import HTTPTypes

/// A content coding in which request bodies are sent. See RFC 9110 §8.4.1.
@nonexhaustive
public enum ContentCoding: Hashable, Sendable {
    /// The format of gzip (RFC 1952).
    case gzip
    /// The format of zlib (RFC 1950), which HTTP calls deflate.
    case deflate

    /// The name in `Content-Encoding`.
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
    /// Compresses the body and says so in `Content-Encoding`.
    ///
    /// A request without a body, with one that is known to be shorter than `minimumSize`, or with a `Content-Encoding`
    /// stays as it is. Whether a server takes compressed bodies must be known beforehand; one that does not answers 415.
    ///
    /// - Parameters:
    ///   - coding: gzip unless said otherwise.
    ///   - level: From 1, fast, to 9, small; 6 by default. Others count as the nearest of these.
    ///   - minimumSize: 1 KiB by default.
    public mutating func compressBody(_ coding: ContentCoding = .gzip, level: Int = 6, minimumSize: Int64 = 1 << 10) {
        guard hasBody, headers.first(.contentEncoding) == nil else { return }
        if let length = body.length, length < minimumSize { return }
        body = body.compressed(coding, level: level)
        headers.append(HTTPField(name: .contentEncoding, value: coding.name))
        headers[.contentLength] = nil
    }
}

extension RequestBody {
    /// The body in a content coding, which the request has to declare; ``Request/compressBody(_:level:minimumSize:)`` does.
    ///
    /// Bytes up to 1 MiB are compressed at once, and their length is known. All else is compressed while it is sent, off
    /// the network's thread and with little memory; it has no length, so it is sent chunked. It can be sent again where the
    /// original can.
    ///
    /// - Parameters:
    ///   - coding: gzip unless said otherwise.
    ///   - level: From 1, fast, to 9, small; 6 by default. Others count as the nearest of these.
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

/// Reads another reader's bytes in a content coding.
final class CompressingReader {
    private let reader: BodyReader
    private var deflater: Deflater
    /// What the reader yielded last and was not compressed yet.
    private var input = Data()
    private var output = Data(count: 64 << 10)
    private var isEnd = false
    private var isFinished = false

    init(_ reader: BodyReader, _ coding: ContentCoding, level: Int) throws(SystemError) {
        self.reader = reader
        deflater = try Deflater(format: coding.format, level: min(max(level, 1), 9))
    }

    /// Compresses bytes as a whole.
    static func compress(_ data: Data, _ coding: ContentCoding, level: Int) throws(SystemError) -> Data {
        let reader = try CompressingReader(BodyReader { nil }, coding, level: level)
        reader.input = data
        reader.isEnd = true
        var result = Data()
        while !reader.isFinished { result.append(try reader.fill().output) }
        return result
    }

    /// The next chunk; nil at the end.
    func nextChunk() async throws -> Data? {
        while !isFinished {
            let (output, needsInput) = try fill()
            if !output.isEmpty { return output }
            guard needsInput else { continue }
            if let chunk = try await reader.next() { input = chunk } else { isEnd = true }
        }
        return nil
    }

    /// Compresses what is there, up to a chunk.
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
