// SPDX-License-Identifier: MIT

import ANSystem
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
            let descriptor = retryingInterrupts { accept(socket, nil, nil) }
            if descriptor >= 0 {
                _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
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
