// SPDX-License-Identifier: MIT

public import ANHTTP
import ANSystem
public import FoundationEssentials
package import HTTPTypes

/// The state of an unfinished download, from which it can be resumed.
///
/// ``SessionError/resumeData`` is the value for a failed download, ``SessionTask/cancelProducingResumeData()`` returns
/// the one of a cancelled download, and ``left(at:)`` that of a durable one. It can be stored anywhere; the bytes
/// remain in ``partialFile``. Its encoded form contains the URL and the request's header fields except those in
/// ``RedirectPolicy/sensitiveHeaders``, which may include secrets. See
/// ``SessionManager/download(resuming:with:to:options:)``.
public struct ResumeData: Codable, Hashable, Sendable {
    /// The URL of the original request, before redirects.
    ///
    /// An expired link can be replaced by another URL of the same file; the validator of the response (`ETag` or
    /// `Last-Modified`), its size and any known digests show whether it is the same.
    public var url: URL
    /// The request's header fields, without the sensitive ones (see ``RedirectPolicy/sensitiveHeaders``). Credentials
    /// must be added again to resume the download.
    package var headers: HTTPFields
    /// The representation that the bytes belong to.
    package var representation: Representation
    /// The number of valid bytes at the beginning of the partial file, at which the download continues; 0 if it must
    /// start over. Bytes of the file after it are discarded, except those of a segmented download, which are stored
    /// here as well.
    public var offset: Int64
    /// The ranges after a gap that the partial file contains in addition, as a segmented download leaves them; `nil` for
    /// none.
    package var parts: ByteRanges?
    /// The number of valid bytes in the partial file, including those after gaps.
    package var completedBytes: Int64 { offset.addingClamped(parts?.count ?? 0) }
    /// The size of the whole file in bytes; `nil` if the server did not send it.
    public var totalBytes: Int64? {
        get { representation.totalBytes }
        set { representation.totalBytes = newValue }
    }
    /// The path of the file with the bytes that have been received. If it is missing or shorter than ``offset``, the
    /// download cannot be resumed, and ``DownloadOptions/startsOverIfNotResumable`` selects what happens.
    public var partialFile: String
    /// The absolute path of the destination; `nil` if a closure was to choose it. If a file existed there when the
    /// download began, symbolic links are resolved. For a durable download whose directory was moved together with the
    /// partial file, ``left(at:)`` and ``SessionManager/restoredDownloads(in:options:preparing:)`` return the path in
    /// the new directory.
    public var destination: String?
    /// Whether a file that exists at the destination is overwritten.
    package var overwritesExisting: Bool
    /// The digest that the program expects of the whole file; `nil` for none.
    ///
    /// OpenSSL cannot store the state of an unfinished digest, so resuming a download hashes the partial file again.
    package var expectedDigest: ContentDigest?
    /// `true` if bytes of mirrors may be among them, which only the digests of the program verify. Those of pieces are
    /// not stored.
    package var hasMirrorBytes: Bool?
    /// The request to resume the download with: a GET request for ``url`` with the stored header fields, which do not
    /// include sensitive ones such as `Authorization`. The download adds `Range` and `If-Range`.
    public var request: Request { Request(url: url, headers: headers) }

    /// Returns the resume data of an unfinished durable download to a path; `nil` if its record is missing, malformed,
    /// or cannot be read. Reads the record on the calling thread.
    ///
    /// It detects neither that the partial file is missing nor that the download is being continued: resuming it then
    /// starts over (or fails with ``SessionError/notResumable(_:)``) in the first case, and fails with
    /// ``SessionError/FileFailure/Reason/inUse`` in the second.
    ///
    /// - Parameter destination: The path of the download's destination; a relative one is resolved against the working
    ///   directory.
    public static func left(at destination: String) -> ResumeData? {
        try? DownloadRecord.read(
            beside: DownloadRecord.partialFile(for: FileLocation(destination.absolutePath).path))
    }

