// SPDX-License-Identifier: MIT

import ClientKit
import Foundation

/// The server for what nginx cannot do: answers after two seconds, bodies thrown away.
///
/// It ends with the driver, because the pipe to its standard input does.
package struct BenchServer {
    /// Where it listens.
    package let port: Int
    private let process = Process()
    private let input = Pipe()

    /// Starts the server.
    package init(program: URL) throws {
        let output = Pipe()
        process.executableURL = program
        process.standardInput = input
        process.standardOutput = output
        try process.run()
        let line = String(decoding: output.fileHandleForReading.availableData, as: UTF8.self)
        guard let port = Int(line.trimmingCharacters(in: .whitespacesAndNewlines)) else {
            throw Failure("BenchServer printed no port but: \(line)")
        }
        self.port = port
    }
}
