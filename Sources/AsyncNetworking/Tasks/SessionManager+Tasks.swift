// SPDX-License-Identifier: MIT

public import ANHTTP
public import ANSerialization
import FoundationEssentials
public import HTTPTypes

// Creating tasks of any kind. A task is registered when it is created, so that `invalidate(cancellingTasks: false)`
// lets it finish even if it has not started.

extension SessionManager {
    /// Creates a task. If `request` is a failure, or the manager no longer accepts requests, the task fails at once.
    ///
    /// - Parameters:
    ///   - kind: The kind of task.
    ///   - request: The request, or the error with which the task fails.
    ///   - priority: The priority among waiting tasks.
    ///   - isResumed: Whether the task starts at once.
    ///   - prepare: Receives the task's core before the work begins.
    ///   - ending: Called with the result when the task has ended, before its value is available.
    ///   - work: The work of the task, which begins when the task is first admitted.
    nonisolated func makeTask<Value>(
        _ kind: TaskKind, _ request: Result<Request, any Error>, priority: RequestPriority = .normal,
        isResumed: Bool = false, prepare: (TaskCore) -> Void = { _ in },
        ending: (@Sendable (Result<Value, any Error>) async -> Void)? = nil,
        work: @escaping @Sendable (RunningTask) async throws -> Value
    ) -> SessionTask<Value> {
        // Encoded now, so that its length is known.
        let request = Result {
            var request = try request.get()
            try request.encodeBody(with: configuration.json.encoder)
            return request
        }
        .mapError(SessionError.lifting)
        let wanted = try? request.get()
        let (core, isTaken) = registry.begin { id in
            TaskCore(
                id: id, kind: kind, request: wanted, priority: priority, scheduler: scheduler,
                stopwatch: pipeline.uptime, monitors: pipeline.monitors)
        }
        prepare(core)
        guard isTaken, let wanted else {
            let error: any Error = if case .failure(let error) = request { error } else { SessionError.invalidated }
            return SessionTask(core, failingWith: error, ending: ending)
        }
        // Resumed before the work begins, so that the work need not suspend.
        if isResumed { core.resume() }
        return SessionTask(RunningTask(core: core, request: wanted), in: registry, ending: ending, work: work)
    }

    /// Creates a task that performs a request and runs a closure with the response as it arrives, regardless of its
    /// status.
    ///
    /// Between two chunks `body` should await ``TaskCore/waitUntilRunning()``, so that the task can be suspended.
    ///
    /// - Parameters:
    ///   - kind: The kind of the task.
    ///   - request: The request to send.
    ///   - priority: The priority among waiting tasks.
    ///   - isResumed: Whether the task starts at once.
    ///   - prepare: Receives the task's core before the work begins.
    ///   - body: Receives the response's head, its body, which is valid only while the closure runs, and the task's
    ///     core.
    ///   - ending: Called with the result when the task has ended, before its value is available.
    package nonisolated func makeTask<Value: Sendable>(
        _ kind: TaskKind, for request: Request, priority: RequestPriority, isResumed: Bool,
        prepare: (TaskCore) -> Void,
        body: @escaping @Sendable (ResponseHead, ResponseBody, TaskCore) async throws -> Value,
        ending: @escaping @Sendable (Result<Value, any Error>) async -> Void
    ) -> SessionTask<Value> {
        makeTask(
            kind, .success(request), priority: priority, isResumed: isResumed, prepare: prepare, ending: ending
        ) { transfer in
            let core = transfer.core
            return try await self.perform(
                transfer.erased, transfer.request, delivery: .streamed, reporting: core
            ) { head, responseBody in
                core.receive(head)
                core.accept(responseBody)
                return try await body(head, responseBody, core)
            }
        }
    }
}

// Tasks that collect the response's body in memory.

extension SessionManager {
    /// Creates a suspended task that performs a request and collects the response's body in memory, regardless of its
    /// status.
    ///
    /// The task starts when it is resumed. If the manager was invalidated or shut down, the task fails with
    /// ``SessionError/invalidated``. Releasing a task that was never resumed cancels it.
    ///
    /// - Parameter request: The request to send. A response body above its ``ANHTTP/TransferOptions/maximumBodySize``,
    ///   128 MiB by default, fails the task with ``ANHTTP/TransportError/Reason/responseTooLarge(_:)``.
    public nonisolated func makeDataTask(for request: Request) -> DataTask {
        makeTask(.data, .success(request)) { try await self.collect($0) }
    }

    /// Creates a suspended task that performs a request and deserializes the response.
    ///
    /// The task is like one of ``makeDataTask(for:)``, and fails with the errors that ``response(for:as:)`` throws.
    public nonisolated func makeDataTask<Serializer: ResponseSerializer>(
        for request: Request, as serializer: Serializer
    ) -> SessionTask<Response<Serializer.Output>> {
        makeTask(.data, .success(request)) { task in
            try await self.collect(task).serialized(by: serializer)
        }
    }

