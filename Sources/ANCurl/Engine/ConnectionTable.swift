// SPDX-License-Identifier: MIT

package import ANHTTP
package import ANSystem
package import FoundationEssentials

/// A table of the open connections that have carried a request, by socket.
///
/// libcurl identifies the connection that it is about to use only by the addresses of its two endpoints.
package struct ConnectionTable {
    private var sockets: [Ends: Int32] = [:]
    /// The entries at the indices of their sockets, which the system numbers from 0.
    private var entries: [Entry] = []
    /// The generations that new requests use; an origin without one has connections of generation 0 only, none of which
    /// may be dead.
    private var generations: [String: CurrentGeneration] = [:]
    private var hasChanged = false

    /// The generation that an origin's new requests use.
    private struct CurrentGeneration {
        let number: Int
        /// Whether there is a connection of it.
        let isTaken: Bool
    }

    private struct Entry {
        /// The endpoints; `nil` if the socket has no connection in the table.
        var ends: Ends?
        /// How the connection was made; `nil` for directly.
        var way: Way?
        /// Whether HTTP/2 was offered when the connection was made.
        var offersHTTP2 = false
        /// The time at which bytes of a response were last received.
        var lastInput: MonotonicInstant?
        /// Whether the server speaks HTTP/1.0.
        var isHTTP10 = false
        /// The reasons for which the connection takes no new exchanges.
        var obstacles: Obstacles = []
        /// The generation of the origin's connections that it belongs to; `nil` if there is none.
        var generation: Int?
        /// How long the server keeps the connection open while it is idle, and the time since when it is idle.
        var idleTimeout: Duration?
        var idleSince: MonotonicInstant?
        /// The origin of the first request, the version that the connection speaks, and the time of that request.
        var origin = ""
        var version = HTTPVersion.http1_1
        var opened: MonotonicInstant?
    }

    /// Reasons for which a connection takes no new exchanges.
    private struct Obstacles: OptionSet {
        let rawValue: UInt8

        /// It may be dead.
        static let silence = Obstacles(rawValue: 1)
        /// It is older than it may be.
        static let age = Obstacles(rawValue: 2)
        /// The server, or the client, closes it after its exchanges, which libcurl knows.
        static let closing = Obstacles(rawValue: 4)
    }

    /// The addresses of the two endpoints of a TCP connection.
    package struct Ends: Hashable {
        package let local: SocketAddress
        package let remote: SocketAddress

        package init(local: SocketAddress, remote: SocketAddress) {
            self.local = local
            self.remote = remote
        }

        /// Hashes the ports, which distinguish most connections: hashing the hosts takes ten times as long.
        package func hash(into hasher: inout Hasher) {
            hasher.combine(local.port)
            hasher.combine(remote.port)
        }
    }

    /// A connection that libcurl is about to use for a transfer.
    package enum Origin: Hashable {
        /// It has carried a request, on this socket.
        case known(Int32)
        /// It was made for the transfer, with this socket.
        case new(Int32)
        /// It was made for something else, such as libcurl's own requests to a resolver. The address policy was not
        /// applied to it.
        case foreign
    }

    /// Creates an empty table.
    package init() {}

    /// Determines the origin of a connection from its endpoints.
    ///
    /// - Parameters:
    ///   - sockets: The sockets that were opened for the transfer. Some may be closed, and be those of other connections
    ///     now.
    ///   - localPort: Returns the local port of a socket; `nil` if the socket is closed.
    package func origin(
        of connection: Ends, opened sockets: [Int32], localPort: (Int32) -> Int?
    ) -> Origin {
        if let known = self.sockets[connection] { return .known(known) }
        let new = sockets.last { !contains($0) && localPort($0) == connection.local.port }
        return new.map(Origin.new) ?? .foreign
    }

    /// Whether the socket belongs to a connection in the table.
    package func contains(_ socket: Int32) -> Bool {
        guard entries.indices.contains(Int(socket)), case .some = entries[Int(socket)].ends else { return false }
        return true
    }

    /// Whether no bytes of a response have been received on a connection since the given time.
    package func isSilent(_ socket: Int32, after start: MonotonicInstant) -> Bool {
        guard contains(socket), let last = entries[Int(socket)].lastInput else { return true }
        return last <= start
    }

    /// How a connection is made, as far as libcurl does not compare it: its versions 8.9 to 8.21 do not compare interfaces,
    /// those before 8.19 no credentials of tunnels (CVE-2026-3784), none the header fields of tunnels or the resolver, and
    /// those before 8.5 not the authorities with which a proxy that forwards requests was verified.
    package struct Way: Equatable {
        /// The local interface, address or host name, as in the options; `nil` for any.
        package var localInterface: String?
        /// The resolver for DNS over HTTPS; `nil` for the system's.
        package var resolver: URL?
        /// The credential for which a proxy has opened the tunnel; `nil` without one.
        package var tunnelCredential: Credential?
        /// The values of the `Proxy-Authorization` fields for which a proxy has opened the tunnel.
        package var tunnelFields: [String]
        /// The authorities for a proxy over TLS; `nil` without one.
        package var proxyRoots: TrustRoots?

        package init(
            localInterface: String? = nil, resolver: URL? = nil, tunnelCredential: Credential? = nil,
            tunnelFields: [String] = [], proxyRoots: TrustRoots? = nil
        ) {
            self.localInterface = localInterface
            self.resolver = resolver
            self.tunnelCredential = tunnelCredential
            self.tunnelFields = tunnelFields
            self.proxyRoots = proxyRoots
        }
    }

    /// Whether a connection was made in a way; `nil` for directly.
    package func wasMade(_ socket: Int32, _ way: Way?) -> Bool {
        contains(socket) && entries[Int(socket)].way == way
    }

    /// Adds a connection that carries its first request.
    ///
    /// - Parameter generation: The generation of the origin's connections that the request could use; `nil` for a connection
    ///   without TLS, of which libcurl knows no generation, or without HTTP/2.
    package mutating func insert(
        _ connection: Ends, socket: Int32, _ way: Way? = nil, offersHTTP2: Bool = false,
        origin: String = "", generation: Int? = nil, version: HTTPVersion = .http1_1, at now: MonotonicInstant = .now
    ) {
        remove(socket)
        sockets[connection] = socket
        let index = Int(socket)
        while entries.count <= index { entries.append(Entry()) }
        entries[index] = Entry(ends: connection, way: way, offersHTTP2: offersHTTP2)
        (entries[index].origin, entries[index].version, entries[index].opened) = (origin, version, now)
        entries[index].generation = generation
        if generation ?? 0 > 0 || generations[origin] != nil { reviewGenerations(of: origin) }
    }

    /// A number above those of all sockets in the table.
    package var socketLimit: Int { entries.count }

    /// Whether the socket belongs to a connection that has carried a request at the given time.
    package func contains(_ socket: Int32, openedBy time: MonotonicInstant) -> Bool {
        guard contains(socket), let opened = entries[Int(socket)].opened else { return false }
        return opened <= time
    }

    /// Returns the connections on a range of sockets with their ages.
    package func snapshot(_ sockets: Range<Int>, at now: MonotonicInstant) -> [TransportSnapshot.Connection] {
        sockets.clamped(to: entries.indices).compactMap { socket in
            let entry = entries[socket]
            guard let ends = entry.ends, let opened = entry.opened, opened <= now else { return nil }
            return TransportSnapshot.Connection(
                id: Int32(socket), origin: entry.origin, address: ends.remote,
                version: entry.isHTTP10 ? .http1_0 : entry.version, age: opened.duration(to: now),
                sinceLastEnd: entry.idleSince?.duration(to: now))
        }
    }

    /// Whether HTTP/2 was offered when a connection was made.
    package func offersHTTP2(_ socket: Int32) -> Bool {
        contains(socket) && entries[Int(socket)].offersHTTP2
    }

    /// Whether a connection is one to an origin and takes new exchanges.
    package func isOpen(_ socket: Int32, to origin: String) -> Bool {
        contains(socket) && entries[Int(socket)].origin == origin && !isReplaced(socket)
    }

    /// Notes that bytes of a response were received.
    package mutating func noteInput(_ socket: Int32, at now: MonotonicInstant) {
        guard contains(socket) else { return }
        entries[Int(socket)].lastInput = now
        guard entries[Int(socket)].obstacles.remove(.silence) != nil else { return }
        reviewGenerations(of: entries[Int(socket)].origin)
    }

    /// Marks a connection as possibly dead, until bytes of a response are received.
    package mutating func suspect(_ socket: Int32) {
        guard contains(socket), entries[Int(socket)].obstacles.insert(.silence).inserted else { return }
        reviewGenerations(of: entries[Int(socket)].origin)
    }

    /// Marks the connections of a generation as possibly dead: others share the ones that take their place.
    package mutating func suspect(_ generation: Int, of origin: String) {
        let members = sockets.values.filter {
            entries[Int($0)].generation == generation && entries[Int($0)].origin == origin
        }
        for socket in members { entries[Int(socket)].obstacles.insert(.silence) }
        if !members.isEmpty { reviewGenerations(of: origin) }
    }

    /// Notes that a connection with a generation, besides which libcurl can open others, is older than a limit; returns
    /// whether it is, and must carry no new requests. libcurl itself asks only of idle ones.
    package mutating func noteAge(_ socket: Int32, above limit: Duration, at now: MonotonicInstant) -> Bool {
        guard contains(socket), entries[Int(socket)].generation != nil, let opened = entries[Int(socket)].opened,
            opened.duration(to: now) > limit
        else { return false }
        if entries[Int(socket)].obstacles.insert(.age).inserted { reviewGenerations(of: entries[Int(socket)].origin) }
        return true
    }

    /// Notes that a connection is closed after its exchanges, and that libcurl knows that it takes no new ones.
    package mutating func noteClosing(_ socket: Int32) {
        guard contains(socket), entries[Int(socket)].obstacles.insert(.closing).inserted else { return }
        hasChanged = true
    }

    /// Determines which connections an origin's new requests use: those of the latest generation of which none may be dead
    /// or is too old, because libcurl chooses one, or of another generation.
    private mutating func reviewGenerations(of origin: String) {
        let members = sockets.values.map { entries[Int($0)] }.filter { $0.origin == origin && $0.generation != nil }
        let unfit = Set(members.filter { !$0.obstacles.isDisjoint(with: [.silence, .age]) }.map(\.generation))
        let numbers = members.compactMap(\.generation)
        hasChanged = true
        guard let last = numbers.max(), last > 0 || !unfit.isEmpty else { return generations[origin] = nil }
        let latest = numbers.filter { !unfit.contains($0) }.max()
        generations[origin] = CurrentGeneration(number: latest ?? last + 1, isTaken: latest != nil)
    }

    /// The generation of the connections that an origin's new requests use.
    package func generation(of origin: String) -> Int { generations.isEmpty ? 0 : generations[origin]?.number ?? 0 }

    /// Whether libcurl may choose a connection for new requests, as far as its generation decides.
    package func isOffered(_ socket: Int32) -> Bool {
        guard contains(socket), let generation = entries[Int(socket)].generation else { return true }
        return generation == self.generation(of: entries[Int(socket)].origin)
    }

    /// Whether a connection takes no new exchanges, and is to be closed after those that it has: it may be dead, is too old or
    /// is closed anyway, or others take its place.
    package func isReplaced(_ socket: Int32) -> Bool {
        contains(socket) && !entries[Int(socket)].obstacles.isEmpty
            || !isOffered(socket) && generations[entries[Int(socket)].origin]?.isTaken != false
    }

    /// The connections that are to be closed after their exchanges.
    package var replaced: [Int32] { sockets.values.filter(isReplaced) }

    /// Notes that an exchange no longer uses a connection.
    package mutating func noteLeft(_ socket: Int32) {
        if isReplaced(socket) { hasChanged = true }
    }

    /// Notes that the exchanges of an origin need more connections than before.
    package mutating func noteNeed() { hasChanged = true }

    /// Returns whether a connection was replaced, or left after that, or other ones are offered or needed, since the last
    /// call.
    package mutating func takeChange() -> Bool {
        defer { hasChanged = false }
        return hasChanged
    }

    /// Whether a connection may be dead and should carry no new requests.
    package func isSuspect(_ socket: Int32) -> Bool {
        contains(socket) && entries[Int(socket)].obstacles.contains(.silence)
    }

    /// Notes the version of a response over HTTP/1.
    package mutating func noteVersion(isHTTP10: Bool, on socket: Int32) {
        change(socket) { $0.isHTTP10 = isHTTP10 }
    }

    /// Whether the server speaks HTTP/1.0, which has no chunked coding.
    package func isHTTP10(_ socket: Int32) -> Bool {
        contains(socket) && entries[Int(socket)].isHTTP10
    }

    /// Notes the `Keep-Alive` field of a response, such as `timeout=5, max=100`; `nil` if the response has none.
    package mutating func noteKeepAlive(_ field: String?, on socket: Int32) {
        let timeout = field.flatMap(Self.timeout)
        change(socket) { $0.idleTimeout = timeout }
    }

    /// Notes that the exchange on a connection ended.
    package mutating func noteEnd(_ socket: Int32, at now: MonotonicInstant) {
        change(socket) { $0.idleSince = now }
    }

    /// Whether the idle timeout announced by the server has expired or is about to, in which case a request could cross
    /// the closing of the connection. The connection counts as expired 1 s before the timeout, or after half of a
    /// timeout shorter than 2 s.
    package func isExpired(_ socket: Int32, at now: MonotonicInstant) -> Bool {
        guard contains(socket), let timeout = entries[Int(socket)].idleTimeout,
            let start = entries[Int(socket)].idleSince
        else { return false }
        return start.duration(to: now) >= timeout - min(.seconds(1), timeout / 2)
    }

    /// Returns the `timeout` of a `Keep-Alive` field, in whole seconds; `nil` if there is no valid one.
    private static func timeout(_ field: String) -> Duration? {
        let parameters = field.lowercased().filter { !" \t\"".contains($0) }.split(at: ",")
        let timeout = parameters.first { $0.hasPrefix("timeout=") }
        return timeout.flatMap { UInt32($0.dropFirst("timeout=".count)) }.map { .seconds($0) }
    }

    /// Returns the connection that has been idle longest, to the given origin or to any; `nil` if there is none.
    package func longestIdle(of origin: String?, except used: Set<Int32>) -> Int32? {
        let idle = sockets.values.filter { socket in
            !used.contains(socket) && (origin ?? entries[Int(socket)].origin) == entries[Int(socket)].origin
        }
        return idle.compactMap { socket in entries[Int(socket)].idleSince.map { (socket, since: $0) } }
            .min { $0.since < $1.since }?.0
    }

    /// Removes the connection of a closed socket. Returns its origin; `nil` if it was not in the table.
    @discardableResult
    package mutating func remove(_ socket: Int32) -> String? {
        guard contains(socket), let ends = entries[Int(socket)].ends else { return nil }
        let origin = entries[Int(socket)].origin
        if !entries[Int(socket)].obstacles.isEmpty { hasChanged = true }
        entries[Int(socket)] = Entry()
        sockets[ends] = nil
        if generations[origin] != nil { reviewGenerations(of: origin) }
        return origin
    }

    /// Changes the entry of a socket, if there is one.
    private mutating func change(_ socket: Int32, _ change: (inout Entry) -> Void) {
        if contains(socket) { change(&entries[Int(socket)]) }
    }
}
