// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
import FoundationEssentials

/// The files of a cache in a directory.
///
/// Each file is written under a temporary name and renamed when it is complete, and is never changed afterwards; or it
/// is a link to a file that the program downloaded, and may change. A checksum detects bytes that were lost, damaged or
/// changed, so that nothing is flushed to the disk. Several processes can use a directory: each of them sees the
/// other's files when it scans the directory. Errors are misses.
struct DiskStore: Sendable {
    let directory: String

    /// Creates the directory, readable by its owner only, if it is missing.
    ///
    /// - Throws: `EPERM` if another user can change it, or `ENOTDIR` for a symbolic link; otherwise the error of a
    ///   failed system call.
    init(directory: String) throws(SystemError) {
        // A version of the form of the files has a directory of its own.
        self.directory = directory + "/v2"
        try createDirectory()
    }

    private func createDirectory() throws(SystemError) {
        try FileLocation(unresolved: directory + "/entry").createDirectories(mode: 0o700)
        try FileLocation.checkProtectedDirectory(directory)
    }

    // MARK: Entries

    /// Reads an entry, without a body file; `nil` if it is damaged, or another user may have written it.
    ///
    /// - Parameter order: The position of its request; see ``CacheEntry/order``.
    /// - Throws: `ENOENT` if it is missing, or another error of open(2), such as `EMFILE`, which says nothing about the
    ///   entry.
    func read(_ name: EntryName, order: UInt64) throws(SystemError) -> CacheEntry? {
        let file = try FileDescriptor(openingUnlinked: path(name.entryFile))
        guard let size = try? file.protectedFileSize(isPrivate: true),
            size <= Self.longestEntry, let bytes = try? file.data(at: 0, count: Int(size)),
            let entry = CacheEntry(id: name.id, encoded: bytes, order: order),
            entry.name(key: CacheKey(target: entry.response.target), fileSize: size) == name
        else { return nil }
        return entry
    }

    /// Writes an entry's file, and returns its name.
    func write(_ entry: CacheEntry, key: CacheKey) throws(SystemError) -> EntryName {
        let bytes = entry.encoded()
        guard bytes.count <= Self.longestEntry else { throw SystemError(call: "write", code: Self.tooLarge) }
        let name = entry.name(key: key, fileSize: Int64(bytes.count))
        var file = try newFile()
        try file.write(bytes.bytes)
        try file.move(to: path(name.entryFile))
        return name
    }

    /// Removes an entry's file, and its body file unless another entry uses it.
    ///
    /// If another process has removed the entry's file, it may have replaced it by an entry with the same body file.
    func remove(_ name: EntryName, keepingBody: Bool) {
        let existed = FileLocation.remove(path(name.entryFile))
        if existed, !keepingBody, let body = name.bodyFile { FileLocation.remove(path(body)) }
    }

    /// Records the use of an entry in the modification time of its file.
    func touch(_ name: EntryName) {
        FileLocation.touch(path(name.entryFile))
    }

    /// The time of the last use of an entry; `nil` if its file is missing.
    func lastUse(of name: EntryName) -> Int64? {
        FileLocation.modificationTime(of: path(name.entryFile))
    }

    // MARK: Bodies

    /// Creates a temporary file.
    func newFile() throws(SystemError) -> PartialFile {
        do throws(SystemError) {
            return try PartialFile(path: temporaryPath, opening: .new, mode: 0o600)
        } catch {
            // Someone has removed the directory.
            guard error.fileReason == .missing else { throw error }
            try createDirectory()
            return try PartialFile(path: temporaryPath, opening: .new, mode: 0o600)
        }
    }

    private var temporaryPath: String {
        path(String(UInt64.systemRandom(in: .min ... .max), radix: 36) + Self.temporarySuffix)
    }

    /// The path of a body file.
    func path(ofBody id: UInt64, _ key: CacheKey) -> String {
        path(EntryName(key: key, id: 0, body: id, size: 0).bodyFile ?? "")
    }

