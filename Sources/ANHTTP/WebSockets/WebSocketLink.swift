// SPDX-License-Identifier: MIT

import HTTPTypes

/// An established WebSocket connection of a transport, which handles control frames itself and provides the data
/// frames.
package protocol WebSocketLink: Sendable {
    /// The subprotocol that the server chose; `nil` for none.
    var subprotocol: String? { get }
    /// The parameters of `permessage-deflate`; `nil` if it was not negotiated.
    var deflate: WebSocketDeflate? { get }
    /// The closure that the server sent; `nil` if it has sent none.
    var closure: WebSocketClosure? { get }

    /// Returns the next data frames, at least one; `nil` after a normal closure by either side, and in all later calls.
    ///
    /// - Throws: ``TransportError``, or `CancellationError` if the calling task is cancelled, which does not end the
    ///   connection.
    func receive() async throws -> [WebSocketFrame]?

    /// Sends a data frame; returns when few bytes wait to be sent.
    ///
    /// - Parameter makeFrame: Creates the frame. Frames are sent in the order in which they are created.
    func send(_ makeFrame: () throws -> WebSocketFrame) async throws

    /// Closes the connection, and returns when it has ended. Messages that have not been read are discarded.
    ///
    /// - Throws: The error of the connection if it ended before all messages were sent.
    func close(_ closure: WebSocketClosure) async throws

    /// Closes the connection without waiting for an answer, because of a violation of the protocol or because it is no
    /// longer needed.
    func fail(_ violation: WebSocketViolation)

    /// Notes a message that was received or sent; does nothing by default.
    func note(_ message: WebSocketMessage, isSent: Bool)
}

extension WebSocketLink {
    package func note(_ message: WebSocketMessage, isSent: Bool) {}
}

extension TransportError {
    /// The error of a second task that reads a WebSocket connection.
    package static let secondReader = TransportError(
        .internalInconsistency("A WebSocket connection has one reader at a time."))
}

extension Request {
    /// The options of the WebSocket connection that the request becomes; `nil`, the default, for an ordinary request.
    /// Set by a session.
    ///
    /// A transport that supports WebSockets performs the opening handshake (RFC 6455 §4.1). If the server accepts, the
    /// head of the response has the status 101 and the connection, ``ResponseHead/webSocket``. Any other response is
    /// passed on as usual.
    package var webSocketOptions: WebSocketOptions? {
        get { self[WebSocketUpgrade.self] }
        set { self[WebSocketUpgrade.self] = newValue }
    }
}

private enum WebSocketUpgrade: RoleAttribute {
    static var defaultValue: WebSocketOptions? { nil }
}

/// The parameters of a WebSocket connection on which both sides agreed in the opening handshake.
package struct WebSocketAgreement: Hashable, Sendable {
    /// The subprotocol that the server chose; `nil` for none.
    package var subprotocol: String?
    /// The parameters of `permessage-deflate`; `nil` if it was not negotiated.
    package var deflate: WebSocketDeflate?

    /// Creates the parameters of a connection without subprotocol and compression.
    package init() {}

    /// Checks a response with status 101 (RFC 6455 §4.1).
    ///
    /// - Parameters:
    ///   - head: The head of the response.
    ///   - options: The options of the connection, which the request offered.
    ///   - accept: The value of `Sec-WebSocket-Accept` that answers the key of the request.
    package init(
        by head: ResponseHead, for options: WebSocketOptions, accept: String?
    ) throws(WebSocketViolation) {
        func values(_ name: String) -> [String] {
            HTTPField.Name(name).map { head.headers[values: $0] } ?? []
        }
        func hasToken(_ token: String, in name: String) -> Bool {
            HeaderScanner.members(of: values(name)).contains { $0.lowercased() == token }
        }
        guard head.version == .http1_1, hasToken("websocket", in: "Upgrade"), hasToken("upgrade", in: "Connection")
        else { throw WebSocketViolation("the server switched to another protocol than WebSocket") }
        guard let accept, values("Sec-WebSocket-Accept") == [accept] else {
            throw WebSocketViolation("Sec-WebSocket-Accept does not answer the key")
        }
        let chosen = values("Sec-WebSocket-Protocol")
        guard chosen.allSatisfy(options.subprotocols.contains), chosen.count <= 1 else {
            throw WebSocketViolation("the server chose a subprotocol that was not offered")
        }
        subprotocol = chosen.first
        deflate = try .negotiated(values("Sec-WebSocket-Extensions"), isOffered: options.offersCompression)
    }
}

