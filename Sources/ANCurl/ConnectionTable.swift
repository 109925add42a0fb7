// SPDX-License-Identifier: MIT

package import ANHTTP

/// The sockets of the connections that have carried a request, by the addresses of their two ends.
///
/// libcurl tells which connection it is about to use by addresses only.
package struct ConnectionTable {
    private var sockets: [Ends: Int32] = [:]
    private var ends: [Int32: Ends] = [:]

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

    /// Returns the socket of a connection that has carried a request; `nil` if this is the first one.
    package func socket(of connection: Ends) -> Int32? {
        sockets[connection]
    }

    /// Whether the socket is that of a connection that has carried a request and is open.
    package func contains(_ socket: Int32) -> Bool {
        ends[socket] != nil
    }

    /// Notes that a connection carries its first request.
    package mutating func insert(_ connection: Ends, socket: Int32) {
        remove(socket)
        sockets[connection] = socket
        ends[socket] = connection
    }

    /// Notes that a socket is closed.
    package mutating func remove(_ socket: Int32) {
        guard let connection = ends.removeValue(forKey: socket) else { return }
        sockets[connection] = nil
    }
}
