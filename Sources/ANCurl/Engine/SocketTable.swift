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
        /// The events for which libcurl is watching the socket; `nil` if it is not.
        var wanted: Readiness?
        /// The events that are held back from libcurl, although it watches for them.
        var held: Readiness = []
        /// Whether the closing of the socket will be reported.
        var isConnection = false
        /// Whether its connection is being made.
        var isConnecting = false

        /// The events to watch for where libcurl watches for `wanted`: those that are not held back, or only the end of the
        /// connection.
        func watched(for wanted: Readiness) -> Readiness {
            let rest = wanted.subtracting(held)
            return rest.isEmpty ? .ended : rest
        }

        mutating func register(_ readiness: Readiness) -> Operation {
            defer { registered = readiness }
            switch registered {
            case nil: return .add(readiness)
            case readiness: return .none
            default: return .modify(readiness)
            }
        }

        /// Stops to watch for anything but the end of the connection, and for that, too, once it was reported.
        mutating func stop() -> Operation {
            guard registered == .ended else { return register(.ended) }
            registered = nil
            return .remove
        }
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
            entry.wanted = readiness
            return entry.register(entry.watched(for: readiness))
        }
    }

    /// Notes that libcurl is no longer watching the socket.
    package mutating func release(_ socket: Int32) -> Operation {
        withEntry(socket) { entry in
            entry.wanted = nil
            if entry.isConnection, !entry.isConnecting { return .none }
            defer { if entry.isConnection { entry.registered = nil } else { entry = Entry() } }
            return entry.registered == nil ? .none : .remove
        }
    }

    /// Whether libcurl is watching a socket that is ready. If not, ``ignore(_:)`` follows.
    package func isWanted(_ socket: Int32) -> Bool {
        entries.indices.contains(Int(socket)) && entries[Int(socket)].wanted != nil
    }

    /// Notes that a socket became ready that libcurl is not watching.
    package mutating func ignore(_ socket: Int32) -> Operation {
        withEntry(socket) { entry in
            let mayStay = entry.isConnection && entry.registered != nil && entry.registered != .ended
            entry.registered = mayStay ? .ended : nil
            return mayStay ? .modify(.ended) : .remove
        }
    }

    /// Notes that libcurl does not read from a socket that it is watching for input only, until it asks for events again.
    package mutating func stopReading(_ socket: Int32) -> Operation {
        withEntry(socket) { entry in
            guard entry.wanted != nil, entry.registered == .readable || entry.registered == .ended else { return .none }
            return entry.stop()
        }
    }

    /// Holds events back from libcurl, until ``readAgain(_:)``.
    package mutating func hold(_ socket: Int32, _ readiness: Readiness) -> Operation {
        withEntry(socket) { entry in
            entry.held = readiness
            guard let wanted = entry.wanted else { return .none }
            let watched = entry.watched(for: wanted)
            return watched == .ended ? entry.stop() : entry.register(watched)
        }
    }

    /// Notes that libcurl may read again after ``stopReading(_:)`` or ``hold(_:_:)``.
    package mutating func readAgain(_ socket: Int32) -> Operation {
        withEntry(socket) { entry in
            entry.held = []
            return entry.wanted.map { entry.register($0) } ?? .none
        }
    }

    /// Whether the closing of a socket will be reported.
    package func isConnection(_ socket: Int32) -> Bool {
        entries.indices.contains(Int(socket)) && entries[Int(socket)].isConnection
    }

    /// Whether libcurl is waiting for the socket to become readable.
    package func isRead(_ socket: Int32) -> Bool {
        guard entries.indices.contains(Int(socket)) else { return false }
        let entry = entries[Int(socket)]
        return entry.wanted != nil && entry.registered?.contains(.readable) == true
    }

    private mutating func withEntry<Result>(_ socket: Int32, _ body: (inout Entry) -> Result) -> Result {
        let index = Int(max(0, socket))
        while entries.count <= index { entries.append(Entry()) }
        return body(&entries[index])
    }
}
