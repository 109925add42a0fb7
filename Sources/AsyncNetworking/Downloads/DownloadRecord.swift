// SPDX-License-Identifier: MIT

import ANSystem
import FoundationEssentials

/// The record of a durable download, in a file beside its bytes.
///
/// It is replaced in one step after the bytes that it counts have reached the disk, so that at any moment there is a record
/// that is true, or none. The lock on the partial file keeps other writers away.
enum DownloadRecord {
    static func path(beside partialFile: String) -> String { partialFile + ".json" }

    /// Where a durable download to a path keeps its bytes.
    static func partialFile(for destination: String) -> String { destination + ".part" }

    static func write(_ data: ResumeData) throws(SystemError) {
        // Values of these types always have a JSON form.
        guard let bytes = try? JSONEncoder().encode(data) else { return }
        let path = path(beside: data.partialFile)
        var file = try PartialFile(path: path + ".new", opening: .either, mode: 0o600)
        try file.cut(to: 0)
        try file.write(bytes.bytes)
        try file.move(to: path)
    }

    /// Reads the record beside a partial file; nil where there is none that makes sense.
    ///
    /// Where the two files are now counts, not where they were: folders are moved.
    static func read(beside partialFile: String) -> ResumeData? {
        guard let bytes = try? Data(contentsOf: URL(filePath: path(beside: partialFile))),
            var data = try? JSONDecoder().decode(ResumeData.self, from: bytes), data.offset >= 0
        else { return nil }
        if let destination = data.destination.map(FilePlace.init(unresolved:)),
            destination.folder == FilePlace(unresolved: data.partialFile).folder
        {
            data.destination = FilePlace(unresolved: partialFile).folder + "/" + destination.name
        }
        data.partialFile = partialFile
        return data
    }

    /// The records of downloads in a folder that nobody is writing. One without its bytes is of a file that was complete when
    /// its process ended, and is removed.
    static func records(in folder: String) throws(SystemError) -> [ResumeData] {
        var records: [ResumeData] = []
        for name in try FilePlace.names(in: folder) where name.hasSuffix(".part.json") {
            let partialFile = folder + "/" + name.dropLast(".json".count)
            do throws(SystemError) {
                // It has the lock while it reads.
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

/// Folders of this process.
enum ProcessFolders {
    /// The folder for temporary files: `TMPDIR`, or `/tmp`.
    static var temporary: String {
        let folder = ProcessInfo.processInfo.environment["TMPDIR"] ?? ""
        return folder.isEmpty ? "/tmp" : folder
    }

    /// A path that is good whatever the working folder is later.
    static func absolute(_ path: String) -> String {
        path.hasPrefix("/") ? path : FileManager.default.currentDirectoryPath + "/" + path
    }
}
