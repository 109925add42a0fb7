// SPDX-License-Identifier: MIT

import ANHTTP
import ANSerialization
import ANSystem
import FoundationEssentials
import HTTPTypes

/// The body of a resumable upload, of which any part can be sent.
struct UploadSource: Sendable {
    private let body: RequestBody
    /// The number of bytes.
    let length: Int64
    /// The path and the state of the file when the upload began; `nil` for a body that is not a regular file.
    let file: (path: String, stamp: FileStamp)?

    /// Creates the source of a body.
    ///
    /// - Throws: ``SessionError/UploadFailure/bodyNotResumable`` if the body cannot be sent again or has no known length;
    ///   ``ANHTTP/TransportError/Reason/requestBody(_:)`` for a file that cannot be read.
    init(_ body: RequestBody) throws {
        self.body = body
        guard body.isReplayable else { throw SessionError.upload(.bodyNotResumable) }
        if case .file(let path) = body.content {
            let path = ProcessDirectories.absolute(path)
            file = (path, FileStamp(path: path))
            length = try RegularFile.open(path) { TransportError(.requestBody(.file(path: $0, reason: $1))) }.size
        } else {
            guard let length = body.length, length >= 0 else { throw SessionError.upload(.bodyNotResumable) }
            (self.length, file) = (length, nil)
        }
    }

    /// Throws if the file has changed since the upload began.
    func check() throws(SessionError) {
        if let file, !file.stamp.isCurrent { throw .upload(.sourceChanged) }
    }

    /// Returns a body with the bytes of a range.
    func part(_ range: Range<Int64>) -> RequestBody {
        if range == 0..<length { return body }
        switch body.content {
        case .none:
            return body
        case .bytes(let data):
            let start = data.startIndex
            return .bytes(Data(data[start + Int(range.lowerBound)..<start + Int(range.upperBound)])).gated(as: body)
        case .file:
            return .writer(length: Int64(range.count), isReplayable: true) { [self] writer in
                try await writeFile(range, to: writer)
            }
            .gated(as: body)
        case .writer(_, _, let write):
            return .writer(length: Int64(range.count), isReplayable: true) { writer in
                try await Self.write(range, of: write, to: writer)
            }
            .gated(as: body)
        }
    }

    /// Returns the field with the digest of the bytes of a range.
    func digestField(_ range: Range<Int64>, by digest: UploadDigest) async throws -> HTTPField {
        let sum = PartDigest(digest)
        try await part(range).write(to: RequestBodyWriter { chunk in await sum.update(chunk) })
        return try await sum.field
    }

    private func writeFile(_ range: Range<Int64>, to writer: RequestBodyWriter) async throws {
        guard let file else { return }
        do {
            let descriptor = try FileDescriptor(opening: file.path, flags: 0)
            var offset = range.lowerBound
            while offset < range.upperBound {
                try Task.checkCancellation()
                var chunk = Data(count: Int(min(Int64(RequestBody.chunkSize), range.upperBound - offset)))
                var span = chunk.mutableBytes
                let count = try descriptor.read(into: &span, at: offset)
                guard count > 0 else { throw SessionError.upload(.sourceChanged) }
                try await writer.write(chunk.prefix(count))
                offset += Int64(count)
            }
        } catch let error as SystemError {
            throw SessionError.transport(
                TransportError(.requestBody(.file(path: file.path, reason: error.description))))
        }
    }

    /// Writes a part of the bytes that a closure writes, which is cancelled after the last one.
    private static func write(
        _ range: Range<Int64>, of write: BodyWriting, to writer: sending RequestBodyWriter
    ) async throws {
        let window = PartWriter(range, writer)
        do {
            try await write(RequestBodyWriter { chunk in try await window.write(chunk) })
        } catch is PartWriter.End {}
    }
}

/// Passes on the bytes of a range.
private actor PartWriter {
    private let range: Range<Int64>
    private let writer: RequestBodyWriter
    private var position: Int64 = 0

    /// Thrown after the last byte of the range.
    struct End: Error {}

    init(_ range: Range<Int64>, _ writer: sending RequestBodyWriter) {
        self.range = range
        self.writer = writer
    }

    func write(_ chunk: Data) async throws {
        let start = position
        position += Int64(chunk.count)
        let wanted = range.clamped(to: start..<position)
        if !wanted.isEmpty {
            try await writer.write(chunk.dropFirst(Int(wanted.lowerBound - start)).prefix(wanted.count))
        }
        if position >= range.upperBound { throw End() }
    }
}

/// The digest of a part while it is read.
private actor PartDigest {
    private let algorithm: UploadDigest
    private let digest: MessageDigest

    init(_ algorithm: UploadDigest) {
        self.algorithm = algorithm
        digest = algorithm.begin()
    }

    func update(_ chunk: Data) { digest.update(chunk.bytes) }

    var field: HTTPField { get throws(SessionError) { try algorithm.field(digest) } }
}
