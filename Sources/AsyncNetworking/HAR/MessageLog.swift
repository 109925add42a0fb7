// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
import FoundationEssentials

/// The messages of a WebSocket connection, for an archive.
final class MessageLog: Sendable {
    private let limit: Int
    private let state = Lock(State())

    private struct State: Sendable {
        var messages: [HAR.Message] = []
        var size = 0
        var omitted = 0
    }

    /// Creates a log without messages.
    ///
    /// - Parameter limit: The size in bytes up to which messages are recorded, all together.
    init(limit: Int) {
        self.limit = limit
    }

    /// The messages, and the number of those that had no room.
    var content: (messages: [HAR.Message], omitted: Int) { state.withLock { ($0.messages, $0.omitted) } }

    func add(_ message: WebSocketMessage, isSent: Bool) {
        let recorded = HAR.Message(message, isSent: isSent, at: Date.now)
        state.withLock { state in
            state.size += recorded.data.utf8.count
            if state.omitted == 0, state.size <= limit {
                state.messages.append(recorded)
            } else {
                state.omitted += 1
            }
        }
    }

    /// The attribute of a request whose connection is observed.
    enum OfRequest: CallAttribute {
        static var defaultValue: MessageLog? { nil }
    }
}

/// A connection whose messages are observed.
struct ObservedLink: WebSocketLink {
    let base: any WebSocketLink
    let log: MessageLog

    var subprotocol: String? { base.subprotocol }
    var deflate: WebSocketDeflate? { base.deflate }
    var closure: WebSocketClosure? { base.closure }

    func receive() async throws -> [WebSocketFrame]? { try await base.receive() }
    func send(_ makeFrame: () throws -> WebSocketFrame) async throws { try await base.send(makeFrame) }
    func close(_ closure: WebSocketClosure) async throws { try await base.close(closure) }
    func fail(_ violation: WebSocketViolation) { base.fail(violation) }

    func note(_ message: WebSocketMessage, isSent: Bool) {
        base.note(message, isSent: isSent)
        log.add(message, isSent: isSent)
    }
}
