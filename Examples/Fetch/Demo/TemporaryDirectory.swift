// SPDX-License-Identifier: MIT

import FoundationEssentials

/// A temporary directory that is deleted with its contents at the end of a scope.
struct TemporaryDirectory: Sendable {
    private let path: String

    /// Creates a directory, passes it to `body`, and deletes it.
    static func with(_ body: (TemporaryDirectory) async throws -> Void) async throws {
        let name = "fetch-demo-" + String(UInt64.random(in: .min ... .max), radix: 36)
        let directory = TemporaryDirectory(path: FileManager.default.temporaryDirectory.appending(path: name).path)
        try FileManager.default.createDirectory(atPath: directory.path, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(atPath: directory.path) }
        try await body(directory)
    }

    /// Returns the path of a file in the directory.
    func path(_ name: String) -> String {
        "\(path)/\(name)"
    }

    /// Returns the sorted names of the files in the directory.
    func names() throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: path).sorted()
    }

    /// Writes a file and returns its path.
    func write(_ name: String, _ data: Data) throws -> String {
        try data.write(to: URL(filePath: path(name)))
        return path(name)
    }
}
