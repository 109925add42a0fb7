// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem

/// What a task's handles and its manager share; ``TransferHandle`` says what can be done with it.
///
/// Its state changes under a lock, and events are sent under it: their order is that of the changes. The line of tasks and
/// the work are told afterwards.
public final class TransferCore: Sendable {
    let id: UInt64
    let kind: SessionTask.Kind
    let request: Request?
    private let scheduler: TransferScheduler
    private let stopwatch: Stopwatch
    private let state: Lock<State>

    /// What changes of a task.
    struct State: Sendable {
        fileprivate var machine = TransferStateMachine()
        fileprivate var priority: TransferPriority
        fileprivate var label: String?
        fileprivate var tags: Set<String> = []
        fileprivate var response: ResponseHead?
        fileprivate var outcome: TransferOutcome?
        fileprivate var isResumeDataWanted = false
        fileprivate var resumeData: ResumeData?
        /// Ends the work; nil before there is some.
        fileprivate var stopWork: (@Sendable () -> Void)?
        fileprivate var states = DeferredBroadcast<TransferState>()
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
        id: UInt64, kind: SessionTask.Kind, request: Request?, priority: TransferPriority,
        scheduler: TransferScheduler, stopwatch: Stopwatch
    ) {
        self.id = id
        self.kind = kind
        self.request = request
        self.scheduler = scheduler
        self.stopwatch = stopwatch
        state = Lock(State(priority))
    }

    // MARK: What handles do

    func resume() {
        change(telling: .resumed) { $0.resume() }
    }

    func suspend() {
        change(telling: .suspended) { $0.suspend() }
    }

    func cancel() {
        change(telling: .cancelled) { $0.cancel() }
    }

    /// The last handle is gone: a task that was never started never will be.
    package func abandon() {
        if state.withLock({ !$0.machine.wasResumed }) { cancel() }
    }

    var status: TransferStatus {
        state.withLock { state in
            TransferStatus(
                state: state.machine.state, response: state.response, uploadProgress: state.uploads.latest,
                downloadProgress: state.downloads.latest, outcome: state.outcome)
        }
    }

    var priority: TransferPriority {
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

    /// Whether what has come of a download is kept when the task is cancelled.
    var isResumeDataWanted: Bool {
        get { state.withLock { $0.isResumeDataWanted } }
        set { state.withLock { $0.isResumeDataWanted = newValue } }
    }

    /// What it takes to go on with a download that has not come to its end.
    var resumeData: ResumeData? {
        get { state.withLock { $0.resumeData } }
        set { state.withLock { $0.resumeData = newValue } }
    }

    // MARK: What readers hear

    var events: Broadcast<TaskEvent> { state.withLock { $0.events.broadcast } }
    var uploads: Broadcast<TransferProgress> { state.withLock { $0.uploads.broadcast } }
    var downloads: Broadcast<TransferProgress> { state.withLock { $0.downloads.broadcast } }
    /// The events so far.
    var pastEvents: [TaskEvent] { state.withLock { $0.events.kept } }
    private var states: Broadcast<TransferState> { state.withLock { $0.states.broadcast } }

    /// Returns when the task is over, or the calling task is cancelled.
    func waitForEnd() async {
        for await _ in ProgressStream(broadcast: states) {}
    }

    /// Cancels a download, and returns what it takes to go on with it as soon as the transfer is over: before what is done
    /// with its result, for which the task's own method waits too.
    package func cancelProducingResumeData() async -> ResumeData? {
        isResumeDataWanted = true
        cancel()
        await waitForEnd()
        return resumeData
    }

    // MARK: What the work does

    /// Takes note of what ends the work; does so at once when the task was cancelled meanwhile.
    func begin(stopWork: @escaping @Sendable () -> Void) {
        let isCancelled = state.withLock { state in
            state.stopWork = stopWork
            return state.machine.state == .cancelling
        }
        if isCancelled { stopWork() }
    }

    /// Returns while the task may work; waits while it is suspended or has to wait for its turn.
    ///
    /// - Throws: `CancellationError` when the task, or the calling one, is cancelled.
    package func pass() async throws {
        if state.withLock({ $0.machine.state == .running }) { return }
        for await state in ProgressStream(broadcast: states) {
            switch state {
            case .running: return
            case .suspended, .waiting: continue
            case .cancelling, .finished: throw CancellationError()
            }
        }
        throw CancellationError()
    }

    /// Where the task's exchanges report.
    var monitor: ProgressMonitor { ProgressMonitor(core: self) }

    /// Changes what is known of progress; values leave under the lock, so that an older one cannot overtake a newer one.
    func track(_ step: (inout State, _ time: Duration) -> Void) {
        let time = stopwatch.elapsed
        state.withLock { step(&$0, time) }
    }

    /// The response has begun.
    func receive(_ head: ResponseHead) {
        state.withLock { state in
            state.response = head
            state.events.send(.response(head))
        }
    }

    /// The work is over.
    func finish(_ outcome: TransferOutcome) {
        let demand = state.withLock { state in
            state.uploads.finish()
            state.downloads.finish()
            guard let demand = state.machine.finish() else { return TransferStateMachine.Demand.nothing }
            state.outcome = outcome
            state.stopWork = nil
            state.events.send(.finished(outcome))
            state.events.finish()
            state.states.send(.finished)
            state.states.finish()
            return demand
        }
        scheduler.meet(demand, of: self)
    }

    // MARK: What the line does

    /// Gets a place; false when it is not wanted any more.
    func admit() -> Bool {
        state.withLock { state in
            guard state.machine.admit() else { return false }
            state.states.send(.running)
            return true
        }
    }

    private func change(
        telling event: TaskEvent, _ step: (inout TransferStateMachine) -> TransferStateMachine.Demand?
    ) {
        let change = state.withLock { state in
            guard let demand = step(&state.machine) else { return Change() }
            state.events.send(event)
            let now = state.machine.state
            guard now != .cancelling else { return Change(demand: demand, isCancelled: true, stopWork: state.stopWork) }
            if now == .suspended { state.tracker.interrupt() }
            state.states.send(now)
            return Change(demand: demand)
        }
        scheduler.meet(change.demand, of: self)
        // The work first: whoever waits in ``pass()`` then finds its own task cancelled, and takes that for the reason.
        change.stopWork?()
        if change.isCancelled { state.withLock { $0.states.send(.cancelling) } }
    }

    /// What is left to do after a change of state.
    private struct Change {
        var demand = TransferStateMachine.Demand.nothing
        var isCancelled = false
        var stopWork: (@Sendable () -> Void)?
    }
}
