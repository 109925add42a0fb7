// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
import FoundationEssentials
import Synchronization

/// Gives the exchanges of a transport to its event loops, within the limits on connections, which hold for all loops
/// together.
///
/// An exchange that waits for a connection belongs to a loop, which watches its time limits. When it is admitted, it may
/// move to the loop with the connection that has become free; messages to the former loop then have no effect.
final class Dispatcher: Sendable {
    private let state: Lock<State>
    private let longLivedCount = Atomic(0)
    private let acceptance = Atomic(Acceptance.all)
    /// Whether there may be more than one loop.
    let hasChoice: Bool

    private struct State {
        var admissions: AdmissionQueue<Waiting>
        var loops: LoopTable
        var origins = OriginCache()

        mutating func loop(
            _ exchange: Exchange, _ origin: String, _ sharing: ConnectionSharing, preferring preferred: Int?
        ) -> Int {
            guard loops.count > 1, !exchange.isOnFirstLoop else { return 0 }
            return loops.loop(for: origin, sharing, preferring: preferred)
        }

        /// Notes an exchange that was admitted.
        mutating func begin(_ exchange: Exchange, _ origin: String, _ sharing: ConnectionSharing, on loop: Int) {
            close(loops.begin(origin, sharing, on: loop, extra: admissions.longLived), of: exchange.group)
        }

        func close(_ excess: LoopTable.Excess?, of group: EngineGroup) {
            guard let excess else { return }
            group.engine(excess.loop).post(.closeIdle(of: excess.origin))
        }
    }

    private struct Waiting: Sendable {
        let exchange: Exchange
        let loop: Int
    }

    /// The engine of an exchange, and its share of the limits.
    struct Place {
        /// The scheme, host and port of the URL.
        var origin = ""
        /// Whether the exchange may use connections of others when it enters. The environment, and so the proxy, may change
        /// until it leaves.
        var sharing = ConnectionSharing.none
        var use = ConnectionUse.request
        /// The engine that knows of the exchange, or will with its next message; `nil` before it is started.
        var engine: CurlEngine?
        /// Its share of the limits; `nil` before it is started.
        var admission: Admission?
        /// The time at which it entered an engine that it has left; `nil` if it has not moved.
        var entered: MonotonicInstant?
    }

    enum Admission: Equatable {
        /// It has a ticket of the queue.
        case waiting(ticket: Int)
        /// It has a share of the limits, for the given loop.
        case admitted(loop: Int)
        /// It has ended.
        case over
    }

    /// With ``CurlDefects/unlockedCookies``, there is one loop.
    init(_ limits: ConnectionLimits, _ defects: CurlDefects) {
        let maximum = defects.contains(.unlockedCookies) ? 1 : limits.maximumEventLoops
        hasChoice = maximum > 1
        let perOrigin = limits.maximumConnectionsPerHost > 0 ? limits.maximumConnectionsPerHost : .max
        state = Lock(
            State(
                admissions: AdmissionQueue(limits),
                loops: LoopTable(
                    maximum: maximum, threshold: limits.eventLoopThreshold,
                    limits: .init(perOrigin: perOrigin, total: limits.maximumConnections.map { max(1, $0) } ?? .max))))
    }

    /// The number of loops.
    var loopCount: Int { state.withLock { $0.loops.count } }

    /// The number of connections in use by long-lived exchanges.
    var longLived: Int { longLivedCount.load(ordering: .relaxed) }

    /// The loop with the fewest exchanges.
    var idlestLoop: Int { state.withLock { $0.loops.idlest } }

    /// Whether no exchange is performed any more.
    var isShutDown: Bool { acceptance.load(ordering: .acquiring) == .none }

    /// Returns whether an exchange may be performed for a request.
    func accepts(_ request: borrowing Request) -> Bool {
        switch acceptance.load(ordering: .acquiring) {
        case .all: true
        case .cleanups: request.cleansUp
        case .none: false
        }
    }

    /// Accepts none but exchanges that clean up.
    func endExchanges() {
        _ = acceptance.compareExchange(expected: .all, desired: .cleanups, ordering: .releasing)
    }

    /// Ends the admission of exchanges: those that wait do so until they are ended.
    func shutdown() {
        // Under the lock: afterwards nothing is admitted.
        state.withLock { _ in acceptance.store(.none, ordering: .releasing) }
    }

    /// The exchanges that are performed.
    private enum Acceptance: UInt8, AtomicRepresentable {
        case all
        /// Those that were begun to clean up.
        case cleanups
        case none
    }

    // MARK: Loops

    /// Notes that a loop was added for which ``enter(_:preferring:)`` asked.
    func didAddLoop() {
        state.withLock { $0.loops.addLoop() }
    }

    /// Notes that a loop for which ``enter(_:preferring:)`` asked could not be added.
    func didFailToAddLoop() {
        state.withLock { $0.loops.failLoop(at: .now) }
    }

