// SPDX-License-Identifier: MIT

import FoundationEssentials
import TestSupport

/// Runs the system's curl(1), an independent client.
enum CurlTool {
    /// Runs curl with arguments, without environment, and waits for its end.
    static func run(_ arguments: [String]) async throws -> Command.Outcome {
        var command = Command(["curl", "-sS", "--max-time", "60", "--noproxy", "*"] + arguments)
        command.environment = [:]
        return try await command.run()
    }
}

/// A temporary directory, deleted when this object is released.
final class TemporaryDirectory: Sendable {
    let path = "/tmp/an-kit-\(UInt64.random(in: 0...UInt64.max))"

    init() throws {
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
    }

    deinit {
        try? FileManager.default.removeItem(atPath: path)
    }
}
