// SPDX-License-Identifier: MIT

package import ANHTTP
import ANSystem

/// The state of a WebSocket connection that the loop and the program's tasks share.
///
/// The loop adds data frames and takes commands; tasks take frames and add commands, and wait here. Frames are sent by
/// the loop, which joins them; or, in a dialogue, by the task itself, which saves waking the loop.
package final class WebSocketChannel: Sendable {
    package let options: WebSocketOptions
    private let memory: MemoryBudget?
    private let state = Lock(State())
    /// Serializes the creation of frames: a compressed frame depends on the ones before it.
    private let sending = Lock(MaskingKeys())

    /// A task's command to the loop.
    package enum Command: Sendable {
        /// Closes the connection and waits for the server's answer.
        case close(WebSocketClosure)
        /// Closes the connection at once.
        case fail(WebSocketViolation)
    }

    private struct State {
        var agreement = WebSocketAgreement()
        /// The frames that have not been read.
        var input = Input()
        /// The share of the frames in the session's budget; `nil` without one, and before the connection is open.
        var share: MemoryShare?
        var reader: Waiter?
        var commands: [Command] = []
        var output = WebSocketOutput()
        /// The error because of which no more bytes are sent, and whether messages were lost; `nil` if there is none.
        var outputFailure: (error: any Error, hasLostMessages: Bool)?
        /// The socket on which tasks may send; `nil` while there is none, and with TLS.
        var socket: Int32?
        /// The number of frames that were sent since the server has caught up by sending, roughly.
        var unanswered = 0
        /// Whether the loop was asked to serve the connection, and has not begun.
        var isServiceRequested = false
        /// The tasks that wait until a number of bytes were accepted.
        var senders: [(id: Int, count: Int, waiter: Waiter)] = []
        var lastSender = 0
        var closers: [Waiter] = []
        var closure: WebSocketClosure?
        var phase = Phase.open

        /// Whether this side has begun to close the connection, which may have ended since.
        var isClosing: Bool {
            switch phase {
            case .open: false
            case .closing: true
            case .ended(let ending): ending.wasClosing
            }
        }

        /// The end of the connection; `nil` while there is none.
        var ending: Ending? {
            if case .ended(let ending) = phase { ending } else { nil }
        }

        /// The error for a message that cannot be sent any more; `nil` if it can.
        var sendError: (any Error)? {
            switch phase {
            case .open where closure == nil: return outputFailure?.error
            case .ended(let ending):
                if case .failure(let error) = ending.result { return error }
            case .open, .closing: break
            }
            return TransportError(.webSocketClosed(closure))
        }
    }

    private enum Phase {
        /// Until one side closes the connection or it is lost; also before the handshake.
        case open
        /// This side has begun to close the connection: received messages are discarded, and none are sent.
        case closing
        /// The exchange is over.
        case ended(Ending)
    }

    private struct Ending {
        let result: Result<Void, any Error>
        /// Whether this side had begun to close the connection.
        let wasClosing: Bool
        /// The error for messages that were not sent before; `nil` if all of them were.
        let lossError: (any Error)?
    }

    /// Frames that have not been read, and the memory that they take.
    private struct Input {
        private(set) var frames: [WebSocketFrame] = []
        private var size = 0
        /// Whether the loop has stopped reading from the connection.
        private(set) var isPaused = false

        /// Adds a frame. Returns whether the loop must not read another one for now.
        mutating func append(_ frame: WebSocketFrame, capacity: Int, _ share: MemoryShare?) -> Bool {
            frames.append(frame)
            // An empty frame takes memory, too.
            size += frame.payload.count + MemoryLayout<WebSocketFrame>.stride
            isPaused = size >= capacity || share?.mayHold(size) == false
            share?.hold(size)
            return isPaused
        }
    }

    package init(_ options: WebSocketOptions, memory: MemoryBudget? = nil) {
        (self.options, self.memory) = (options, memory)
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
            guard state.reader == nil else { throw TransportError.secondReader }
            if case .failure(let error as CancellationError)? = state.ending?.result { throw error }
            if !state.input.frames.isEmpty {
                defer { state.input = Input() }
                state.share?.hold(0)
                if state.ending != nil { state.share = nil }
                return .frames(state.input.frames, mustResume: state.input.isPaused)
            }
            guard let ending = state.ending else { return .notYet }
            // A connection that this side closes has no more frames, however it ends.
            guard !ending.wasClosing else { return .end }
            try ending.result.get()
            if let closure = state.closure, !closure.isNormal { throw TransportError(.webSocketClosed(closure)) }
            return .end
        }
    }

    /// Waits until frames have arrived, the connection has ended, or the task is cancelled.
    package func waitForFrames() async {
        await withTaskCancellationHandler {
            await Waiter.suspend { waiter in
                let mustWait = state.withLock { state in
                    guard state.reader == nil, state.input.frames.isEmpty, state.ending == nil, !Task.isCancelled else {
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

    /// The steps that remain after a frame was added to those to be sent.
    package struct Sending: Equatable {
        /// Whether the loop must be asked to send.
        package let mustServe: Bool
        /// The number of bytes to wait for, because many were not accepted; `nil` if there is no need to wait.
        package let awaitedCount: Int?

        package init(mustServe: Bool = false, awaitedCount: Int? = nil) {
            self.mustServe = mustServe
            self.awaitedCount = awaitedCount
        }
    }

    /// Adds a frame to those to be sent, and sends it if the connection is idle and the server has answered the frames
    /// before.
    package func send(_ makeFrame: () throws -> WebSocketFrame) throws -> Sending {
        try sending.withLock { keys throws in
            if let error = state.withLock({ $0.sendError }) { throw error }
            let bytes = try makeFrame().encoded(mask: keys.next())
            return try state.withLock { state throws in
                if let error = state.sendError { throw error }
                let isIdle = state.output.isEmpty
                state.output.append(bytes, isMessage: true)
                defer { state.unanswered += 1 }
                if isIdle, state.unanswered == 0, let socket = state.socket {
                    // The loop sends the rest, and encounters a failure again.
                    _ = try? state.output.sendOnce { bytes throws(ConnectionStream.Failure) in
                        try ConnectionStream.send(bytes, on: socket)
                    }
                    if state.output.isEmpty { return Sending() }
                }
                defer { state.isServiceRequested = true }
                let excess = state.output.count - (memory?.chunk ?? Self.outputCapacity)
                return Sending(
                    mustServe: !state.isServiceRequested,
                    awaitedCount: excess > 0 ? state.output.acceptedCount + excess : nil)
            }
        }
    }

    /// Waits until the system has accepted a number of bytes since the connection was opened.
    ///
    /// - Throws: The error of the connection, or `CancellationError` if the task is cancelled; the bytes may then still
    ///   be sent.
    package func wait(forAccepted count: Int) async throws {
        let id = state.withLock { state in
            state.lastSender += 1
            return state.lastSender
        }
        await withTaskCancellationHandler {
            await Waiter.suspend { waiter in
                let mustWait = state.withLock { state in
                    guard state.output.acceptedCount < count, state.outputFailure == nil, state.ending == nil,
                        !Task.isCancelled
                    else { return false }
                    state.senders.append((id, count, waiter))
                    return true
                }
                if !mustWait { waiter.wake() }
            }
        } onCancel: {
            state.withLock { state in
                state.senders.firstIndex { $0.id == id }.map { state.senders.remove(at: $0).waiter }
            }?.wake()
        }
        let (isAccepted, error) = state.withLock { ($0.output.acceptedCount >= count, $0.sendError) }
        guard !isAccepted else { return }
        try Task.checkCancellation()
        if let error { throw error }
    }

    /// The number of bytes that were not accepted above which senders wait, without a budget.
    private static let outputCapacity = 64 << 10

    /// Adds a command to close the connection; returns whether the loop must handle it. Frames that were not taken are
    /// discarded.
    package func add(_ command: Command) -> Bool {
        state.withLock { state in
            guard state.ending == nil else { return false }
            state.phase = .closing
            (state.input, state.share) = (Input(), nil)
            state.commands.append(command)
            return true
        }
    }

    /// Waits until the connection has ended.
    ///
    /// - Throws: The error of the connection if it ended before all messages were sent.
    package func waitUntilEnded() async throws {
        await Waiter.suspend { waiter in
            let mustWait = state.withLock { state in
                guard state.ending == nil else { return false }
                state.closers.append(waiter)
                return true
            }
            if !mustWait { waiter.wake() }
        }
        if let error = state.withLock({ $0.ending?.lossError }) { throw error }
    }

    // MARK: The loop's side

    /// Opens the connection.
    ///
    /// - Parameters:
    ///   - agreement: The outcome of the handshake.
    ///   - socket: The socket on which tasks may send; `nil` if only the loop may.
    package func open(_ agreement: WebSocketAgreement = WebSocketAgreement(), socket: Int32?) {
        state.withLock { state in
            (state.agreement, state.socket) = (agreement, socket)
            state.share = memory.map(MemoryShare.init)
        }
    }

    /// Prevents tasks from using the connection, which is about to be closed.
    package func disconnect() {
        state.withLock { $0.socket = nil }
    }

    /// Takes the commands for closing the connection, at the beginning of a service.
    package func takeCommands() -> [Command] {
        state.withLock { state in
            state.isServiceRequested = false
            guard !state.commands.isEmpty else { return [] }
            defer { state.commands.removeAll(keepingCapacity: true) }
            return state.commands
        }
    }

    /// Adds a frame; returns whether the reader has more than `capacity` bytes to read, so that the connection must not
    /// be read until it has taken them. The frame is discarded if this side closes the connection.
    package func add(_ frame: WebSocketFrame, capacity: Int) -> Bool {
        state.withLock { state in
            guard !state.isClosing else { return false }
            state.unanswered = max(0, state.unanswered - 1)
            return state.input.append(frame, capacity: capacity, state.share)
        }
    }

    /// Whether the connection must not be read.
    package var isPaused: Bool { state.withLock { $0.input.isPaused } }

    /// Resumes the reader if frames have arrived.
    package func flush() {
        state.withLock { state in
            guard !state.input.frames.isEmpty else { return nil as Waiter? }
            // Frames that the server does not answer are forgotten.
            state.unanswered /= 2
            return state.reader.take()
        }?.wake()
    }

    /// Whether bytes have not been accepted.
    var hasOutput: Bool { state.withLock { !$0.output.isEmpty } }

    /// Changes the bytes to be sent, and resumes tasks for which enough were accepted.
    package func withOutput<Result, Failure: Error>(
        _ body: (inout WebSocketOutput) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        var waiters: [Waiter] = []
        defer { for waiter in waiters { waiter.wake() } }
        return try state.withLock { state throws(Failure) in
            defer {
                if !state.senders.isEmpty {
                    let accepted = state.output.acceptedCount
                    waiters = state.senders.filter { $0.count <= accepted }.map(\.waiter)
                    state.senders.removeAll { $0.count <= accepted }
                }
            }
            return try body(&state.output)
        }
    }

    /// Discards the bytes that were not accepted, and resumes the tasks that wait for it with an error. Frames can still
    /// be received.
    package func failOutput(_ error: any Error) {
        let waiters = state.withLock { state in
            state.outputFailure = (error, state.output.hasMessages)
            state.socket = nil
            state.output.discard()
            defer { state.senders = [] }
            return state.senders.map(\.waiter)
        }
        for waiter in waiters { waiter.wake() }
    }

    package func receive(_ closure: WebSocketClosure) {
        state.withLock { $0.closure = closure }
    }

    /// Ends the connection, and resumes all tasks that wait.
    package func end(_ result: Result<Void, any Error>) {
        let waiters = state.withLock { state in
            if state.ending == nil {
                var lossError = state.outputFailure.flatMap { $0.hasLostMessages ? $0.error : nil }
                if state.output.hasMessages {
                    lossError = TransportError(.webSocketClosed(state.closure))
                    if case .failure(let error) = result { lossError = error }
                }
                state.phase = .ended(Ending(result: result, wasClosing: state.isClosing, lossError: lossError))
            }
            var waiters = state.senders.map(\.waiter) + state.closers
            if let reader = state.reader { waiters.append(reader) }
            (state.senders, state.closers, state.reader) = ([], [], nil)
            (state.commands, state.socket) = ([], nil)
            state.output.discard()
            if state.input.frames.isEmpty { state.share = nil }
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
        let sending = try channel.send(makeFrame)
        if sending.mustServe { serve() }
        if let count = sending.awaitedCount { try await channel.wait(forAccepted: count) }
    }

    func close(_ closure: WebSocketClosure) async throws {
        if channel.add(.close(closure)) { serve() }
        try await channel.waitUntilEnded()
    }

    func fail(_ violation: WebSocketViolation) {
        if channel.add(.fail(violation)) { serve() }
    }

    private func serve() {
        exchange.post(.serveWebSocket(exchange))
    }
}
