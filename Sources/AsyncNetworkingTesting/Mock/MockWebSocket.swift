// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem

/// The client's end of a WebSocket connection of a ``MockTransport``: the bytes of the script are decoded and handled
/// as by a real connection, but sending never waits.
final class MockWebSocket: WebSocketLink {
    let subprotocol: String?
    let deflate: WebSocketDeflate?
    private let options: WebSocketOptions
    private let limits: MockTimeLimits
    private let state: Observed<State>

    init(_ agreement: WebSocketAgreement, _ options: WebSocketOptions, limits: MockTimeLimits) {
        subprotocol = agreement.subprotocol
        deflate = agreement.deflate
        self.options = options
        self.limits = limits
        state = Observed(State(options, allowsCompression: agreement.deflate != nil))
    }

    // MARK: The client's side

    var closure: WebSocketClosure? { state.value.closure }

    func receive() async throws -> [WebSocketFrame]? {
        while true {
            try Task.checkCancellation()
            let (number, reading) = state.update { ($0.readerCount, $0.takeReceived()) }
            if let reading { return try reading.get() }
            defer { state.update { $0.endReading(number) } }
            try await withTaskCancellationHandler {
                try await state.wait { $0.isReadable }
            } onCancel: {
                // The next reader need not wait for this one.
                state.update { $0.endReading(number) }
            }
        }
    }

    func send(_ makeFrame: () throws -> WebSocketFrame) async throws {
        try Task.checkCancellation()
        try state.update { $0.send(makeFrame) }.get()
    }

    func close(_ closure: WebSocketClosure) async throws {
        state.update { $0.close(closure) }
        // Which the cancellation of the calling task does not shorten, unless it ends the exchange.
        await Task(executorPreference: currentTaskExecutor) { [state, limits, options] in
            await withTaskGroup(of: Void.self) { group in
                group.addTask { try? await state.wait { $0.ending != nil } }
                group.addTask { try? await limits.pause(options.closeTimeout) }
                await group.next()
                group.cancelAll()
            }
        }.value
        state.update { $0.end(.success(())) }
        if case .failure(let error as CancellationError)? = state.value.ending { throw error }
    }

    func fail(_ violation: WebSocketViolation) {
        state.update { state in
            state.close(WebSocketClosure(code: violation.code, reason: violation.reason))
            state.end(.success(()))
        }
    }

    // MARK: The server's side

    /// Receives bytes of the server; returns `false` if the connection has ended.
    func deliver(_ bytes: [UInt8]) -> Bool {
        state.update { $0.receive(bytes) }
    }

    /// Waits for the next frame that the client sends; `nil` after the end of the connection.
    func nextSent() async throws -> WebSocketFrame? {
        try await state.wait { !$0.sent.isEmpty || $0.ending != nil }
        return state.update { $0.sent.isEmpty ? nil : $0.sent.removeFirst() }
    }

    /// Ends the connection with an error; if it is `nil`, the default, the connection is lost.
    func end(_ error: (any Error)? = nil) {
        state.update { $0.lose(error) }
    }

    private struct State {
        private let maximumMessageSize: Int
        private var decoder: WebSocketFrameDecoder
        private var machine: WebSocketStateMachine
        /// The data frames that the client has not read.
        private var received: [WebSocketFrame] = []
        private var receivedBytes: Int64 = 0
        /// The frames that the server has not read.
        var sent: [WebSocketFrame] = []
        private(set) var closure: WebSocketClosure?
        /// The number of the task that waits for data frames; `nil` if none does.
        private var reader: Int?
        private(set) var readerCount = 0
        /// Whether the client has begun to close the connection.
        private var isClosing = false
        /// The end of the connection; `nil` while it is open.
        private(set) var ending: Result<Void, any Error>?

        init(_ options: WebSocketOptions, allowsCompression: Bool) {
            maximumMessageSize = options.maximumMessageSize
            decoder = WebSocketFrameDecoder(maximumPayload: maximumMessageSize, allowsCompression: allowsCompression)
            machine = WebSocketStateMachine(maximumMessageSize: maximumMessageSize)
        }

        /// Whether ``takeReceived()`` returns something.
        var isReadable: Bool { !isClosing && !received.isEmpty || ending != nil }

        /// Takes the data frames that have arrived, or returns the end; `nil` if there is nothing yet, so that the task
        /// becomes the reader.
        mutating func takeReceived() -> Result<[WebSocketFrame]?, any Error>? {
            guard reader == nil || isReadable else { return .failure(TransportError.secondReader) }
            if case .failure(let error as CancellationError)? = ending { return .failure(error) }
            if !isClosing, !received.isEmpty {
                defer { received = [] }
                return .success(received)
            }
            guard let ending else {
                reader = readerCount
                readerCount += 1
                return nil
            }
            // A connection that the client closes has no more frames, however it ends.
            guard !isClosing else { return .success(nil) }
            return ending.flatMap {
                guard let closure, !closure.isNormal else { return .success(nil) }
                return .failure(TransportError(.webSocketClosed(closure)))
            }
        }

        /// Notes that a task does not wait for data frames any more.
        mutating func endReading(_ number: Int) { if reader == number { reader = nil } }

        mutating func send(_ makeFrame: () throws -> WebSocketFrame) -> Result<Void, any Error> {
            if case .failure(let error)? = ending { return .failure(error) }
            guard !isClosing, ending == nil, closure == nil else {
                return .failure(TransportError(.webSocketClosed(closure)))
            }
            return Result { sent.append(try makeFrame()) }
        }

        mutating func close(_ closure: WebSocketClosure) {
            guard ending == nil else { return }
            isClosing = true
            if let frame = machine.close(closure) { sent.append(frame) }
        }

        mutating func receive(_ bytes: [UInt8]) -> Bool {
            guard ending == nil else { return false }
            receivedBytes += Int64(bytes.count)
            decoder.append(bytes)
            do throws(WebSocketViolation) {
                while ending == nil, let frame = try decoder.next() {
                    switch try machine.receive(frame) {
                    case .none: break
                    case .deliver(let frame): received.append(frame)
                    case .answer(let pong): sent.append(pong)
                    case .closed(let closure, let answer):
                        self.closure = closure
                        if let answer { sent.append(answer) }
                        end(.success(()))
                    }
                }
            } catch {
                if let frame = machine.close(WebSocketClosure(code: error.code, reason: error.reason)) {
                    sent.append(frame)
                }
                end(.failure(TransportError(error.failure(limit: maximumMessageSize))))
            }
            return true
        }

        mutating func lose(_ error: (any Error)?) {
            let loss = TransportError(.connectionLost(.inBody(received: receivedBytes, expected: nil)))
            end(error == nil && !machine.isOpen ? .success(()) : .failure(error ?? loss))
        }

        mutating func end(_ result: Result<Void, any Error>) {
            if ending == nil { ending = result }
        }
    }
}
