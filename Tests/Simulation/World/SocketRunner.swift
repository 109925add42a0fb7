// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials
import HTTPTypes

/// How a server ends a WebSocket connection.
enum SocketEnding: String, CaseIterable, Sendable {
    /// It waits for the client, or closes the connection with a code.
    case waits, normal, goingAway, failure, own
    /// It loses the connection after its messages, or after some bytes.
    case lost, cut
    /// It sends a frame that violates the protocol.
    case violation
    /// It does not even answer the close frame of the client.
    case deaf

    func actions(after latency: Duration) -> [Script.Action] {
        let last: [Script.Action] =
            switch self {
            case .waits: [.echoMessages()]
            case .normal: [.closeWebSocket(code: 1000)]
            case .goingAway: [.closeWebSocket(code: 1001)]
            case .failure: [.closeWebSocket(code: 1011)]
            case .own: [.closeWebSocket(code: 4_000)]
            case .lost, .cut: [.end(.reset)]
            case .violation: [.send(Data([0xFF, 0xFF])), .hang]
            case .deaf: [.hang]
            }
        return [.delay(latency)] + last
    }

    /// Whether a client that reconnects makes another connection.
    var isTransient: Bool {
        switch self {
        case .goingAway, .failure, .lost, .cut: true
        case .waits, .normal, .own, .violation, .deaf: false
        }
    }
}

/// Performs a call that uses a WebSocket.
struct SocketRunner: Sendable {
    let runner: CallRunner
    let session: SessionManager
    private var call: Program.Call { runner.call }
    private var ledger: Ledger { runner.ledger }
    /// The request whose response the program has, or had last: interceptors drop those of others.
    private var lastArrival: Ledger.Arrival? { ledger.arrivals(of: call.number).last { !$0.isForgotten } }

    init(runner: CallRunner, session: SessionManager) {
        self.runner = runner
        self.session = session
    }

    func perform(_ request: Request) async throws {
        var request = request
        (request.method, request.body) = (.get, .none)
        request.messageCount = call.count
        var options = WebSocketOptions()
        options.closeTimeout = .seconds(2)
        guard call.reconnects else {
            try await session.withWebSocket(request, options: options) { try await talk($0) }
            return
        }
        if request.retryPolicy == nil { request.retryPolicy = RetryPolicy(limit: 3) }
        let connections = Lock(0)
        let limit = request.retryPolicy?.limit ?? 0
        do {
            try await session.withWebSockets(for: request, options: options, reconnectionTime: .milliseconds(100)) {
                socket in
                let number = connections.withLock { number in
                    number += 1
                    return number
                }
                // The program has enough of a server that is lost again and again.
                guard number < 4 else { return }
                ledger.cover("socket.connection.\(number)")
                try await talk(socket)
            }
        } catch {
            if (error as? SessionError) != nil { try judgeReconnection(limit, connections.withLock(\.self)) }
            throw error
        }
        try judgeReconnection(limit, connections.withLock(\.self))
    }

    /// A connection that was open and is lost is made again.
    private func judgeReconnection(_ limit: Int, _ connections: Int) throws {
        try Task.checkCancellation()
        guard limit > 0, connections < 4, ledger.facts.sessionClosed == nil, call.timeout == nil,
            let last = lastArrival, last.outcome == .status(101)
        else { return }
        ledger.cover("oracle.7.socket")
        if last.socketEnding == .goingAway || last.socketEnding == .failure || last.socketEnding == .lost {
            ledger.violate(
                7, "call \(call.number) makes no other connection after \(String(describing: last.socketEnding))")
        }
    }

    /// Sends messages that come back, receives those of the server, and waits for the end or closes the connection.
    private func talk(_ socket: WebSocket) async throws {
        var iterator = socket.makeAsyncIterator()
        for number in 0..<call.count {
            let message = WebSocketMessage.text("client \(number) of \(call.number)")
            try await socket.send(message)
            guard let echo = try await iterator.next() else { return try judgeEnd(of: socket, isComplete: false) }
            if echo != message { ledger.violate(2, "call \(call.number) receives \(echo) in place of \(message)") }
        }
        for number in 0..<call.count {
            guard let message = try await iterator.next() else { return try judgeEnd(of: socket, isComplete: false) }
            if message != .text("server \(number)") {
                ledger.violate(2, "call \(call.number) receives \(message) as number \(number)")
            }
        }
        ledger.cover("oracle.2.socket")
        switch lastArrival?.socketEnding {
        case .waits?, .deaf?:
            if call.hasIdempotencyKey { try await socket.close(code: 1001) }
        default:
            if let message = try await iterator.next() {
                ledger.violate(2, "call \(call.number) receives \(message) after the last message")
            }
            try judgeEnd(of: socket, isComplete: true)
        }
    }

    /// A connection ends without an error only if the server has closed it normally, and after all messages.
    private func judgeEnd(of socket: WebSocket, isComplete: Bool) throws {
        try Task.checkCancellation()
        ledger.cover("oracle.2.socketEnd")
        let ending = lastArrival?.socketEnding
        guard isComplete, ending == .normal || ending == .goingAway else {
            return ledger.violate(
                2,
                "the WebSocket of call \(call.number) ends normally, but the server's end is \(String(describing: ending))"
            )
        }
        if socket.closure?.code != (ending == .normal ? 1000 : 1001) {
            ledger.violate(
                2, "the WebSocket of call \(call.number) has the closure \(String(describing: socket.closure))")
        }
    }
}
