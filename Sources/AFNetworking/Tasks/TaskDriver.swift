// SPDX-License-Identifier: MIT

import ANSystem
import AsyncNetworking
import Dispatch

/// What is behind a task of a manager's: its state, what it was given, and the core's task that does the work.
///
/// A task keeps its manager, and the manager keeps its tasks until they end.
final class TaskDriver: Sendable {
    let manager: AFURLSessionManager
    let identifier: Int
    /// Which of the manager's sessions the task belongs to.
    let generation: Int
    let original: OriginalRequest
    private let state: Lock<TaskState>
    /// Held while the task is resumed, suspended or cancelled, so that the core hears of it in the same order. Handlers of a
    /// cancellation run meanwhile, so what is only read is not under it.
    private let steering = NSLock()

    /// Makes a driver of a task that waits to be resumed.
    init(
        manager: AFURLSessionManager, identifier: Int, generation: Int, original: OriginalRequest, source: TaskSource,
        callbacks: TaskCallbacks
    ) {
        self.manager = manager
        self.identifier = identifier
        self.generation = generation
        self.original = original
        state = Lock(TaskState(source: source, callbacks: callbacks))
    }

    /// Becomes what is behind a task that waits to be resumed.
    func adopt(_ task: URLSessionTask) {
        state.withLock { $0.task = WeakTask(task) }
        manager.keep(task, self)
    }

    /// Becomes what is behind a task, and starts it.
    func begin(_ task: URLSessionTask) {
        steering.withLock {
            state.withLock { $0.begin(task) }
            post(.AFNetworkingTaskDidResume, of: task)
            manager.keep(task, self)
            launch()
        }
    }

    /// The session that hooks are told of.
    var session: URLSession { manager.state.withLock { $0.session(of: manager, generation: generation) } }

    /// The task whose completion handler is being called, if it collects.
    @TaskLocal static var ended: URLSessionDataTask?

    /// The task that users see; `nil` when it is over and they have all dropped it.
    var task: URLSessionTask? { state.withLock { $0.task?.value } }

    // MARK: What users do

    func resume() {
        steering.withLock {
            let step = state.withLock { $0.resume() }
            if case .none = step { return }
            post(.AFNetworkingTaskDidResume, of: task)
            if case .goOn(let work) = step { work.transfer.resume() } else { start() }
        }
    }

    func suspend() {
        steering.withLock {
            let step = state.withLock { $0.suspend() }
            if case .none = step { return }
            post(.AFNetworkingTaskDidSuspend, of: task)
            if case .goOn(let work) = step { work.transfer.suspend() }
        }
    }

    func cancel() {
        steering.withLock {
            switch state.withLock({ $0.cancel() }) {
            case .none: return
            case .start: end(with: CancellationError())
            case .goOn(let work): work.transfer.cancel()
            }
        }
    }

    /// Cancels, and hands over what a download needs to go on later, on the manager's queue.
    func cancel(producingResumeData completionHandler: @escaping (Data?) -> Void) {
        let completionHandler = Handover(completionHandler)
        let interrupted: TaskWork? = steering.withLock {
            switch state.withLock({ $0.cancel() }) {
            case .none: return nil
            case .start:
                end(with: CancellationError())
                return nil
            case .goOn(let work): return work
            }
        }
        // It ends with the transfer.
        Task { [manager] in
            let archived = await interrupted?.interrupt()?.archived
            manager.sessionQueue.async { completionHandler.value(archived) }
        }
    }

    /// The core's task, made now if there is none yet; nil when the request cannot be made, or was never sent.
    var transfer: TransferCore? {
        steering.withLock {
            if state.withLock({ $0.core == nil && $0.phase == .suspended }) { try? makeWork(isResumed: false) }
            return state.withLock { $0.core }
        }
    }

    // MARK: What is seen

    var taskState: URLSessionTask.State { state.withLock { $0.phase } }
    var error: (any Error)? { state.withLock { $0.error } }
    var counts: TaskCounts { state.withLock { $0.counts } }
    var head: ResponseHead? { state.withLock { $0.head } }

    var currentRequest: URLRequest? {
        let original = original.urlRequest
        return sentRequest.map { URLRequest($0, basedOn: original) } ?? original
    }

    /// The URL of ``currentRequest``.
    var currentURL: URL? { sentRequest?.url ?? original.url }

    private var sentRequest: Request? { state.withLock { $0.core }?.sentRequest }

    /// The response, made of the head when it is asked for the first time.
    var response: HTTPURLResponse? {
        let (made, head) = state.withLock { ($0.response, $0.head) }
        if let made { return made }
        guard let head, let response = HTTPURLResponse.make(head) else { return nil }
        return state.withLock { state in
            if state.response == nil { state.response = response }
            return state.response
        }
    }

    var taskDescription: String? {
        get { state.withLock { $0.description } }
        set { state.withLock { $0.description = newValue } }
    }

    var priority: Float {
        get { state.withLock { $0.priority } }
        set {
            let core = state.withLock { state in
                state.priority = newValue
                return state.core
            }
            core?.priority = TransferPriority(rawValue: Double(newValue))
        }
    }

