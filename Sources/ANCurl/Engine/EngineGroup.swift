// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem

/// What the event loops of a transport share.
final class EngineContext: Sendable {
    /// The limits of the connection pool.
    let limits: ConnectionLimits
    /// The options of requests that have none of their own.
    let defaultOptions: SharedTransferOptions
    /// Whether exchanges share HTTP/2 connections.
    let http2: HTTP2Sharing
    /// The cached TLS security settings with which servers are verified.
    let securities = SecurityCache()
    /// The memory of collected response bodies.
    let bodyMemory = BodyMemory()
    /// The budget for the bytes that wait for slow readers and slow servers; `nil` for none.
    let memory: MemoryBudget?
    /// The TLS sessions, addresses and cookies.
    let shares: HandleShares
    let dispatcher: Dispatcher

    init(_ limits: ConnectionLimits, _ defaultOptions: TransferOptions, _ http2: HTTP2Sharing) throws(TransportError) {
        self.limits = limits
        self.defaultOptions = SharedTransferOptions(defaultOptions)
        self.http2 = http2
        memory = limits.memoryBudget.map(MemoryBudget.init)
        shares = try HandleShares()
        dispatcher = Dispatcher(limits)
    }
}

/// The engines of a transport: one, and more when there is work for them, as ``LoopTable`` decides.
///
/// Each exchange retains the group, and the group its engines.
final class EngineGroup: Sendable {
    let context: EngineContext
    private let state: Lock<State>

    private struct State {
        var engines: [CurlEngine]
        var isShutDown = false
    }

    /// Creates a group, and starts the thread of its first engine.
    init(_ context: EngineContext) throws(TransportError) {
        self.context = context
        state = Lock(State(engines: [try CurlEngine(context, index: 0)]))
    }

    /// The engines that were started.
    var engines: [CurlEngine] { state.withLock { $0.engines } }

    /// Returns an engine, which is started if it is the next one; `nil` if the system cannot provide a thread or a
    /// descriptor, or after ``shutdown()``.
    func engine(_ index: Int) -> CurlEngine? {
        state.withLock { state in
            if index < state.engines.count { return state.engines[index] }
            guard !state.isShutDown, let engine = try? CurlEngine(context, index: index) else { return nil }
            state.engines.append(engine)
            return engine
        }
    }

    /// Starts an exchange: on the loop that its task prefers, or on another one where a connection is.
    func start(_ exchange: Exchange) {
        context.dispatcher.enter(exchange, preferring: preferredLoop).post(.add(exchange))
    }

    /// The loop whose executor the current task prefers; `nil` for none.
    private var preferredLoop: Int? {
        guard context.dispatcher.hasChoice, let executor = currentTaskExecutor else { return nil }
        return engines.firstIndex { $0.taskExecutor === executor }
    }

    /// Ends all exchanges and rejects further ones.
    func shutdown() async {
        let engines = state.withLock { state in
            state.isShutDown = true
            return state.engines
        }
        for engine in engines { await engine.shutdown() }
    }
}
