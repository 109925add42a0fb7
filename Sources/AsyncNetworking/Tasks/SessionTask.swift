// SPDX-License-Identifier: MIT

public import ANHTTP
public import FoundationEssentials

/// A task of a ``SessionManager``: it observes and controls a transfer, and provides its value.
///
/// The manager owns the task: it runs until it ends, until ``cancel()`` is called or a Swift task that awaits ``value``
/// is cancelled, or until the manager cancels its requests. Releasing this object does not stop the task, unless the
/// task was never resumed: then it is cancelled.
///
/// All members may be used from any thread or task at any time. Those that are not `async` return immediately. All
/// properties of ``AnySessionTask``, such as ``AnySessionTask/progress`` and ``AnySessionTask/status``, are also
/// properties of this type.
@dynamicMemberLookup
public final class SessionTask<Value: Sendable>: Identifiable, Sendable {
    package let core: TaskCore
    private let work: Task<Value, any Error>

    /// Creates a task that performs `work` once it is resumed, then leaves the registry, then calls `ending` with the
    /// result.
    init(
        _ task: RunningTask, in registry: TaskRegistry, ending: (@Sendable (Result<Value, any Error>) async -> Void)?,
        work: @escaping @Sendable (RunningTask) async throws -> Value
    ) {
        let core = task.core
        self.core = core
        // The Swift task ends with the transfer, which ``cancel()`` and the manager's invalidation end.
        self.work = Task {
            let result: Result<Value, any Error>
            do {
                result = .success(try await core.run { try await work(task) })
                core.finish(.succeeded)
            } catch {
                result = .failure(error)
                core.finish(TaskOutcome(error))
            }
            registry.end(core.id)
            await ending?(result)
            return try result.get()
        }
        core.begin { [work = self.work] in work.cancel() }
    }

    /// Creates a task that has failed, and calls `ending` with the error.
    init(
        _ core: TaskCore, failingWith error: any Error,
        ending: (@Sendable (Result<Value, any Error>) async -> Void)?
    ) {
        self.core = core
        core.finish(TaskOutcome(error))
        // The Swift task ends at once.
        work = Task {
            await ending?(.failure(error))
            throw error
        }
    }

    deinit {
        core.abandon()
    }

    /// The task without its value, for lists of tasks of different kinds; it controls and observes the same task, and keeps
    /// it as this object does: a task that was never resumed is cancelled when both are released.
    public var erased: AnySessionTask { AnySessionTask(core, keptBy: self) }

    // MARK: The result

    /// The value of the task, available when it has ended. Cancelling the Swift task that awaits it cancels the
    /// transfer.
    ///
    /// Awaiting the value does not resume the task: a suspended task must be resumed elsewhere. Any number of tasks may
    /// await it, and cancelling one of them ends the transfer for all.
    ///
    /// - Throws: ``SessionError``, which is ``SessionError/invalidated`` if the manager was invalidated or shut down
    ///   before the task was created; `CancellationError` if the transfer was cancelled; or an error of the program's
    ///   own code, such as a serializer.
    public var value: Value {
        get async throws {
            try await withTaskCancellationHandler {
                try await work.value
            } onCancel: {
                core.cancel()
            }
        }
    }

    /// Cancels the task and waits for its end, even if the calling task is cancelled.
    func end() async {
        core.cancel()
        _ = await work.result
    }

    /// The head of the response, available when it has arrived, even if the response is rejected afterwards. Cancelling
    /// the Swift task that awaits it does not cancel the transfer.
    ///
    /// Awaiting it does not resume the task. For a download that ``DownloadOptions/skipsVerifiedFile`` made
    /// unnecessary, it is a response with status 304. If a download needs several requests, it is the head of the first
    /// accepted response, as long as ``AnySessionTask/events`` has it.
    ///
    /// - Throws: The error of ``value`` if the task ends without a response, or `CancellationError` if the calling task
    ///   is cancelled.
    public var response: ResponseHead {
        get async throws {
            for await event in erased.events {
                if case .response(let head) = event { return head }
            }
            try Task.checkCancellation()
            _ = try await work.value
            throw SessionError.transport(
                TransportError(.internalInconsistency("The task has a value but no response.")))
        }
    }
}

