// SPDX-License-Identifier: MIT

import ANCurl
import ANHTTP
import ANSerialization
import ANSystem
public import FoundationEssentials
import HTTPTypes

/// A client for HTTP requests, with one configuration and one connection pool.
///
/// ```swift
/// let api = SessionManager(baseURL: URL(string: "https://api.example.com/v1/"))
/// let user = try await api.get("users/7", as: .decodable(User.self)).value
/// ```
///
/// A manager performs any number of requests concurrently. Every asynchronous function that sends a request belongs to
/// the task that calls it: cancelling that task cancels the transfer, and the function returns only after the transfer
/// has ended.
///
/// The actor isolates the end of the manager's life, ``invalidate(cancellingTasks:)`` and ``shutdown(draining:)``.
/// Requests do not enter it: they begin on the caller's executor without a hop, and what the session knows is guarded by
/// a lock.
///
/// A manager is released with its last reference, and its threads and connections with it; running requests keep alive
/// what they need. No call is required before that. Call ``shutdown(draining:)`` to wait until all requests have ended.
public actor SessionManager {
    /// The configuration that the manager was created with. Changes of a copy have no effect on the manager.
    public nonisolated let configuration: SessionConfiguration
    nonisolated let pipeline: Pipeline
    nonisolated let registry: TaskRegistry
    nonisolated let scheduler: TaskScheduler
    nonisolated let resolver: URLResolver

    /// Creates a manager with the default configuration, modified by a closure.
    ///
    /// Unless the closure sets a transport, this starts an event-loop thread; connections are made when requests
    /// need them. If the thread or libcurl cannot be set up, every request fails with ``SessionError/transport(_:)``, which
    /// contains the reason.
    ///
    /// - Parameters:
    ///   - baseURL: The URL that relative paths are resolved against; `nil`, the default, requires absolute URLs.
    ///   - configure: Modifies the default configuration; does nothing by default. It is called once, before the
    ///     initializer returns. In isolated code, such as that of the main actor, it can capture values, but not refer
    ///     to isolated properties; the closure of ``SessionConfiguration`` can.
    public init(baseURL: URL? = nil, configure: sending (inout SessionConfiguration) -> Void = { _ in }) {
        self.init(SessionConfiguration(baseURL: baseURL, configure: configure))
    }

    /// Creates a manager with a configuration. Unless the configuration has a transport, this starts an event-loop
    /// thread; connections are made when requests need them.
    ///
    /// If libcurl or its thread cannot be set up, for example because the process has no file descriptors left, every
    /// request fails with ``SessionError/transport(_:)``, which contains the reason.
    ///
    /// - Parameter configuration: The configuration, of which the manager keeps a copy.
    public init(_ configuration: SessionConfiguration) {
        self.configuration = configuration
        let state = SessionState.make(maximumConcurrentTasks: configuration.maximumConcurrentTasks)
        registry = TaskRegistry(state: state)
        scheduler = TaskScheduler(state)
        resolver = URLResolver(base: configuration.baseURL, mode: configuration.baseURLMode)
        var headers = configuration.headers
        if configuration.sendsDefaultHeaders { headers.fill(from: Self.defaultHeaders) }
        pipeline = Pipeline(
            transport: Self.makeTransport(configuration), configuration: configuration,
            headers: headers, state: state)
    }

    /// Returns the libcurl transport, or a transport that fails every request with the reason why libcurl's could not
    /// be created, for example that the process has no file descriptors left.
    private static func makeTransport(_ configuration: SessionConfiguration) -> any Transport {
        do throws(TransportError) {
            return try configuration.makeTransport()
        } catch {
            return UnavailableTransport(error: error)
        }
    }

    private static let defaultHeaders = DefaultHeaders(process: .current(), libraryVersion: libraryVersion).fields

    /// The content codings that libcurl's transport asks for.
    nonisolated var acceptedCodings: String { ContentDecoder.supportedCodings }

    /// The version of this library, three numbers separated by periods, which is also part of the default `User-Agent`.
    public static let libraryVersion = "0.1.0"

    // MARK: Requests

    /// Performs the request of a registered task. Unregisters the task afterwards if it is the request of an async
    /// function; others do so themselves.
    ///
    /// - Parameters:
    ///   - task: The task.
    ///   - request: The request to send, which may differ from the task's: its range may be reduced.
    ///   - delivery: How the response's body is read.
    ///   - events: Receives the events of each exchange.
    ///   - home: The origin and the proxy of the request that this one is a part of; `nil` for none.
    ///   - body: Receives the response's head, and its body, which is valid only while the closure runs.
    /// - Throws: ``SessionError``, `CancellationError`, or an error thrown by `body`.
    nonisolated func perform<Value: Sendable>(
        _ task: AnySessionTask, _ request: Request, delivery: BodyDelivery,
        reporting events: (any CallEventSink)? = nil, leaving home: Home? = nil,
        body: (ResponseHead, ResponseBody) async throws -> Value
    ) async throws -> Value {
        defer { if task.core == nil { registry.end(task.id) } }
        return try await pipeline.call(task, request, delivery: delivery, reporting: events) { request, call in
            var request = request
            if let home { request[Home.self] = home }
            return try await pipeline.respond(to: request, &call, body)
        }
    }

    // MARK: Event loop

    /// The executor that runs tasks on the thread of this session's event loop, where a task that awaits a request
    /// resumes without a switch of threads; `nil` if the session's transport has no event loop. Of several loops, see
    /// ``ANHTTP/ConnectionLimits/eventLoops``, it is the one with the fewest requests.
    ///
    /// Tasks use it by `withTaskExecutorPreference(_:)` or by `Task(executorPreference:)`; see
    /// <doc:EventLoopExecutor>. Child tasks inherit it. Code that is isolated to an actor with an executor of its own,
    /// such as the main actor, does not run on it, nor do tasks that the session creates, such as those of downloads.
    ///
    /// Between two looks at the sockets, at most 16 parts of tasks run. All transfers of the loop wait while one runs, so
    /// code that blocks, or computes for longer than a millisecond or so, must not use it: a task that blocks until
    /// another transfer ends blocks forever. Debug builds write to standard error if a part takes longer than
    /// one second.
    public nonisolated var eventLoopExecutor: (any TaskExecutor)? { pipeline.transport.eventLoopExecutor }

    // MARK: Life cycle

    /// Rejects new requests permanently; they fail with ``SessionError/invalidated``.
    ///
    /// This function does not wait until the running requests have ended; ``shutdown(draining:)`` does. A later call
    /// with `true` cancels what an earlier one let continue; other repeated calls have no effect.
    ///
    /// Requests that the program's closures make for a running request, such as an interceptor that calls a function of the
    /// manager, are new ones, which fail. Those of the refresh of a token are accepted as long as requests are not
    /// cancelled, and what an interceptor sends by its ``Chain`` belongs to the running request.
    ///
    /// - Parameter cancellingTasks: Whether running requests and all tasks are cancelled, so that they throw
    ///   `CancellationError`, and all connections are closed before this function returns, after the requests by which
    ///   cancelled uploads are removed from their servers, which have at most 5 s, in which nothing else is sent. A
    ///   closure of the program that handles a response is not interrupted, but reading an incomplete body then throws
    ///   `CancellationError` in it. If `false`, requests and tasks finish, including any redirects and retries,
    ///   suspended tasks can still be resumed, and connections stay open until the manager is released or shut down.
    public func invalidate(cancellingTasks: Bool) async {
        registry.close(cancelling: cancellingTasks)
        guard cancellingTasks else { return }
        taskGroup().cancel()
        await shutdownTransport()
    }

    /// Rejects new requests permanently, waits for the running ones, and closes all connections.
    /// ``invalidate(cancellingTasks:)`` says which requests of the program's closures are new ones.
    ///
    /// Suspended tasks are cancelled immediately, because they would never end; one that is suspended later is waited
    /// for, and so are tasks that wait for a slot, which begin meanwhile. When this function returns, no request of this
    /// manager is running; ``invalidate(cancellingTasks:)`` does not wait.
    ///
    /// It may be called again, also concurrently: each call waits, and the one whose limit expires first cancels the
    /// requests. A closure passed to ``withResponse(for:validating:reporting:_:)`` is part of its request: calling this
    /// function from inside one waits for that closure, and so for itself. A connection of an ``EventSource`` is a running
    /// request, whether its events are read or not; the loop over them may call this function with a limit.
    ///
    /// - Parameter limit: The time after which requests that are still running are cancelled, so that they throw
    ///   `CancellationError`; `nil`, the default, waits without a limit, and zero or less cancels them at once. It is
    ///   measured by ``SessionConfiguration/clock``. The function then still waits for closures of the program that
    ///   handle a response, which are not interrupted. Cancelling the calling task has the same effect as reaching the
    ///   limit.
    public func shutdown(draining limit: Duration? = nil) async {
        registry.close(cancelling: false)
        taskGroup { $0.status.state == .suspended }.cancel()
        await withTaskGroup { [registry, clock = configuration.clock] group in
            group.addTask { await registry.waitUntilEmpty() }
            if let limit { group.addTask { try? await clock.sleep(for: limit.bounded) } }
            await group.next()
            group.cancelAll()
        }
        registry.close(cancelling: true)
        taskGroup().cancel()
        await shutdownTransport()
        // An unstructured task, so that cancelling the caller does not cut the wait short. It ends with the last
        // request, whose exchange has already ended.
        await Task { [registry] in await registry.waitUntilEmpty() }.value
    }

    /// Ends all exchanges and closes all connections, last those of the requests by which cancelled uploads are removed from
    /// their servers. These have a few seconds, also if the caller is cancelled.
    private func shutdownTransport() async {
        if registry.expectsCleanups {
            await pipeline.transport.features.endExchanges?()
            // Ends with the last of these requests, or after the limit.
            await Task { [registry, clock = configuration.clock] in
                await withTaskGroup { group in
                    group.addTask { await registry.waitForCleanups() }
                    group.addTask { try? await clock.sleep(for: Self.cleanupTimeout) }
                    await group.next()
                    group.cancelAll()
                }
            }.value
        }
        await pipeline.transport.shutdown()
    }

    /// The time limit of the request by which a cancelled upload is removed from its server.
    static let cleanupTimeout = Duration.seconds(5)
}

