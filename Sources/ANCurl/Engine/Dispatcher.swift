// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
import FoundationEssentials
import Synchronization

/// Gives the exchanges of a transport to its event loops, within the limits on connections, which hold for all loops
/// together.
///
/// An exchange that waits belongs to a loop, which knows its time limits. When it is admitted, it may move to the loop
/// with the connection that has become free; messages to the former loop then have no effect.
final class Dispatcher: Sendable {
    private let state: Lock<State>
    private let loopCount = Atomic(1)
    private let longLived = Atomic(0)
    /// Whether there is more than one loop.
    let hasChoice: Bool

    private struct State {
        var admissions: AdmissionQueue<Waiting>
        var loops: LoopTable
        var origins = OriginCache()

        /// Chooses the loop of an exchange. A new one may have to be started, which may fail.
        mutating func choose(
            _ exchange: Exchange, _ origin: String, preferring preferred: Int?
        ) -> (loop: Int, engine: CurlEngine) {
            let loop = exchange.isOnFirstLoop ? 0 : loops.loop(for: origin, exchange.sharing, preferring: preferred)
            if let engine = exchange.group.engine(loop) { return (loop, engine) }
            loops.stopStarting()
            return choose(exchange, origin, preferring: preferred)
        }
    }

    private struct Waiting: Sendable {
        let exchange: Exchange
        let loop: Int
    }

    /// Where an exchange is performed.
    struct Place {
        /// The scheme, host and port of the URL.
        let origin: String
        /// The engine that knows of the exchange, or will with its next message.
        var engine: CurlEngine
        var admission: Admission
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

    init(_ limits: ConnectionLimits) {
        let maximum = limits.eventLoops.maximum
        hasChoice = maximum > 1
        state = Lock(
            State(
                admissions: AdmissionQueue(limits),
                loops: LoopTable(maximum: maximum, threshold: limits.eventLoops.threshold)))
    }

    /// The number of loops that were started, and of connections in use by long-lived exchanges.
    var figures: (loops: Int, longLived: Int) {
        (loopCount.load(ordering: .relaxed), longLived.load(ordering: .relaxed))
    }

    /// The started loop with the fewest exchanges.
    var idlestLoop: Int { state.withLock { $0.loops.idlest } }

    // MARK: Exchanges

    /// Chooses the loop of an exchange, and admits it, or lets it wait. Returns its engine.
    func enter(_ exchange: Exchange, preferring preferred: Int?) -> CurlEngine {
        withState { state in
            let origin = state.origins.origin(of: exchange.request.url.absoluteString)
            let (loop, engine) = state.choose(exchange, origin, preferring: preferred)
            let ticket = state.admissions.enter(Waiting(exchange: exchange, loop: loop), exchange.use, origin)
            state.loops.enter(loop)
            if ticket == nil { state.loops.begin(origin, on: loop) }
            exchange.place = Place(
                origin: origin, engine: engine,
                admission: ticket.map { .waiting(ticket: $0) } ?? .admitted(loop: loop))
            return engine
        }
    }

    /// Admits the exchange that has waited longest among those for which there is capacity, preferably one that waits on
    /// the given loop. Returns it with the engine on which it has waited; `nil` if there is none.
    func admit(on loop: Int) -> (Exchange, CurlEngine)? {
        withState { state in
            guard let waiting = state.admissions.next(preferring: { $0.loop == loop }) else { return nil }
            let exchange = waiting.exchange
            guard var place = exchange.place else { return nil }
            let (target, _) = state.choose(exchange, place.origin, preferring: loop)
            state.loops.leave(waiting.loop)
            state.loops.enter(target)
            state.loops.begin(place.origin, on: target)
            place.admission = .admitted(loop: target)
            exchange.place = place
            return (exchange, place.engine)
        }
    }

    /// Removes an exchange that has ended, and releases its share of the limits.
    ///
    /// - Parameter connected: Whether it has had a connection.
    func leave(_ exchange: Exchange, connected: Bool) {
        withState { state in
            guard let place = exchange.place else { return }
            switch place.admission {
            case .waiting(let ticket):
                state.admissions.giveUp(ticket, exchange.use, place.origin)
                state.loops.leave(place.engine.index)
            case .admitted(let loop):
                state.admissions.leave(exchange.use, place.origin)
                state.loops.leave(loop)
                state.loops.end(place.origin, on: loop, connected: connected)
            case .over: break
            }
            exchange.place?.admission = .over
        }
    }

    private func withState<Result>(_ body: (inout State) -> Result) -> Result {
        state.withLock { state in
            defer {
                loopCount.store(state.loops.count, ordering: .relaxed)
                longLived.store(state.admissions.longLived, ordering: .relaxed)
            }
            return body(&state)
        }
    }

    // MARK: Connections

    /// Notes a new connection of an exchange. Returns the loop on which another one has to be closed because a limit is
    /// exceeded, and its origin, if that matters.
    func open(
        _ exchange: Exchange, _ origin: String, on loop: Int, isChoice: Bool, isMultiplexed: Bool,
        limits: ConnectionLimits
    ) -> (loop: Int, origin: String?)? {
        guard hasChoice else { return nil }
        return state.withLock { state in
            let perOrigin = limits.maximumConnectionsPerHost > 0 ? limits.maximumConnectionsPerHost : .max / 2
            return state.loops.open(
                origin, on: loop, isChoice: isChoice, isMultiplexed: isMultiplexed,
                limits: (perOrigin + state.admissions.longLived, limits.maximumConnections.map { max(1, $0) } ?? .max))
        }
    }

    /// Notes that a connection was closed.
    func close(_ origin: String, on loop: Int) {
        guard hasChoice else { return }
        state.withLock { $0.loops.close(origin, on: loop) }
    }

    /// Notes that the origin's connections carry several exchanges at the same time.
    func noteMultiplexing(_ origin: String, on loop: Int) {
        state.withLock { state in
            state.admissions.noteMultiplexing(origin)
            state.loops.noteMultiplexing(origin, on: loop)
        }
    }
}
