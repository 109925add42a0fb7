// SPDX-License-Identifier: MIT

import ANCurl
import ANHTTP
import ANSerialization
public import FoundationEssentials
import HTTPTypes

/// Makes requests: one connection pool, one configuration, any number of requests at a time.
///
/// ```swift
/// let api = SessionManager(baseURL: URL(string: "https://api.example.com/v1/"))
/// let user = try await api.get("users/7", as: .decodable(User.self)).value
/// ```
///
/// Every function lives inside the task that calls it: cancelling that task cancels the transfer, and the function returns
/// when it is really over. The functions run where their callers run; the actor's own isolation guards its life cycle.
///
/// A manager is freed with its last reference, its thread and connections with it; running requests keep what they need.
/// Nothing has to be called before. ``shutdown(draining:)`` is for programs that want to know when all is done.
public actor SessionManager {
    /// What the manager was made with.
    public nonisolated let configuration: SessionConfiguration
    nonisolated let pipeline: Pipeline
    nonisolated let registry = TaskRegistry()
    nonisolated let scheduler: TransferScheduler
    /// Resolves paths against the base URL.
    nonisolated let resolver: URLResolver

    /// Creates a manager.
    ///
    /// - Parameters:
    ///   - baseURL: What relative paths are resolved against.
    ///   - configure: Changes the default configuration.
    public init(baseURL: URL? = nil, configure: (inout SessionConfiguration) -> Void = { _ in }) {
        self.init(SessionConfiguration(baseURL: baseURL, configure: configure))
    }

    /// Creates a manager from a configuration.
    public init(_ configuration: SessionConfiguration) {
        self.configuration = configuration
        scheduler = TransferScheduler(limit: configuration.maximumConcurrentTransfers)
        resolver = URLResolver(base: configuration.baseURL, mode: configuration.baseURLMode)
        var headers = configuration.headers
        if configuration.sendsDefaultHeaders {
            for field in Self.defaultHeaders where !headers.contains(field.name) { headers.append(field) }
        }
        pipeline = Pipeline(
            transport: configuration.transport ?? Self.makeTransport(configuration), configuration: configuration,
            headers: headers, registry: registry)
    }

    /// The transport on libcurl, or one that says why there is none: a system without a descriptor left fails requests,
    /// not programs.
    private static func makeTransport(_ configuration: SessionConfiguration) -> any Transport {
        do throws(TransportError) {
            return try CurlTransport(pool: configuration.pool, options: configuration.transfer)
        } catch {
            return UnavailableTransport(error: error)
        }
    }

    private static let defaultHeaders = DefaultHeaders(process: .current(), libraryVersion: libraryVersion).fields

    /// The version of this library, as `User-Agent` names it.
    public static let libraryVersion = "0.1.0"

    // MARK: Requests

    /// Performs the request of a task that was begun, and ends the task unless it has a handle, which ends it.
    ///
    /// - Throws: ``SessionError``, `CancellationError`, or what `body` throws.
    nonisolated func perform<Value: Sendable>(
        _ task: SessionTask, delivery: BodyDelivery, reporting events: (any TransferEventSink)? = nil,
        body: (ResponseHead, ResponseBody) async throws -> Value
    ) async throws -> Value {
        defer { if task.core == nil { registry.end(task.id) } }
        do {
            return try await pipeline.perform(task, delivery: delivery, reporting: events, body: body)
        } catch {
            throw lifted(error)
        }
    }

    /// What a program is told of an error. Errors are large: the frames of requests are to have no place for them.
    @inline(never)
    private nonisolated func lifted(_ error: any Error) -> any Error {
        if case TransportError.shutDown = error, registry.isCancelling { return CancellationError() }
        return SessionError.lifting(error)
    }

    // MARK: Life cycle

    /// Refuses further requests, which fail with ``SessionError/invalidated``. It cannot be undone.
    ///
    /// - Parameter cancellingTasks: Whether running requests end now, with `CancellationError`, or finish. A request with
    ///   redirects to follow finishes with them.
    public func invalidate(cancellingTasks: Bool) async {
        registry.close(cancelling: cancellingTasks)
        guard cancellingTasks else { return }
        transfers().cancel()
        await pipeline.transport.shutdown()
    }

    /// Refuses further requests, waits for the running ones, then closes all connections. Tasks that are suspended are
    /// cancelled: they would never end.
    ///
    /// When it returns, no request of this manager is running. A closure of
    /// ``withResponse(for:reporting:_:)`` is part of its request, so shutting down from within one waits for itself.
    ///
    /// - Parameter limit: How long to wait before what is still running is cancelled; nil waits as long as it takes, zero
    ///   not at all. Cancelling the calling task is as if the limit were reached.
    public func shutdown(draining limit: Duration? = nil) async {
        registry.close(cancelling: false)
        transfers { $0.status.state == .suspended }.cancel()
        await withTaskGroup { [registry, clock = configuration.clock] group in
            group.addTask { await registry.waitUntilEmpty() }
            if let limit { group.addTask { try? await clock.sleep(for: limit) } }
            await group.next()
            group.cancelAll()
        }
        registry.close(cancelling: true)
        transfers().cancel()
        await pipeline.transport.shutdown()
        // A task of its own, which is not cancelled with the caller: it ends with the last request, whose exchange is over.
        await Task { [registry] in await registry.waitUntilEmpty() }.value
    }
}

/// Runs `body` with a manager that is shut down when it ends; requests that `body` left running are cancelled.
public func withSession<Value>(
    baseURL: URL? = nil, configure: (inout SessionConfiguration) -> Void = { _ in },
    _ body: (SessionManager) async throws -> Value
) async rethrows -> Value {
    let manager = SessionManager(SessionConfiguration(baseURL: baseURL, configure: configure))
    do {
        let value = try await body(manager)
        await manager.shutdown(draining: .zero)
        return value
    } catch {
        await manager.shutdown(draining: .zero)
        throw error
    }
}