    /// Whether a later response can be identified as the same version, or verified by digests.
    func isVerifiable(with pieces: PieceDigests?) -> Bool {
        expectedDigest != nil || pieces != nil || hasMirrorBytes != true && representation.isVerifiable
    }

    /// Whether a request with these fields selects the same representation; see ``Representation/isSelected(by:)``. The
    /// digest that the program expects identifies it as well.
    func isSelected(by fields: HTTPFields) -> Bool { expectedDigest != nil || representation.isSelected(by: fields) }

    /// Removes the partial file and, for a durable download, its record, after which the download cannot be resumed.
    /// Files that do not exist or cannot be removed, and directories, are ignored, and nothing is removed while a download
    /// writes the file.
    public func discard() {
        do throws(SystemError) {
            // Locked until the record is removed, and removed with this value.
            var file = try PartialFile(path: partialFile, opening: .existing)
            DownloadRecord.discard(of: &file)
            _ = consume file
        } catch {
            guard error.fileReason == .missing else { return }
            DownloadRecord.discard(beside: partialFile)
        }
    }
}

/// The record of a durable download, in a file beside the partial file.
///
/// It is replaced atomically after the bytes that it counts have reached the disk, so that at any time the record is
/// either correct or missing. The lock on the partial file excludes other writers.
enum DownloadRecord {
    static func path(beside partialFile: String) -> String { partialFile + ".json" }

    /// Returns the path of the partial file of a durable download. Of a name that is too long for the file system, only
    /// the beginning is used, and a checksum instead of the rest.
    static func partialFile(for destination: String) -> String {
        let location = FileLocation(unresolved: destination)
        guard location.name.utf8.count > longestName else { return destination + ".part" }
        let suffix = "." + String(Checksum.of(location.name, seed: 0), radix: 36)
        var beginning = location.name[...]
        while beginning.utf8.count + suffix.utf8.count > longestName { beginning.unicodeScalars.removeLast() }
        let directory = destination.utf8.prefix(destination.utf8.count - location.name.utf8.count)
        return String(Substring(directory)) + beginning + suffix + ".part"
    }

    /// `NAME_MAX` of Linux less the longest suffix, `.part.json.new`.
    private static let longestName = 255 - 14

    /// Writes a record, and returns the file's identity.
    ///
    /// - Parameter isFirst: Whether the record must be on the disk before the bytes that follow, because an earlier one does
    ///   not describe them. If that fails, a file without bytes has no record.
    static func write(_ data: ResumeData, isFirst: Bool = false) throws(SystemError) -> FileStamp? {
        // Encoding these types as JSON cannot fail.
        guard let bytes = try? JSONEncoder().encode(data) else { return nil }
        let path = path(beside: data.partialFile)
        var file = try PartialFile(replacing: path + ".new", mode: 0o600)
        try file.write(bytes.bytes)
        // Otherwise a power failure could leave an empty record in place of the last one.
        try file.flush()
        try file.move(to: path)
        do throws(SystemError) {
            if isFirst { try FileLocation(unresolved: path).flushDirectory() }
        } catch {
            if (try? FileLength(ofFileAt: data.partialFile)) == .known(0) { FileLocation.remove(path) }
            throw error
        }
        return FileStamp(path: path)
    }

    /// Reads the record beside a partial file; returns `nil` if it is missing or malformed, or another user may have
    /// written it.
    ///
    /// The current paths of the two files replace the stored ones, so that their directory can be moved. The
    /// destination is in the same directory, where a download that is resumed would otherwise overwrite any file.
    ///
    /// - Throws: An error that says nothing about the record, such as `EMFILE`.
    static func read(beside partialFile: String) throws(SystemError) -> ResumeData? {
        // The file of another download, whose name a server may choose, is not private.
        guard let bytes = try FileDescriptor.privateBytes(at: path(beside: partialFile), upTo: longestRecord),
            var data = try? JSONDecoder().decodeUntrusted(ResumeData.self, from: Data(bytes)), data.offset >= 0
        else { return nil }
        let destination = data.destination.map { destination in
            FileLocation(unresolved: partialFile).sibling(FileLocation(unresolved: destination).name)
        }
        if let destination, Self.partialFile(for: destination) != partialFile { return nil }
        data.destination = destination
        data.partialFile = partialFile
        return data
    }

