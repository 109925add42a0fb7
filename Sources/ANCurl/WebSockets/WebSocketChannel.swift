// SPDX-License-Identifier: MIT

package import ANHTTP
import ANSystem

/// The state of a WebSocket connection that the loop and the program's tasks share.
///
/// The loop adds data frames and takes commands; tasks take frames and add commands, and wait here.
package final class WebSocketChannel: Sendable {
    package let upgrade: WebSocketUpgrade
    private let state = Lock(State())
    /// Serializes the creation of frames: a compressed frame depends on the ones before it.
    private let sending = Lock(())

    /// A task's command to the loop.
    package enum Command: Sendable {
        /// Sends the bytes of a frame.
        case send([UInt8])
        /// Closes the connection and waits for the server's answer.
        case close(WebSocketClosure)
        /// Closes the connection at once.
        case fail(WebSocketViolation)
    }

    private struct State {
        var agreement = WebSocketAgreement()
        /// The frames that have not been read, and the memory that they take.
        var frames: [WebSocketFrame] = []
        var frameBytes = 0
        /// Whether the loop has stopped reading from the connection.
        var isPaused = false
        var reader: Waiter?
        var commands: [Command] = []
        /// The number of frames that tasks have passed for sending, and how many of these the system has accepted.
        var passed = 0
        var accepted = 0
        /// The tasks that wait until a number of frames have been accepted.
        var senders: [(count: Int, waiter: Waiter)] = []
        var closers: [Waiter] = []
        var closure: WebSocketClosure?
        /// Whether this side has begun to close the connection.
        var isClosing = false
        /// The end of the connection, with its error; `nil` while it is open.
        var ending: Result<Void, any Error>?

        /// The error for a message that cannot be sent any more; `nil` if it can.
        var sendError: (any Error)? {
            if case .failure(let error)? = ending { return error }
            return isClosing || ending != nil || closure != nil ? TransportError(.webSocketClosed(closure)) : nil
        }
    }

    package init(_ upgrade: WebSocketUpgrade) {
        self.upgrade = upgrade
    }

    // MARK: The tasks' side

    var agreement: WebSocketAgreement { state.withLock { $0.agreement } }

    package var closure: WebSocketClosure? { state.withLock { $0.closure } }

    /// The frames for a reader.
    package enum Reading {
        /// Frames; whether the loop must be asked to read again.
        case frames([WebSocketFrame], mustResume: Bool)
        case end
        case notYet
    }

    /// Takes the frames that have arrived.
    package func takeFrames() throws -> Reading {
        try state.withLock { state throws in
            guard state.reader == nil else { throw Self.secondReader }
            if case .failure(let error as CancellationError)? = state.ending { throw error }
            if !state.isClosing, !state.frames.isEmpty {
                defer { (state.frames, state.frameBytes, state.isPaused) = ([], 0, false) }
                return .frames(state.frames, mustResume: state.isPaused)
            }
            guard let ending = state.ending else { return .notYet }
            try ending.get()
            if let closure = state.closure, !closure.isNormal, !state.isClosing {
                throw TransportError(.webSocketClosed(closure))
            }
            return .end
        }
    }

    /// Waits until frames have arrived, the connection has ended, or the task is cancelled.
    package func waitForFrames() async {
        await withTaskCancellationHandler {
            await Waiter.suspend { waiter in
                let mustWait = state.withLock { state in
                    guard state.reader == nil, state.frames.isEmpty, state.ending == nil, !Task.isCancelled else {
                        return false
                    }
                    state.reader = waiter
                    return true
                }
                if !mustWait { waiter.wake() }
            }
        } onCancel: {
            state.withLock { $0.reader.take() }?.wake()
        }
    }

    /// Adds a frame to those to be sent, and returns its number.
    package func pass(_ makeFrame: () throws -> WebSocketFrame) throws -> Int {
        try sending.withLock { _ throws in
            if let error = state.withLock({ $0.sendError }) { throw error }
            let bytes = try makeFrame().encoded(mask: .random(in: .min ... .max))
            return try state.withLock { state throws in
                if let error = state.sendError { throw error }
                state.commands.append(.send(bytes))
                state.passed += 1
                return state.passed
            }
        }
    }

    /// Waits until the system has accepted the frames up to a number.
    ///
    /// - Throws: The error of the connection, or `CancellationError` if the task is cancelled; the frame may then still
    ///   be sent.
    package func waitUntilAccepted(_ count: Int) async throws {
        await withTaskCancellationHandler {
            await Waiter.suspend { waiter in
                let mustWait = state.withLock { state in
                    guard state.accepted < count, state.ending == nil, !Task.isCancelled else { return false }
                    state.senders.append((count, waiter))
                    return true
                }
                if !mustWait { waiter.wake() }
            }
        } onCancel: {
            state.withLock { state in
                guard let index = state.senders.firstIndex(where: { $0.count == count }) else { return nil as Waiter? }
                return state.senders.remove(at: index).waiter
            }?.wake()
        }
        let (isAccepted, error) = state.withLock { ($0.accepted >= count, $0.sendError) }
        guard !isAccepted else { return }
        try Task.checkCancellation()
        if let error { throw error }
    }

    /// Adds a command to close the connection; returns whether the loop must handle it.
    package func add(_ command: Command) -> Bool {
        state.withLock { state in
            guard state.ending == nil else { return false }
            state.isClosing = true
            state.commands.append(command)
            return true
        }
    }

    /// Waits until the connection has ended.
    package func waitUntilEnded() async {
        await Waiter.suspend { waiter in
            let mustWait = state.withLock { state in
                guard state.ending == nil else { return false }
                state.closers.append(waiter)
                return true
            }
            if !mustWait { waiter.wake() }
        }
    }

    private static let secondReader = TransportError(
        .internalInconsistency("A WebSocket connection has one reader at a time."))

    // MARK: The loop's side

    func open(_ agreement: WebSocketAgreement) {
        state.withLock { $0.agreement = agreement }
    }

    package func takeCommands() -> [Command] {
        state.withLock { state in
            guard !state.commands.isEmpty else { return [] }
            defer { state.commands.removeAll(keepingCapacity: true) }
            return state.commands
        }
    }

    /// Adds a frame; returns whether the reader has more than `capacity` bytes to read, so that the connection must not
    /// be read until it has taken them.
    package func add(_ frame: WebSocketFrame, capacity: Int) -> Bool {
        state.withLock { state in
            state.frames.append(frame)
            // An empty frame takes memory, too.
            state.frameBytes += frame.payload.count + MemoryLayout<WebSocketFrame>.stride
            state.isPaused = state.frameBytes >= capacity
            return state.isPaused
        }
    }

    /// Whether the connection must not be read.
    package var isPaused: Bool { state.withLock { $0.isPaused && !$0.isClosing } }

    /// Resumes the reader if frames have arrived.
    package func flush() {
        state.withLock { $0.frames.isEmpty ? nil : $0.reader.take() }?.wake()
    }

    /// Notes that the system has accepted further frames.
    package func noteAccepted(_ count: Int) {
        guard count > 0 else { return }
        let waiters = state.withLock { state in
            state.accepted += count
            let accepted = state.accepted
            defer { state.senders.removeAll { $0.count <= accepted } }
            return state.senders.filter { $0.count <= accepted }.map(\.waiter)
        }
        for waiter in waiters { waiter.wake() }
    }

    package func receive(_ closure: WebSocketClosure) {
        state.withLock { $0.closure = closure }
    }

    /// Ends the connection, and resumes all tasks that wait.
    package func end(_ result: Result<Void, any Error>) {
        let waiters = state.withLock { state in
            if state.ending == nil { state.ending = result }
            var waiters = state.senders.map(\.waiter) + state.closers
            if let reader = state.reader { waiters.append(reader) }
            (state.senders, state.closers, state.reader) = ([], [], nil)
            state.commands = []
            return waiters
        }
        for waiter in waiters { waiter.wake() }
    }
}

/// The connection of an exchange that became a WebSocket connection.
struct UpgradedExchange: WebSocketLink {
    let exchange: Exchange
    let channel: WebSocketChannel

    var subprotocol: String? { channel.agreement.subprotocol }
    var deflate: WebSocketDeflate? { channel.agreement.deflate }
    var closure: WebSocketClosure? { channel.closure }

    func receive() async throws -> [WebSocketFrame]? {
        while true {
            try Task.checkCancellation()
            switch try channel.takeFrames() {
            case .frames(let frames, let mustResume):
                if mustResume { serve() }
                return frames
            case .end: return nil
            case .notYet: await channel.waitForFrames()
            }
        }
    }

    func send(_ makeFrame: () throws -> WebSocketFrame) async throws {
        try Task.checkCancellation()
        let number = try channel.pass(makeFrame)
        serve()
        try await channel.waitUntilAccepted(number)
    }

    func close(_ closure: WebSocketClosure) async {
        if channel.add(.close(closure)) { serve() }
        await channel.waitUntilEnded()
    }

    func fail(_ violation: WebSocketViolation) {
        if channel.add(.fail(violation)) { serve() }
    }

    private func serve() {
        exchange.engine.post(.serveWebSocket(exchange))
    }
}
