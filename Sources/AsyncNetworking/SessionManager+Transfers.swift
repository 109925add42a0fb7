// SPDX-License-Identifier: MIT

import ANCurl
public import ANHTTP
public import ANSerialization
import FoundationEssentials
public import HTTPTypes

// Data and upload tasks: transfers with a handle. Download tasks are in SessionManager+DownloadTasks.swift. A task is
// registered when its handle is created, so that `invalidate(cancellingTasks: false)` lets it finish even if it has not
// started.

extension SessionManager {
    // MARK: Suspended tasks

    /// Creates a suspended task that performs a request and collects the response's body, regardless of its status.
    ///
    /// The task starts when it is resumed. If the manager was invalidated or shut down, the task fails with
    /// ``SessionError/invalidated``.
    public nonisolated func makeDataTask(for request: Request) -> DataTask {
        makeTask(.data, .success(request)) { try await self.collect($0) }
    }

    /// Creates a suspended task that performs a request and deserializes the response; see ``makeDataTask(for:)`` and
    /// ``response(for:as:)``.
    public nonisolated func makeDataTask<Serializer: ResponseSerializer>(
        for request: Request, as serializer: Serializer
    ) -> TransferTask<Response<Serializer.Output>> {
        makeTask(.data, .success(request)) { task in
            try await self.collect(task).serialized(by: serializer)
        }
    }

    /// Creates a suspended task that sends a request with a body, which replaces the request's own; see
    /// ``makeDataTask(for:)``.
    public nonisolated func makeUploadTask(for request: Request, from body: RequestBody) -> UploadTask {
        var request = request
        request.body = body
        return makeUploadTask(for: .success(request))
    }

    // MARK: Started tasks

    /// Starts sending a body to a path.
    ///
    /// The task's value is the response, regardless of its status.
    ///
    /// - Parameters:
    ///   - path: A path or URL, resolved against the base URL.
    ///   - body: The request's body.
    ///   - method: The method; POST by default.
    ///   - headers: Header fields that replace all others of the same name.
    public func upload(
        _ path: String, from body: RequestBody, method: HTTPRequest.Method = .post, headers: HTTPFields = [:]
    ) -> UploadTask {
        makeUploadTask(for: Result { try request(method, path, headers: headers, body: body) }).started()
    }

    /// Starts sending a request with a body, which replaces the request's own; see ``upload(_:from:method:headers:)``.
    public func upload(_ request: Request, from body: RequestBody) -> UploadTask {
        makeUploadTask(for: request, from: body).started()
    }

    // MARK: Scoped tasks

    /// Starts an upload task and runs a closure with it; the task ends with the closure.
    ///
    /// If the task is still running when `scope` returns or throws, it is cancelled. It has ended when this function
    /// returns.
    public nonisolated func withUpload<Value>(
        _ request: Request, from body: RequestBody, _ scope: (UploadTask) async throws -> Value
    ) async rethrows -> Value {
        try await makeUploadTask(for: request, from: body).started().endingWithScope(scope)
    }

    // MARK: Creating tasks

    private nonisolated func makeUploadTask(for request: Result<Request, any Error>) -> UploadTask {
        makeTask(.upload, request) { try await self.collect($0) }
    }

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
        _ kind: SessionTask.Kind, _ request: Result<Request, any Error>, priority: TransferPriority = .normal,
        isResumed: Bool = false, prepare: (TransferCore) -> Void = { _ in },
        ending: (@Sendable (Result<Value, any Error>) async -> Void)? = nil,
        work: @escaping @Sendable (RunningTask) async throws -> Value
    ) -> TransferTask<Value> {
        let wanted = try? request.get()
        let (core, isTaken) = registry.begin { id in
            TransferCore(
                id: id, kind: kind, request: wanted, priority: priority, scheduler: scheduler,
                stopwatch: pipeline.uptime)
        }
        prepare(core)
        guard isTaken, let wanted else {
            let error: any Error = if case .failure(let error) = request { error } else { SessionError.invalidated }
            return TransferTask(core, failingWith: error, ending: ending)
        }
        // Resumed before the work begins, so that the work need not suspend.
        if isResumed { core.resume() }
        return TransferTask(RunningTask(core: core, request: wanted), in: registry, ending: ending, work: work)
    }

    /// Performs a task's request and collects the body; waits whenever the task is suspended.
    private nonisolated func collect(_ task: RunningTask) async throws -> Response<Data> {
        let core = task.core
        let limit = task.request.maximumBodySize(inheritingFrom: pipeline.template)
        return try await perform(
            task.gatedTask(), delivery: .streamed, reporting: core.monitor
        ) { head, body in
            core.receive(head)
            core.accept()
            var data = Data()
            for try await chunk in body {
                guard chunk.count <= limit - data.count else {
                    throw TransportError.responseTooLarge(.body(limit: limit), FailureContext())
                }
                data.collect(chunk)
                try await core.waitUntilRunning()
            }
            core.complete(Int64(data.count))
            return Response(data, head: head, ending: body.ending ?? ResponseEnding())
        }
    }
}

/// A running task and its request.
struct RunningTask: Sendable {
    let core: TransferCore
    let request: Request

    /// Returns the task with a request body that is read only while the task may run.
    ///
    /// A body of at most one chunk is in memory as a whole and is passed unchanged.
    @inline(never)
    func gatedTask(_ change: (inout Request) -> Void = { _ in }) throws -> SessionTask {
        var request = request
        change(&request)
        if let length = request.body.length, length <= BodySource.chunkSize {
            return SessionTask(id: core.id, kind: core.kind, request: request, core: core)
        }
        do throws(TransportError) {
            let source = try BodySource(request.body)
            request.body = .stream(length: source.length, isReplayable: source.isReplayable) { [core] in
                let reader = try source.makeReader()
                return BodyReader {
                    try await core.waitUntilRunning()
                    return try await reader.next()
                }
            }
        } catch {
            throw SessionError.transport(error)
        }
        return SessionTask(id: core.id, kind: core.kind, request: request, core: core)
    }
}

extension TransferTask {
    /// Resumes the task and returns it.
    func started() -> Self {
        resume()
        return self
    }

    /// Runs `scope` with the task, then cancels the task and waits for its end.
    func endingWithScope<Result>(_ scope: (TransferTask) async throws -> Result) async rethrows -> Result {
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
