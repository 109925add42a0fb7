// SPDX-License-Identifier: MIT

import ANReachability
import AsyncNetworking
import AsyncNetworkingTesting

/// The routes of a machine that has none at some times.
struct Routes: RouteSource {
    let outages: [Range<Int>]
    let world: SimulatedWorld
    let ledger: Ledger

    /// The end of the outage at the present time, in nanoseconds; `nil` if there are routes.
    var outageEnd: Int64? {
        let now = ledger.now
        return outages.first { Int64($0.lowerBound) * 1_000_000 <= now && now < Int64($0.upperBound) * 1_000_000 }
            .map { Int64($0.upperBound) * 1_000_000 }
    }

    func isUnreachable(_ target: ReachabilityTarget) async -> Bool { outageEnd != nil }

    func waitForRoute(to target: ReachabilityTarget) async throws(CancellationError) {
        ledger.cover("route.wait")
        do {
            while let end = outageEnd {
                try await world.clock.sleep(until: ManualClock.Instant(offset: .nanoseconds(end)))
            }
        } catch {
            throw CancellationError()
        }
        ledger.cover("route.back")
    }
}
