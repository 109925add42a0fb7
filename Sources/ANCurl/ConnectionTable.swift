// SPDX-License-Identifier: MIT

package import ANHTTP
package import ANSystem

/// The connections that have carried a request and are open, by their sockets.
///
/// libcurl identifies the connection that it is about to use by the addresses of its two ends only.
package struct ConnectionTable {
    private var sockets: [Ends: Int32] = [:]
    private var entries: [Int32: Entry] = [:]

    private struct Entry {
        let ends: Ends
        /// When bytes of a response came last.
        var lastInput: MonotonicInstant?
        /// Whether the connection may be dead.
        var isSuspect = false
        /// How long the server keeps the idle connection open, and since when it is idle.
        var idleTimeout: Duration?
        var idleSince: MonotonicInstant?
    }

    /// The addresses of the two ends of a TCP connection.
    package struct Ends: Hashable {
        package let local: SocketAddress
        package let remote: SocketAddress

        package init(local: SocketAddress, remote: SocketAddress) {
            self.local = local
            self.remote = remote
        }
    }

    /// Creates an empty table.
    package init() {}

    /// Returns the socket of a connection; `nil` if the connection has not carried a request.
    package func socket(of connection: Ends) -> Int32? {
        sockets[connection]
    }

    /// Whether the socket is that of a connection in the table.
    package func contains(_ socket: Int32) -> Bool {
        entries[socket] != nil
    }

    /// Whether no bytes of a response have come on a connection since a point in time.
    package func isSilent(_ socket: Int32, since start: MonotonicInstant) -> Bool {
        guard let last = entries[socket]?.lastInput else { return true }
        return last < start
    }

    /// Adds a connection, which carries its first request.
    package mutating func insert(_ connection: Ends, socket: Int32) {
        remove(socket)
        sockets[connection] = socket
        entries[socket] = Entry(ends: connection)
    }

    /// Notes that bytes of a response came.
    package mutating func noteInput(_ socket: Int32, at now: MonotonicInstant) {
        entries[socket]?.lastInput = now
        entries[socket]?.isSuspect = false
    }

    /// Marks a connection that may be dead; bytes of a response take the mark away.
    package mutating func suspect(_ socket: Int32) {
        entries[socket]?.isSuspect = true
    }

    /// Whether a connection may be dead, and should take no new requests.
    package func isSuspect(_ socket: Int32) -> Bool {
        entries[socket]?.isSuspect == true
    }

    /// Notes the `Keep-Alive` field of a response, such as `timeout=5, max=100`; `nil` if it has none.
    package mutating func noteKeepAlive(_ field: String?, on socket: Int32) {
        entries[socket]?.idleTimeout = field.flatMap(Self.timeout)
    }

    /// Notes that the exchange on a connection ended.
    package mutating func noteEnd(_ socket: Int32, at now: MonotonicInstant) {
        guard entries[socket]?.idleTimeout != nil else { return }
        entries[socket]?.idleSince = now
    }

    /// Whether the server has closed the connection by now, or is about to, as it announced: a request could cross its end. The
    /// last second counts as its end, or the second half of a shorter time.
    package func isExpired(_ socket: Int32, at now: MonotonicInstant) -> Bool {
        guard let entry = entries[socket], let timeout = entry.idleTimeout, let start = entry.idleSince else {
            return false
        }
        return start.duration(to: now) >= timeout - min(.seconds(1), timeout / 2)
    }

    /// The `timeout` of a `Keep-Alive` field, in whole seconds; `nil` if it has none that is valid.
    private static func timeout(_ field: String) -> Duration? {
        let parameters = field.lowercased().filter { !" \t\"".contains($0) }.split(separator: ",")
        let timeout = parameters.first { $0.hasPrefix("timeout=") }
        return timeout.flatMap { UInt32($0.dropFirst("timeout=".count)) }.map { .seconds($0) }
    }

    /// Removes the connection of a socket that is closed.
    package mutating func remove(_ socket: Int32) {
        guard let entry = entries.removeValue(forKey: socket) else { return }
        sockets[entry.ends] = nil
    }
}
