// SPDX-License-Identifier: MIT

import Foundation

/// Pictures made by the tool `vips`.
enum Picture {
    /// A file with a picture of 64 × 48 pixels: the left half red, the right half blue.
    static func halves(_ suffix: String) throws -> Data {
        try inDirectory { directory in
            try vips("black", "half.v", "32", "48", "--bands", "3", in: directory)
            try vips("linear", "half.v", "red.v", "1", "255 0 0", "--uchar", in: directory)
            try vips("linear", "half.v", "blue.v", "1", "0 0 255", "--uchar", in: directory)
            try vips("join", "red.v", "blue.v", "both.v", "horizontal", in: directory)
            // Without an interpretation of the colours, it would be saved as shades of grey.
            try vips("copy", "both.v", "picture.v", "--interpretation", "srgb", in: directory)
            try vips("copy", "picture.v", "out\(suffix)", in: directory)
            return try Data(contentsOf: directory.appending(path: "out\(suffix.prefix { $0 != "[" })"))
        }
    }

    /// A file that the operations of `vips` make, the last of which writes `out` with the suffix.
    static func made(_ suffix: String, by operations: [[String]]) throws -> Data {
        try inDirectory { directory in
            for operation in operations { try vips(operation, in: directory) }
            return try Data(contentsOf: directory.appending(path: "out\(suffix)"))
        }
    }

    private static func inDirectory<Value>(_ body: (URL) throws -> Value) throws -> Value {
        let directory = FileManager.default.temporaryDirectory.appending(path: "an-pictures-\(UUID())")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        return try body(directory)
    }

    private static func vips(_ arguments: String..., in directory: URL) throws {
        try vips(arguments, in: directory)
    }

    private static func vips(_ arguments: [String], in directory: URL) throws {
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/vips")
        process.arguments = arguments
        process.currentDirectoryURL = directory
        try process.run()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else { throw Failure(arguments: arguments) }
    }

    struct Failure: Error {
        let arguments: [String]
    }
}
