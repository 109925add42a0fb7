// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
package import FoundationEssentials

/// Stores a body while it is received. What is not finished leaves nothing behind.
///
/// A failure, such as a full disk, ends the storing and not the response. If the reader writes the body to a file that
/// can be linked to, the file is not written a second time.
package actor CacheWriter {
    private let disk: DiskStore?
    private let key: CacheKey
    /// The size above which a body is not stored.
    private let limit: Int64
    private var length: Int64 = 0
    private var buffer = Data()
    private var checksum = BodyChecksum()
    private var file: PartialFile?
    /// The file to which the reader writes the body, if it can be linked to.
    private var linkedFile: String?
    private var isAbandoned = false

    init(disk: DiskStore?, key: CacheKey, limit: Int64) {
        self.disk = disk
        self.key = key
        self.limit = limit
    }

    /// Announces the file to which the reader writes the body; see ``ANHTTP/FileBodySource``.
    package nonisolated func willBeWritten(to path: String) async {
        await withFiles { $0.expectFile(path) }
    }

    /// Appends bytes. A body that becomes too large for memory continues in a file.
    package nonisolated func append(_ bytes: Data) async {
        await withFiles { $0.store(bytes) }
    }

    /// Ends the body, and returns it; `nil` if it could not be stored.
    ///
    /// - Parameter expected: The length that the response announced, if any; another one is not stored.
    package nonisolated func finish(expected: Int64?) async -> CacheEntry.Body? {
        await withFiles { $0.end(expected: expected) }
    }

    /// Calls a function on the actor. It may write files, which is not done on the preferred executor of the task.
    private nonisolated func withFiles<Value: Sendable>(
        _ body: @Sendable (isolated CacheWriter) -> Value
    ) async -> Value {
        guard disk != nil else { return await body(self) }
        return await onGlobalExecutor { await body(self) }
    }

    private func expectFile(_ path: String) {
        if length == 0, let disk, disk.canLink(path) { linkedFile = path }
    }

    private func store(_ bytes: Data) {
        guard !isAbandoned else { return }
        length += Int64(bytes.count)
        guard length <= limit else { return abandon() }
        guard let disk, length > Self.longestInline else {
            if (try? buffer.collect(bytes, upTo: Int(clamping: limit))) == nil { abandon() }
            return
        }
        do throws(SystemError) {
            if file == nil, linkedFile == nil { file = try disk.newFile() }
            try write(buffer)
            buffer = Data()
            try write(bytes)
        } catch {
            abandon()
        }
    }

    private func write(_ bytes: Data) throws(SystemError) {
        checksum.update(bytes.bytes)
        try file?.write(bytes.bytes)
    }

    private func abandon() {
        isAbandoned = true
        buffer = Data()
        file = nil
    }

    private func end(expected: Int64?) -> CacheEntry.Body? {
        guard !isAbandoned, expected ?? length == length else {
            abandon()
            return nil
        }
        isAbandoned = true
        guard length > Self.longestInline, let disk else { return .memory(buffer) }
        do throws(SystemError) {
            let id = UInt64.systemRandom(in: 1 ... .max)
            let path = disk.path(ofBody: id, key)
            if let linkedFile { try disk.link(linkedFile, to: path, size: length) }
            try file?.move(to: path)
            file = nil
            return .file(CacheEntry.BodyFile(id: id, length: length, checksum: checksum.value))
        } catch {
            file = nil
            return nil
        }
    }

    /// The length up to which a body is part of its entry's file, and is kept in memory.
    private static let longestInline: Int64 = 64 << 10
}
