// SPDX-License-Identifier: MIT

package import ANSystem

/// Which sockets are in the epoll set, and for what.
///
/// libcurl lets go of a connection's socket after each exchange and takes it back for the next. Such a socket is only
/// parked: it stays in the set, which saves two system calls a request. Should it become ready while it is parked, because
/// the server closed it, it leaves the set then. Only sockets whose closing is reported can be parked.
package struct SocketTable {
    private var entries: [Entry] = []

    private struct Entry {
        /// What the set has it in for; nil when it is not in the set.
        var registered: Readiness?
        /// Whether libcurl waits for it.
        var isWanted = false
        /// Whether its closing will be reported.
        var isConnection = false
    }

    /// Creates an empty table.
    package init() {}

    /// What has to be done to the set.
    package enum Operation: Equatable {
        case none
        case add(Readiness)
        case modify(Readiness)
        case remove
    }

    /// A connection's socket was made.
    package mutating func didOpen(_ socket: Int32) {
        withEntry(socket) { $0 = Entry(isConnection: true) }
    }

    /// A connection's socket is about to be closed, which takes it out of the set.
    package mutating func willClose(_ socket: Int32) {
        withEntry(socket) { $0 = Entry() }
    }

    /// libcurl waits for the socket.
    package mutating func want(_ socket: Int32, for readiness: Readiness) -> Operation {
        withEntry(socket) { entry in
            entry.isWanted = true
            defer { entry.registered = readiness }
            switch entry.registered {
            case nil: return .add(readiness)
            case readiness: return .none
            default: return .modify(readiness)
            }
        }
    }

    /// libcurl does not wait for the socket any more.
    package mutating func release(_ socket: Int32) -> Operation {
        withEntry(socket) { entry in
            entry.isWanted = false
            if entry.isConnection { return .none }
            defer { entry = Entry() }
            return entry.registered == nil ? .none : .remove
        }
    }

    /// The socket is ready; false when nobody waits for it, and it has to leave the set.
    package mutating func isWanted(_ socket: Int32) -> Bool {
        withEntry(socket) { entry in
            if !entry.isWanted { entry.registered = nil }
            return entry.isWanted
        }
    }

    /// Whether libcurl waits for the socket to become readable.
    package func isRead(_ socket: Int32) -> Bool {
        guard entries.indices.contains(Int(socket)) else { return false }
        let entry = entries[Int(socket)]
        return entry.isWanted && entry.registered?.contains(.readable) == true
    }

    private mutating func withEntry<Result>(_ socket: Int32, _ body: (inout Entry) -> Result) -> Result {
        let index = Int(max(0, socket))
        while entries.count <= index { entries.append(Entry()) }
        return body(&entries[index])
    }
}
