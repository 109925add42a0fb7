// SPDX-License-Identifier: MIT

import ANSystem

/// Transfers whose outcome several identical requests share: the others wait for the first one.
///
/// A request that is sent within the interceptors of another one must not wait for that one, directly or by way of
/// others: neither would end. See ``WaitGraph``.
final class Flights<Key: Hashable & Sendable, Outcome: Sendable>: Sendable {
    private let flights = Lock<[Key: Flight]>([:])

    /// A transfer that other requests wait for.
    final class Flight: Sendable {
        private let state = Lock(State())

        private struct State: Sendable {
            var outcome: Outcome?
            var endsLater = false
            var waiters = Waiters<CheckedContinuation<Void, Never>>()
        }

        /// Whether the flight ends later than the function that leads it.
        var endsLater: Bool { state.withLock(\.endsLater) }
        func endLater() { state.set(\.endsLater, to: true) }

        /// Returns the outcome when the flight has ended; `nil` if the calling task is cancelled before.
        func wait() async -> Outcome? {
            await state.wait(among: \.waiters) { $0.outcome }
        }

        fileprivate func end(_ outcome: Outcome) {
            let waiters = state.withLock { state in
                state.outcome = state.outcome ?? outcome
                return state.waiters.takeAll()
            }
            for waiter in waiters { waiter.resume() }
        }
    }

    /// Returns the flight of a request, and whether it is a new one, which the caller must end.
    func join(_ key: Key) -> (flight: Flight, isOwn: Bool) {
        flights.withLock { flights in
            if let flight = flights[key] { return (flight, false) }
            let flight = Flight()
            flights[key] = flight
            return (flight, true)
        }
    }

    /// Lets later requests with some keys begin flights of their own.
    func forget(where isOutdated: (Key) -> Bool) {
        flights.withLock { flights in
            for key in flights.keys where isOutdated(key) { flights[key] = nil }
        }
    }

    /// Ends a flight, if it has not ended.
    func end(_ flight: Flight, _ key: Key, _ outcome: Outcome) {
        flights.withLock { flights in
            if flights[key] === flight { flights[key] = nil }
        }
        flight.end(outcome)
    }
}
