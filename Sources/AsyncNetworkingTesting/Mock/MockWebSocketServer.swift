// SPDX-License-Identifier: MIT

import ANHTTP
import FoundationEssentials

/// The server's end of a WebSocket connection of a ``MockTransport``, which performs a script.
struct MockWebSocketServer: Sendable {
    private let socket: MockWebSocket
    private let actions: [Script.Action]
    private let request: Request
    private let transport: MockTransport
    private let limits: MockTimeLimits
    private var meter = OutputMeter()

    init(
        _ socket: MockWebSocket, performing actions: [Script.Action], for request: Request, transport: MockTransport,
        limits: MockTimeLimits
    ) {
        self.socket = socket
        self.actions = actions
        self.request = request
        self.transport = transport
        self.limits = limits
    }

    /// Performs the script, and ends the connection after it, at the total time limit, or when the transport is shut down.
    func run() async {
        await withTaskGroup(of: Void.self) { group in
            group.addTask {
                var server = self
                await server.performAll()
            }
            group.addTask { await endEarly() }
        }
    }

    private mutating func performAll() async {
        do {
            for action in actions { try await perform(action) }
            socket.end()
        } catch is Ended {
            socket.end()
        } catch {
            socket.end(error)
        }
    }

    private func endEarly() async {
        do {
            try await limits.wait(in: .responseBody, isSeen: true, isActive: true) { [transport, request] in
                try await transport.hang(request)
            }
        } catch {
            socket.end(error)
        }
    }

    private mutating func perform(_ action: Script.Action) async throws {
        switch action {
        case .readBody: break
        case .send(let data): try await write(Array(data))
        case .generate(let count): try await write(Array(StubServer.generatedBytes(Int(clamping: count))))
        case .delay(let duration): try await transport.pause(duration)
        case .wait(let gate): try await gate.wait()
        case .pace(let pace): meter.setPace(pace)
        case .disconnect(let bytes, let ending): meter.setCut(after: bytes, by: ending)
        case .end: throw Ended()
        case .hang: try await transport.hang(request)
        case .message(let message): try await write(message.frame)
        case .echoMessages(let limit): try await echoMessages(limit)
        case .closeWebSocket(let code, let reason):
            try await write(WebSocketFrame(.close, WebSocketClosure(code: code, reason: reason).payload))
            while try await nextFrame().opcode != .close {}
            throw Ended()
        case .informational, .reply, .respond, .acceptWebSocket: throw TransportError(.invalidResponse(.notHTTP))
        }
    }

    private mutating func echoMessages(_ limit: Int?) async throws {
        var echo = MessageEcho(limit)
        while !echo.isFinished {
            let frame = try await nextFrame()
            if let answer = echo.answer(frame) { try await write(answer) }
            if frame.opcode == .close { throw Ended() }
        }
    }

    private func nextFrame() async throws -> WebSocketFrame {
        guard let frame = try await socket.nextSent() else { throw Ended() }
        return frame
    }

    private mutating func write(_ frame: WebSocketFrame) async throws {
        try await write(frame.encoded(mask: nil))
    }

    /// Sends bytes according to the meter.
    private mutating func write(_ bytes: [UInt8]) async throws {
        var rest = bytes[...]
        while !rest.isEmpty {
            switch meter.next(rest.count) {
            case .send(let count):
                guard socket.deliver(Array(rest.prefix(count))) else { throw Ended() }
                rest = rest.dropFirst(count)
            case .wait(let duration): try await transport.pause(duration)
            case .end: throw Ended()
            }
        }
    }

    /// The end of the connection by the script or by the client.
    private struct Ended: Error {}
}
