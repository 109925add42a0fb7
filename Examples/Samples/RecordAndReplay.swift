// SPDX-License-Identifier: MIT

import AsyncNetworking
import AsyncNetworkingTesting
import Foundation

// The samples of the article "Record and replay".

func replay() async throws {
    // snippet.replay
    var configuration = SessionConfiguration(baseURL: URL(string: "https://api.example.com/"))
    configuration.transport = try RecordingTransport(wrapping: configuration.makeTransport(), to: "users.har")
    let recorded = try await SessionManager(configuration).get("users").value

    configuration.transport = try ReplayTransport(from: "users.har")
    let replayed = try await SessionManager(configuration).get("users").value
    print(recorded == replayed)
    // snippet.end
}

// snippet.modes
func session(_ cassette: String) throws -> SessionManager {
    let mode = ProcessInfo.processInfo.environment["RECORDING"].flatMap { RecordingMode(rawValue: $0) }
    var configuration = SessionConfiguration(baseURL: URL(string: "https://api.example.com/"))
    configuration.transport = try RecordingTransport(
        wrapping: configuration.makeTransport(), to: "Tests/Cassettes/\(cassette).har", mode: mode ?? .replay)
    return SessionManager(configuration)
}
// snippet.end

func findSecrets(_ cassettes: [URL], _ secrets: [String]) throws {
    // snippet.canary
    for cassette in cassettes {
        let places = try HAR(Data(contentsOf: cassette)).places(of: secrets)
        if !places.isEmpty { print("\(cassette.path) contains a secret:", places) }
    }
    // snippet.end
}
