// SPDX-License-Identifier: MIT

public import ANHTTP
import ANSystem
import FoundationEssentials

/// A limit on the rate of requests to each origin (scheme, host and port), by which requests wait for their turn.
///
/// ```swift
/// let api = SessionManager {
///     $0.attemptInterceptors = [RequestRateLimit(10, per: .seconds(1))]
/// }
/// ```
///
/// It is a token bucket for each origin: after a pause, up to `burst` requests are sent at once, and the following ones
/// at the rate, in the order in which they arrived. Among ``SessionConfiguration/attemptInterceptors`` it counts every
/// request that is sent, such as retries; among ``SessionConfiguration/interceptors`` it counts calls. Copies, and the
/// sessions that have one, share the count; the time is that of the clock of the session that used it first.
///
/// A request whose time limit would expire before its turn fails at once with
/// ``ANHTTP/TransportError/Reason/timedOut(_:)`` in the phase ``ANHTTP/TransportError/TimeoutPhase/queue``. A request
/// that is cancelled or fails before it is sent gives its turn to the next one that arrives. One whose token the program
/// has set meanwhile keeps it.
public struct RequestRateLimit: Interceptor, FieldPreservingInterceptor {
    private let ledger: Ledger

    /// Creates a limit.
    ///
    /// - Parameters:
    ///   - count: The number of requests in each `period`; a value below 1 counts as 1.
    ///   - period: The period; with zero or less there is no limit.
    ///   - burst: The number of requests that may be sent at once after a pause; `nil`, the default, for `count`. A value
    ///     below 1 counts as 1.
    public init(_ count: Int, per period: Duration, burst: Int? = nil) {
        let interval = max(.zero, period).bounded / Double(max(1, count))
        ledger = Ledger(TokenBucket(capacity: burst ?? count, interval: interval))
    }

    /// Sends the request when its turn has come.
    public func intercept(_ request: Request, next: Chain) async throws -> OpenResponse {
        let origin = next.pipeline.origin(of: request)
        try Task.checkCancellation()
        var turn = request.token?.takeTurn(of: ledger)
        if turn == nil { turn = await ledger.take(origin, next.pipeline.clock, within: request.timeLeft) }
        guard let turn else {
            throw TransportError.timedOut(.queue, request.nextTimeout, FailureContext(request.url))
        }
        do {
            if turn.wait > .zero { try await next.pipeline.pause(turn.wait) }
            return try await next(request)
        } catch {
            if await !next.hasSent, request.token?.keepTurn(turn.waited, of: ledger) != true {
                await ledger.giveBack(turn, origin)
            }
            throw error
        }
    }

    private actor Ledger {
        private var buckets: OriginTable<Origin, TokenBucket>
        private var stopwatch: Stopwatch?

        init(_ bucket: TokenBucket) { buckets = OriginTable(bucket) }

        func take(_ origin: Origin, _ clock: any Clock<Duration>, within limit: Duration?) -> TokenBucket.Turn? {
            let now = now(on: clock)
            return buckets.update(origin, isIdle: { bucket, _ in bucket.isFull(at: now) }) {
                $0.take(at: now, within: limit)
            }
        }

        func giveBack(_ turn: TokenBucket.Turn, _ origin: Origin) {
            buckets.update(origin, isIdle: { _, _ in false }) { $0.giveBack(turn) }
        }

        private func now(on clock: any Clock<Duration>) -> Duration {
            let stopwatch = stopwatch ?? Stopwatch(clock)
            self.stopwatch = stopwatch
            return stopwatch.elapsed
        }
    }
}

/// A token bucket whose tokens can be taken in advance: each taker learns when its token will be there.
package struct TokenBucket: Sendable {
    private let capacity: Int
    /// The time in which one token is added.
    private let interval: Duration
    /// The time at which the bucket is full, if no token is taken until then.
    private var fullTime = Duration.zero
    /// The times at which the bucket would be full after each token that was given back, in ascending order.
    private var returned: [Duration] = []

    /// A token that was taken.
    package struct Turn: Sendable {
        /// The time until it is there.
        package let wait: Duration
        fileprivate let fullTime: Duration

        /// The turn after its wait.
        var waited: Turn { Turn(wait: .zero, fullTime: fullTime) }
    }

    /// Creates a full bucket. A capacity below 1 counts as 1, one above a billion as that.
    package init(capacity: Int, interval: Duration) {
        (self.capacity, self.interval) = (min(max(1, capacity), 1_000_000_000), interval)
    }

    /// Takes a token; returns `nil`, and takes none, if it is not there within a limit.
    package mutating func take(at now: Duration, within limit: Duration? = nil) -> Turn? {
        // A full bucket has lost the others.
        returned.removeAll { $0 < now + interval }
        let next = returned.first ?? max(fullTime, now) + interval
        let wait = max(.zero, next - now - interval * capacity)
        if let limit, wait > .zero, wait >= limit { return nil }
        if returned.isEmpty { fullTime = next } else { returned.removeFirst() }
        return Turn(wait: wait, fullTime: next)
    }

    /// Gives back a token that was taken in vain. The times of those that were taken after it are known already, so the
    /// next one that is taken is this one; without any, the bucket is as it was before.
    package mutating func giveBack(_ turn: Turn) {
        // The bucket of another origin may have been removed meanwhile, and begun anew.
        guard turn.fullTime <= fullTime else { return }
        returned.insert(turn.fullTime, at: returned.firstIndex { $0 > turn.fullTime } ?? returned.endIndex)
        while let last = returned.last, last == fullTime {
            returned.removeLast()
            fullTime -= interval
        }
    }

    /// Whether no token is missing.
    package func isFull(at now: Duration) -> Bool { fullTime <= now }
}

/// Values by origin, of which those that are idle are removed from time to time.
package struct OriginTable<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    private let initial: Value
    private var values: [Key: Entry] = [:]
    /// The number of values at which the next idle ones are removed.
    private var limit = Self.fewest
    private static var fewest: Int { 1_000 }

    private struct Entry {
        var value: Value
        /// Whether it was used since idle ones were removed.
        var isUsed = true
    }

    /// Creates a table in which each origin has the same value.
    package init(_ initial: Value) { self.initial = initial }

    /// The number of origins with values.
    package var count: Int { values.count }

    /// Changes the value of an origin.
    ///
    /// - Parameter isIdle: Whether a value may be replaced by the initial one; `isUsed` says whether it was used since at
    ///   least a thousand origins were added.
    @discardableResult
    package mutating func update<Result>(
        _ origin: Key, isIdle: (_ value: Value, _ isUsed: Bool) -> Bool,
        _ change: (inout Value) -> Result
    ) -> Result {
        if values[origin] == nil, values.count >= limit {
            values = values.filter { !isIdle($0.value.value, $0.value.isUsed) }
                .mapValues { Entry(value: $0.value, isUsed: false) }
            // The removals take constant time for each new origin (amortized), however many are in use.
            limit = max(Self.fewest, 2 * values.count)
        }
        var entry = values.removeValue(forKey: origin) ?? Entry(value: initial)
        entry.isUsed = true
        defer { values[origin] = entry }
        return change(&entry.value)
    }
}
