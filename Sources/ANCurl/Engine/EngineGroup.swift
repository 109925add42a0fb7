// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem

/// The settings and the state that the event loops of a transport share.
final class EngineContext: Sendable {
    /// The limits of the connection pool.
    let limits: ConnectionLimits
    /// The options of requests that have none of their own.
    let defaultOptions: SharedTransferOptions
    /// Whether exchanges share HTTP/2 connections.
    let http2: HTTP2Sharing
    /// The defects of libcurl that the engines avoid.
    let defects: CurlDefects
    /// See ``FailedLookups``.
    let failedLookups = Lock(FailedLookups())
    /// The cached TLS security settings with which servers are verified.
    let securities = SecurityCache()
    /// The memory of collected response bodies.
    let bodyMemory = BodyMemory()
    /// The budget for the bytes that wait for slow readers and slow servers; `nil` for none.
    let memory: MemoryBudget?
    /// The TLS sessions, addresses and cookies.
    let shares: HandleShares
    let dispatcher: Dispatcher

    init(
        _ limits: ConnectionLimits, _ defaultOptions: TransferOptions, _ http2: HTTP2Sharing, _ library: CurlLibrary
    ) throws(TransportError) {
        self.limits = limits
        self.defaultOptions = SharedTransferOptions(defaultOptions)
        self.http2 = http2
        defects = library.defects
        memory = limits.memoryBudget.map(MemoryBudget.init)
        shares = try HandleShares(defects)
        dispatcher = Dispatcher(limits, defects)
    }
}

/// The engines of a transport: one, and more when there is work for them, as ``LoopTable`` decides.
///
/// Each exchange retains the group, and the group its engines.
final class EngineGroup: Sendable {
    let context: EngineContext
    private let first: CurlEngine.Owner
    /// The engines after the first one.
    private let others = Lock<[CurlEngine.Owner]>([])

    /// Creates a group, and starts the thread of its first engine.
    init(_ context: EngineContext) throws(TransportError) {
        self.context = context
        first = try CurlEngine.Owner(context, index: 0)
    }

    /// All engines.
    var engines: [CurlEngine] { ([first] + others.withLock { $0 }).map(\.engine) }

    /// Returns an engine by its number.
    func engine(_ index: Int) -> CurlEngine { (index == 0 ? first : others.withLock { $0[index - 1] }).engine }

    /// Starts an exchange: on the loop that its task prefers, or on another one where a connection is.
    func start(_ exchange: Exchange) {
        let (engine, mustAddLoop) = context.dispatcher.enter(exchange, preferring: preferredLoop)
        engine.post(.add(exchange))
        if mustAddLoop { addLoop() }
    }

    /// Adds an engine, for later exchanges. If the system cannot provide a thread or a descriptor, a later exchange tries
    /// again.
    private func addLoop() {
        let index = others.withLock { $0.count } + 1
        guard let engine = try? CurlEngine.Owner(context, index: index) else {
            return context.dispatcher.didFailToAddLoop()
        }
        others.withLock { $0.append(engine) }
        context.dispatcher.didAddLoop()
    }

    /// The loop whose executor the current task prefers; `nil` for none.
    private var preferredLoop: Int? {
        guard context.dispatcher.hasChoice, let executor = currentTaskExecutor else { return nil }
        return engines.firstIndex { $0.taskExecutor === executor }
    }

    /// Ends all exchanges except those that clean up, and rejects further ones.
    func endExchanges() async {
        context.dispatcher.endExchanges()
        for engine in engines { await engine.endExchanges() }
    }

    /// Ends all exchanges and rejects further ones.
    func shutdown() async {
        context.dispatcher.shutdown()
        for engine in engines { await engine.shutdown() }
    }
}

/// Cookies are read and changed on the thread of the first engine: not all versions of libcurl permit it on another one. A
/// cookie store retains the group, whose engines take turns as long as it exists.
extension EngineGroup: CookieJar {
    var mayHoldCookies: Bool { context.shares.cookieFlag.isSet }

    func cookies() async -> [Cookie] { await first.engine.cookies() }

    func set(_ cookies: [Cookie]) async { await first.engine.set(cookies) }

    func remove(_ cookies: [Cookie]) async { await first.engine.remove(cookies) }

    func removeAll() async { await first.engine.removeAll() }
}
