// SPDX-License-Identifier: MIT

// Works until the process receives SIGTERM or SIGINT, and then lets running requests end.

import AsyncNetworking
import FoundationEssentials
import Glibc

guard CommandLine.arguments.count == 2 else {
    print("usage: https://…/")
    exit(2)
}
let api = SessionManager(baseURL: URL(string: CommandLine.arguments[1]))

try await withThrowingTaskGroup { group in
    group.addTask {
        // Waits for a signal, then refuses new requests, and waits for those that are running.
        let signal = try await api.shutdownOnSignal(draining: .seconds(20))
        print("ended by signal \(signal)")
    }
    group.addTask {
        while true {
            do {
                print(try await api.get("status").statusCode)
            } catch SessionError.invalidated {
                // The session was shut down.
                return
            } catch is CancellationError {
                // The request was still running after 20 s.
                return
            } catch {
                print(error)
            }
            try await Task.sleep(for: .seconds(1))
        }
    }
    try await group.waitForAll()
}
