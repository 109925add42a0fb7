// SPDX-License-Identifier: MIT

package import ANSystem

/// Chooses the event loops of a transport's exchanges.
///
/// Exchanges follow the connections that they can use, because a new one costs more than waiting for a busy loop:
///
/// | exchange | its loop |
/// |---|---|
/// | may share a connection, and its origin multiplexes | the one where the origin's connections are |
/// | may share a connection, and it is not known whether its origin multiplexes | the one where most of the origin's exchanges are |
/// | can use a connection that is free on some loop, or will be | the one that its task prefers, or the least busy of those, unless ``tolerance`` more exchanges were admitted there than on another one |
/// | any other | the one that its task prefers, or the least busy one |
///
/// The least busy loop is the one with the fewest exchanges, waiting ones included.
package struct LoopTable {
    /// The scheme, host and port of a URL.
    package typealias Origin = String

    /// The maximum number of loops.
    private let maximum: Int
    /// The number of admitted exchanges on each loop from which another loop is wanted.
    private let threshold: Int
    private let limits: Limits
    /// The number of admitted exchanges by which a loop may be busier than others before connections are made there.
    private static let tolerance = 8
    /// The number of exchanges on each loop, and of those that were admitted.
    private var loads = [0]
    private var admitted = [0]
    private var hosts: [Origin: Host] = [:]
    /// The host accessed last, cached because it is usually the one accessed next.
    private var latest: Host?
    /// The number of hosts at which empty ones are removed.
    private var hostLimit = 64
    /// The number of connections on all loops that are open or being made.
    private var expected = 0
    private var addition = Addition.possible

    /// Whether a loop can be added.
    private enum Addition {
        case possible
        /// One is being added.
        case begun
        /// The system could not provide a thread or a descriptor for one.
        case failed(at: MonotonicInstant)
    }

    /// The time after which a loop that could not be added is tried again.
    package static let pause = Duration.seconds(1)

    /// The limits on connections of all loops together.
    package struct Limits {
        package let perOrigin: Int
        package let total: Int

        package init(perOrigin: Int, total: Int) {
            self.perOrigin = min(perOrigin, Int(Int32.max))
            self.total = total
        }
    }

    /// An idle connection that has to be closed because a limit is exceeded.
    package struct Excess: Equatable {
        package let loop: Int
        /// The origin of the connection; `nil` for any.
        package let origin: Origin?

        package init(loop: Int, origin: Origin?) {
            self.loop = loop
            self.origin = origin
        }
    }

    /// Creates a table with one loop.
    package init(maximum: Int, threshold: Int, limits: Limits) {
        self.maximum = max(1, maximum)
        self.threshold = threshold
        self.limits = limits
    }

    /// The number of loops.
    package var count: Int { loads.count }

    /// Whether there may be more than one loop.
    package var hasChoice: Bool { maximum > 1 }

    /// Returns whether another loop must be added now, because all have work; then ``addLoop()`` or ``failLoop(at:)``
    /// follows.
    package mutating func beginLoop(at now: @autoclosure () -> MonotonicInstant) -> Bool {
        guard count < maximum, admitted.allSatisfy({ $0 >= threshold }) else { return false }
        switch addition {
        case .possible: break
        case .begun: return false
        case .failed(let time): guard time.advanced(by: Self.pause) <= now() else { return false }
        }
        addition = .begun
        return true
    }

    /// Adds a loop.
    package mutating func addLoop() {
        addition = .possible
        loads.append(0)
        admitted.append(0)
    }

    /// Notes that a loop could not be added.
    package mutating func failLoop(at now: MonotonicInstant) { addition = .failed(at: now) }

    /// Returns the loop for an exchange.
    ///
    /// - Parameters:
    ///   - preferred: The loop on which the task runs; `nil` if it runs on none.
    ///   - sharing: Whether the exchange may use connections of others, and at the same time as they.
    package mutating func loop(for origin: Origin, _ sharing: ConnectionSharing, preferring preferred: Int?) -> Int {
        let host = host(of: origin)
        if sharing == .multiplexed {
            switch host.multiplexing {
            case .on(let loop): return loop
            case .unknown:
                if let loop = loads.indices.max(by: { host.running[$0] < host.running[$1] }), host.running[loop] > 0 {
                    return loop
                }
            case .none: break
            }
        }
        let free =
            sharing == .none ? [] : loads.indices.filter { host.inUse($0) < host.expected[$0] - host.closing[$0] }
        if let preferred, free.contains(preferred) { return preferred }
        if let loop = free.min(by: { loads[$0] < loads[$1] }), admitted[loop] < (admitted.min() ?? 0) + Self.tolerance {
            return loop
        }
        return preferred ?? idlest
    }

    /// The loop with the fewest exchanges.
    package var idlest: Int { loads.indices.min { loads[$0] < loads[$1] } ?? 0 }

    // MARK: Exchanges

    /// Notes an exchange on a loop, which waits or was admitted.
    package mutating func enter(_ loop: Int) { loads[loop] += 1 }

    /// Notes that an exchange is no longer on a loop.
    package mutating func leave(_ loop: Int) { loads[loop] -= 1 }

    /// Notes that an exchange on a loop was admitted. It makes a connection unless one is free; returns another one that
    /// must make room for it.
    ///
    /// - Parameter extra: The number of connections for which the limit for an origin is raised.
    package mutating func begin(
        _ origin: Origin, _ sharing: ConnectionSharing, on loop: Int, extra: Int = 0
    ) -> Excess? {
        guard hasChoice else { return nil }
        let host = host(of: origin)
        admitted[loop] += 1
        host.running[loop] += 1
        if sharing == .multiplexed { host.shared[loop] += 1 }
        let needed = host.inUse(loop) + host.closing[loop]
        guard needed > host.expected[loop] else { return nil }
        expect(needed, host, loop)
        return excess(over: host, on: loop, extra)
    }

    /// Notes that an exchange that was admitted is over.
    ///
    /// - Parameter connected: Whether it has had a connection.
    package mutating func end(_ origin: Origin, _ sharing: ConnectionSharing, on loop: Int, connected: Bool) {
        guard hasChoice else { return }
        let host = host(of: origin)
        admitted[loop] -= 1
        host.running[loop] -= 1
        if sharing == .multiplexed { host.shared[loop] -= 1 }
        if host.running[loop] == 0 {
            // Connections of HTTP/3 and to Unix-domain sockets are not noted.
            expect(host.connections[loop], host, loop)
        } else if !connected {
            expect(max(host.connections[loop], host.expected[loop] - 1), host, loop)
        }
    }

    // MARK: Connections

    /// Notes a new connection on a loop. Returns another one that must be closed: the exchange could not use one that was
    /// thought to be free.
    package mutating func open(
        _ origin: Origin, on loop: Int, isChoice: Bool, isMultiplexed: Bool, extra: Int = 0
    ) -> Excess? {
        guard hasChoice else { return nil }
        let host = host(of: origin)
        if isMultiplexed {
            noteMultiplexing(origin, on: loop)
        } else if isChoice {
            host.multiplexing = .none
        }
        host.connections[loop] += 1
        guard host.connections[loop] > host.expected[loop] else { return nil }
        expect(host.connections[loop], host, loop)
        return excess(over: host, on: loop, extra)
    }

    /// Notes that a connection was closed.
    package mutating func close(_ origin: Origin, on loop: Int) {
        guard hasChoice else { return }
        let host = host(of: origin)
        host.connections[loop] -= 1
        keep(host, loop)
        expect(max(host.connections[loop], host.expected[loop] - 1), host, loop)
    }

    /// Notes that no connection was closed for an ``Excess``: others have come to use them.
    package mutating func keep(_ origin: Origin, on loop: Int) { keep(host(of: origin), loop) }

    private func keep(_ host: Host, _ loop: Int) { host.closing[loop] = max(0, host.closing[loop] - 1) }

    private mutating func expect(_ count: Int, _ host: Host, _ loop: Int) {
        expected += count - host.expected[loop]
        host.expected[loop] = count
    }

    private func excess(over host: Host, on loop: Int, _ extra: Int) -> Excess? {
        // The connection's own loop comes last: there, libcurl makes room, unless others count, too.
        let loops = loads.indices.filter { $0 != loop } + [loop]
        if host.expected.reduce(0, +) - host.closing.reduce(0, +) > limits.perOrigin + extra,
            let other = loops.first(where: host.hasIdle)
        {
            host.closing[other] += 1
            return Excess(loop: other, origin: host.origin)
        }
        guard expected > limits.total else { return nil }
        return loops.first { loop in hosts.values.contains { $0.hasIdle(loop) } }.map { Excess(loop: $0, origin: nil) }
    }

    /// Notes that a connection of the origin carries several exchanges at the same time.
    package mutating func noteMultiplexing(_ origin: Origin, on loop: Int) {
        guard hasChoice else { return }
        let host = host(of: origin)
        host.multiplexing = .on(loop)
        expect(max(host.inUse(loop), host.connections[loop]), host, loop)
    }

    // MARK: Hosts

    private mutating func host(of origin: Origin) -> Host {
        let host = latest?.origin == origin ? latest : hosts[origin]
        if let host {
            latest = host
            host.makeRoom(count)
            return host
        }
        if hosts.count >= hostLimit {
            hosts = hosts.filter { !$0.value.isEmpty }
            hostLimit = max(64, 2 * hosts.count)
        }
        let added = Host(origin)
        added.makeRoom(count)
        hosts[origin] = added
        latest = added
        return added
    }

    /// What is known of one origin. A lock protects it, so that accesses are not checked for
    /// exclusivity at run time; see ``LoopState``.
    private final class Host {
        let origin: Origin
        @safe @exclusivity(unchecked) var multiplexing = Multiplexing.unknown
        /// The numbers of admitted exchanges, and of those that may share a connection, by loop.
        @safe @exclusivity(unchecked) var running: [Int] = []
        @safe @exclusivity(unchecked) var shared: [Int] = []
        /// The numbers of open connections, by loop.
        @safe @exclusivity(unchecked) var connections: [Int] = []
        /// The numbers of connections that are open or being made, by loop.
        @safe @exclusivity(unchecked) var expected: [Int] = []
        /// The numbers of open connections that are about to be closed for an ``LoopTable/Excess``, by loop.
        @safe @exclusivity(unchecked) var closing: [Int] = []

        init(_ origin: Origin) {
            self.origin = origin
        }

        /// The least number of connections that the exchanges on a loop use.
        func inUse(_ loop: Int) -> Int {
            guard case .on = multiplexing else { return running[loop] }
            return running[loop] - shared[loop] + min(shared[loop], 1)
        }

        /// Whether a connection on a loop is idle.
        func hasIdle(_ loop: Int) -> Bool {
            connections.indices.contains(loop) && inUse(loop) < connections[loop] - closing[loop]
        }

        var isEmpty: Bool { running.allSatisfy { $0 == 0 } && expected.allSatisfy { $0 == 0 } }

        func makeRoom(_ count: Int) {
            while running.count < count {
                running.append(0)
                shared.append(0)
                connections.append(0)
                expected.append(0)
                closing.append(0)
            }
        }
    }

    private enum Multiplexing {
        case unknown
        /// Its connections carry several exchanges at the same time, and are on this loop.
        case on(Int)
        /// Its connections carry one exchange at a time.
        case none
    }
}

/// A table does not hand out its objects, so that they are protected together with it, by a lock.
extension LoopTable: @unchecked Sendable {}

/// Whether an exchange may use the connections of others.
package enum ConnectionSharing: CaseIterable, Sendable {
    /// No: it makes a connection of its own.
    case none
    /// One after the other.
    case successive
    /// Also at the same time, if the connection carries HTTP/2 or HTTP/3.
    case multiplexed
}
