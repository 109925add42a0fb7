// SPDX-License-Identifier: MIT

import ANSystem
import AsyncNetworking
import Dispatch

/// The implementation of a manager's task: its state, its callbacks, and the core task that performs the transfer.
///
/// A task and its manager retain each other until the task ends.
final class TaskDriver: Sendable {
    let identifier: Int
    /// The serial queue of the manager.
    let sessionQueue: DispatchQueue
    /// The generation of the manager's session to which the task belongs.
    let generation: Int
    let original: OriginalRequest
    let source: TaskSource
    private let state: Lock<TaskDriverState>
    /// Held while the task is resumed, suspended or cancelled, so that the core receives these calls in the same order.
    /// Cancellation handlers run while it is held. They may read the task and call its commands: nothing that has no
    /// effect on a cancelled task acquires it.
    private let steering = NSLock()

    /// Creates the driver of a suspended task.
    init(
        _ manager: AFURLSessionManager, _ original: OriginalRequest, _ source: TaskSource, _ callbacks: TaskCallbacks
    ) {
        sessionQueue = manager.sessionQueue
        self.original = original
        self.source = source
        (identifier, generation) = manager.state.withLock { ($0.takeIdentifier(), $0.generation) }
        state = Lock(TaskDriverState(manager, callbacks))
    }

    /// Becomes the driver of a suspended task.
    func adopt(_ task: URLSessionTask) {
        state.withLock { $0.task = Weak(object: task) }
        manager?.state.withLock { $0.add(task, identifier, of: generation) }
    }

    /// The manager; `nil` when the task has ended.
    var manager: AFURLSessionManager? { state.withLock { $0.manager } }

    /// The manager if any event other than task completion is observed.
    var observer: AFURLSessionManager? { manager.flatMap { $0.isObserved ? $0 : nil } }

    /// Returns the session of the manager that is passed to hooks.
    func session(of manager: AFURLSessionManager) -> URLSession {
        manager.state.withLock { $0.session(of: manager, generation: generation) }
    }

    /// The task that users see; `nil` when it has ended and has been freed.
    var task: URLSessionTask? { state.withLock { $0.task.object } }

    // MARK: Commands

    func resume() { enter(.running, from: .suspended, posting: .AFNetworkingTaskDidResume) { $0.resume() } }
    func suspend() { enter(.suspended, from: .running, posting: .AFNetworkingTaskDidSuspend) { $0.suspend() } }
    func cancel() { enter(.canceling, from: .suspended, .running) { $0.cancel() } }

    /// Cancels the task and passes the resume data, if any, to the completion handler on the manager's own queue.
    func cancel(producingResumeData completionHandler: @escaping (Data?) -> Void) {
        let completionHandler = UncheckedSendable(completionHandler)
        var cancelled: TaskCore?
        // A task that never began leaves the data that it was to continue with.
        let isUnused = !wasStarted
        // At once: an invalidation may cancel the transfer, too, which removes what has arrived.
        enter(.canceling, from: .suspended, .running) { core in
            core.cancelKeepingPartialFile()
            cancelled = core
        }
        // Ends with the transfer.
        Task { [cancelled, manager] in
            let left = isUnused && cancelled == nil ? source.resumeData : await cancelled?.finalResumeData()
            // The task may end later.
            if let left { manager?.keepFields(of: original.urlRequest, for: left) }
            let archived = left?.archived
            sessionQueue.async { completionHandler.value(archived) }
        }
    }

    /// Changes the phase and passes the command to the core task, which the first command creates.
    private func enter(
        _ phase: URLSessionTask.State, from phases: URLSessionTask.State..., posting name: NSNotification.Name? = nil,
        _ pass: (TaskCore) -> Void
    ) {
        guard state.withLock({ phases.contains($0.phase) }) else { return }
        steering.withLock {
            let (isFirst, core, task) = state.withLock { ($0.enter(phase, from: phases), $0.core, $0.task.object) }
            guard let isFirst else { return }
            if let name { post(name, of: task) }
            if let core {
                pass(core)
            } else if isFirst {
                do {
                    if phase == .canceling { throw CancellationError() }
                    try makeCore(isResumed: true)
                } catch {
                    // The task ends before its transfer has begun, and at once.
                    Task { await finish(.failure(error)) }
                }
            }
        }
    }

