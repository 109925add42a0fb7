// SPDX-License-Identifier: MIT

public import ANHTTP
import ANSystem
import FoundationEssentials
import HTTPTypes

/// A content coding for request bodies (RFC 9110 §8.4.1).
///
/// It is an argument of `Request.compressBody(_:level:minimumSize:)` and `RequestBody.compressed(_:level:)`.
@nonexhaustive
public enum ContentCoding: Hashable, Sendable {
    /// The gzip format (RFC 1952), `gzip` in `Content-Encoding`; the default of the functions that compress.
    case gzip
    /// The zlib format (RFC 1950), `deflate` in `Content-Encoding`.
    case deflate

    /// The name of the coding in `Content-Encoding`.
    package var name: String {
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
    /// Compresses the body, sets `Content-Encoding`, and removes `Content-Length`.
    ///
    /// Nothing is changed if there is no body, if its known length is below `minimumSize`, or if `Content-Encoding` is
    /// already set. Files and other bodies of unknown length are always compressed; JSON and forms are when a session
    /// has encoded them. Servers rarely announce support for
    /// compressed requests; one that does not support them usually responds with status 415 (RFC 9110 §15.5.16).
    ///
    /// - Parameters:
    ///   - coding: The content coding; gzip by default.
    ///   - level: The compression level, from 1 (fastest) to 9 (smallest); 6 by default. Values out of range are
    ///     clamped.
    ///   - minimumSize: The size in bytes from which bodies are compressed; 1 KiB by default. Zero or less compresses
    ///     even empty data.
    public mutating func compressBody(_ coding: ContentCoding = .gzip, level: Int = 6, minimumSize: Int64 = 1 << 10) {
        guard hasBody, headers.first(.contentEncoding) == nil else { return }
        let later = body.afterEncoding(without: body) {
            $0.compressBody(coding, level: level, minimumSize: minimumSize)
        }
        if let later { return body = later }
        if let length = body.length, length < minimumSize { return }
        body = body.compressed(coding, level: level)
        headers.append(HTTPField(name: .contentEncoding, value: coding.name))
        headers[.contentLength] = nil
    }
}

extension RequestBody {
    /// Returns the body in a content coding, which the request must declare in `Content-Encoding`;
    /// ``Request/compressBody(_:level:minimumSize:)`` does both.
    ///
    /// Data of up to 1 MiB is compressed immediately, and its length is known. Everything else is compressed each time
    /// it is sent, in a child task of the request and with little memory; its length is unknown, so it is sent chunked
    /// over HTTP/1.1. It is replayable if the original body is. `.none` is returned unchanged. A file that cannot be
    /// read, and a sequence or closure that throws or does not produce its declared length, fail the request with
    /// `TransportError.RequestBodyFailure.source`.
    ///
    /// - Parameters:
    ///   - coding: The content coding; gzip by default.
    ///   - level: The compression level, from 1 (fastest) to 9 (smallest); 6 by default. Values out of range are
    ///     clamped.
    public func compressed(_ coding: ContentCoding = .gzip, level: Int = 6) -> RequestBody {
        switch content {
        case .none: return self
        case .bytes(let data) where data.count <= 1 << 20:
            if let compressed = try? Compressor.compress(data, coding, level: level) {
                return RequestBody.bytes(compressed).gated(as: self)
            }
        case .bytes, .file, .writer: break
        }
        let segments = [BodySegment(self)]
        let stream = RequestBody.writer(length: nil, isReplayable: isReplayable) { writer in
            let output = try CompressedOutput(writer, coding, level: level)
            try await segments.write(to: RequestBodyWriter { chunk in try await output.write(chunk) })
            try await output.finish()
        }
        return afterEncoding(without: stream) { $0.body = $0.body.compressed(coding, level: level) }
            ?? stream.gated(as: self)
    }
}

/// A writer that compresses the chunks of a body and passes them on.
private actor CompressedOutput {
    private let writer: RequestBodyWriter
    private let compressor: Compressor

    init(_ writer: sending RequestBodyWriter, _ coding: ContentCoding, level: Int) throws(SystemError) {
        self.writer = writer
        compressor = try Compressor(coding, level: level)
    }

    func write(_ chunk: Data) async throws {
        try await compressor.write(chunk, to: writer)
    }

    func finish() async throws {
        try await compressor.write(nil, to: writer)
    }
}

/// A compressor of the chunks of a body.
final class Compressor {
    private var deflater: Deflater
    /// The bytes of the last chunk that were not compressed yet.
    private var input = Data()
    private var output = Data(count: 64 << 10)
    private var isEnd = false
    private var isFinished = false

    init(_ coding: ContentCoding, level: Int) throws(SystemError) {
        deflater = try Deflater(format: coding.format, level: min(max(level, 1), 9))
    }

    /// Returns bytes in compressed form.
    static func compress(_ data: Data, _ coding: ContentCoding, level: Int) throws(SystemError) -> Data {
        let compressor = try Compressor(coding, level: level)
        compressor.input = data
        compressor.isEnd = true
        var result = Data()
        while !compressor.isFinished { result.append(try compressor.fill().output) }
        return result
    }

    /// Writes a chunk in compressed form, as far as it does not stay in the compressor; `nil` for the end.
    func write(_ chunk: Data?, to writer: RequestBodyWriter) async throws {
        input = chunk ?? Data()
        isEnd = chunk == nil
        while !isFinished {
            let (output, needsInput) = try fill()
            if !output.isEmpty { try await writer.write(output) }
            if needsInput { return }
        }
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

extension RequestBody {
    /// Writes the body to a file, which appears under its name when it is complete.
    ///
    /// - Throws: See ``write(to:)``; ``SerializationError/multipart(_:)`` if the file cannot be written.
    package func write(toFile path: String) async throws {
        try await [BodySegment(self)].write(to: path) { _ in }
    }
}

extension RequestBody {
    /// Passes all bytes of the body to a writer: for a custom transport, or for an interceptor that reads bodies.
    ///
    /// A file is read in chunks of at most 256 KiB. A sequence is iterated, and a closure called, each time that this
    /// function is called; a body that is not replayable must be written only once. Without a body, the writer receives
    /// nothing. In a transport, the body of a session's `SessionTask`, unless its length is known and at most 256 KiB,
    /// waits while the task is suspended.
    ///
    /// - Parameter writer: Receives the bytes in order, in chunks that are not empty, and determines the speed.
    /// - Throws: ``ANSerialization/SerializationError/multipart(_:)`` for a file that cannot be read, a length that
    ///   differs from the declared one, or a form that is written again although one of its parts is not replayable;
    ///   the error of the sequence, closure or writer; or `CancellationError` before the next chunk if the calling task
    ///   is cancelled.
    public func write(to writer: sending RequestBodyWriter) async throws {
        try await gate?()
        try await [BodySegment(self)].write(to: writer.gated(by: gate))
    }
}
