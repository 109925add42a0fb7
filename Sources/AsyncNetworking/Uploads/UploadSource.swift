// SPDX-License-Identifier: MIT

import ANCache
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
    /// The states of the files that the body is read from, such as those of a form.
    private let stamps: [FileStamp]

    /// Creates the source of a body.
    ///
    /// - Throws: ``SessionError/UploadFailure/bodyNotResumable`` if the body cannot be sent again or has no known length,
    ///   such as a file that the system generates;
    ///   ``ANHTTP/TransportError/Reason/requestBody(_:)`` for a file that cannot be read.
    init(_ body: RequestBody) throws {
        self.body = body
        guard body.isReplayable else { throw SessionError.upload(.bodyNotResumable) }
        stamps = body.files.map { FileStamp(path: $0.absolutePath) }
        if case .file(let path) = body.content, let stamp = stamps.first {
            let path = path.absolutePath
            file = (path, stamp)
            let length: FileLength
            do throws(SystemError) {
                length = try FileLength(ofFileAt: path)
            } catch {
                throw TransportError(.requestBody(.file(path: path, reason: error.description)))
            }
            guard case .known(let size) = length else { throw SessionError.upload(.bodyNotResumable) }
            self.length = size
        } else {
            guard let length = body.length, length >= 0 else { throw SessionError.upload(.bodyNotResumable) }
            (self.length, file) = (length, nil)
        }
    }

    /// Throws if a file has changed since the upload began.
    func check() throws(SessionError) {
        if !stamps.allSatisfy(\.isCurrent) { throw .upload(.sourceChanged) }
    }

    /// Returns a body with the bytes of a range.
    func part(_ range: Range<Int64>) -> RequestBody {
        if range == 0..<length { return body }
        // Nothing is generated to send none of it.
        if range.isEmpty { return .bytes(Data()).gated(as: body) }
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

/// The record of a durable upload, in a file beside the uploaded one.
///
/// The number of bytes that the server has is not part of it: the server is asked. A record that is lost, or whose last
/// change is, costs bytes that are sent again, but never mixes two files. The file of the record is locked while the
/// upload runs, so that no second one sends the same bytes. It is replaced as a whole by another one, which is locked
/// before: a process that is killed meanwhile, or a full disk, leaves the earlier record.
package actor UploadRecord {
    private var file: PartialFile?
    private let path: String
    /// The path of a record that is being written.
    private let replacement: String
    /// The contents that were found, or those for a new record.
    private let contents: Contents
    private var state: State

    /// What the file has of the upload.
    package enum State: Hashable, Sendable {
        /// Nothing. It is removed at the end, unless it is that of an earlier upload with other fields.
        case nothing(isOfAnother: Bool)
        /// These facts. A power failure may still bring the file before it back.
        case written(ResumableUpload.Known)
        /// These facts, for good.
        case flushed(ResumableUpload.Known)

        package var known: ResumableUpload.Known? {
            switch self {
            case .nothing: nil
            case .written(let known), .flushed(let known): known
            }
        }

        /// What has to be done so that the file has what is known of the upload.
        package enum Action: Hashable, Sendable {
            case none, empty, write, flushDirectory
        }

        /// Returns what has to be done so that the file has `known`.
        package func action(noting known: ResumableUpload.Known?) -> Action {
            switch self {
            case .nothing: known == nil ? .none : .write
            case .written(let old): known == nil ? .empty : known == old ? .flushDirectory : .write
            case .flushed(let old): known == nil ? .empty : known == old ? .none : .write
            }
        }
    }

    private struct Contents: Codable {
        /// The version of the file whose bytes the server has.
        let stamp: FileStamp
        /// A checksum of the fields with which the upload was created, whose values may be secrets of the session.
        let salt: CacheSalt
        let creation: UInt64
        var known: ResumableUpload.Known?

        init(_ stamp: FileStamp, _ creation: [String]) {
            (self.stamp, salt) = (stamp, CacheSalt())
            self.creation = salt.checksum(of: creation)
        }

        /// Whether these are of an upload of the same version, created with the same fields.
        func isOf(_ stamp: FileStamp, _ creation: [String]) -> Bool {
            self.stamp.isSameVersion(as: stamp) && self.creation == salt.checksum(of: creation)
        }
    }

    /// Opens the record of a file's upload to the target of a request.
    ///
    /// - Parameter creation: The fields with which the upload is created. One that was created with others is not continued.
    /// - Throws: ``SessionError/file(_:)``, with the reason `inUse` if another upload has locked it.
    init(
        of source: (path: String, stamp: FileStamp), to request: Request, _ creation: [String]
    ) throws(SessionError) {
        // A long name is cut.
        let name = FileLocation(unresolved: source.path).name
        let target = "\(request.method.rawValue) \(request.url.absoluteString) \(name)"
        let suffix = "." + String(Checksum.of(target, seed: 0), radix: 36) + ".upload"
        let path = FileLocation.path(source.path, appending: suffix)
        var contents = Contents(source.stamp, creation)
        var isOfAnother = false
        do throws(SystemError) {
            let file = try PartialFile(path: path, opening: .either, mode: 0o600)
            do throws(SystemError) {
                if let earlier = try Self.read(file) {
                    if earlier.isOf(source.stamp, creation) { contents = earlier }
                    isOfAnother = contents.known == nil && earlier.stamp.isSameVersion(as: source.stamp)
                }
            } catch {
                file.keep()
                throw error
            }
            self.file = consume file
        } catch {
            throw .file(path, error)
        }
        (self.path, self.contents) = (path, contents)
        state = contents.known.map(State.written) ?? .nothing(isOfAnother: isOfAnother)
        replacement = FileLocation.path(source.path, appending: suffix + ".new")
    }

    /// The facts that an earlier process, or this one, has noted last.
    var known: ResumableUpload.Known? { state.known }
    /// The salt of the checksums in the record.
    var salt: CacheSalt { contents.salt }

    /// Writes what is known, if it has changed, and flushes it to the disk. The record of an upload of which nothing is
    /// known any more is emptied.
    func note(_ known: ResumableUpload.Known?) throws(SessionError) {
        let action = state.action(noting: known)
        guard let known else {
            guard action == .empty else { return }
            state = .nothing(isOfAnother: false)
            // The upload may be complete: it does not fail because of its record, by which the server is asked at most.
            try? file?.truncate(to: 0)
            try? file?.flush()
            return
        }
        do throws(SystemError) {
            if action == .write { try replaceFile(noting: known) }
            guard action != .none else { return }
            // What follows may complete the upload, of which a process must know after a power failure, too.
            try FileLocation(unresolved: path).flushDirectory()
            state = .flushed(known)
        } catch {
            throw .file(path, error)
        }
    }

    private func replaceFile(noting known: ResumableUpload.Known) throws(SystemError) {
        var contents = contents
        contents.known = known
        // Encoding these types as JSON cannot fail.
        guard let bytes = try? JSONEncoder().encode(contents) else { return }
        var next = try PartialFile(replacing: replacement, mode: 0o600)
        try next.write(bytes.bytes)
        try next.flush()
        try next.move(to: path)
        file.take()?.keep()
        file = consume next
        state = .written(known)
    }

    /// Closes the file, which is kept if the upload, or an earlier one with other fields, can go on, and removed otherwise.
    ///
    /// - Parameter isComplete: Whether the server has the file, so that no earlier upload of it goes on.
    func close(isComplete: Bool = false) {
        // Removed before it is unlocked: another upload may then have its own.
        if case .nothing(let isOfAnother) = state, isComplete || !isOfAnother {
            for path in [path, replacement] { FileLocation.remove(path) }
        }
        file.take()?.keep()
    }

    /// Returns the contents of a file; `nil` if they are malformed, as after a crash.
    private static func read(_ file: borrowing PartialFile) throws(SystemError) -> Contents? {
        guard file.size > 0, file.size <= longestRecord else { return nil }
        var bytes = Data(count: Int(file.size))
        var span = bytes.mutableBytes
        guard try file.read(into: &span, at: 0) == bytes.count else { return nil }
        return try? JSONDecoder().decodeUntrusted(Contents.self, from: bytes)
    }

    private static let longestRecord: Int64 = 1 << 20
}
