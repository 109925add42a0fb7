// SPDX-License-Identifier: MIT

package import ANHTTP
import ANSystem

/// The state of a task, shared by ``SessionTask``, ``AnySessionTask`` and the manager.
///
/// The state changes under a lock, and events are recorded under the same lock, so that they are in the order of the
/// changes. The scheduler, the work and waiting readers are notified after the lock is released.
package final class TaskCore: Sendable {
    let id: UInt64
    let kind: TaskKind
    package let request: Request?
    private let scheduler: TaskScheduler
    /// Measures the time since the session was created.
    let stopwatch: Stopwatch
    private let state: Lock<State>

    /// The mutable state of a task.
    struct State: Sendable {
        fileprivate var machine = TaskStateMachine()
        fileprivate var priority: RequestPriority
        fileprivate var label: String?
        fileprivate var tags: Set<String> = []
        fileprivate var expectedBytes: Int64?
        fileprivate var isResumeDataWanted = false
        fileprivate var resumeData: ResumeData?
        /// Cancels the work; `nil` before the work begins and after it ends.
        fileprivate var stopWork: (@Sendable () -> Void)?
        /// The monitors of the session until the task has ended: one may keep the task.
        fileprivate var monitors: [any EventMonitor]
        /// Whether a cancelled task has called `stopWork`.
        fileprivate var isWorkStopped = false
        /// The events so far, with the latest progress of each direction, and the latest details.
        fileprivate var log = EventLog<TaskEvent>()
        fileprivate var tracker = ProgressTracker()
        /// The exchanges that a time limit has ended.
        fileprivate var overdue: Set<Int> = []
        /// The figures of the call; empty before it has ended.
        fileprivate var metrics = CallMetrics()
        fileprivate var observers: [UInt64: @Sendable (TaskEvent) -> Void] = [:]
        fileprivate var lastObserver: UInt64 = 0
        fileprivate var waiters = Waiters<CheckedContinuation<Void, Never>>()

        fileprivate init(_ priority: RequestPriority, monitors: [any EventMonitor]) {
            self.priority = priority
            self.monitors = monitors
            record(.created)
        }

        /// Records an event; an event of progress replaces the previous one of its direction.
        fileprivate mutating func record(_ event: TaskEvent) {
            let isRecorded =
                switch event {
                case .uploadProgress: log.append(event) { $0.uploadProgress != nil }
                case .downloadProgress: log.append(event) { $0.downloadProgress != nil }
                default: log.append(event, detail: event.detailKind?.rawValue)
                }
            guard isRecorded else { return }
            for observer in observers.values { observer(event) }
        }

        fileprivate mutating func record(received progress: TransferProgress?) {
            if let progress { record(.downloadProgress(progress)) }
        }

        fileprivate mutating func record(sent progress: TransferProgress?) {
            if let progress { record(.uploadProgress(progress)) }
        }
    }

    init(
        id: UInt64, kind: TaskKind, request: Request?, priority: RequestPriority,
        scheduler: TaskScheduler, stopwatch: Stopwatch, monitors: [any EventMonitor]
    ) {
        self.id = id
        self.kind = kind
        self.request = request
        self.scheduler = scheduler
        self.stopwatch = stopwatch
        state = Lock(State(priority, monitors: monitors))
    }

    // MARK: Operations of users

    package func resume() {
        change(recording: .resumed) { $0.resume() }
    }

    package func suspend() {
        change(recording: .suspended) { $0.suspend() }
    }

    package func cancel() {
        change(recording: .cancelled) { $0.cancel() }
    }

    /// Cancels the task if it was never resumed. Called when its ``SessionTask`` is released.
    func abandon() {
        if state.withLock({ !$0.machine.wasResumed }) { cancel() }
    }

    var status: TaskStatus {
        state.withLock { state in
            var status = TaskStatus(state: state.machine.state)
            for event in state.log.elements {
                switch event {
                case .response(let head): status.response = head
                case .uploadProgress(let progress): status.uploadProgress = progress
                case .downloadProgress(let progress): status.downloadProgress = progress
                case .ended(let outcome, _): status.outcome = outcome
                default: break
                }
            }
            return status
        }
    }

    package var priority: RequestPriority {
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

    /// The size that the program expects, or the declared length of an upload's body.
    var expectedBytes: Int64? {
        get { state.withLock { $0.expectedBytes } ?? (kind == .upload ? request?.body.length : nil) }
        set { state.withLock { $0.expectedBytes = newValue } }
    }

    /// Whether the partial file of a download is kept when the task is cancelled.
    var isResumeDataWanted: Bool {
        get { state.withLock { $0.isResumeDataWanted } }
        set { state.withLock { $0.isResumeDataWanted = newValue } }
    }

    /// The data to resume an unfinished download with.
    package internal(set) var resumeData: ResumeData? {
        get { state.withLock { $0.resumeData } }
        set { state.withLock { $0.resumeData = newValue } }
    }

    /// Returns when the task has ended or the calling task is cancelled.
    func waitForEnd() async {
        _ = await state.wait(among: \.waiters) { $0.log.isFinished ? true : nil }
    }

    // MARK: Events

    /// A stream of the events after the one with the given number, of those for which `select` returns a value.
    func stream<Value>(
        after number: Int = 0, _ select: @escaping @Sendable (TaskEvent) -> Value?
    ) -> BroadcastStream<Value> {
        BroadcastStream { [state] seen in
            await state.next(in: \.log, among: \.waiters, after: max(seen, number), select)
        }
    }

    /// The number of events so far.
    var eventCount: Int { state.withLock { $0.log.lastNumber } }

    /// Calls `observer` with every event, including past ones. It is called under the task's lock, so it must return
    /// immediately and not use the task.
    ///
    /// - Returns: The number of the observer, for ``removeObserver(_:)``. It is removed when the task has ended.
    @discardableResult
    package func observe(_ observer: @escaping @Sendable (TaskEvent) -> Void) -> UInt64 {
        state.withLock { state in
            for event in state.log.elements { observer(event) }
            state.lastObserver += 1
            if !state.log.isFinished { state.observers[state.lastObserver] = observer }
            return state.lastObserver
        }
    }

    /// Removes an observer.
    func removeObserver(_ number: UInt64) {
        // The observer is released after the lock.
        _ = state.withLock { $0.observers.removeValue(forKey: number) }
    }

    /// The number of observers, for testing.
    package var observerCount: Int { state.withLock { $0.observers.count } }

    /// The most recently sent request.
    package var sentRequest: Request? {
        state.withLock { state in
            for case .exchange(_, .started(let request)) in state.log.elements.reversed() { return request }
            return nil
        }
    }

    /// The metrics of the latest exchanges.
    package var exchanges: [TransferMetrics] {
        state.withLock { state in
            state.log.elements.compactMap { if case .exchange(_, .finished(let metrics)) = $0 { metrics } else { nil } }
        }
    }

    /// The interim responses of the exchange that began last.
    var interimResponses: [ResponseHead] {
        state.withLock { state in
            var (heads, last): ([Int: [ResponseHead]], Int?) = ([:], nil)
            for case .exchange(let number, let event) in state.log.elements {
                if case .started = event { last = number }
                if case .informational(let head) = event { heads[number, default: []].append(head) }
            }
            return last.flatMap { heads[$0] } ?? []
        }
    }

    // MARK: Operations of the work

    /// Stores the closure that cancels the work, unless that has ended, and calls it if the task was cancelled in the
    /// meantime.
    package func begin(stopWork: @escaping @Sendable () -> Void) {
        let isCancelled = state.withLock { state in
            if !state.log.isFinished { state.stopWork = stopWork }
            return state.machine.state == .cancelling
        }
        if isCancelled { stopWork() }
    }

    /// Runs the work when the task is running. What the closures of the program start meanwhile takes no slot.
    ///
    /// - Throws: The errors of the work and of ``waitUntilRunning()``.
    func run<Value>(_ work: () async throws -> Value) async throws -> Value {
        try await waitUntilRunning()
        return try await scheduler.run(work)
    }

    /// Returns immediately if the task is running; waits while it is suspended or queued.
    ///
    /// - Throws: `CancellationError` if the task or the calling task is cancelled.
    package func waitUntilRunning() async throws {
        try await waitUntilRunning(orEndOf: nil)
    }

    /// Returns when more of a response's body may be read: when the task is running, or a time limit has ended the exchange,
    /// of which the reader learns after the bytes that have arrived.
    ///
    /// - Throws: `CancellationError` if the task or the calling task is cancelled.
    func waitUntilReadable(_ body: ResponseBody) async throws {
        try await waitUntilRunning(orEndOf: body.exchange)
    }

    /// Whether the task is neither suspended nor queued.
    var isRunning: Bool { state.withLock { $0.machine.state == .running } }

    private func waitUntilRunning(orEndOf exchange: Int?) async throws {
        if isRunning { return }
        let isRunning = await state.wait(among: \.waiters) { state in
            switch state.machine.state {
            case .running: true
            case .suspended, .waiting: exchange.map(state.overdue.contains) == true ? true : nil
            // The work is cancelled first, so that it finds its own Swift task cancelled and takes that for the reason.
            case .cancelling: state.isWorkStopped ? false : nil
            case .finished: false
            }
        }
        guard isRunning == true else { throw CancellationError() }
    }

    /// Records the head of the task's response.
    func receive(_ head: ResponseHead) {
        update { $0.record(.response(head)) }
    }

    /// Marks the exchange of a body, or else the current one, as that with the task's response, whose body starts at
    /// `offset`, unless the bytes of the response are not those of an exchange.
    func accept(_ body: ResponseBody? = nil, offset: Int64 = 0, total: Int64? = nil, countsExchange: Bool = true) {
        let countsExchange = countsExchange && (body.map { $0.origin == .network } ?? true)
        let time = stopwatch.elapsed
        update { state in
            if let number = body?.exchange { state.record(sent: state.tracker.select(number, at: time)) }
            let progress = state.tracker.accept(
                offset: offset, total: total, countsExchange: countsExchange, at: time)
            if offset > 0 { state.record(.continued(offset: offset, total: total)) }
            state.record(received: progress)
        }
    }

    /// Records that the response is complete.
    ///
    /// - Parameter size: The size of the body in bytes.
    package func complete(_ size: Int64) {
        update { $0.record(received: $0.tracker.complete(size)) }
    }

    /// Records an event of the request.
    func receive(_ event: TaskEvent) {
        update { $0.record(event) }
    }

    /// Notes the figures of the call, which has ended.
    func note(_ metrics: CallMetrics) {
        state.withLock { $0.metrics = metrics }
    }

    /// Records the end of the work.
    func finish(_ outcome: TaskOutcome) {
        let end = update { state -> End? in
            guard let action = state.machine.finish() else { return nil }
            state.record(.ended(outcome, state.metrics))
            state.log.finish()
            let hasBegun = state.log.elements.contains { if case .began = $0 { true } else { false } }
            defer { (state.stopWork, state.observers, state.monitors) = (nil, [:], []) }
            return End(
                action: action, monitors: hasBegun ? state.monitors : [], metrics: state.metrics,
                released: (state.stopWork, state.observers))
        }
        guard let end else { return }
        // Before another task takes its place.
        for monitor in end.monitors { monitor.receive(.ended(outcome, end.metrics), of: AnySessionTask(self)) }
        scheduler.apply(end.action, of: self)
    }

    // MARK: Operations of the scheduler

    /// Starts a waiting task; returns `false` if the task is no longer waiting.
    func admit() -> Bool {
        update { $0.machine.admit() }
    }

    // MARK: Changes

    /// Changes the state under its lock, then resumes those who wait for a change.
    @discardableResult
    private func update<Result>(_ body: (inout State) -> Result) -> Result {
        state.change { state in (body(&state), resuming: state.waiters.takeAll()) }
    }

    private func change(recording event: TaskEvent, _ step: (inout TaskStateMachine) -> TaskStateMachine.Action?) {
        let change = update { state in
            guard let action = step(&state.machine) else { return Change() }
            state.record(event)
            switch state.machine.state {
            case .cancelling: return Change(action: action, isCancelled: true, stopWork: state.stopWork)
            case .suspended: state.tracker.interrupt()
            case .waiting, .running, .finished: break
            }
            return Change(action: action)
        }
        scheduler.apply(change.action, of: self)
        guard change.isCancelled else { return }
        change.stopWork?()
        update { $0.isWorkStopped = true }
    }

    /// The actions to perform at the end, outside of the lock.
    private struct End {
        let action: TaskStateMachine.Action
        /// The monitors that have seen the beginning.
        let monitors: [any EventMonitor]
        let metrics: CallMetrics
        /// Closures of the program, which are released after the lock.
        let released: ((@Sendable () -> Void)?, [UInt64: @Sendable (TaskEvent) -> Void])
    }

    /// The actions to perform after a change of state, outside of the lock.
    private struct Change {
        var action = TaskStateMachine.Action.nothing
        var isCancelled = false
        var stopWork: (@Sendable () -> Void)?
    }
}

/// Records the events of the task's exchanges.
///
/// The transport reports progress at most every 50 ms, so this code does not run for each chunk.
extension TaskCore: CallEventSink {
    func receive(_ event: ExchangeEvent, of exchange: Int) {
        let time = stopwatch.elapsed
        switch event {
        case .started(var request):
            let position = request[UploadPosition.self]
            // The log would keep each part of the upload.
            if position != nil { request.body = .none }
            let action = update { [request] state in
                state.record(.exchange(exchange, .started(request)))
                state.tracker.beginExchange(
                    exchange, at: time, sendingFrom: position?.offset ?? 0, of: position?.total)
                return state.machine.beginExchange()
            }
            if let action { scheduler.apply(action, of: self) }
        case .uploadProgress(let progress):
            update { $0.record(sent: $0.tracker.send(progress, by: exchange, at: time)) }
        case .downloadProgress(let progress):
            update { $0.record(received: $0.tracker.receive(progress, by: exchange, at: time)) }
        case .head:
            update { state in
                state.tracker.noteHead(of: exchange)
                state.record(.exchange(exchange, event))
            }
        case .finished(let metrics):
            update { state in
                if metrics.hasTimedOut { state.overdue.insert(exchange) }
                state.record(sent: state.tracker.endExchange(exchange, at: time))
                state.record(.exchange(exchange, event))
            }
        case .informational: receive(.exchange(exchange, event))
        }
    }
}
