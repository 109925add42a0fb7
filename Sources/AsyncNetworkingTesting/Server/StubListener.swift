// SPDX-License-Identifier: MIT

import ANSystem
import CLinux
import Glibc

/// A listener that accepts connections on one thread and serves each on a thread of its own.
///
/// The threads free themselves when they end; the last one resumes those who wait in ``stop()``. Blocked threads are
/// woken by calling shutdown(2) on registered descriptors while the lock is held. A descriptor is unregistered before it
/// is closed, so that shutdown(2) never affects another file that has reused its number.
final class StubListener: Sendable {
    private let environment: StubConnection.Environment
    private let state = Lock(State())

    /// Starts to accept connections; the socket is closed when the server stops.
    init(_ socket: ListeningSocket, _ environment: StubConnection.Environment) throws(SystemError) {
        self.environment = environment
        state.withLock { ($0.socket, $0.threads) = (socket, 1) }
        let number = socket.descriptor.number
        try SystemThread(name: "stub-accept", stackSize: 512 << 10) { self.run(number) }.detach()
    }

    /// Ends all connections and waits until all threads are about to end, with their descriptors closed.
    func stop() async {
        requestStop()
        await withCheckedContinuation { continuation in
            let isOver = state.withLock { state in
                if state.threads > 0 { state.waiters.append(continuation) }
                return state.threads == 0
            }
            if isOver { continuation.resume() }
        }
    }

    /// Ends all connections without waiting for the threads to end.
    func requestStop() {
        state.withLock { state in
            state.isStopping = true
            // A blocked accept(2) then fails with EINVAL.
            if let socket = state.socket { shutdown(socket.descriptor.number, Int32(SHUT_RDWR)) }
        }
    }

    /// Shuts down all open connections.
    func disconnectAll() {
        state.withLock { $0.shutDownConnections() }
    }

    // MARK: The accepting thread

    private func run(_ socket: Int32) {
        var nextNumber = 0
        while !state.withLock({ $0.isStopping }) {
            let descriptor = retryingInterrupts { clinux_accept(socket) }
            if descriptor >= 0 {
                serve(descriptor, number: nextNumber)
                nextNumber += 1
            } else {
                // Without free descriptors, or while stopping: wait 1 ms so that other threads can make progress.
                poll(nil, 0, 1)
            }
        }
        state.withLock { $0.shutDownConnections() }
        // Closes the socket.
        state.set(\.socket, to: nil)
        threadDidEnd()
    }

    private func serve(_ descriptor: Int32, number: Int) {
        state.withLock { state in
            state.connections[number] = descriptor
            state.threads += 1
        }
        environment.log.update { activity in
            activity.connectionsAccepted += 1
            activity.openConnections += 1
        }
        do {
            try SystemThread(name: "stub-\(number)", stackSize: 512 << 10) { [self] in
                var connection = StubConnection(
                    StubSocket(takingOwnershipOf: descriptor), number: number, environment, listener: self)
                connection.serve()
                deregister(number)
                connection.close()
                didClose()
            }.detach()
        } catch {
            deregister(number)
            close(descriptor)
            didClose()
        }
    }

    /// Notes that a thread has nothing left to do.
    private func threadDidEnd() {
        let waiters = state.withLock { state in
            state.threads -= 1
            guard state.threads == 0 else { return [CheckedContinuation<Void, Never>]() }
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter.resume() }
    }

    // MARK: The connections' threads

    /// Returns whether the server shut down a connection.
    func wasShutDown(_ number: Int) -> Bool {
        state.withLock { $0.shutDown.contains(number) }
    }

    private func deregister(_ number: Int) {
        state.withLock { state in
            state.connections[number] = nil
            state.shutDown.remove(number)
        }
    }

    private func didClose() {
        environment.log.update { $0.openConnections -= 1 }
        threadDidEnd()
    }