    /// Returns whether a link to an empty file can be created, and the file is as ``link(_:to:size:)`` requires.
    func canLink(_ file: String) -> Bool {
        let link = temporaryPath
        guard (try? self.link(file, to: link, size: 0)) != nil else { return false }
        FileLocation.remove(link)
        return true
    }

    /// Creates a link to a file of the program.
    ///
    /// - Throws: `EPERM` if another user could modify the file, `EINVAL` if it has another size; otherwise the error of
    ///   link(2).
    func link(_ file: String, to path: String, size: Int64) throws(SystemError) {
        try FileLocation.link(file, to: path)
        do throws(SystemError) {
            guard try FileDescriptor(openingUnlinked: path).protectedFileSize() == size else {
                throw SystemError(call: "link", code: Self.invalid)
            }
        } catch {
            FileLocation.remove(path)
            throw error
        }
    }

    // MARK: The directory

    /// Returns the names of all entries, and removes what a process left behind that ended while it wrote.
    ///
    /// A temporary file is locked by its writer. A body without an entry may belong to an entry that another process is
    /// about to write, so it is removed only if it is old.
    func scan() throws(SystemError) -> [EntryName] {
        var files = try list()
        for name in files.temporary { removeIfAbandoned(name) }
        var (existing, used) = (files.existing, files.used)
        if existing != used {
            // Of an entry that another process replaces meanwhile, readdir(3) may return neither name.
            files = try list()
            existing.formUnion(files.existing)
            used.formUnion(files.used)
        }
        for body in files.bodies where !used.contains(body.bodyID) { removeIfOld(body) }
        return files.entries.filter { entry in
            let isComplete = entry.body == 0 || existing.contains(entry.bodyID)
            if !isComplete { remove(entry, keepingBody: true) }
            return isComplete
        }
    }

    private func list() throws(SystemError) -> Files {
        var files = Files()
        try FileLocation.forEachName(in: directory) { name in
            if let entry = EntryName(name) {
                if entry.id == 0 { files.bodies.append(entry) } else { files.entries.append(entry) }
            } else if name.hasSuffix(Self.temporarySuffix) {
                files.temporary.append(name)
            }
        }
        return files
    }

    /// The names in the directory.
    private struct Files {
        var entries: [EntryName] = []
        var bodies: [EntryName] = []
        var temporary: [String] = []

        var existing: Set<BodyID> { Set(bodies.map(\.bodyID)) }
        /// The bodies that the entries need.
        var used: Set<BodyID> { Set(entries.lazy.filter { $0.body != 0 }.map(\.bodyID)) }
    }

    private func removeIfAbandoned(_ name: String) {
        // The file is removed with the value, which exists only if no process has locked the file. A link to a file of the
        // program leaves its permissions.
        _ = try? PartialFile(path: path(name), opening: .existing, mode: 0o777)
    }

    private func removeIfOld(_ body: EntryName) {
        guard let file = body.bodyFile, let time = FileLocation.modificationTime(of: path(file)) else { return }
        let age = CacheTime.now - CacheTime(milliseconds: time / 1_000_000)
        if age > CacheTime(seconds: 3_600) || age < CacheTime(seconds: -3_600) { FileLocation.remove(path(file)) }
    }

    private func path(_ name: String) -> String { "\(directory)/\(name)" }

    /// The greatest size of an entry's file; larger ones are not read.
    private static let longestEntry: Int64 = 4 << 20
    /// `EFBIG` and `EINVAL`.
    private static let (tooLarge, invalid): (Int32, Int32) = (27, 22)
    private static let temporarySuffix = ".part"
}

/// A body file.
private struct BodyID: Hashable {
    let key: CacheKey
    let id: UInt64
}

extension EntryName {
    fileprivate var bodyID: BodyID { BodyID(key: key, id: body) }
}

extension CacheEntry {
    /// The name of the entry's file, which has a size in bytes.
    fileprivate func name(key: CacheKey, fileSize: Int64) -> EntryName {
        EntryName(
            key: key, id: id, body: body.fileID, size: fileSize + (body.fileID == 0 ? 0 : body.length))
    }
}

