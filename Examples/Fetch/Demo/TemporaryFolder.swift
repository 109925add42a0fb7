// SPDX-License-Identifier: MIT

import FoundationEssentials

/// A folder that is gone, with all that is in it, when its scope ends.
struct TemporaryFolder: Sendable {
    private let path: String

    /// Makes a folder, lends it to `body`, and removes it.
    static func with(_ body: (TemporaryFolder) async throws -> Void) async throws {
        let name = "fetch-demo-" + String(UInt64.random(in: .min ... .max), radix: 36)
        let folder = TemporaryFolder(path: FileManager.default.temporaryDirectory.appending(path: name).path)
        try FileManager.default.createDirectory(atPath: folder.path, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(atPath: folder.path) }
        try await body(folder)
    }

    /// The path of a file in the folder.
    func path(_ name: String) -> String {
        "\(path)/\(name)"
    }

    /// The names of the files in the folder.
    func names() throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: path).sorted()
    }

    /// Writes a file and returns its path.
    func write(_ name: String, _ data: Data) throws -> String {
        try data.write(to: URL(filePath: path(name)))
        return path(name)
    }
}
