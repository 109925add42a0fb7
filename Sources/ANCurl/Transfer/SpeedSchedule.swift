// SPDX-License-Identifier: MIT

package import ANHTTP
package import ANSystem

/// Decides when limited transfers receive, or send, their next bytes.
///
/// Each limit is a bucket that drains at its rate. A transfer may take bytes while the bucket is empty, also more than
/// drain at once, and the next ones wait until they have drained. A transfer whose buckets are not all empty, or that finds
/// others waiting for one of them, waits. Of those that wait, and whose buckets are empty, the one that has taken the
/// fewest bytes goes on first, where one that begins, or was paused by its reader, counts as if it had taken as many as the
/// last one that went on (start-time fair queueing). So shares differ by about one chunk.
package struct SpeedSchedule<Element: AnyObject> {
    private let rate: (SpeedLimit) -> Int?
    private var buckets: [SpeedLimit: Bucket] = [:]
    private var waiting: [ObjectIdentifier: Waiting] = [:]
    /// Those that wait by their limits, which are empty for all of them or for none.
    private var queues: [[SpeedLimit]: RankedQueue<ObjectIdentifier, Rank>] = [:]
    /// The number of transfers that wait for each limit.
    private var waitingCounts: [SpeedLimit: Int] = [:]
    /// The bytes taken by each transfer that has limits.
    private var taken: [ObjectIdentifier: Double] = [:]
    /// The number of those transfers for each limit, and the limits without any whose buckets are not empty yet.
    private var users: [SpeedLimit: Int] = [:]
    private var unused: Set<SpeedLimit> = []
    /// The bytes taken by the last transfer that went on.
    private var virtualTime = 0.0
    private var lastArrival = 0
    /// The transfer that goes on now.
    private var granted: ObjectIdentifier?

    private struct Waiting {
        let element: Element
        let limits: [SpeedLimit]
        let arrival: Int
    }

    /// The place in the order in which those that wait go on.
    private struct Rank: Comparable {
        let taken: Double
        let arrival: Int

        static func < (left: Rank, right: Rank) -> Bool {
            (left.taken, left.arrival) < (right.taken, right.arrival)
        }
    }

    /// The longest time after which a changed rate is noticed.
    private static var longestWait: Duration { .milliseconds(100) }

    /// Creates a schedule for one direction; `rate` returns the bytes per second of a limit, or `nil` for none.
    package init(_ rate: @escaping (SpeedLimit) -> Int?) {
        self.rate = rate
    }

    /// Whether a transfer may take bytes now. If not, it waits until ``next(at:)`` returns it.
    package mutating func mayTake(_ element: Element, _ limits: [SpeedLimit], at now: MonotonicInstant) -> Bool {
        let id = ObjectIdentifier(element)
        guard granted != id else { return true }
        guard waiting[id] == nil else { return false }
        let isContended = limits.contains { waitingCounts[$0, default: 0] > 0 }
        if !isContended, areEmpty(limits, at: now) { return true }
        note(id, limits)
        taken[id] = max(taken[id] ?? 0, virtualTime)
        lastArrival += 1
        waiting[id] = Waiting(element: element, limits: limits, arrival: lastArrival)
        rank(id)
        for limit in limits { waitingCounts[limit, default: 0] += 1 }
        return false
    }

    /// Notes that a transfer has taken bytes.
    package mutating func take(_ count: Int, by element: Element, _ limits: [SpeedLimit], at now: MonotonicInstant) {
        let id = ObjectIdentifier(element)
        if granted == id { granted = nil }
        for limit in limits {
            guard let rate = rate(limit) else { continue }
            buckets[limit, default: Bucket(at: now, rate: rate)].fill(count, at: now, rate: rate)
        }
        note(id, limits)
        taken[id, default: virtualTime] += Double(count)
        rank(id)
    }

    /// Gives a transfer that waits the place that follows from what it has taken.
    private mutating func rank(_ id: ObjectIdentifier) {
        guard let waited = waiting[id] else { return }
        queues[waited.limits, default: RankedQueue()].insert(
            id, at: Rank(taken: taken[id] ?? 0, arrival: waited.arrival))
    }

    /// Notes that a transfer uses its limits.
    private mutating func note(_ id: ObjectIdentifier, _ limits: [SpeedLimit]) {
        guard taken[id] == nil else { return }
        for limit in limits {
            users[limit, default: 0] += 1
            unused.remove(limit)
        }
    }

    /// Returns a waiting transfer that goes on now, and may take bytes once; `nil` if none can.
    package mutating func next(at now: MonotonicInstant) -> Element? {
        granted = nil
        // Asked in each turn of the loop.
        guard !waiting.isEmpty else { return nil }
        var first: (element: ObjectIdentifier, rank: Rank)?
        // A loop over the keys would hold the dictionary, and each change would copy it.
        var index = queues.startIndex
        while index != queues.endIndex {
            defer { queues.formIndex(after: &index) }
            guard areEmpty(queues[index].key, at: now), let next = queues.values[index].first() else { continue }
            if first.map({ next.rank < $0.rank }) ?? true { first = next }
        }
        guard let id = first?.element, let next = waiting[id] else { return nil }
        stopWaiting(id)
        virtualTime = max(virtualTime, taken[id] ?? 0)
        granted = id
        return next.element
    }

    /// Whether no transfer waits.
    var isEmpty: Bool { waiting.isEmpty }

    /// The time at which ``next(at:)`` may return a transfer; `nil` if none waits.
    package func due(at now: MonotonicInstant) -> MonotonicInstant? {
        queues.keys.map { limits in
            let wait = limits.map { buckets[$0]?.wait(at: now) ?? .zero }.max() ?? .zero
            return now.advanced(by: min(wait, Self.longestWait))
        }
        .min()
    }

    /// Whether a transfer waits for its turn.
    package func isWaiting(_ element: Element) -> Bool { waiting[ObjectIdentifier(element)] != nil }

    /// The number of limits under which bytes were taken that are not yet due, or that transfers use.
    package var limitCount: Int { buckets.count }

    /// Removes a transfer that has ended.
    package mutating func remove(_ element: Element, _ limits: [SpeedLimit], at now: MonotonicInstant) {
        let id = ObjectIdentifier(element)
        stopWaiting(id)
        if granted == id { granted = nil }
        guard taken.removeValue(forKey: id) != nil else { return }
        if taken.isEmpty { virtualTime = 0 }
        for limit in limits {
            let count = users[limit, default: 1] - 1
            users[limit] = count > 0 ? count : nil
            if count == 0 { unused.insert(limit) }
        }
        // The next transfer under a limit waits for what the last one has taken too early.
        unused = unused.filter { limit in
            guard let rate = rate(limit), buckets[limit]?.isEmpty(at: now, rate: rate) == false else {
                buckets[limit] = nil
                return false
            }
            return true
        }
    }

    private mutating func stopWaiting(_ id: ObjectIdentifier) {
        guard let waited = waiting.removeValue(forKey: id) else { return }
        queues[waited.limits]?.remove(id)
        if queues[waited.limits]?.isEmpty == true { queues[waited.limits] = nil }
        for limit in waited.limits { waitingCounts[limit, default: 1] -= 1 }
        waitingCounts = waitingCounts.filter { $0.value > 0 }
    }

    private mutating func areEmpty(_ limits: [SpeedLimit], at now: MonotonicInstant) -> Bool {
        limits.allSatisfy { limit in
            guard let rate = rate(limit) else { return true }
            return buckets[limit]?.isEmpty(at: now, rate: rate) ?? true
        }
    }

    /// The bytes taken under a limit that are not yet due.
    private struct Bucket {
        /// The number of bytes at `time`; negative if less was taken than was due.
        private var level = 0.0
        private var time: MonotonicInstant
        private var rate: Int

        /// The time for which unused speed is kept.
        private static var burst: Double { 0.05 }

        init(at time: MonotonicInstant, rate: Int) {
            (self.time, self.rate) = (time, rate)
        }

        mutating func fill(_ count: Int, at now: MonotonicInstant, rate: Int) {
            drain(at: now, rate)
            level += Double(count)
        }

        mutating func isEmpty(at now: MonotonicInstant, rate: Int) -> Bool {
            drain(at: now, rate)
            return level <= 0
        }

        /// The time until it is empty.
        func wait(at now: MonotonicInstant) -> Duration {
            let left = level - time.duration(to: now) / .seconds(1) * Double(rate)
            return .seconds(min(max(0, left / Double(rate)), 1_000))
        }

        private mutating func drain(at now: MonotonicInstant, _ rate: Int) {
            let drained = max(0, time.duration(to: now) / .seconds(1)) * Double(self.rate)
            self.rate = rate
            level = max(level - drained, -Self.burst * Double(rate))
            time = now
        }
    }
}
