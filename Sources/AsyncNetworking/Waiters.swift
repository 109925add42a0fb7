// SPDX-License-Identifier: MIT

package import ANSystem

/// The continuations that wait for a change of an actor's state, or of the value of a ``ANSystem/Lock``.
///
/// See ``ANSystem/Lock/change(_:)``.
package struct Waiters<Continuation> {
    private var continuations: [UInt64: Continuation] = [:]
    private var lastTicket: UInt64 = 0

    /// Creates an empty list.
    package init() {}

    /// The number of continuations.
    var count: Int { continuations.count }

    /// Returns an identifier for one wait.
    package mutating func makeTicket() -> UInt64 {
        lastTicket += 1
        return lastTicket
    }

    /// Adds a continuation.
    package mutating func add(_ continuation: Continuation, ticket: UInt64) {
        continuations[ticket] = continuation
    }

    /// Removes and returns a continuation; `nil` if it was taken or never added.
    package mutating func remove(_ ticket: UInt64) -> Continuation? {
        continuations.removeValue(forKey: ticket)
    }

    /// Removes and returns all continuations, to be resumed.
    package mutating func takeAll() -> [Continuation] {
        guard !continuations.isEmpty else { return [] }
        defer { continuations = [:] }
        // In the order in which they began to wait, which is the same in each run.
        return continuations.sorted { $0.key < $1.key }.map(\.value)
    }
}

extension Waiters: Sendable where Continuation: Sendable {}

extension Lock {
    /// Changes the protected value, and then resumes continuations, after the critical section.
    ///
    /// - Parameter body: Returns the result and the continuations, which were removed from the value.
    package func change<Result>(
        _ body: (inout Value) -> (Result, resuming: [CheckedContinuation<Void, Never>])
    ) -> Result {
        let (result, waiters) = withLock(body)
        for waiter in waiters { waiter.resume() }
        return result
    }

    /// The key path to a list of continuations.
    package typealias WaitersPath = any WritableKeyPath<Value, Waiters<CheckedContinuation<Void, Never>>> & Sendable

    /// Waits until `select` returns a result for the protected value, and returns it.
    ///
    /// `select` is called at the start, and again whenever the continuations of `waiters` were resumed.
    ///
    /// - Returns: The result, or `nil` if the calling task is cancelled.
    package func wait<Result>(among waiters: WaitersPath, for select: (Value) -> Result?) async -> Result? {
        while !Task.isCancelled {
            let (result, ticket) = withLock { value in
                let result = select(value)
                return (result, result == nil ? value[keyPath: waiters].makeTicket() : 0)
            }
            if let result { return result }
            await withTaskCancellationHandler {
                await withCheckedContinuation { continuation in
                    let mustWait = withLock { value in
                        guard select(value) == nil, !Task.isCancelled else { return false }
                        value[keyPath: waiters].add(continuation, ticket: ticket)
                        return true
                    }
                    if !mustWait { continuation.resume() }
                }
            } onCancel: {
                // If this runs before the continuation is added, it finds none here, and the code above finds the task
                // cancelled.
                withLock { $0[keyPath: waiters].remove(ticket) }?.resume()
            }
        }
        return nil
    }
}

/// The waits of requests for shared transfers and for refreshes of tokens. A request may itself belong to one: a wait
/// that would close a circle, which would never end, is refused. It may also belong to a task that has one of the
/// limited slots of its session, represented by the scheduler: a task that it starts does not wait for a slot that may
/// become free only after it. And it may belong to the removal of an upload, which may still be sent when the session
/// ends.
enum WaitGraph {
    /// The transfers, refreshes and schedulers to which the current task belongs, also those that have ended since:
    /// tasks that the program has created within one keep this value.
    @TaskLocal private static var members: [Member] = []

    /// The waits, by what they wait for and themselves.
    private static let waits = Lock<[ObjectIdentifier: [ObjectIdentifier: Waiting]]>([:])

    /// What the requests of a function belong to, until it returns.
    fileprivate final class Member: Sendable {
        /// `nil` after the end.
        private let objects: Lock<[any AnyObject & Sendable]?>
        private let keeps: Bool

        init(_ objects: [any AnyObject & Sendable], keeps: Bool) {
            self.objects = Lock(objects)
            self.keeps = keeps
        }

        var isOver: Bool { objects.withLock { $0 == nil } }
        var current: [ObjectIdentifier] { objects.withLock { $0?.map(ObjectIdentifier.init) ?? [] } }
        func contains(where predicate: (any AnyObject & Sendable) -> Bool) -> Bool {
            objects.withLock(\.self)?.contains(where: predicate) ?? false
        }
        func keep(_ object: any AnyObject & Sendable) { if keeps { objects.withLock { $0?.append(object) } } }
        func end() { objects.withLock { $0 = nil } }
    }