extension CacheEntry.Body {
    /// The number of the body file; 0 for a body in memory.
    var fileID: UInt64 {
        switch self {
        case .memory: 0
        case .file(let file): file.id
        }
    }
}

extension FileDescriptor {
    /// Reads bytes at an offset.
    ///
    /// - Throws: `EIO` if the file ends before the last of them; otherwise the error of pread(2).
    func data(at offset: Int64, count: Int) throws(SystemError) -> Data {
        var result = Data(count: count)
        var span = result.mutableBytes
        var filled = try read(into: &span, at: offset)
        while filled < count {
            var piece = Data(count: count - filled)
            var rest = piece.mutableBytes
            let read = try read(into: &rest, at: offset + Int64(filled))
            guard read > 0 else { throw SystemError(call: "pread", code: 5) }
            result.replaceSubrange(filled..<filled + read, with: piece.prefix(read))
            filled += read
        }
        return result
    }
}

/// The name of a file in a cache's directory, which contains what the index needs to know about it.
///
/// | file | name |
/// |---|---|
/// | entry | `KEY-ID-BODY-SIZE-LENGTH.entry`: the key, the entry, its body file or 0, the size of both in bytes |
/// | body | `KEY-BODY.body` |
package struct EntryName: Hashable, Sendable {
    /// The key of the entry.
    package let key: CacheKey
    /// The number of the entry; 0 for a body.
    package let id: UInt64
    /// The number of the body file; 0 if the body is in the entry's file.
    let body: UInt64
    /// The size of the entry's file and its body file in bytes; 0 for a body.
    let size: Int64

    /// Creates the name of an entry, or of a body if `id` is 0.
    package init(key: CacheKey, id: UInt64, body: UInt64, size: Int64) {
        self.key = key
        self.id = id
        self.body = body
        self.size = size
    }

    /// The name of the entry's file.
    package var entryFile: String {
        let numbers = [key.high, key.low, id, body, UInt64(clamping: size)].map(Self.hex)
        return "\(numbers[0])\(numbers[1])-\(numbers[2...].joined(separator: "-"))" + Self.entrySuffix
    }

    /// The name of the body file; `nil` if the body is in the entry's file.
    package var bodyFile: String? {
        body == 0 ? nil : "\(Self.hex(key.high))\(Self.hex(key.low))-\(Self.hex(body))" + Self.bodySuffix
    }

    /// Parses the name of an entry or a body; `nil` for another file.
    package init?(_ name: String) {
        var words: [UInt64] = []
        var word: UInt64 = 0
        var digits = 0
        var rest = name.utf8[...]
        while let byte = rest.popFirst() {
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"): word = word << 4 | UInt64(byte - UInt8(ascii: "0"))
            case UInt8(ascii: "a")...UInt8(ascii: "f"): word = word << 4 | UInt64(byte - UInt8(ascii: "a") + 10)
            case UInt8(ascii: "-") where digits == 0: continue
            case UInt8(ascii: ".") where digits == 0:
                let isEntry = words.count == 5 && rest.elementsEqual(Self.entrySuffix.utf8.dropFirst())
                let isBody = words.count == 3 && rest.elementsEqual(Self.bodySuffix.utf8.dropFirst())
                guard isEntry || isBody, isBody || words[2] != 0, let size = Int64(exactly: isEntry ? words[4] : 0),
                    size <= Self.greatestSize
                else { return nil }
                self.init(
                    key: CacheKey(high: words[0], low: words[1]), id: isEntry ? words[2] : 0,
                    body: isEntry ? words[3] : words[2], size: size)
                return
            default: return nil
            }
            digits += 1
            if digits == 16 {
                words.append(word)
                (word, digits) = (0, 0)
            }
        }
        return nil
    }

    private static func hex(_ number: UInt64) -> String {
        let digits = String(number, radix: 16)
        return String(repeating: "0", count: 16 - digits.utf8.count) + digits
    }

    /// The greatest size of an entry, 256 GiB. A sum of sizes cannot overflow.
    static let greatestSize: Int64 = 1 << 38
    private static let entrySuffix = ".entry"
    private static let bodySuffix = ".body"
}
