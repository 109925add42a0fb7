// SPDX-License-Identifier: MIT

import FoundationEssentials

/// A directory for a cache, removed with the value.
final class TemporaryDirectory: Sendable {
    let path = "/tmp/an-cache-\(UInt64.random(in: 0...UInt64.max))"
    private var inner: String { path + "/v2" }

    deinit { try? removeAll() }

    /// The names of the cache's files.
    var files: [String] {
        get throws { try FileManager.default.contentsOfDirectory(atPath: inner).sorted() }
    }

    /// The number of bytes of all files.
    var bytes: Int64 {
        get throws { try files.reduce(0) { try $0 + Int64(read($1).count) } }
    }

    func read(_ name: String) throws -> Data { try Data(contentsOf: URL(filePath: "\(inner)/\(name)")) }

    /// Writes a file that only its owner can read, as the cache does.
    func write(_ data: Data, to name: String) throws {
        try data.write(to: URL(filePath: "\(inner)/\(name)"))
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: "\(inner)/\(name)")
    }

    /// Creates a symbolic link.
    func link(_ name: String, to other: String) throws {
        try FileManager.default.createSymbolicLink(atPath: "\(inner)/\(name)", withDestinationPath: "\(inner)/\(other)")
    }

    func remove(_ name: String) throws { try FileManager.default.removeItem(atPath: "\(inner)/\(name)") }

    func removeFiles() throws { for file in try files { try remove(file) } }

    func removeAll() throws { try FileManager.default.removeItem(atPath: path) }

    /// Sets the time of a file to some seconds ago.
    func setAge(of name: String, _ seconds: Int) {
        let time = Date.now.addingTimeInterval(-Double(seconds))
        try? FileManager.default.setAttributes([.modificationDate: time], ofItemAtPath: "\(inner)/\(name)")
    }
}
