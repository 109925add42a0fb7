// SPDX-License-Identifier: MIT

import ANSystem

/// Admits at most `limit` elements at a time, by priority and in FIFO order within a priority.
///
/// Every operation takes logarithmic time (amortized), so that a queue of many tasks can be cancelled task by task.
package struct TaskQueue<Element: Sendable>: Sendable {
    private let limit: Int
    private var admitted = 0
    /// The elements that were admitted without a slot.
    private var free: Set<UInt64> = []
    private var lastArrival: UInt64 = 0
    private var waiting: [UInt64: Waiting] = [:]
    /// The order of admission.
    private var order = RankedQueue<UInt64, Position>()

    /// Creates a queue that admits at most `limit` elements at a time; a limit below 1 counts as 1.
    package init(limit: Int) {
        self.limit = max(1, limit)
    }

    /// The number of positions that are kept, outdated ones included.
    package var positionCount: Int { order.rankCount }

    /// Adds an element to the queue. Returns the one that it replaces.
    @discardableResult
    package mutating func enqueue(_ element: Element, id: UInt64, priority: RequestPriority) -> Element? {
        let replaced = waiting[id]?.element
        lastArrival += 1
        insert(element, id, priority, arrival: lastArrival)
        return replaced
    }

    /// Removes and returns a waiting element, if present.
    @discardableResult
    package mutating func remove(id: UInt64) -> Element? {
        guard let removed = waiting.removeValue(forKey: id) else { return nil }
        order.remove(id)
        return removed.element
    }

    /// Changes the priority of a waiting element, which keeps its age within the new priority.
    package mutating func move(id: UInt64, to priority: RequestPriority) {
        guard let old = waiting[id] else { return }
        insert(old.element, id, priority, arrival: old.arrival)
    }

    /// Notes that an element is admitted without a slot.
    package mutating func admitFreely(id: UInt64) {
        free.insert(id)
    }

    /// Notes that an element is admitted again, which takes a slot even if none is left.
    package mutating func readmit() {
        admitted += 1
    }

    /// Releases the slot of an admitted element, if it has one.
    package mutating func release(id: UInt64) {
        if free.remove(id) == nil { admitted -= 1 }
    }

    /// Admits and returns the next element; `nil` if all slots are taken or the queue is empty.
    package mutating func admit() -> Element? {
        guard admitted < limit else { return nil }
        guard let next = order.popFirst().flatMap({ waiting.removeValue(forKey: $0) }) else { return nil }
        admitted += 1
        return next.element
    }

    private mutating func insert(
        _ element: Element, _ id: UInt64, _ priority: RequestPriority, arrival: UInt64
    ) {
        waiting[id] = Waiting(element: element, arrival: arrival)
        order.insert(id, at: Position(priority: priority, arrival: arrival))
    }

    private struct Waiting {
        let element: Element
        let arrival: UInt64
    }

    private struct Position: Comparable {
        let priority: RequestPriority
        let arrival: UInt64

        static func < (left: Position, right: Position) -> Bool {
            (right.priority, left.arrival) < (left.priority, right.arrival)
        }
    }
}

/// The priority of a task, from 0 to 1: if the number of tasks that may run is limited, those with a higher priority
/// start first.
///
/// | priority of | limit | equal priorities |
/// |---|---|---|
/// | a task of a session (``AnySessionTask/priority``) | ``SessionConfiguration/maximumConcurrentTasks``; without it, which is the default, priorities have no effect | start in the order in which they were resumed |
/// | a download of an `ImageDownloader` (`AsyncNetworkingImages`) | its `maximumActiveDownloads` | start in its `order`: in that of the requests by default, or in the reverse order with `lifo` |
///
/// A priority does not affect tasks that are running, nor the order in which they get connections, and is not sent to
/// servers.
public struct RequestPriority: RawRepresentable, Hashable, Comparable, Sendable {
    /// The priority, from 0 (started last) to 1 (started first); 0.5 for a task by default. Values outside of that
    /// range do not occur.
    public let rawValue: Double