    // MARK: Exchanges

    /// Chooses the loop of an exchange, and admits it, or lets it wait. Returns its engine, and whether the caller must add
    /// a loop.
    func enter(_ exchange: Exchange, preferring preferred: Int?) -> (CurlEngine, mustAddLoop: Bool) {
        withState { state in
            let origin = state.origins.origin(of: exchange.request.url.absoluteString)
            let sharing = exchange.sharing
            let use = ConnectionUse(isLongLived: exchange.isLongLived, sharing)
            let loop = state.loop(exchange, origin, sharing, preferring: preferred)
            let engine = exchange.group.engine(loop)
            let ticket = state.admissions.enter(Waiting(exchange: exchange, loop: loop), use, origin)
            state.loops.enter(loop)
            if ticket == nil { state.begin(exchange, origin, sharing, on: loop) }
            exchange.place = Place(
                origin: origin, sharing: sharing, use: use, engine: engine,
                admission: ticket.map { .waiting(ticket: $0) } ?? .admitted(loop: loop))
            return (engine, mustAddLoop: !isShutDown && state.loops.beginLoop(at: .now))
        }
    }

    /// Admits the exchange that has waited longest among those for which there is capacity, preferably one that waits on
    /// the given loop. Returns it with the engine on which it has waited; `nil` if there is none.
    func admit(on loop: Int) -> (Exchange, CurlEngine)? {
        withState { state in
            guard !isShutDown,
                let waiting = state.admissions.next(preferring: hasChoice ? { $0.loop == loop } : nil)
            else { return nil }
            let exchange = waiting.exchange
            var place = exchange.place
            guard let engine = place.engine else { return nil }
            let target = state.loop(exchange, place.origin, place.sharing, preferring: loop)
            state.loops.leave(waiting.loop)
            state.loops.enter(target)
            state.begin(exchange, place.origin, place.sharing, on: target)
            place.admission = .admitted(loop: target)
            exchange.place = place
            return (exchange, engine)
        }
    }

    /// Removes an exchange that has ended, and releases its share of the limits.
    ///
    /// - Parameters:
    ///   - connected: Whether it has had a connection.
    ///   - drains: Whether that takes no new exchanges.
    func leave(_ exchange: Exchange, connected: Bool, drains: Bool) {
        withState { state in
            let place = exchange.place
            switch place.admission {
            case .waiting(let ticket):
                state.admissions.giveUp(ticket, place.use, place.origin)
                if let engine = place.engine { state.loops.leave(engine.index) }
            case .admitted(let loop):
                state.admissions.leave(place.use, place.origin, drainingOn: drains ? loop : nil)
                state.loops.leave(loop)
                state.loops.end(place.origin, place.sharing, on: loop, connected: connected)
            case .over, nil: return
            }
            exchange.admission = .over
        }
    }

    private func withState<Result>(_ body: (inout State) -> Result) -> Result {
        state.withLock { state in
            defer { longLivedCount.store(state.admissions.longLived, ordering: .relaxed) }
            return body(&state)
        }
    }

    // MARK: Connections

    /// Notes a new connection of an exchange.
    ///
    /// - Parameters:
    ///   - isChoice: Whether the server could have chosen a version that multiplexes.
    ///   - isMultiplexed: Whether it has, and other exchanges may share the connection.
    /// - Returns: Whether the exchanges of the origin need more connections than before.
    func open(_ exchange: Exchange, _ origin: String, on loop: Int, isChoice: Bool, isMultiplexed: Bool) -> Bool {
        withState { state in
            let isChange = isChoice && !isMultiplexed && state.admissions.noteSingleExchanges(origin)
            let excess = state.loops.open(
                origin, on: loop, isChoice: isChoice, isMultiplexed: isMultiplexed, extra: state.admissions.longLived)
            state.close(excess, of: exchange.group)
            return isChange
        }
    }

    /// Notes all connections of some origins on a loop that take no new exchanges; `nil` for none.
    func note(_ draining: [String: DrainingConnections?], on loop: Int) {
        withState { state in
            for (origin, connections) in draining { state.admissions.note(connections, of: origin, on: loop) }
        }
    }

    /// Notes that a connection was closed.
    func close(_ origin: String, on loop: Int) {
        guard hasChoice else { return }
        state.withLock { $0.loops.close(origin, on: loop) }
    }

    /// Notes that no connection of an origin was idle that had to be closed.
    func keep(_ origin: String, on loop: Int) {
        state.withLock { $0.loops.keep(origin, on: loop) }
    }

    /// Notes that the origin's connections carry several exchanges at the same time, as many as their server allows.
    func noteMultiplexing(_ origin: String, streams: Int, on loop: Int) {
        withState { state in
            state.admissions.noteMultiplexing(origin, streams: streams)
            state.loops.noteMultiplexing(origin, on: loop)
        }
    }
}
