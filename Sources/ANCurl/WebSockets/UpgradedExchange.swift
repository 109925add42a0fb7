// SPDX-License-Identifier: MIT

import ANHTTP

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
        exchange.engine.post(.serveWebSocket(exchange))
    }
}
