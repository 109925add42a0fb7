// SPDX-License-Identifier: MIT

package import ANHTTP
import ANSystem

/// The state of a task, shared by ``TransferTask``, ``AnyTransferTask`` and the manager.
///
/// The state changes under a lock, and events are sent under the same lock, so that they are in the order of the
/// changes. The scheduler and the work are notified after the lock is released.
package final class TransferCore: Sendable {
    let id: UInt64
    let kind: TaskKind
    package let request: Request?
    private let scheduler: TaskScheduler
    private let stopwatch: Stopwatch
    private let state: Lock<State>

    /// The mutable state of a task.
    struct State: Sendable {
        fileprivate var machine = TaskStateMachine()
        fileprivate var priority: TransferPriority
        fileprivate var label: String?
        fileprivate var tags: Set<String> = []
        fileprivate var response: ResponseHead?
        fileprivate var outcome: TaskOutcome?
        fileprivate var isResumeDataWanted = false
        fileprivate var resumeData: ResumeData?
        /// Cancels the work; `nil` before the work begins and after it ends.
        fileprivate var stopWork: (@Sendable () -> Void)?
        fileprivate var states = DeferredBroadcast<TaskState>()
        var events = DeferredBroadcast<TaskEvent>(keeping: .all)
        var tracker = ProgressTracker()
        var uploads = DeferredBroadcast<TransferProgress>()
        var downloads = DeferredBroadcast<TransferProgress>()

        fileprivate init(_ priority: TransferPriority) {
            self.priority = priority
            events.send(.created)
        }
    }

    init(
        id: UInt64, kind: TaskKind, request: Request?, priority: TransferPriority,
        scheduler: TaskScheduler, stopwatch: Stopwatch
    ) {
        self.id = id
        self.kind = kind
        self.request = request
        self.scheduler = scheduler
        self.stopwatch = stopwatch
        state = Lock(State(priority))
    }

    // MARK: Operations of users

    package func resume() {
        change(telling: .resumed) { $0.resume() }
    }

    package func suspend() {
        change(telling: .suspended) { $0.suspend() }
    }

    package func cancel() {
        change(telling: .cancelled) { $0.cancel() }
    }

    /// Cancels the task if it was never resumed. Called when its ``TransferTask`` is released.
    package func abandon() {
        if state.withLock({ !$0.machine.wasResumed }) { cancel() }
    }

    var status: TaskStatus {
        state.withLock { state in
            TaskStatus(
                state: state.machine.state, response: state.response, uploadProgress: state.uploads.latest,
                downloadProgress: state.downloads.latest, outcome: state.outcome)
        }
    }

    package var priority: TransferPriority {
        get { state.withLock { $0.priority } }
        set {
            state.withLock { $0.priority = newValue }
            scheduler.reorder(self, to: newValue)
        }
    }

    var label: String? {
        get { state.withLock { $0.label } }
        set { state.withLock { $0.label = newValue } }
    }

    var tags: Set<String> {
        get { state.withLock { $0.tags } }
        set { state.withLock { $0.tags = newValue } }
    }

    /// Whether the partial file of a download is kept when the task is cancelled.
    var isResumeDataWanted: Bool {
        get { state.withLock { $0.isResumeDataWanted } }
        set { state.withLock { $0.isResumeDataWanted = newValue } }
    }

    /// The data to resume an unfinished download with.
    var resumeData: ResumeData? {
        get { state.withLock { $0.resumeData } }
        set { state.withLock { $0.resumeData = newValue } }
    }

    // MARK: Streams

    var events: Broadcast<TaskEvent> { state.withLock { $0.events.broadcast } }
    var uploads: Broadcast<TransferProgress> { state.withLock { $0.uploads.broadcast } }
    var downloads: Broadcast<TransferProgress> { state.withLock { $0.downloads.broadcast } }
    /// The events so far, oldest first.
    var pastEvents: [TaskEvent] { state.withLock { $0.events.kept } }
    private var states: Broadcast<TaskState> { state.withLock { $0.states.broadcast } }

    /// Returns when the task has ended or the calling task is cancelled.
    func waitForEnd() async {
        for await _ in BroadcastStream(broadcast: states) {}
    }

    /// Cancels a download and returns the data to resume it with as soon as the transfer has ended, without waiting for
    /// the closure that receives its result.
    package func cancelProducingResumeData() async -> ResumeData? {
        isResumeDataWanted = true
        cancel()
        await waitForEnd()
        return resumeData
    }

    // MARK: Operations of the work

    /// Stores the closure that cancels the work, and calls it if the task was cancelled in the meantime.
    func begin(stopWork: @escaping @Sendable () -> Void) {
        let isCancelled = state.withLock { state in
            state.stopWork = stopWork
            return state.machine.state == .cancelling
        }
        if isCancelled { stopWork() }
    }

    /// Returns immediately if the task is running; waits while it is suspended or queued.
    ///
    /// - Throws: `CancellationError` if the task or the calling task is cancelled.
    package func waitUntilRunning() async throws {
        if state.withLock({ $0.machine.state == .running }) { return }
        for await state in BroadcastStream(broadcast: states) {
            switch state {
            case .running: return
            case .suspended, .waiting: continue
            case .cancelling, .finished: throw CancellationError()
            }
        }
        throw CancellationError()
    }

    /// The receiver of the events of the task's exchanges.
    var monitor: ProgressMonitor { ProgressMonitor(core: self) }

    /// Updates progress and events. Values are sent under the lock, so that an older value cannot overtake a newer one.
    func track(_ step: (inout State, _ time: Duration) -> Void) {
        let time = stopwatch.elapsed
        state.withLock { step(&$0, time) }
    }

    /// Records the head of the task's response.
    func receive(_ head: ResponseHead) {
        state.withLock { state in
            state.response = head
            state.events.send(.response(head))
        }
    }

    /// Records the end of the work.
    func finish(_ outcome: TaskOutcome) {
        let action = state.withLock { state in
            state.uploads.finish()
            state.downloads.finish()
            guard let action = state.machine.finish() else { return TaskStateMachine.Action.nothing }
            state.outcome = outcome
            state.stopWork = nil
            state.events.send(.finished(outcome))
            state.events.finish()
            state.states.send(.finished)
            state.states.finish()
            return action
        }
        scheduler.apply(action, of: self)
    }

    // MARK: Operations of the scheduler

    /// Starts a waiting task; returns `false` if the task is no longer waiting.
    func admit() -> Bool {
        state.withLock { state in
            guard state.machine.admit() else { return false }
            state.states.send(.running)
            return true
        }
    }

    private func change(
        telling event: TaskEvent, _ step: (inout TaskStateMachine) -> TaskStateMachine.Action?
    ) {
        let change = state.withLock { state in
            guard let action = step(&state.machine) else { return Change() }
            state.events.send(event)
            let now = state.machine.state
            guard now != .cancelling else { return Change(action: action, isCancelled: true, stopWork: state.stopWork) }
            if now == .suspended { state.tracker.interrupt() }
            state.states.send(now)
            return Change(action: action)
        }
        scheduler.apply(change.action, of: self)
        // The work is cancelled first, so that code waiting in ``waitUntilRunning()`` finds its own Swift task
        // cancelled and takes that for the reason.
        change.stopWork?()
        if change.isCancelled { state.withLock { $0.states.send(.cancelling) } }
    }

    /// The actions to perform after a change of state, outside of the lock.
    private struct Change {
        var action = TaskStateMachine.Action.nothing
        var isCancelled = false
        var stopWork: (@Sendable () -> Void)?
    }
}

extension TransferCore {
    /// The most recently sent request.
    package var sentRequest: Request? {
        for case .request(let request) in pastEvents.reversed() { return request }
        return nil
    }

    /// The metrics of each exchange.
    package var exchanges: [TransferMetrics] {
        pastEvents.compactMap { if case .metrics(let metrics) = $0 { metrics } else { nil } }
    }

    /// Calls `observer` with every event, including past ones. It must return immediately and not use the task.
    package func observeEvents(_ observer: @escaping @Sendable (TaskEvent) -> Void) {
        events.observe { if let event = $0 { observer(event) } }
    }

    /// Calls `observer` with the progress of the request's body. It must return immediately and not use the task.
    package func observeUploadProgress(_ observer: @escaping @Sendable (TransferProgress) -> Void) {
        uploads.observe { if let progress = $0 { observer(progress) } }
    }

    /// Calls `observer` with the progress of the response's body. It must return immediately and not use the task.
    package func observeDownloadProgress(_ observer: @escaping @Sendable (TransferProgress) -> Void) {
        downloads.observe { if let progress = $0 { observer(progress) } }
    }
}
