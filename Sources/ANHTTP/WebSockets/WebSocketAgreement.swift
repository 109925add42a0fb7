// SPDX-License-Identifier: MIT

import HTTPTypes

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