extension SessionConfiguration {
    /// Creates a transport as a session with this configuration does: the ``transport``, if there is one, or a new one
    /// that uses libcurl, with threads of its own. A transport of the program's own can wrap it, and takes its place in the same configuration, from which
    /// requests have their options.
    ///
    /// - Throws: ``ANHTTP/TransportError/Reason/internalInconsistency(_:)`` if the system cannot provide a thread or a
    ///   descriptor, or libcurl cannot be initialized.
    public func makeTransport() throws(TransportError) -> any Transport {
        if let transport { return transport }
        return try CurlTransport(limits: connectionLimits, options: transfer)
    }
}

/// Runs a closure with a new manager, and shuts the manager down when the closure returns or throws.
///
/// The manager cannot be used afterwards: requests then fail with ``SessionError/invalidated``.
///
/// - Parameters:
///   - baseURL: The URL that relative paths are resolved against; `nil`, the default, requires absolute URLs.
///   - configure: Modifies the default configuration; does nothing by default. It is called once, before `body`.
///   - body: Receives the manager. Requests and tasks that are still running or suspended when it ends are cancelled,
///     and have ended when this function returns.
/// - Returns: The value that `body` returns.
/// - Throws: The error that `body` throws.
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

/// A transport that fails every request with the error that prevented the creation of a real one.
struct UnavailableTransport: Transport {
    let error: TransportError

