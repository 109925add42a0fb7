// SPDX-License-Identifier: MIT

package import ANSystem

/// When a host's name is looked up, and what came of it; pure.
package struct HostLookup: Sendable {
    /// What the last look-up gave, none if it failed; nil before the first has ended.
    package private(set) var addresses: [IPAddress]?
    /// When to look again, after a failure.
    package private(set) var retryTime: MonotonicInstant?
    private var isRunning = false
    private var mustRunAgain = false
    private var failuresInARow = 0

    private static let longestPause: Duration = .seconds(30)

    /// Whether the host is there but has no address, or nobody could tell.
    package var hasFailed: Bool { addresses?.isEmpty == true }

    /// Begins the first look-up, which the caller starts.
    package init() {
        isRunning = true
    }

    /// Notes a change of the network.
    ///
    /// - Returns: Whether the caller shall start a look-up.
    package mutating func noteChange(ofDefaultRoute isOfDefaultRoute: Bool) -> Bool {
        guard isOfDefaultRoute || hasFailed else { return false }
        return begin()
    }

    /// Notes that time has passed.
    ///
    /// - Returns: Whether the caller shall start a look-up.
    package mutating func noteTime(_ now: MonotonicInstant) -> Bool {
        guard let retryTime, retryTime <= now else { return false }
        return begin()
    }

    /// Notes the end of a look-up.
    ///
    /// - Returns: Whether the caller shall start another one, because the network changed meanwhile.
    package mutating func finish(_ addresses: [IPAddress], at now: MonotonicInstant) -> Bool {
        self.addresses = addresses
        isRunning = false
        if addresses.isEmpty {
            let pause = min(.seconds(1 << min(failuresInARow, 10)), Self.longestPause)
            retryTime = now.advanced(by: pause)
            failuresInARow += 1
        } else {
            failuresInARow = 0
        }
        return mustRunAgain && begin()
    }

    private mutating func begin() -> Bool {
        mustRunAgain = isRunning
        guard !isRunning else { return false }
        isRunning = true
        retryTime = nil
        return true
    }
}