    private struct State {
        /// The listening socket; `nil` when the server has stopped.
        var socket: ListeningSocket?
        var isStopping = false
        /// The number of threads that have something to do.
        var threads = 0
        var waiters: [CheckedContinuation<Void, Never>] = []
        /// The descriptors of open connections, by connection number.
        var connections: [Int: Int32] = [:]
        /// The numbers of open connections that the server shut down.
        var shutDown: Set<Int> = []

        mutating func shutDownConnections() {
            for (number, descriptor) in connections {
                shutDown.insert(number)
                shutdown(descriptor, Int32(SHUT_RDWR))
            }
        }
    }
}

/// A listening socket; a Unix-domain socket deletes its file when it is released.
final class ListeningSocket: Sendable {
    let descriptor: FileDescriptor
    let endpoint: StubServer.Endpoint

    init(_ options: StubServer.Options) throws(SystemError) {
        switch options.address {
        case .ipv4:
            var name = sockaddr_in()
            name.sin_family = sa_family_t(AF_INET)
            name.sin_port = options.port.bigEndian
            name.sin_addr.s_addr = INADDR_LOOPBACK.bigEndian
            descriptor = try Self.listen(AF_INET, at: &name, options)
            try Self.readName(of: descriptor, into: &name)
            endpoint = .tcp(host: "127.0.0.1", port: Int(UInt16(bigEndian: name.sin_port)))
        case .ipv6:
            var name = sockaddr_in6()
            name.sin6_family = sa_family_t(AF_INET6)
            name.sin6_port = options.port.bigEndian
            name.sin6_addr = in6addr_loopback
            descriptor = try Self.listen(AF_INET6, at: &name, options)
            try Self.readName(of: descriptor, into: &name)
            endpoint = .tcp(host: "::1", port: Int(UInt16(bigEndian: name.sin6_port)))
        case .unix(let path):
            var name = sockaddr_un()
            name.sun_family = sa_family_t(AF_UNIX)
            let bytes = Array(path.utf8)
            // One byte is needed for the terminating NUL. See unix(7).
            guard bytes.count < MemoryLayout.size(ofValue: name.sun_path) else {
                throw SystemError(call: "bind", code: ENAMETOOLONG)
            }
            unsafe withUnsafeMutableBytes(of: &name.sun_path) { unsafe $0.copyBytes(from: bytes) }
            unsafe unlink(path)
            descriptor = try Self.listen(AF_UNIX, at: &name, options)
            endpoint = .unix(path: path)
        }
    }

    deinit {
        if case .unix(let path) = endpoint { unsafe unlink(path) }
    }

    private static func listen<Name>(
        _ family: Int32, at name: inout Name, _ options: StubServer.Options
    ) throws(SystemError) -> FileDescriptor {
        let number = socket(family, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard number >= 0 else { throw SystemError.last("socket") }
        let descriptor = FileDescriptor(takingOwnershipOf: number)
        set(SO_REUSEADDR, 1, of: number)
        // Accepted connections inherit this option. See socket(7).
        if let size = options.receiveBufferSize { set(SO_RCVBUF, size, of: number) }
        let code = unsafe withUnsafePointer(to: &name) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                unsafe bind(number, $0, socklen_t(MemoryLayout<Name>.size))
            }
        }
        guard code == 0 else { throw SystemError.last("bind") }
        guard Glibc.listen(number, options.backlog) == 0 else { throw SystemError.last("listen") }
        return descriptor
    }

    private static func set(_ option: Int32, _ value: Int32, of socket: Int32) {
        var value = value
        unsafe setsockopt(socket, SOL_SOCKET, option, &value, socklen_t(MemoryLayout<Int32>.size))
    }

    private static func readName<Name>(
        of descriptor: borrowing FileDescriptor, into name: inout Name
    ) throws(SystemError) {
        var size = socklen_t(MemoryLayout<Name>.size)
        let code = unsafe withUnsafeMutablePointer(to: &name) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                unsafe getsockname(descriptor.number, $0, &size)
            }
        }
        guard code == 0 else { throw SystemError.last("getsockname") }
    }
}
