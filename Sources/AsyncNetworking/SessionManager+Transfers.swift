// SPDX-License-Identifier: MIT

import ANCurl
public import ANHTTP
public import ANSerialization
import FoundationEssentials
public import HTTPTypes

// Tasks: transfers with a handle; those of downloads are elsewhere. They are registered when the handle is made, so that a manager which is told to finish
// what is running finishes them too.

extension SessionManager {
    // MARK: Made, not started

    /// Makes a task that performs a request and collects the response's body, whatever the status is.
    ///
    /// It works once it is resumed. A manager that takes no more requests makes a task that fails with
    /// ``SessionError/invalidated``.
    public nonisolated func makeDataTask(for request: Request) -> DataTask {
        makeTask(.data, .success(request)) { try await self.collect($0) }
    }

    /// Makes a task that performs a request and makes a value of the response; see ``makeDataTask(for:)`` and
    /// ``response(for:as:)``.
    public nonisolated func makeDataTask<Serializer: ResponseSerializer>(
        for request: Request, as serializer: Serializer
    ) -> TransferTask<Response<Serializer.Output>> {
        makeTask(.data, .success(request)) { task in
            try await self.collect(task).serialized(by: serializer)
        }
    }

    /// Makes a task that sends a request with this body; see ``makeDataTask(for:)``.
    public nonisolated func makeUploadTask(for request: Request, from body: RequestBody) -> UploadTask {
        var request = request
        request.body = body
        return makeUploadTask(for: .success(request))
    }

    // MARK: Started

    /// Starts to send a body, by POST unless said otherwise.
    ///
    /// The task's value is the response, whatever its status is.
    public func upload(
        _ path: String, from body: RequestBody, method: HTTPRequest.Method = .post, headers: HTTPFields = [:]
    ) -> UploadTask {
        makeUploadTask(for: Result { try request(method, path, headers: headers, body: body) }).started()
    }

    /// Starts to send a request with this body; see ``upload(_:from:method:headers:)``.
    public func upload(_ request: Request, from body: RequestBody) -> UploadTask {
        makeUploadTask(for: request, from: body).started()
    }

    // MARK: Within a scope

    /// Sends a request with this body, and runs `scope` meanwhile; the task ends with the scope.
    ///
    /// What is under way when `scope` returns or throws is cancelled, and over when this function returns.
    public nonisolated func withUpload<Value>(
        _ request: Request, from body: RequestBody, _ scope: (UploadTask) async throws -> Value
    ) async rethrows -> Value {
        try await makeUploadTask(for: request, from: body).started().endingWithScope(scope)
    }

    // MARK: How they are made

    private nonisolated func makeUploadTask(for request: Result<Request, any Error>) -> UploadTask {
        makeTask(.upload, request) { try await self.collect($0) }
    }

    /// Makes a task of a request; one without, and one that is not taken, fails at once.
    ///
    /// - Parameters:
    ///   - priority: How soon it gets its turn.
    ///   - isResumed: Whether it starts at once.
    ///   - prepare: Given the task before its work begins.
    ///   - ending: Done with the result when the task is over, before its value is there.
    nonisolated func makeTask<Value>(
        _ kind: SessionTask.Kind, _ request: Result<Request, any Error>, priority: TransferPriority = .normal,
        isResumed: Bool = false, prepare: (TransferCore) -> Void = { _ in },
        ending: (@Sendable (Result<Value, any Error>) async -> Void)? = nil,
        work: @escaping @Sendable (Transfer) async throws -> Value
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
        // Before its work begins, which then has nothing to wait for.
        if isResumed { core.resume() }
        return TransferTask(Transfer(core: core, request: wanted), in: registry, ending: ending, work: work)
    }

    /// Performs a task's request and collects the body, as far as the task may work.
    private nonisolated func collect(_ transfer: Transfer) async throws -> Response<Data> {
        let core = transfer.core
        let limit = transfer.request.maximumBodySize(inheritingFrom: pipeline.template)
        return try await perform(
            transfer.gatedTask(), delivery: .streamed, reporting: core.monitor
        ) { head, body in
            core.receive(head)
            core.accept()
            var data = Data()
            for try await chunk in body {
                guard chunk.count <= limit - data.count else {
                    throw TransportError.responseTooLarge(.body(limit: limit), TransferFacts())
                }
                data.collect(chunk)
                try await core.pass()
            }
            core.complete(Int64(data.count))
            return Response(data, head: head, ending: body.ending ?? ResponseEnding())
        }
    }
}

/// A task at work.
struct Transfer: Sendable {
    let core: TransferCore
    let request: Request

    /// The task with a body that is read only while the task may work. A small one is at hand as a whole, and stays.
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
                    try await core.pass()
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
    /// The same task, resumed.
    func started() -> Self {
        resume()
        return self
    }

    /// Runs `scope`, and ends the task with it.
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