    /// Creates a priority; a value outside of 0 to 1 is clamped, and NaN counts as 0.
    public init(rawValue: Double) {
        self.rawValue = rawValue > 0 ? min(rawValue, 1) : 0
    }

    /// A priority of 0.25: among waiting tasks, those with it start after those with the default.
    public static let low = RequestPriority(rawValue: 0.25)
    /// A priority of 0.5, the default of tasks.
    public static let normal = RequestPriority(rawValue: 0.5)
    /// A priority of 0.75: among waiting tasks, those with it start before those with the default.
    public static let high = RequestPriority(rawValue: 0.75)

    /// Whether the left priority is lower than the right one.
    public static func < (left: RequestPriority, right: RequestPriority) -> Bool {
        left.rawValue < right.rawValue
    }
}

/// Starts waiting tasks as far as the limit on concurrent tasks permits.
final class TaskScheduler: Sendable {
    /// The state with the queue; `nil` for no limit.
    private let state: Lock<SessionState>?

    /// Creates the scheduler of a session.
    init(_ state: Lock<SessionState>) {
        self.state = state.withLock { $0.queue == nil } ? nil : state
    }

    /// Records that a task waits for a slot, and that the one whose closure resumes it waits for that. Returns `nil` if all
    /// slots may be those of tasks that wait for it: it refreshes a token, or is resumed, directly or by way of other
    /// sessions, by a closure of a task that has a slot.
    private func beginWait() -> WaitGraph.Waiting? {
        Authenticator.isWithinRefresh ? nil : WaitGraph.begin(for: self)
    }

    /// Runs the work of a task that has a slot.
    func run<Value>(_ work: () async throws -> Value) async rethrows -> Value {
        guard state != nil else { return try await work() }
        return try await WaitGraph.leading(self, work)
    }

    /// A task that waits for a slot.
    struct Waiter: Sendable {
        let core: TaskCore
        fileprivate let waiting: WaitGraph.Waiting
    }

    /// Performs the action of a task after a change of its state.
    ///
    /// Tasks are admitted outside of the lock. A task that is suspended between leaving the queue and being admitted
    /// refuses its slot, which the next one gets.
    func apply(_ action: TaskStateMachine.Action, of core: TaskCore) {
        guard let state else {
            if action == .enqueue || action == .takeSlot { _ = core.admit() }
            return
        }
        switch action {
        case .nothing: return
        case .enqueue:
            guard let waiting = beginWait() else {
                state.withLock { $0.queue?.admitFreely(id: core.id) }
                admit(core, in: state)
                break
            }
            enqueue(Waiter(core: core, waiting: waiting), in: state)
        case .takeSlot:
            let removed = state.withLock { state in
                state.queue?.readmit()
                return state.queue?.remove(id: core.id)
            }
            removed?.waiting.end()
            admit(core, in: state)
        case .dequeue:
            guard let removed = state.withLock({ $0.queue?.remove(id: core.id) }) else { break }
            // Another thread may have resumed and queued the task between its suspension and this removal.
            if core.status.state == .waiting { enqueue(removed, in: state) } else { removed.waiting.end() }
        case .releaseSlot: state.withLock { $0.queue?.release(id: core.id) }
        }
        // The priority may have been changed before the task was in the queue.
        reorder(core, to: core.priority)
        while let next = state.withLock({ $0.queue?.admit() }) {
            next.waiting.end()
            admit(next.core, in: state)
        }
    }

    private func admit(_ core: TaskCore, in state: Lock<SessionState>) {
        if !core.admit() { state.withLock { $0.queue?.release(id: core.id) } }
    }

    private func enqueue(_ waiter: Waiter, in state: Lock<SessionState>) {
        let priority = waiter.core.priority
        state.withLock { $0.queue?.enqueue(waiter, id: waiter.core.id, priority: priority) }?.waiting.end()
    }

    /// Changes the priority of a waiting task.
    func reorder(_ core: TaskCore, to priority: RequestPriority) {
        state?.withLock { $0.queue?.move(id: core.id, to: priority) }
    }
}
