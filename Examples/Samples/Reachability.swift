// SPDX-License-Identifier: MIT

import AsyncNetworking

// The samples of the article "Reachability".

func watchTheNetwork() async throws {
    // snippet.overview
    for try await status in ReachabilityMonitor.shared.statuses() {
        print(status)
    }
    // snippet.end
}

func watchTargets(_ monitor: ReachabilityMonitor) async throws {
    // snippet.targets
    let host = monitor.statuses(for: .host("api.example.com"))
    for try await status in host where status.isReachable {
        print("There is a way, and it begins at", status.interface.map { "\($0)" } ?? "nothing known")
    }
    // snippet.end

    if let address = IPAddress("192.0.2.7") {
        print(try await monitor.status(of: .address(address)))
    }
}

func tryAgain(_ api: SessionManager) async throws -> User {
    // snippet.when-to-use-it
    for _ in 0..<3 {
        do {
            return try await api.get("users/7", as: .decodable(User.self)).value
        } catch let error as SessionError where error.isConnectionFailure {
            try await ReachabilityMonitor.shared.waitForRoute(to: .host("api.example.com"))
        }
    }
    // snippet.end
    return try await api.get("users/7", as: .decodable(User.self)).value
}
