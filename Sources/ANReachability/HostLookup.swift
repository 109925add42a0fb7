// SPDX-License-Identifier: MIT

package import ANSystem

/// The schedule and the latest result of looking up one host name, as a pure state machine.
package struct HostLookup: Sendable {
    /// The addresses found by the last lookup, empty if it failed; `nil` until the first lookup ends.
    package private(set) var addresses: [IPAddress]?
    /// The time of the next attempt after a failed lookup; `nil` if no attempt is scheduled.
    package private(set) var retryTime: MonotonicInstant?
    private var isRunning = false
    private var mustRunAgain = false
    private var failuresInARow = 0

    private static let longestPause: Duration = .seconds(30)

    /// Whether the last lookup failed or found no address.
    package var hasFailed: Bool { addresses?.isEmpty == true }

    /// Creates the state for a first lookup, which the caller must start.
    package init() {
        isRunning = true
    }

    /// Records a change of the network.
    ///
    /// - Parameter isOfDefaultRoute: Whether the default route changed. Other changes matter only after a failed
    ///   lookup.
    /// - Returns: Whether the caller must start a lookup.
    package mutating func noteChange(ofDefaultRoute isOfDefaultRoute: Bool) -> Bool {
        guard isOfDefaultRoute || hasFailed else { return false }
        return begin()
    }

    /// Records the current time.
    ///
    /// - Returns: Whether a retry is due, so that the caller must start a lookup.
    package mutating func noteTime(_ now: MonotonicInstant) -> Bool {
        guard let retryTime, retryTime <= now else { return false }
        return begin()
    }

    /// Records the result of a lookup.
    ///
    /// - Returns: Whether the caller must start another lookup because the network changed during this one.
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