    private static let longestRecord = 16 << 20

    /// Verifies that a path is not that of an unfinished durable download to another path, which would continue the bytes of
    /// a file there, and believe it as its record.
    ///
    /// - Throws: ``SessionError/file(_:)`` with the path of the record, and the reason `exists`, or that of an error that says
    ///   nothing about it.
    static func checkDestination(_ path: String) throws(SessionError) {
        guard path.isNameOfUnfinishedDownload else { return }
        let partialFile = path.isNameOfDownloadRecord ? String(path.dropLast(".json".count)) : path
        do throws(SystemError) {
            if try read(beside: partialFile) != nil { throw .exists }
        } catch {
            throw .file(self.path(beside: partialFile), error)
        }
    }

    /// Returns the identity of the record beside a partial file; `nil` if ``read(beside:)`` returns `nil`.
    static func stamp(beside partialFile: String) throws(SystemError) -> FileStamp? {
        let stamp = FileStamp(path: path(beside: partialFile))
        return try read(beside: partialFile) == nil ? nil : stamp
    }

    /// Returns the records in a directory whose downloads are not being written. A record without its partial file
    /// belongs to a download that was complete when its process ended, and is removed.
    static func records(in directory: String) throws(SystemError) -> [ResumeData] {
        var records: [ResumeData] = []
        for name in try FileLocation.names(in: directory) where name.isNameOfDownloadRecord {
            let partialFile = directory + "/" + name.dropLast(".json".count)
            let stamp = FileStamp(path: path(beside: partialFile))
            guard let data = try read(beside: partialFile) else { continue }
            do throws(SystemError) {
                if try !PartialFile.isLocked(partialFile) { records.append(data) }
            } catch  where error.isAboutFile {
                if error.fileReason == .missing { remove(beside: partialFile, if: stamp) }
            }
        }
        return records
    }

    /// Removes the record beside a partial file, after earlier changes of the directory are on the disk: of two changes, a
    /// power failure may leave the second one only, and a partial file without its record is that of another program.
    ///
    /// - Parameter last: The record that this download has found or written last; `nil` for any record. After the partial
    ///   file was moved, another download of the same path may have begun, and written its own, perhaps with the same bytes.
    static func remove(beside partialFile: String, if last: FileStamp? = nil) {
        let path = path(beside: partialFile)
        // A record that stays is removed later: it has no partial file, or an empty one.
        guard FileLocation(path).exists, (try? FileLocation(unresolved: path).flushDirectory()) != nil else { return }
        guard last.map(\.isCurrent) ?? ((try? read(beside: partialFile)) != nil) else { return }
        FileLocation.remove(path)
    }

    /// Removes the record of a partial file, which is then removed as well, and one whose replacement was interrupted. The
    /// file is emptied before: it stays if the process ends meanwhile.
    static func discard(of file: inout PartialFile) {
        if FileLocation(path(beside: file.path)).exists {
            try? file.startOver()
            try? file.flush()
        }
        discard(beside: file.path)
    }

    /// Removes the record beside a partial file, as ``remove(beside:if:)`` does, and one whose replacement was interrupted.
    static func discard(beside partialFile: String, if last: FileStamp? = nil) {
        remove(beside: partialFile, if: last)
        FileLocation.remove(path(beside: partialFile) + ".new")
    }
}

/// Directories of this process.
enum ProcessDirectories {
    /// The directory for temporary files: `TMPDIR`, or else `/tmp`.
    static var temporary: String {
        let directory = ProcessInfo.processInfo.environment["TMPDIR"] ?? ""
        return directory.isEmpty ? "/tmp" : directory
    }
}
