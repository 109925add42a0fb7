// SPDX-License-Identifier: MIT

import ANSystem
import Glibc

/// A listener that accepts connections on one thread and serves each on a thread of its own.
///
/// The accepting thread joins the threads of connections, and ``stop()`` joins the accepting thread. Blocked threads
/// are woken by calling shutdown(2) on registered descriptors while the lock is held. A descriptor is unregistered
/// before it is closed, so that shutdown(2) never affects another file that has reused its number.
final class StubListener: Sendable {
    private let environment: StubConnection.Environment
    private let state = Lock(State())

    /// Starts to accept connections; the accepting thread owns the socket.
    init(_ socket: ListeningSocket, _ environment: StubConnection.Environment) throws(SystemError) {
        self.environment = environment
        state.withLock { $0.listening = socket.descriptor.number }
        let thread = try SystemThread(name: "stub-accept", stackSize: 512 << 10) { self.run(socket) }
        state.withLock { $0.acceptor = thread }
    }

    /// Ends all connections and waits until all threads have ended.
    func stop() async {
        beginStop()
        await withCheckedContinuation { continuation in
            let isOver = state.withLock { state in
                if !state.isOver { state.waiters.append(continuation) }
                return state.isOver
            }
            if isOver { continuation.resume() }
        }
        // The thread is about to end, so that joining it takes only microseconds.
        takeAcceptor()?.join()
    }

    /// Ends all connections without waiting for the threads to end.
    func requestStop() {
        takeAcceptor()?.detach()
        beginStop()
    }

    /// Shuts down all open connections.
    func disconnectAll() {
        state.withLock { $0.shutDownConnections() }
    }

    private func beginStop() {
        state.withLock { state in
            state.isStopping = true
            // A blocked accept(2) then fails with EINVAL.
            if let number = state.listening { shutdown(number, Int32(SHUT_RDWR)) }
        }
    }

    private func takeAcceptor() -> SystemThread? {
        state.withLock { state in
            defer { state.acceptor = nil }
            return state.acceptor
        }
    }

    // MARK: The accepting thread

    private func run(_ socket: ListeningSocket) {
        var threads: [Int: SystemThread] = [:]
        var nextNumber = 0
        while !state.withLock({ $0.isStopping }) {
            let descriptor = retryingInterrupts { accept(socket.descriptor.number, nil, nil) }
            if descriptor >= 0 {
                _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
                threads[nextNumber] = serve(descriptor, number: nextNumber)
                nextNumber += 1
            } else {
                // Without free descriptors, or while stopping: wait 1 ms so that other threads can make progress.
                poll(nil, 0, 1)
            }
            for number in takeFinished() { threads.removeValue(forKey: number)?.join() }
        }
        state.withLock { state in
            state.listening = nil
            state.shutDownConnections()
        }
        for thread in threads.values { thread.join() }
        let waiters = state.withLock { state in
            state.isOver = true
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter.resume() }
    }

    private func serve(_ descriptor: Int32, number: Int) -> SystemThread? {
        state.withLock { $0.connections[number] = descriptor }
        environment.log.update { activity in
            activity.connectionsAccepted += 1
            activity.openConnections += 1
        }
        let thread = try? SystemThread(name: "stub-\(number)", stackSize: 512 << 10) { [self] in
            var connection = StubConnection(
                StubSocket(takingOwnershipOf: descriptor), number: number, environment, listener: self)
            connection.serve()
            deregister(number)
            connection.close()
            didClose(number)
        }
        if thread == nil {
            deregister(number)
            close(descriptor)
            didClose(number)
        }
        return thread
    }

    private func takeFinished() -> [Int] {
        state.withLock { state in
            defer { state.finished.removeAll(keepingCapacity: true) }
            return state.finished
        }
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

    private func didClose(_ number: Int) {
        environment.log.update { $0.openConnections -= 1 }
        state.withLock { $0.finished.append(number) }
    }

    private struct State {
        var listening: Int32?
        var acceptor: SystemThread?
        var isStopping = false
        var isOver = false
        var waiters: [CheckedContinuation<Void, Never>] = []
        /// The descriptors of open connections, by connection number.
        var connections: [Int: Int32] = [:]
        /// The numbers of open connections that the server shut down.
        var shutDown: Set<Int> = []
        /// The numbers of connections whose threads are ending and were not joined yet.
        var finished: [Int] = []

        mutating func shutDownConnections() {
            for (number, descriptor) in connections {
                shutDown.insert(number)
                shutdown(descriptor, Int32(SHUT_RDWR))
            }
        }
    }
}