/// The negotiated parameters of the extension `permessage-deflate` (RFC 7692 §7).
package struct WebSocketDeflate: Hashable, Sendable {
    /// Whether the server compresses each message on its own (`server_no_context_takeover`).
    package var serverResets = false
    /// Whether the client compresses each message on its own (`client_no_context_takeover`).
    package var clientResets = false

    package init(serverResets: Bool = false, clientResets: Bool = false) {
        self.serverResets = serverResets
        self.clientResets = clientResets
    }

    /// The offer in `Sec-WebSocket-Extensions`. It does not permit the server to limit the client's window, because
    /// zlib cannot compress with a window of 256 bytes.
    package static let offer = "permessage-deflate"

    /// Parses the values of a response's `Sec-WebSocket-Extensions` fields.
    ///
    /// - Parameters:
    ///   - values: The values of the fields.
    ///   - isOffered: Whether the request offers the extension.
    /// - Returns: The parameters; `nil` if the server accepted no extension.
    package static func negotiated(
        _ values: [String], isOffered: Bool
    ) throws(WebSocketViolation) -> WebSocketDeflate? {
        let extensions = HeaderScanner.members(of: values)
        guard let accepted = extensions.first else { return nil }
        let parts = accepted.split(at: ";", omittingEmptySubsequences: false).map(\.trimmingBlanks)
        guard isOffered, extensions.count == 1, parts[0].lowercased() == offer else {
            throw WebSocketViolation("The server accepted an extension that was not offered: \(accepted.prefix(80)).")
        }
        var result = WebSocketDeflate()
        var names: Set<String> = []
        for part in parts.dropFirst() {
            let pair = part.split(at: "=", maxSplits: 1, omittingEmptySubsequences: false).map(\.trimmingBlanks)
            let name = pair[0].lowercased()
            let isValid =
                switch name {
                case "server_no_context_takeover", "client_no_context_takeover": pair.count == 1
                case "server_max_window_bits": pair.count == 2 && isWindow(pair[1])
                default: false
                }
            guard isValid, names.insert(name).inserted else {
                throw WebSocketViolation("The server chose an invalid parameter of \(offer): \(part.prefix(80)).")
            }
        }
        result.serverResets = names.contains("server_no_context_takeover")
        result.clientResets = names.contains("client_no_context_takeover")
        return result
    }

    /// Returns the maximum size of a message of `size` bytes in compressed form. Without compressible bytes, zlib adds up
    /// to an eighth to them, and a few bytes to each block. See deflateBound in zlib.h.
    package static func bound(of size: Int) -> Int {
        let (bound, overflows) = size.addingReportingOverflow(size / 8 + size / 64 + 64)
        return overflows ? .max : bound
    }

    /// The maximum number of bytes by which a fragment that is flushed (RFC 7692 §7.2.1) is longer than its part of a
    /// message that is not: an empty block, and the beginning of another one.
    package static let flushSize = 16

    /// Whether a value is a base-2 logarithm of a window size, 8 to 15, possibly quoted.
    private static func isWindow(_ value: String) -> Bool {
        let isQuoted = value.count > 2 && value.hasPrefix("\"") && value.hasSuffix("\"")
        let digits = isQuoted ? value.dropFirst().dropLast() : value[...]
        return ["8", "9", "10", "11", "12", "13", "14", "15"].contains(digits)
    }
}
