// SPDX-License-Identifier: MIT

import Foundation
import TestSupport

/// Pictures made by the tool `vips`.
enum Picture {
    /// A file with a picture of 64 × 48 pixels: the left half red, the right half blue.
    static func halves(_ suffix: String) async throws -> Data {
        try await inDirectory { directory in
            try await vips("black", "half.v", "32", "48", "--bands", "3", in: directory)
            try await vips("linear", "half.v", "red.v", "1", "255 0 0", "--uchar", in: directory)
            try await vips("linear", "half.v", "blue.v", "1", "0 0 255", "--uchar", in: directory)
            try await vips("join", "red.v", "blue.v", "both.v", "horizontal", in: directory)
            // Without an interpretation of the colours, it would be saved as shades of grey.
            try await vips("copy", "both.v", "picture.v", "--interpretation", "srgb", in: directory)
            try await vips("copy", "picture.v", "out\(suffix)", in: directory)
            return try Data(contentsOf: directory.appending(path: "out\(suffix.prefix { $0 != "[" })"))
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
