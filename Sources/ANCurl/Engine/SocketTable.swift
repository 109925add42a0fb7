// SPDX-License-Identifier: MIT

package import ANSystem

/// A table of the sockets in the epoll set, with the events to watch for.
///
/// libcurl stops watching a connection's socket after each exchange and watches it again for the next. Meanwhile the
/// socket remains in the set, which saves two system calls for each request. If it becomes ready in that state, only the end
/// of its connection is still watched for. Only sockets whose closing is reported can remain in the set: before 8.2, libcurl
/// reports that of a connection which was made, but not of one that is given up before.
package struct SocketTable {
    private var entries: [Entry] = []

    private struct Entry {
        /// The events registered in the set; `nil` if the socket is not in the set.
        var registered: Readiness?
        /// Whether libcurl is watching the socket.
        var isWanted = false
        /// Whether the closing of the socket will be reported.
        var isConnection = false
        /// Whether its connection is being made.
        var isConnecting = false
    }

    /// Creates an empty table.
    package init() {}

    /// The required change to the epoll set.
    package enum Operation: Equatable {
        case none
        case add(Readiness)
        case modify(Readiness)
        case remove
    }

    /// Notes that a connection's socket was opened.
    ///
    /// - Parameter isConnecting: Whether ``didConnect(_:)`` follows.
    package mutating func didOpen(_ socket: Int32, isConnecting: Bool = true) {
        withEntry(socket) { $0 = Entry(isConnection: true, isConnecting: isConnecting) }
    }

    /// Notes that the connection of a socket can be used.
    package mutating func didConnect(_ socket: Int32) {
        withEntry(socket) { $0.isConnecting = false }
    }

    /// Whether the socket's connection is being made.
    package func isConnecting(_ socket: Int32) -> Bool {
        entries.indices.contains(Int(socket)) && entries[Int(socket)].isConnecting
    }

    /// Notes that a connection's socket is about to be closed. That alone would not remove it from the set if a child
    /// process has inherited it, see epoll(7).
    package mutating func willClose(_ socket: Int32) -> Operation {
        withEntry(socket) { entry in
            defer { entry = Entry() }
            return entry.registered == nil ? .none : .remove
        }
    }

    /// Notes that libcurl is watching the socket.
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

    /// Notes that libcurl is no longer watching the socket.
    package mutating func release(_ socket: Int32) -> Operation {
        withEntry(socket) { entry in
            entry.isWanted = false
            if entry.isConnection, !entry.isConnecting { return .none }
            defer { if entry.isConnection { entry.registered = nil } else { entry = Entry() } }
            return entry.registered == nil ? .none : .remove
        }
    }

    /// Whether libcurl is watching a socket that is ready. If not, ``ignore(_:)`` follows.
    package func isWanted(_ socket: Int32) -> Bool {
        entries.indices.contains(Int(socket)) && entries[Int(socket)].isWanted
    }

    /// Notes that a socket became ready that libcurl is not watching.
    package mutating func ignore(_ socket: Int32) -> Operation {
        withEntry(socket) { entry in
            let mayStay = entry.isConnection && entry.registered != nil && entry.registered != .ended
            entry.registered = mayStay ? .ended : nil
            return mayStay ? .modify(.ended) : .remove
        }
    }

    /// Notes that libcurl does not read from a socket that it is watching for input only.
    package mutating func stopReading(_ socket: Int32) -> Operation {
        withEntry(socket) { entry in
            guard entry.isWanted, entry.registered == .readable || entry.registered == .ended else { return .none }
            defer { entry.registered = entry.registered == .readable ? .ended : nil }
            return entry.registered == .readable ? .modify(.ended) : .remove
        }
    }

    /// Notes that libcurl may read again after ``stopReading(_:)``.
    package mutating func readAgain(_ socket: Int32) -> Operation {
        isReadingStopped(socket) ? want(socket, for: .readable) : .none
    }

    /// Whether ``stopReading(_:)`` was called, and libcurl has not asked for other events since.
    package func isReadingStopped(_ socket: Int32) -> Bool {
        guard isWanted(socket) else { return false }
        let registered = entries[Int(socket)].registered
        return registered == nil || registered == .ended
    }

    /// Whether the closing of a socket will be reported.
    package func isConnection(_ socket: Int32) -> Bool {
        entries.indices.contains(Int(socket)) && entries[Int(socket)].isConnection
    }

    /// Whether libcurl is waiting for the socket to become readable.
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