    /// Performs a task's request and collects the body; waits whenever the task is suspended.
    nonisolated func collect(_ task: RunningTask) async throws -> Response<Data> {
        let core = task.core
        let limit = task.request.options(inheriting: pipeline.options).value.maximumBodySize
        let start = pipeline.uptime.elapsed
        var response = try await perform(
            task.erased, task.request, delivery: .streamed, reporting: core
        ) { head, body in
            core.receive(head)
            core.accept(body)
            var data = Data()
            for try await chunk in body {
                try data.collect(chunk, upTo: limit)
                try await core.waitUntilReadable(body)
            }
            // It may have been suspended before a body without content.
            try await core.waitUntilRunning()
            let ending = body.ending ?? ResponseEnding()
            core.complete(Int64(data.count))
            return Response(data, head: head, ending: ending)
        }
        response.callDuration = pipeline.uptime.elapsed - start
        return response
    }
}

// Tasks that send a body.

extension SessionManager {
    /// Creates a suspended task that sends a request with its body, and validates and converts the response.
    ///
    /// The task starts when it is resumed; ``upload(_:body:method:headers:timeout:options:as:)`` describes the options,
    /// the serializer and the errors. Releasing a task that was never resumed cancels it.
    public nonisolated func makeUploadTask<Serializer: ResponseSerializer>(
        for request: Request, options: UploadOptions = UploadOptions(),
        as serializer: Serializer = DataResponseSerializer()
    ) -> SessionTask<Response<Serializer.Output>> {
        makeUploadTask(for: .success(request), options, as: serializer)
    }

    /// Starts sending a body.
    ///
    /// ```swift
    /// let upload = api.upload("photos", body: .form(form))
    /// for await progress in upload.progress { print(progress.fraction ?? 0) }
    /// let response = try await upload.value
    /// ```
    ///
    /// If the request cannot be created, the task fails with ``SessionError/serialization(_:)``. It fails with
    /// ``ANSerialization/SerializationError/rejected(_:)``, in a ``SessionError``, if the serializer does not accept
    /// the response's status or media type; with the serializer's error, also wrapped if it is a
    /// ``ANSerialization/SerializationError``, if it cannot convert the body; and with ``SessionError/invalidated`` if
    /// the manager was invalidated or shut down. The response's body is collected in memory; one of more than
    /// ``ANHTTP/TransferOptions/maximumBodySize`` bytes, 128 MiB by default, fails the task with
    /// ``ANHTTP/TransportError/Reason/responseTooLarge(_:)``, in a ``SessionError``.
    ///
    /// - Parameters:
    ///   - target: A path or URL as a string, resolved against the base URL, or a `URL`.
    ///   - body: The body, such as `.form(form)` or `.file(path)`. JSON is encoded by
    ///     ``SessionConfiguration/json``.
    ///   - method: The method; POST by default.
    ///   - headers: Header fields that replace all others of the same name; none by default.
    ///   - timeout: The time limit of the whole call; `nil`, the default, for none. See `Request.timeout`.
    ///   - options: Whether and how the upload is resumed; by default it is not. See <doc:ResumableUploads>.
    ///   - serializer: Validates and converts the response; by default it accepts the statuses 200–299 and returns the
    ///     body.
    /// - Returns: The task, which is running or, with ``SessionConfiguration/maximumConcurrentTasks``, waits for
    ///   its turn.
    public nonisolated func upload<Serializer: ResponseSerializer>(
        _ target: some RequestTarget, body: RequestBody, method: HTTPRequest.Method = .post,
        headers: HTTPFields = [:], timeout: Duration? = nil, options: UploadOptions = UploadOptions(),
        as serializer: Serializer = DataResponseSerializer()
    ) -> SessionTask<Response<Serializer.Output>> {
        let wanted = Result { try request(method, target, body: body, headers: headers, timeout: timeout) }
        return makeUploadTask(for: wanted, options, as: serializer).started()
    }

    /// Starts sending a request with its body, and validates and converts the response.
    ///
    /// The options, the serializer, the errors and the task are those of
    /// ``upload(_:body:method:headers:timeout:options:as:)``.
    public nonisolated func upload<Serializer: ResponseSerializer>(
        _ request: Request, options: UploadOptions = UploadOptions(),
        as serializer: Serializer = DataResponseSerializer()
    ) -> SessionTask<Response<Serializer.Output>> {
        makeUploadTask(for: request, options: options, as: serializer).started()
    }

    /// Starts sending a request with its body and runs a closure with the task; the task ends with the closure.
    ///
    /// If the task, which is one of ``upload(_:options:as:)``, has not ended when `scope` returns or throws, it is
    /// cancelled. It has ended when this function returns. To wait for the response, await the task's
    /// ``SessionTask/value`` in `scope`: its errors are thrown only there.
    public nonisolated func withUpload<Serializer: ResponseSerializer, Value>(
        _ request: Request, options: UploadOptions = UploadOptions(),
        as serializer: Serializer = DataResponseSerializer(),
        _ scope: (SessionTask<Response<Serializer.Output>>) async throws -> Value
    ) async rethrows -> Value {
        try await upload(request, options: options, as: serializer).endingWithScope(scope)
    }

    private nonisolated func makeUploadTask<Serializer: ResponseSerializer>(
        for request: Result<Request, any Error>, _ options: UploadOptions, as serializer: Serializer
    ) -> SessionTask<Response<Serializer.Output>> {
        makeTask(.upload, request) { task in
            let isResumable = options.isResumable || options.isDurable
            let response = try await isResumable ? self.upload(task, options) : self.collect(task)
            return try response.serialized(by: serializer)
        }
    }
}
