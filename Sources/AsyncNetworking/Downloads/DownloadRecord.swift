// SPDX-License-Identifier: MIT

import ANSystem
import FoundationEssentials

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

    /// Writes a record, and returns its bytes.
    static func write(_ data: ResumeData) throws(SystemError) -> Data {
        // Encoding these types as JSON cannot fail.
        guard let bytes = try? JSONEncoder().encode(data) else { return Data() }
        let path = path(beside: data.partialFile)
        var file = try PartialFile(path: path + ".new", opening: .either, mode: 0o600)
        try file.truncate(to: 0)
        try file.write(bytes.bytes)
        try file.move(to: path)
        return bytes
    }

    /// Reads the record beside a partial file; returns `nil` if it is missing or malformed, or another user may have
    /// written it.
    ///
    /// The current paths of the two files replace the stored ones, so that their directory can be moved. The
    /// destination is in the same directory, where a download that is resumed would otherwise overwrite any file.
    static func read(beside partialFile: String) -> ResumeData? {
        guard let bytes = bytes(beside: partialFile),
            var data = try? JSONDecoder().decode(ResumeData.self, from: bytes), data.offset >= 0
        else { return nil }
        let destination = data.destination.map { destination in
            let name = FileLocation(unresolved: destination).name
            return FileLocation(unresolved: partialFile).directory + "/" + name
        }
        if let destination, Self.partialFile(for: destination) != partialFile { return nil }
        data.destination = destination
        data.partialFile = partialFile
        return data
    }

    private static func bytes(beside partialFile: String) -> Data? {
        guard let file = try? FileDescriptor(openingUnlinked: path(beside: partialFile)),
            let size = try? file.protectedFileSize(), size <= longestRecord
        else { return nil }
        var bytes = Data(count: Int(size))
        var span = bytes.mutableBytes
        guard let count = try? file.read(into: &span, at: 0), count == size else { return nil }
        return bytes
    }

    private static let longestRecord: Int64 = 16 << 20

    /// Returns the records in a directory whose downloads are not being written. A record without its partial file
    /// belongs to a download that was complete when its process ended, and is removed.
    static func records(in directory: String) throws(SystemError) -> [ResumeData] {
        var records: [ResumeData] = []
        for name in try FileLocation.names(in: directory) where name.hasSuffix(".part.json") {
            let partialFile = directory + "/" + name.dropLast(".json".count)
            guard let data = read(beside: partialFile) else { continue }
            do throws(SystemError) {
                if try !PartialFile.isLocked(partialFile) { records.append(data) }
            } catch {
                if error.fileReason == .missing { remove(beside: partialFile) }
            }
        }
        return records
    }

    /// Removes the record beside a partial file.
    ///
    /// - Parameter last: The bytes of the record that this download has written last; `nil` for any record. After the
    ///   partial file was moved, another download of the same path may have begun, and written its own.
    static func remove(beside partialFile: String, if last: Data? = nil) {
        guard last == nil ? read(beside: partialFile) != nil : bytes(beside: partialFile) == last else { return }
        FileLocation.remove(path(beside: partialFile))
    }

    /// Removes the record beside a partial file, and one whose replacement was interrupted.
    static func discard(beside partialFile: String) {
        remove(beside: partialFile)
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

    /// Returns an absolute path, which stays valid if the working directory changes.
    static func absolute(_ path: String) -> String {
        path.hasPrefix("/") ? path : FileManager.default.currentDirectoryPath + "/" + path
    }
}
