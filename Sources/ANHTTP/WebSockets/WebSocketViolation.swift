// SPDX-License-Identifier: MIT

/// The reason why a WebSocket connection must fail, with the status code that the server receives.
package struct WebSocketViolation: Error, Hashable, Sendable {
    /// The status code (RFC 6455 §7.4.1): 1002 for a violation of the protocol, 1007 for invalid text, 1009 for a
    /// message above the limit.
    package var code: UInt16
    /// The reason in words.
    package var reason: String

    package init(_ reason: String, code: UInt16 = 1002) {
        self.code = code
        self.reason = reason
    }

    /// Creates the reason for a message above the limit.
    package static func tooLarge(limit: Int) -> WebSocketViolation {
        WebSocketViolation("A message has more than \(limit) bytes.", code: 1009)
    }

    /// The reason of the error for the program.
    ///
    /// - Parameter limit: The maximum size of a message.
    package func failure(limit: Int) -> TransportError.Reason {
        code == 1009 ? .responseTooLarge(.body(limit: limit)) : .invalidResponse(.webSocket(reason))
    }
}
