// SPDX-License-Identifier: MIT

import Foundation
import TestSupport

/// Pictures made by the tool `vips`.
enum Picture {
    /// A file with a picture of 64 × 48 pixels: the left half red, the right half blue.
    static func halves(_ suffix: String) async throws -> Data {
        try await shared.picture(suffix) {
            // Without an interpretation of the colours, it would be saved as shades of grey.
            let picture = try await shared.picture("") {
                try await made(
                    ".v",
                    by: [
                        ["black", "half.v", "32", "48", "--bands", "3"],
                        ["linear", "half.v", "red.v", "1", "255 0 0", "--uchar"],
                        ["linear", "half.v", "blue.v", "1", "0 0 255", "--uchar"],
                        ["join", "red.v", "blue.v", "both.v", "horizontal"],
                        ["copy", "both.v", "out.v", "--interpretation", "srgb"],
                    ])
            }
            return try await inDirectory { directory in
                try picture.write(to: directory.appending(path: "picture.v"))
                try await vips("copy", "picture.v", "out\(suffix)", in: directory)
                return try Data(contentsOf: directory.appending(path: "out\(suffix.prefix { $0 != "[" })"))
            }
        }
    }

    private static let shared = Shared()

    /// The pictures of several tests, each of which is made once.
    private actor Shared {
        private var pictures: [String: Task<Data, any Error>] = [:]

        func picture(_ key: String, _ make: @escaping @Sendable () async throws -> Data) async throws -> Data {
            let task = pictures[key] ?? Task { try await make() }
            pictures[key] = task
            return try await task.value
        }
    }

    /// A file that the operations of `vips` make, the last of which writes `out` with the suffix.
    static func made(_ suffix: String, by operations: [[String]]) async throws -> Data {
        try await inDirectory { directory in
            for operation in operations { try await vips(operation, in: directory) }
            return try Data(contentsOf: directory.appending(path: "out\(suffix)"))
        }
    }

    private static func inDirectory(_ body: (URL) async throws -> Data) async throws -> Data {
        let directory = FileManager.default.temporaryDirectory.appending(path: "an-pictures-\(UUID())")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        return try await body(directory)
    }

    private static func vips(_ arguments: String..., in directory: URL) async throws {
        try await vips(arguments, in: directory)
    }

    private static func vips(_ arguments: [String], in directory: URL) async throws {
        var command = Command(["vips"] + arguments)
        command.directory = directory.path()
        let outcome = try await command.run()
        guard outcome.status == 0 else { throw Failure(arguments: arguments, text: outcome.text) }
    }

    struct Failure: Error {
        let arguments: [String]
        let text: String
    }
}