    /// Whether the current task belongs to an object that satisfies a predicate, and has not ended.
    static func isWithin(_ predicate: (any AnyObject & Sendable) -> Bool) -> Bool {
        members.contains { $0.contains(where: predicate) }
    }

    /// Runs a closure whose requests belong to a transfer, a refresh or a scheduler.
    static func leading<Result>(
        _ object: any AnyObject & Sendable, _ body: () async throws -> Result
    ) async rethrows -> Result {
        try await run(Member([object], keeps: false), body)
    }

    /// Runs a closure whose requests belong to each transfer that is kept from then on.
    static func keeping<Result>(_ body: () async throws -> Result) async rethrows -> Result {
        try await run(Member([], keeps: true), body)
    }

    @inline(never)
    private static func run<Result>(_ member: Member, _ body: () async throws -> Result) async rethrows -> Result {
        defer { member.end() }
        // A chain of tasks, each of which the one before has created, would keep those that have ended.
        return try await $members.withValue(members.filter { !$0.isOver } + [member], operation: body)
    }

    /// Records that a transfer outlives the closure that leads it: what the functions around that closure request, which
    /// have its response, still belongs to the transfer, also what already waits.
    static func keep(_ object: any AnyObject & Sendable) {
        for member in members { member.keep(object) }
    }

    /// Records that the current task waits for a transfer or a refresh, until the result is ended. Returns `nil` if that
    /// one waits, directly or by way of others, for one to which the task belongs.
    static func begin(for awaited: AnyObject) -> Waiting? {
        let waiting = Waiting(members.filter { !$0.isOver }, for: ObjectIdentifier(awaited))
        guard !waiting.members.isEmpty else { return waiting }
        return waits.withLock { waits in
            guard !closesCircle(waiting, among: waits) else { return nil }
            waits[waiting.awaited, default: [:]][ObjectIdentifier(waiting)] = waiting
            return waiting
        }
    }

    private static func closesCircle(
        _ waiting: Waiting, among waits: [ObjectIdentifier: [ObjectIdentifier: Waiting]]
    ) -> Bool {
        var next = waiting.leading
        var reached = Set(next)
        guard !reached.contains(waiting.awaited) else { return true }
        while let object = next.popLast() {
            for other in waits[object]?.values.lazy.flatMap(\.leading) ?? [] where reached.insert(other).inserted {
                if other == waiting.awaited { return true }
                next.append(other)
            }
        }
        return false
    }

    /// A wait that was recorded.
    final class Waiting: Sendable {
        /// Those of the waiting task. They may keep further transfers during the wait.
        fileprivate let members: [Member]
        fileprivate let awaited: ObjectIdentifier

        fileprivate init(_ members: [Member], for awaited: ObjectIdentifier) {
            (self.members, self.awaited) = (members, awaited)
        }

        fileprivate var leading: [ObjectIdentifier] { members.flatMap(\.current) }

        /// Whether the wait would not end, because the waiting task has come to belong to what it awaits.
        var isCircular: Bool { waits.withLock { closesCircle(self, among: $0) } }

        /// Removes the record.
        func end() {
            guard !members.isEmpty else { return }
            waits.withLock { waits in
                waits[awaited]?[ObjectIdentifier(self)] = nil
                if waits[awaited]?.isEmpty == true { waits[awaited] = nil }
            }
        }
    }
}

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

        /// Lets the flight end later than the function that leads it. What the functions around that one request still
        /// belongs to it.
        func endLater() {
            WaitGraph.keep(self)
            state.change { state in
                state.endsLater = true
                // Those that now belong to the flight do not wait for it.
                return ((), resuming: state.waiters.takeAll())
            }
        }

        /// Returns the outcome when the flight has ended; `nil` if the calling task is cancelled before, or the wait would
        /// not end.
        func wait(_ waiting: WaitGraph.Waiting) async -> Outcome? {
            await state.wait(among: \.waiters) { state -> Outcome?? in
                if let outcome = state.outcome { return .some(outcome) }
                return state.endsLater && waiting.isCircular ? .some(nil) : nil
            } ?? nil
        }

        fileprivate func end(_ outcome: Outcome) {
            state.change { state in
                state.outcome = state.outcome ?? outcome
                return ((), resuming: state.waiters.takeAll())
            }
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