// The members of `AnySessionTask`.
extension SessionTask {
    /// The task's identifier, unique within the process; tasks that are created later have higher ones.
    public var id: UInt64 { core.id }
    /// Starts or continues the task. Has no effect on a task that is waiting or running, was cancelled, or has ended.
    /// With ``SessionConfiguration/maximumConcurrentTasks``, the task may wait for its turn.
    public func resume() { core.resume() }
    /// Suspends the task: it stops reading the response and sending the request, but its connection stays open, and
    /// timeouts may expire; see ``AnySessionTask/suspend()``. Has no effect on a task that is suspended, was
    /// cancelled, or has ended.
    public func suspend() { core.suspend() }
    /// Cancels the task, and returns without waiting for its end. Its ``value`` then throws `CancellationError`, unless
    /// the task was already complete. Cancelling it again has no effect.
    public func cancel() { core.cancel() }

    /// A property of ``AnySessionTask`` that can be read only, such as ``AnySessionTask/progress`` or
    /// ``AnySessionTask/status``.
    public subscript<Member>(dynamicMember member: KeyPath<AnySessionTask, Member>) -> Member {
        erased[keyPath: member]
    }

    /// A property of ``AnySessionTask`` that can be set, such as ``AnySessionTask/priority`` or
    /// ``AnySessionTask/label``. Setting it changes the task itself.
    public subscript<Member>(dynamicMember member: ReferenceWritableKeyPath<AnySessionTask, Member>) -> Member {
        get { erased[keyPath: member] }
        set { erased[keyPath: member] = newValue }
    }
}

extension SessionTask {
    /// Resumes the task and returns it.
    func started() -> Self {
        resume()
        return self
    }

    /// Runs `scope` with the task, then cancels the task and waits for its end.
    func endingWithScope<Result>(_ scope: (SessionTask) async throws -> Result) async rethrows -> Result {
        do {
            let result = try await scope(self)
            await end()
            return result
        } catch {
            await end()
            throw error
        }
    }
}

/// A task that collects the response's body in memory; its value is the response with the body.
/// ``SessionManager/makeDataTask(for:)`` creates one, which accepts any status.
public typealias DataTask = SessionTask<Response<Data>>

/// A task that sends a body; its value is the response with its body. ``SessionManager/upload(_:options:as:)`` starts one with
/// the default serializer, which accepts the statuses 200–299. The type is that of ``DataTask``;
/// ``AnySessionTask/kind`` differs.
public typealias UploadTask = SessionTask<Response<Data>>

/// A task that writes the response to a file; its value is the file, with the response.
/// ``SessionManager/download(_:to:options:)`` starts one.
public typealias DownloadTask = SessionTask<DownloadedFile>

/// A task of a ``SessionManager`` without its value: it observes and controls the task.
///
/// ``SessionTask/erased`` returns it for a task with a value, and ``SessionManager/tasks`` lists those that have not
/// ended. All members may be used from any thread or task at any time, and return immediately. Copies refer to the same
/// task.
///
/// The request of an async function, such as ``SessionManager/data(for:)``, is a task as well, but is controlled by its
/// caller: ``resume()``, ``suspend()``, ``cancel()`` and the setters have no effect on it, its streams are empty, and
/// its state is always ``TaskState/running``.
public struct AnySessionTask: Hashable, Identifiable, Sendable {
    private let origin: Origin

    private enum Origin: Hashable, Sendable {
        /// A task that a function returned, and the object that would cancel it when released; `nil` for one that the
        /// manager knows.
        case task(TaskCore, keptBy: (any AnyObject & Sendable)?)
        /// The request of an async function.
        case call(CallCore)

        var id: UInt64 {
            switch self {
            case .task(let core, _): core.id
            case .call(let core): core.id
            }
        }

        static func == (left: Origin, right: Origin) -> Bool { left.id == right.id }

        func hash(into hasher: inout Hasher) { hasher.combine(id) }
    }

    /// The identity of the request of an async function; an object, because requests are slow to copy.
    private final class CallCore: Sendable {
        let id: UInt64
        let kind: TaskKind
        let request: Request

        init(id: UInt64, kind: TaskKind, request: Request) {
            self.id = id
            self.kind = kind
            self.request = request
        }
    }

    /// Creates the value from the state of a task.
    package init(_ core: TaskCore, keptBy owner: (any AnyObject & Sendable)? = nil) {
        origin = .task(core, keptBy: owner)
    }

