// SPDX-License-Identifier: MIT

/// Chooses the event loops of a transport's exchanges.
///
/// Exchanges follow the connections that they can use, because a new one costs more than waiting for a busy loop:
///
/// | exchange | its loop |
/// |---|---|
/// | may share a connection, and its origin multiplexes | the one where the origin's connections are |
/// | may share a connection, and it is not known whether its origin multiplexes | the one where most of the origin's exchanges are |
/// | can use a connection that is free on some loop, or will be | the one that its task prefers, or the least busy of those, unless it has ``tolerance`` more exchanges than another one |
/// | any other | the one that its task prefers, or the least busy one; another one is started if all have ``threshold`` exchanges |
///
/// The busiest loop is the one with the most exchanges, waiting ones included.
package struct LoopTable {
    /// The scheme, host and port of a URL.
    package typealias Origin = String

    /// The number of loops that may be started.
    private var maximum: Int
    /// The number of exchanges on each loop from which another loop is started.
    private let threshold: Int
    /// The number of exchanges by which a loop may be busier than others before connections are made there.
    private static let tolerance = 8
    /// The number of exchanges on each loop that was started.
    private var loads = [0]
    private var hosts: [Origin: Host] = [:]
    /// The host accessed last, cached because it is usually the one accessed next.
    private var latest: Host?
    /// The number of hosts at which empty ones are removed.
    private var hostLimit = 64
    /// The number of open connections on all loops.
    private var opened = 0

    /// Creates a table with one loop.
    package init(maximum: Int, threshold: Int) {
        self.maximum = max(1, maximum)
        self.threshold = threshold
    }

    /// The number of loops that were started.
    package var count: Int { loads.count }

    /// Whether there is more than one loop to choose from.
    package var hasChoice: Bool { maximum > 1 }

    /// Returns the loop for an exchange; ``count`` for a loop to be started.
    ///
    /// - Parameters:
    ///   - preferred: The loop on which the task runs; `nil` if it runs on none.
    ///   - sharing: Whether the exchange may use connections of others, and at the same time as they.
    package mutating func loop(for origin: Origin, _ sharing: ConnectionSharing, preferring preferred: Int?) -> Int {
        guard hasChoice else { return 0 }
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
        let free = sharing == .none ? [] : loads.indices.filter { host.running[$0] < host.expected[$0] }
        if let preferred, free.contains(preferred) { return preferred }
        let idlest = idlest(of: loads.indices)
        if let loop = free.min(by: { loads[$0] < loads[$1] }), loads[loop] < loads[idlest] + Self.tolerance {
            return loop
        }
        if let preferred { return preferred }
        return loads[idlest] >= threshold && count < maximum ? count : idlest
    }

    private func idlest(of loops: Range<Int>) -> Int {
        loops.min { loads[$0] < loads[$1] } ?? 0
    }

    /// The loop with the fewest exchanges.
    package var idlest: Int { idlest(of: loads.indices) }

    // MARK: Exchanges

    /// Notes an exchange on a loop, possibly a new one, that waits or was admitted.
    package mutating func enter(_ loop: Int) {
        if loop == loads.count { loads.append(0) }
        loads[loop] += 1
    }

    /// Notes that an exchange is no longer on a loop.
    package mutating func leave(_ loop: Int) { loads[loop] -= 1 }

    /// Notes that an exchange on a loop was admitted. It makes a connection unless one is free.
    package mutating func begin(_ origin: Origin, on loop: Int) {
        guard hasChoice else { return }
        let host = host(of: origin)
        host.running[loop] += 1
        host.expected[loop] = max(host.expected[loop], host.running[loop])
    }

    /// Notes that an exchange that was admitted is over.
    ///
    /// - Parameter connected: Whether it has had a connection.
    package mutating func end(_ origin: Origin, on loop: Int, connected: Bool) {
        guard hasChoice else { return }
        let host = host(of: origin)
        host.running[loop] -= 1
        if !connected { host.expected[loop] = max(host.connections[loop], host.expected[loop] - 1) }
    }

    /// Notes that no further loop can be started.
    package mutating func stopStarting() { maximum = loads.count }

    // MARK: Connections

    /// Notes a new connection on a loop.
    ///
    /// - Parameter limits: The maximum numbers of connections to the origin, and in total.
    /// - Returns: A loop on which a connection is idle, to be closed there because a limit is exceeded; `nil` if none is.
    package mutating func open(
        _ origin: Origin, on loop: Int, isChoice: Bool, isMultiplexed: Bool, limits: (perOrigin: Int, total: Int)
    ) -> (loop: Int, origin: Origin?)? {
        guard hasChoice else { return nil }
        let host = host(of: origin)
        host.connections[loop] += 1
        host.expected[loop] = max(host.expected[loop], host.connections[loop])
        opened += 1
        if isMultiplexed {
            host.multiplexing = .on(loop)
        } else if isChoice {
            host.multiplexing = .none
        }
        func hasIdle(_ other: Int, _ host: Host) -> Bool {
            other != loop && host.running[other] < host.connections[other]
        }
        if host.connections.reduce(0, +) > limits.perOrigin,
            let other = loads.indices.first(where: { hasIdle($0, host) })
        {
            return (other, origin)
        }
        guard opened > limits.total else { return nil }
        let other = loads.indices.first { index in hosts.values.contains { hasIdle(index, $0) } }
        return other.map { ($0, nil) }
    }

    /// Notes that a connection was closed.
    package mutating func close(_ origin: Origin, on loop: Int) {
        guard hasChoice else { return }
        let host = host(of: origin)
        host.connections[loop] -= 1
        host.expected[loop] = max(host.connections[loop], host.expected[loop] - 1)
        opened -= 1
    }

    /// Notes that a connection of the origin carries several exchanges at the same time.
    package mutating func noteMultiplexing(_ origin: Origin, on loop: Int) {
        guard hasChoice else { return }
        host(of: origin).multiplexing = .on(loop)
    }

    // MARK: Hosts

    private mutating func host(of origin: Origin) -> Host {
        let host = latest?.origin == origin ? latest : hosts[origin]
        if let host {
            latest = host
            host.makeRoom(count + 1)
            return host
        }
        if hosts.count >= hostLimit {
            hosts = hosts.filter { !$0.value.isEmpty }
            hostLimit = max(64, 2 * hosts.count)
        }
        let added = Host(origin)
        added.makeRoom(count + 1)
        hosts[origin] = added
        latest = added
        return added
    }

    /// What is known of one origin.
    private final class Host {
        let origin: Origin
        var multiplexing = Multiplexing.unknown
        /// The numbers of admitted exchanges, by loop.
        var running: [Int] = []
        /// The numbers of open connections, by loop.
        var connections: [Int] = []
        /// The numbers of connections that are open or being made, by loop.
        var expected: [Int] = []

        init(_ origin: Origin) {
            self.origin = origin
        }

        var isEmpty: Bool { running.allSatisfy { $0 == 0 } && connections.allSatisfy { $0 == 0 } }

        func makeRoom(_ count: Int) {
            while running.count < count {
                running.append(0)
                connections.append(0)
                expected.append(0)
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

/// Whoever uses a table alone also uses its objects alone: it does not hand them out.
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