    /// The core task, created on first access; `nil` if the request cannot be created or the task ended before it
    /// was sent.
    var coreTask: TaskCore? {
        let (core, mayBeMade) = state.withLock { ($0.core, $0.phase == .suspended || $0.phase == .running) }
        guard core == nil, mayBeMade else { return core }
        return steering.withLock {
            if state.withLock({ $0.core == nil && $0.phase == .suspended }) { try? makeCore(isResumed: false) }
            return state.withLock { $0.core }
        }
    }

    // MARK: Properties of the task

    var taskState: URLSessionTask.State { state.withLock { $0.phase } }
    /// Whether the task was resumed or cancelled at least once.
    var wasStarted: Bool { state.withLock { $0.wasStarted } }
    /// Whether the task is running and has no response yet.
    var isAwaitingResponse: Bool { state.withLock { $0.phase == .running && $0.head == nil } }
    var error: (any Error)? { state.withLock { $0.error } }
    var counts: TaskCounts { state.withLock { $0.counts } }

    var currentRequest: URLRequest? {
        let original = original.urlRequest
        return sentRequest.map { URLRequest($0, basedOn: original) } ?? original
    }

    /// The URL of ``currentRequest``.
    var currentURL: URL? { sentRequest?.url ?? original.url }

    /// The request that was sent last, with what redirects have changed; `nil` if none was sent.
    var sentRequest: Request? { state.withLock { $0.core }?.sentRequest }

    /// The response, created from the head at first access.
    var response: HTTPURLResponse? {
        state.withLock { state in
            if state.response == nil { state.response = state.head.flatMap(HTTPURLResponse.make) }
            return state.response
        }
    }

    var priority: Float {
        get { state.withLock { $0.priority } }
        set {
            state.set(\.priority, to: newValue)
            state.withLock { $0.core }?.priority = RequestPriority(rawValue: Double(newValue))
        }
    }

    // MARK: Progress

    /// Returns the progress of the upload or the download. It cancels, suspends and resumes the task.
    func progress(_ direction: any WritableKeyPath<TaskDriverState, Progress?> & Sendable) -> Progress {
        // Unlike one created with a total, it does not become a child of the current progress.
        let made = Progress(parent: nil)
        made.isCancellable = true
        made.isPausable = true
        made.cancellationHandler = { [weak self] in self?.cancel() }
        // Foundation calls the handlers concurrently, so they may run in the reverse order.
        let follow: @Sendable () -> Void = { [weak self, weak made] in
            guard let self, let made else { return }
            sessionQueue.async { if made.isPaused { self.suspend() } else { self.resume() } }
        }
        made.pausingHandler = follow
        made.resumingHandler = follow
        return state.withLock { state in
            if let existing = state[keyPath: direction] { return existing }
            let isUpload = direction == \.uploadProgress
            made.totalUnitCount = isUpload ? state.counts.expectedToSend : state.counts.expectedToReceive
            made.completedUnitCount = isUpload ? state.counts.sent : state.counts.received
            state[keyPath: direction] = made
            return made
        }
    }

    /// The upload progress of an upload task, otherwise the download progress.
    var overallProgress: Progress {
        progress(source.isUpload ? \.uploadProgress : \.downloadProgress)
    }

    // MARK: The core task

    /// Creates the core task, which ends this task when it ends.
    private func makeCore(isResumed: Bool) throws {
        let priority = RequestPriority(rawValue: Double(self.priority))
        guard let manager else { throw CancellationError() }
        let (session, request) = try manager.coreRequest(for: self)
        guard case .download(let resumeData) = source else {
            let task = session.makeTask(
                source.isUpload ? .upload : .data, for: request, priority: priority, isResumed: isResumed,
                prepare: { core in
                    state.withLock { $0.core = core }
                    guard request.body.length != 0 else { return }
                    core.observe { [weak self] event in self?.noteSending(event) }
                },
                body: { try await self.receive($0, $1, $2) }, ending: { await self.finish($0) })
            return state.withLock { $0.owner = task }
        }
        let download = makeDownload(session, request, resumeData, priority)
        state.withLock { state in
            state.core = download.core
            state.owner = download
        }
        if isResumed { download.resume() }
    }