    /// Creates the task of an async function.
    init(id: UInt64, kind: TaskKind, request: Request) {
        origin = .call(CallCore(id: id, kind: kind, request: request))
    }

    /// The state of the task; `nil` for the request of an async function.
    package var core: TaskCore? {
        if case .task(let core, _) = origin { core } else { nil }
    }

    /// The task's identifier, unique within the process; tasks that are created later have higher ones.
    public var id: UInt64 { origin.id }

    /// The kind of task: data, stream, upload or download. The request of an async function is of the kind
    /// ``TaskKind/data`` or ``TaskKind/stream``.
    public var kind: TaskKind {
        switch origin {
        case .task(let core, _): core.kind
        case .call(let core): core.kind
        }
    }

    /// The request as it was passed to the manager, without the session's header fields and changes by redirects or
    /// retries; `nil` if it could not be created, for example because its URL is invalid. For a WebSocket connection,
    /// `https` replaces `wss` and `http` replaces `ws`; for an event source, it contains the header fields that the
    /// source adds.
    ///
    /// For the validation of a cached response in the background it is the request that the response has answered, with the
    /// session's header fields and possibly credentials in `Authorization`, but not the conditions that are sent.
    public var request: Request? {
        switch origin {
        case .task(let core, _): core.request
        case .call(let core): core.request
        }
    }

    // MARK: Control

    /// Starts or continues the task. Has no effect on a task that is waiting or running, was cancelled, or has ended,
    /// nor on the request of an async function. With ``SessionConfiguration/maximumConcurrentTasks``, the task may
    /// wait for its turn.
    public func resume() { core?.resume() }

    /// Suspends the task: it stops reading the response and sending the request, and gives its slot to a waiting task.
    /// Has no effect on a task that is suspended, was cancelled, or has ended, nor on the request of an async function.
    ///
    /// The connection stays open. Data already buffered is still transferred, and a request body of known length up to
    /// 256 KiB is still sent; until the body of the response is read, redirects and retries go on. The task may fail, but
    /// does not succeed. The idle timeout is paused only while the task holds up the transfer, because the buffer for the response
    /// (``ANHTTP/TransferOptions/streamBufferSize``) is full or a chunk of the request's body is due.
    /// ``ANHTTP/Timeouts/total`` and `Request.timeout` are not paused, and the server may have timeouts of its own. If
    /// ``ANHTTP/Timeouts/total`` ends the exchanges of a download in segments, it requests them again when it goes on.
    public func suspend() { core?.suspend() }

    /// Cancels the task, and returns without waiting for its end. Its value then throws `CancellationError`, unless the
    /// task was already complete. Has no effect on a task that was cancelled or has ended, nor on the request of an
    /// async function.
    public func cancel() { core?.cancel() }

    // MARK: Observation

    /// A snapshot of the task's state, response, progress and outcome. It does not change; read the property again, or
    /// iterate ``events``, to follow the task. For the request of an async function, it contains only the state
    /// ``TaskState/running``.
    public var status: TaskStatus { core?.status ?? TaskStatus(state: .running) }

    /// The task's events: every reader receives all of them from the first one on, in order, until the task ends. Empty
    /// for the request of an async function.
    ///
    /// There are two exceptions for a late or slow reader: of the progress of each direction, it receives only the latest
    /// event, and of those of which there may be any number (exchanges, redirects, challenges, retries, waits, suspensions,
    /// and the responses of a download in parts) at least the latest 256, and about 512 at most. The events are kept as long
    /// as the task.
    public var events: BroadcastStream<TaskEvent> { stream { $0 } }

    /// The progress of sending the request's body: yields the latest value first, then newer ones until the task ends.
    /// A GET without a body reports none, nor does the request of an async function.
    ///
    /// Bytes count as sent when they have been passed to the connection; they are reported at most every 50 ms, and at
    /// the end. Progress starts over if the body is sent again, after a redirect, a retry or a challenge.
    public var uploadProgress: BroadcastStream<TransferProgress> { stream(\.uploadProgress) }

