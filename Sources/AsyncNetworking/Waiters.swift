// SPDX-License-Identifier: MIT

import ANSystem

/// The continuations that wait for a change of an actor's state, or of the value of a ``ANSystem/Lock``.
///
/// A function that changes the value of a lock takes them under the lock and resumes them after it is released.
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
    /// The key path to a list of continuations.
    typealias WaitersPath = any WritableKeyPath<Value, Waiters<CheckedContinuation<Void, Never>>> & Sendable

    /// Waits until `select` returns a result for the protected value, and returns it.
    ///
    /// `select` is called at the start, and again whenever the continuations of `waiters` were resumed.
    ///
    /// - Returns: The result, or `nil` if the calling task is cancelled.
    func wait<Result>(among waiters: WaitersPath, for select: (Value) -> Result?) async -> Result? {
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