    private func post(_ name: NSNotification.Name, of task: URLSessionTask?) {
        guard let task else { return }
        MainQueueBuffer.shared.send { NotificationCenter.default.post(name: name, object: task) }
    }

    /// Sets the error with which a challenge block ends the task.
    func setChallengeError(_ error: any Error) { state.set(\.challengeError, to: error) }

    /// Changes the state under its lock.
    func change<Result>(_ change: (inout TaskDriverState) -> Result) -> Result {
        state.withLock(change)
    }

    /// Runs a function on the manager's own queue and waits for its end.
    func onSessionQueue(_ body: @escaping @Sendable () -> Void) async {
        await withCheckedContinuation { continuation in
            sessionQueue.async {
                body()
                continuation.resume()
            }
        }
    }

    /// Waits while the task is suspended. Called in the core task before a block that it waits for.
    ///
    /// - Throws: `CancellationError` if the task is cancelled.
    func waitUntilRunning() async throws { try await change { $0.core }?.waitUntilRunning() }

    /// Calls a delegate method on the manager's own queue and suspends until the method's completion handler is called.
    /// Returns the fallback if the handler is released uncalled, or if the calling task is cancelled.
    func ask<Value: Sendable>(
        fallback: Value,
        _ call: @escaping @Sendable (AFURLSessionManager, URLSession, @escaping @Sendable (Value) -> Void) -> Void
    ) async -> Value {
        guard let manager else { return fallback }
        return await callback(fallback: fallback) { callback in
            sessionQueue.async { [session = session(of: manager)] in call(manager, session, callback) }
        }
    }

    /// Counts the bytes of the request body that were sent, and reports them. Each exchange sends the body anew.
    func noteSending(_ event: TaskEvent) {
        switch event {
        case .exchange(_, .started): change { $0.counts.sentInExchange = 0 }
        case .uploadProgress(let progress): didSend(progress)
        default: break
        }
    }

    private func didSend(_ progress: TransferProgress) {
        let (task, sent, isWatched) = state.withLock { state in
            // The count also restarts within an exchange, when the transport sends the body again.
            let before = state.counts.sentInExchange
            let sent = progress.completedBytes - (progress.completedBytes < before ? 0 : before)
            state.counts.sentInExchange = progress.completedBytes
            state.counts.sent = progress.completedBytes
            state.counts.expectedToSend = progress.totalBytes ?? NSURLSessionTransferSizeUnknown
            return (state.task.object, sent, state.isUploadWatched)
        }
        let observer = observer
        guard let task, sent != 0, isWatched || observer != nil else { return }
        sessionQueue.async { [self] in
            tell(\.uploadProgress, \.uploadProgress, progress.completedBytes, of: progress.totalBytes)
            let expected =
                progress.totalBytes
                ?? original.urlRequest.value(forHTTPHeaderField: "Content-Length").flatMap(Int64.init)
            guard let observer else { return }
            observer.urlSession(
                session(of: observer), task: task, didSendBodyData: sent, totalBytesSent: progress.completedBytes,
                totalBytesExpectedToSend: expected ?? NSURLSessionTransferSizeUnknown)
        }
    }

    /// Updates a progress object and calls the progress callback; called on the manager's own queue.
    func tell(
        _ block: any KeyPath<TaskCallbacks, (@Sendable (Progress) -> Void)?> & Sendable,
        _ direction: any WritableKeyPath<TaskDriverState, Progress?> & Sendable, _ completed: Int64, of total: Int64?
    ) {
        let (callback, existing) = state.withLock { ($0.callbacks[keyPath: block], $0[keyPath: direction]) }
        guard callback != nil || existing != nil else { return }
        let progress = existing ?? progress(direction)
        progress.totalUnitCount = total ?? NSURLSessionTransferSizeUnknown
        progress.completedUnitCount = completed
        callback?(progress)
    }
}
