// SPDX-License-Identifier: MIT

import ClientKit
import Foundation

/// The server for workloads that nginx does not support: delayed responses and discarded bodies.
///
/// It ends with the driver, because the pipe to its standard input is then closed.
package struct BenchServer {
    /// The port on which the server listens.
    package let port: Int
    private let process = Process()
    private let input = Pipe()

    /// The beginning of its URLs.
    package var address: String { "http://127.0.0.1:\(port)" }

    /// Starts the server, or another program that prints its port.
    package init(program: URL, arguments: [String] = []) throws {
        let output = Pipe()
        process.executableURL = program
        process.arguments = arguments
        process.standardInput = input
        process.standardOutput = output
        try process.run()
        let line = String(decoding: output.fileHandleForReading.availableData, as: UTF8.self)
        guard let port = Int(line.trimmingCharacters(in: .whitespacesAndNewlines)) else {
            throw Failure("BenchServer did not print its port but: \(line)")
        }
        self.port = port
    }
}