    func description(of task: URLSessionTask) -> String {
        let request = original.urlRequest
        return "<\(type(of: task)): \(identifier) \(request.httpMethod ?? "GET") \(request.url?.absoluteString ?? "")>"
    }

    // MARK: Progress

    /// The progress of a direction, which cancels, suspends and resumes the task.
    func progress(_ direction: any WritableKeyPath<TaskState, Progress?> & Sendable) -> Progress {
        let made = Progress(totalUnitCount: NSURLSessionTransferSizeUnknown)
        made.isCancellable = true
        made.isPausable = true
        made.cancellationHandler = { [weak self] in self?.cancel() }
        made.pausingHandler = { [weak self] in self?.suspend() }
        made.resumingHandler = { [weak self] in self?.resume() }
        return state.withLock { state in
            let progress = state[keyPath: direction] ?? made
            state[keyPath: direction] = progress
            return progress
        }
    }

    /// The progress of what the task is for.
    var overallProgress: Progress {
        progress(state.withLock { $0.source.isUpload } ? \.uploadProgress : \.downloadProgress)
    }

    // MARK: Work

    private func start() {
        guard let work = state.withLock({ $0.work }) else { return launch() }
        work.transfer.resume()
    }

    private func launch() {
        do { try makeWork(isResumed: true) } catch { end(with: error) }
    }

    /// Ends the task before its work began. There may be some that was looked at and never resumed: then that ends the task.
    private func end(with error: any Error) {
        if let work = state.withLock({ $0.work }) { return work.transfer.cancel() }
        // It ends at once.
        Task { await finish(.failure(error)) }
    }

    /// Makes the core's task, which ends this one when it is over.
    private func makeWork(isResumed: Bool) throws {
        let (source, number) = state.withLock { ($0.source, $0.priority) }
        let priority = TransferPriority(rawValue: Double(number))
        let (session, request) = try manager.coreRequest(for: self, source)
        guard case .download(let resumeData) = source else {
            let task = session.makeTask(
                source.kind, for: request, priority: priority, isResumed: isResumed,
                prepare: { core in
                    state.withLock { $0.core = core }
                    guard request.body.length != 0 else { return }
                    core.observeUploadProgress { [weak self] in self?.didSend($0) }
                },
                body: { try await self.receive($0, $1, $2) }, ending: { await self.finish($0) })
            return state.withLock { $0.work = .collection(task) }
        }
        let download = makeDownload(session, request, resumeData, priority)
        state.withLock { state in
            state.core = download.core
            state.work = .download(download)
        }
        if isResumed { download.resume() }
    }

    private func post(_ name: NSNotification.Name, of task: URLSessionTask?) {
        guard let task else { return }
        Outbox.main.send { NotificationCenter.default.post(name: name, object: task) }
    }

    /// Changes the state.
    func change<Result>(_ change: (inout TaskState) -> Result) -> Result {
        state.withLock(change)
    }

    /// Does something on the manager's queue, and waits for it.
    func onSessionQueue<Result>(_ body: @escaping @Sendable () -> Handover<Result>) async -> Result {
        await withCheckedContinuation { continuation in
            manager.sessionQueue.async { continuation.resume(returning: body()) }
        }.value
    }

    private func didSend(_ progress: TransferProgress) {
        let (task, sent, isWatched) = state.withLock { state in
            // Of a body that is sent again the count begins anew.
            let before = progress.completedBytes < state.counts.sent ? 0 : state.counts.sent
            let sent = progress.completedBytes - before
            state.counts.sent = progress.completedBytes
            state.counts.expectedToSend = progress.totalBytes ?? NSURLSessionTransferSizeUnknown
            let isWatched = state.callbacks.value.uploadProgress != nil || state.uploadProgress != nil
            return (state.task?.value, sent, isWatched)
        }
        guard let task, sent != 0, isWatched || manager.isObserved else { return }
        manager.sessionQueue.async { [self] in
            tell(\.uploadProgress, \.uploadProgress, progress.completedBytes, of: progress.totalBytes)
            let expected =
                progress.totalBytes
                ?? original.urlRequest.value(forHTTPHeaderField: "Content-Length").flatMap(Int64.init)
            manager.urlSession(
                session, task: task, didSendBodyData: sent, totalBytesSent: progress.completedBytes,
                totalBytesExpectedToSend: expected ?? NSURLSessionTransferSizeUnknown)
        }
    }

    /// Brings a progress up to date, and tells the block for it; on the manager's queue.
    func tell(
        _ block: any KeyPath<TaskCallbacks, ((Progress) -> Void)?> & Sendable,
        _ direction: any WritableKeyPath<TaskState, Progress?> & Sendable, _ completed: Int64, of total: Int64?
    ) {
        let (callback, existing) = state.withLock { ($0.callbacks.value[keyPath: block], $0[keyPath: direction]) }
        guard callback != nil || existing != nil else { return }
        let progress = existing ?? progress(direction)
        progress.totalUnitCount = total ?? NSURLSessionTransferSizeUnknown
        progress.completedUnitCount = completed
        callback?(progress)
    }
}