    func open(
        _ request: Request, delivery: BodyDelivery, reporting events: (any ExchangeEventSink)?
    ) async throws -> OpenResponse {
        throw error
    }

    func shutdown() async {}
}

extension SessionManager {
    /// Waits until the process receives a signal, and then shuts the manager down as ``shutdown(draining:)`` does.
    ///
    /// ```swift
    /// let ending = Task { try await api.shutdownOnSignal(draining: .seconds(20)) }
    /// ```
    ///
    /// It can be called from any actor and from top-level code, and for several managers. While it waits, the signal
    /// does not end the process; from the signal on, its earlier effect is restored, so that a second one, however soon,
    /// ends a process that takes too long. Programs that install a handler of their own for the same signal meanwhile replace this one, and
    /// keep theirs.
    ///
    /// - Parameters:
    ///   - signals: The numbers of the signals; SIGINT (2) and SIGTERM (15) by default.
    ///   - limit: The time after which requests that are still running are cancelled; `nil`, the default, waits without
    ///     a limit. Choose one below that of the service manager, such as `TimeoutStopSec` of systemd.
    /// - Returns: The number of the signal.
    /// - Throws: `CancellationError` if the calling task is cancelled before a signal, and
    ///   ``ANHTTP/TransportError/Reason/invalidRequest(_:)``, in a ``SessionError``, for a signal that cannot be caught,
    ///   such as SIGKILL. The manager is then not shut down.
    @discardableResult
    public nonisolated func shutdownOnSignal(
        _ signals: Set<Int32> = [2, 15], draining limit: Duration? = nil
    ) async throws -> Int32 {
        do {
            let signal = try await SignalWatch.shared.first(of: signals)
            await shutdown(draining: limit)
            return signal
        } catch let error as SystemError {
            throw SessionError.transport(
                TransportError(.invalidRequest(.option("a signal cannot be caught: \(error)"))))
        }
    }
}
