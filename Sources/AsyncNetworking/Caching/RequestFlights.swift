// SPDX-License-Identifier: MIT

import ANCache
import ANSystem
import HTTPTypes

/// The requests whose responses may be shared: identical requests wait for the first one to be stored.
///
/// A request that is sent within the interceptors of another one must not wait for that one, directly or by way of
/// others: neither would end.
final class RequestFlights: Sendable {
    private let flights = Lock<[Key: Flight]>([:])

    /// The requests that share a transfer.
    struct Key: Hashable, Sendable {
        let key: CacheKey
        let owner: CacheOwner
        /// The header fields, of which the response may depend on any.
        let headers: HTTPFields
    }

    /// A transfer that other requests wait for.
    final class Flight: Sendable {
        private let state = Lock(State())

        private struct State: Sendable {
            var hasEnded = false
            var isAbandoned = false
            var endsWithBody = false
            var waiters = Waiters<CheckedContinuation<Void, Never>>()
        }

        /// Whether the flight ended because its request was cancelled.
        var isAbandoned: Bool { state.withLock(\.isAbandoned) }

        /// Whether the flight ends when its response is stored or closed, later than the step that leads it.
        var endsWithBody: Bool { state.withLock(\.endsWithBody) }
        func endWithBody() { state.set(\.endsWithBody, to: true) }

        /// Returns when the flight ends, or when the calling task is cancelled.
        func wait() async {
            _ = await state.wait(among: \.waiters) { $0.hasEnded ? true : nil }
        }

        fileprivate func end(isAbandoned: Bool) {
            let waiters = state.withLock { state in
                if !state.hasEnded { state.isAbandoned = isAbandoned }
                state.hasEnded = true
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

    /// Ends a flight, if it has not ended; the waiting requests look at the cache again.
    func end(_ flight: Flight, _ key: Key, isAbandoned: Bool) {
        flights.withLock { flights in
            if flights[key] === flight { flights[key] = nil }
        }
        flight.end(isAbandoned: isAbandoned)
    }
}
