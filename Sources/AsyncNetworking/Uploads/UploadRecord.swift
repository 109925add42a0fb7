// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
import FoundationEssentials
import HTTPTypes

/// The record of a durable upload, in a file beside the uploaded one.
///
/// The number of bytes that the server has is not part of it: the server is asked. A record that is lost, or whose last
/// change is, costs bytes that are sent again, but never mixes two files. The file of the record is locked while the
/// upload runs, so that no second one sends the same bytes. It is replaced as a whole by another one, which is locked
/// before: a process that is killed meanwhile, or a full disk, leaves the earlier record.
actor UploadRecord {
    private var file: PartialFile?
    private let path: String
    /// The path of a record that is being written.
    private let replacement: String
    private var contents: Contents

    private struct Contents: Codable {
        /// The version of the file whose bytes the server has.
        let stamp: FileStamp
        var known: ResumableUpload.Known?
    }

    /// Opens the record of a file's upload to the target of a request.
    ///
    /// - Throws: ``SessionError/file(_:)``, with the reason `inUse` if another upload has locked it.
    init(of source: (path: String, stamp: FileStamp), to request: Request) throws(SessionError) {
        let target = "\(request.method.rawValue) \(request.url.absoluteString)"
        let suffix = "." + String(Checksum.of(target, seed: 0), radix: 36) + ".upload"
        let path = FileLocation.path(source.path, appending: suffix)
        var contents = Contents(stamp: source.stamp)
        do throws(SystemError) {
            let file = try PartialFile(path: path, opening: .either, mode: 0o600)
            if let earlier = try Self.read(file), earlier.stamp.isSameVersion(as: source.stamp) { contents = earlier }
            self.file = consume file
        } catch {
            throw .file(path, error)
        }
        (self.path, self.contents) = (path, contents)
        replacement = FileLocation.path(source.path, appending: suffix + ".new")
    }

    /// The facts that an earlier process, or this one, has noted last.
    var known: ResumableUpload.Known? { contents.known }

    /// Writes what is known, if it has changed, and flushes it to the disk.
    func note(_ known: ResumableUpload.Known?) throws(SessionError) {
        guard known != contents.known else { return }
        contents.known = known
        // The file is removed when it is closed.
        guard known != nil else { return }
        // Encoding these types as JSON cannot fail.
        guard let bytes = try? JSONEncoder().encode(contents) else { return }
        do throws(SystemError) {
            var next = try PartialFile(path: replacement, opening: .either, mode: 0o600)
            try next.truncate(to: 0)
            try next.write(bytes.bytes)
            try next.flush()
            try next.move(to: path)
            file.take()?.keep()
            file = consume next
        } catch {
            throw .file(path, error)
        }
    }

    /// Closes the file, which is kept if the upload can go on, and removed otherwise.
    func close() {
        // Removed before it is unlocked: another upload may then have its own.
        if contents.known == nil { for path in [path, replacement] { FileLocation.remove(path) } }
        file.take()?.keep()
    }

    /// Returns the contents of a file; `nil` if they are malformed, as after a crash.
    private static func read(_ file: borrowing PartialFile) throws(SystemError) -> Contents? {
        guard file.size > 0, file.size <= longestRecord else { return nil }
        var bytes = Data(count: Int(file.size))
        var span = bytes.mutableBytes
        guard try file.read(into: &span, at: 0) == bytes.count else { return nil }
        return try? JSONDecoder().decode(Contents.self, from: bytes)
    }

    private static let longestRecord: Int64 = 1 << 20
}
