// SPDX-License-Identifier: MIT

import ANSystem
import FoundationEssentials

/// The record of a durable download, in a file beside the partial file.
///
/// It is replaced atomically after the bytes that it counts have reached the disk, so that at any time the record is
/// either correct or missing. The lock on the partial file excludes other writers.
enum DownloadRecord {
    static func path(beside partialFile: String) -> String { partialFile + ".json" }

    /// Returns the path of the partial file of a durable download.
    static func partialFile(for destination: String) -> String { destination + ".part" }

    static func write(_ data: ResumeData) throws(SystemError) {
        // Encoding these types as JSON cannot fail.
        guard let bytes = try? JSONEncoder().encode(data) else { return }
        let path = path(beside: data.partialFile)
        var file = try PartialFile(path: path + ".new", opening: .either, mode: 0o600)
        try file.truncate(to: 0)
        try file.write(bytes.bytes)
        try file.move(to: path)
    }

    /// Reads the record beside a partial file; returns `nil` if it is missing or malformed.
    ///
    /// The current paths of the two files replace the stored ones, so that their directory can be moved.
    static func read(beside partialFile: String) -> ResumeData? {
        guard let bytes = try? Data(contentsOf: URL(filePath: path(beside: partialFile))),
            var data = try? JSONDecoder().decode(ResumeData.self, from: bytes), data.offset >= 0
        else { return nil }
        if let destination = data.destination.map(FileLocation.init(unresolved:)),
            destination.directory == FileLocation(unresolved: data.partialFile).directory
        {
            data.destination = FileLocation(unresolved: partialFile).directory + "/" + destination.name
        }
        data.partialFile = partialFile
        return data
    }

    /// Returns the records in a directory whose downloads are not being written. A record without its partial file
    /// belongs to a download that was complete when its process ended, and is removed.
    static func records(in directory: String) throws(SystemError) -> [ResumeData] {
        var records: [ResumeData] = []
        for name in try FileLocation.names(in: directory) where name.hasSuffix(".part.json") {
            let partialFile = directory + "/" + name.dropLast(".json".count)
            do throws(SystemError) {
                // The lock on the partial file is held while the record is read.
                let file = try PartialFile(path: partialFile, opening: .existing)
                if let data = read(beside: partialFile) { records.append(data) }
                file.keep()
            } catch {
                if error.fileReason == .missing { remove(beside: partialFile) }
            }
        }
        return records
    }

    static func remove(beside partialFile: String) {
        try? FileManager.default.removeItem(atPath: path(beside: partialFile))
        try? FileManager.default.removeItem(atPath: path(beside: partialFile) + ".new")
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