    /// The progress of receiving the response's body: yields the latest value first, then newer ones until the task
    /// ends. The request of an async function reports none.
    ///
    /// Only the body of the final response counts, in bytes before decompression: not those of redirects, answered
    /// challenges and retried attempts, nor the error response to a download. Bytes are reported at most every 50 ms,
    /// and at the end. The progress of a download that is resumed starts at the bytes that are already in the file, and
    /// its total is the size of the whole file; it starts over if the download does. A response without an exchange,
    /// such as one from the cache, is reported once it is complete, with the size of its decompressed body.
    public var downloadProgress: BroadcastStream<TransferProgress> { stream(\.downloadProgress) }

    /// The progress in the task's main direction: ``uploadProgress`` for an upload task, otherwise
    /// ``downloadProgress``. It yields the latest value first, then newer ones until the task ends. The request of an
    /// async function reports none.
    ///
    /// Any number of readers may iterate it. Progress is reported at most every 50 ms, and at the end, whether or not
    /// it is read.
    public var progress: BroadcastStream<TransferProgress> {
        kind == .upload ? uploadProgress : downloadProgress
    }

    private func stream<Value>(
        _ select: @escaping @Sendable (TaskEvent) -> Value?
    ) -> BroadcastStream<Value> {
        core?.stream(select) ?? BroadcastStream { _ in nil }
    }

    // MARK: Scheduling and identification

    /// The task's priority among the tasks that wait because of ``SessionConfiguration/maximumConcurrentTasks``;
    /// ``RequestPriority/normal`` by default.
    ///
    /// A change reorders a waiting task. It has no effect on running tasks, on the requests of async functions, nor if
    /// there is no limit.
    public var priority: RequestPriority {
        get { core?.priority ?? .normal }
        nonmutating set { core?.priority = newValue }
    }

    /// A description for the program's own use, which the library ignores; `nil` by default. It cannot be set for the
    /// request of an async function.
    public var label: String? {
        get { core?.label }
        nonmutating set { core?.label = newValue }
    }

    /// The number of bytes that the task is expected to transfer in its main direction, for the total of a
    /// ``SessionTaskGroup`` until the transfer itself reports one. By default it is the length of the body for an upload,
    /// as far as that is known without reading a file; otherwise `nil`. Setting `nil` restores the default, and the
    /// request of an async function cannot have a value. It does not limit the transfer, and a group reads it when
    /// ``SessionTaskGroup/progress`` is read.
    public var expectedBytes: Int64? {
        get { core?.expectedBytes }
        nonmutating set { core?.expectedBytes = newValue }
    }

    /// The tags by which ``SessionManager/taskGroup(tagged:)`` finds the task; empty by default. A group that was
    /// returned before does not change with them. They cannot be set for the request of an async function.
    public var tags: Set<String> {
        get { core?.tags ?? [] }
        nonmutating set { core?.tags = newValue }
    }
}

extension AnySessionTask: CustomStringConvertible {
    /// The identifier, the method and the URL for a log line, such as `#7 GET https://example.com/a?token=…`: without
    /// user information, query values and fragment. Only the identifier if ``request`` is `nil`.
    public var description: String { "#\(id)" + (request.map { " \($0)" } ?? "") }
}

/// The kind of a task, by what is done with the bodies of its request and response.
public enum TaskKind: Hashable, Sendable {
    /// A request whose response is collected in memory, as by a ``DataTask``, ``SessionManager/data(for:)`` and the
    /// verbs; also the validation of a cached response in the background.
    case data
    /// A request whose response is streamed to a closure, as by
    /// ``SessionManager/withResponse(for:validating:reporting:_:)`` and an ``EventSource``, or a WebSocket connection.
    case stream
    /// An upload task, which sends a body and collects the response in memory, as by ``SessionManager/upload(_:options:as:)``.
    case upload
    /// A download task, which writes the response to a file, as by ``SessionManager/download(_:to:options:)``.
    case download
}

/// A running task and its request.
struct RunningTask: Sendable {
    let core: TaskCore
    let request: Request

    var erased: AnySessionTask { AnySessionTask(core) }
}

extension TaskCore {
    /// Lets the body of a request of the task be read only while the task may run, and be sent although the response is
    /// complete. A body of at most one chunk is read at any time.
    @inline(never)
    func gating(_ request: Request) -> Request {
        if case .none = request.body.content { return request }
        var request = request
        request.endsWithResponse = true
        if let length = request.body.length, length <= RequestBody.chunkSize { return request }
        request.body.gate = { try await self.waitUntilRunning() }
        return request
    }
}
