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
    let monitor: ProgressMonitor
    let events = Broadcast<TaskEvent>(keeping: .all)
    let states = Broadcast<TransferState>()
    private let scheduler: TransferScheduler
    private let state: Lock<State>

    private struct State {
        var machine = TransferStateMachine()
        var priority: TransferPriority
        var label: String?
        var tags: Set<String> = []
        var response: ResponseHead?
        var outcome: TransferOutcome?
        var isResumeDataWanted = false
        var resumeData: ResumeData?
        /// Ends the work; nil before there is some.
        var stopWork: (@Sendable () -> Void)?
    }

    init(
        id: UInt64, kind: SessionTask.Kind, request: Request?, priority: TransferPriority,
        scheduler: TransferScheduler, clock: any Clock<Duration>
    ) {
        self.id = id
        self.kind = kind
        self.request = request
        self.scheduler = scheduler
        state = Lock(State(priority: priority))
        monitor = ProgressMonitor(events: events, stopwatch: Stopwatch(clock))
        events.send(.created)
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
                state: state.machine.state, response: state.response, uploadProgress: monitor.uploads.latest,
                downloadProgress: monitor.downloads.latest, outcome: state.outcome)
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

    /// The response has begun.
    func receive(_ head: ResponseHead) {
        state.withLock { state in
            state.response = head
            events.send(.response(head))
        }
    }

    /// The work is over.
    func finish(_ outcome: TransferOutcome) {
        monitor.finish()
        let demand = state.withLock { state in
            guard let demand = state.machine.finish() else { return TransferStateMachine.Demand.nothing }
            state.outcome = outcome
            state.stopWork = nil
            events.send(.finished(outcome))
            events.finish()
            states.send(.finished)
            states.finish()
            return demand
        }
        scheduler.meet(demand, of: self)
    }

    // MARK: What the line does

    /// Gets a place; false when it is not wanted any more.
    func admit() -> Bool {
        state.withLock { state in
            guard state.machine.admit() else { return false }
            states.send(.running)
            return true
        }
    }

    private func change(
        telling event: TaskEvent, _ step: (inout TransferStateMachine) -> TransferStateMachine.Demand?
    ) {
        let change = state.withLock { state in
            guard let demand = step(&state.machine) else { return Change() }
            events.send(event)
            let now = state.machine.state
            guard now != .cancelling else { return Change(demand: demand, isCancelled: true, stopWork: state.stopWork) }
            if now == .suspended { monitor.interrupt() }
            states.send(now)
            return Change(demand: demand)
        }
        scheduler.meet(change.demand, of: self)
        // The work first: whoever waits in ``pass()`` then finds its own task cancelled, and takes that for the reason.
        change.stopWork?()
        if change.isCancelled { states.send(.cancelling) }
    }

    /// What is left to do after a change of state.
    private struct Change {
        var demand = TransferStateMachine.Demand.nothing
        var isCancelled = false
        var stopWork: (@Sendable () -> Void)?
    }
}
