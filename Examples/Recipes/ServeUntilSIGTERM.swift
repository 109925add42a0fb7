// SPDX-License-Identifier: MIT

// Works until the process receives SIGTERM or SIGINT, and then lets running requests end.

import AsyncNetworking
import FoundationEssentials

let api = SessionManager(baseURL: URL(string: CommandLine.arguments[1]))

try await withThrowingTaskGroup { group in
    group.addTask {
        // Waits for a signal, then refuses new requests, and waits for those that are running.
        let signal = try await api.shutdownOnSignal(draining: .seconds(20))
        print("ended by signal \(signal)")
    }
    group.addTask {
        do {
            while true {
                print(try await api.get("status").statusCode)
                try await Task.sleep(for: .seconds(1))
            }
        } catch SessionError.invalidated {
            // The session was shut down.
        }
    }
    try await group.waitForAll()
}
