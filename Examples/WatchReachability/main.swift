// SPDX-License-Identifier: MIT

import AsyncNetworking

// Prints the reachability of the network, or of each given host or address, and each change until it is interrupted:
// `WatchReachability [HOST…]`.
let names = CommandLine.arguments.dropFirst()
let targets: [(name: String, target: ReachabilityTarget)] =
    names.isEmpty ? [("default route", .defaultRoute)] : names.map { ($0, .host($0)) }

await withTaskGroup { group in
    for (name, target) in targets {
        group.addTask {
            do {
                for try await status in ReachabilityMonitor.shared.statuses(for: target) { print("\(name): \(status)") }
            } catch {
                print(error)
            }
        }
    }
}
