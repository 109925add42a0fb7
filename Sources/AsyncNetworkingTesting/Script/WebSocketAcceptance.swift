// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
import FoundationEssentials

extension HeaderPairs {
    /// Returns the fields of a response that accepts a WebSocket connection (RFC 6455 §4.2.2).
    ///
    /// - Parameters:
    ///   - key: The `Sec-WebSocket-Key` of the request.
    ///   - headers: Fields that are sent in addition, or in place of those with the same name.
    static func accepting(webSocketKey key: String, adding headers: HeaderPairs) -> HeaderPairs {
        let fields: [HeaderPair] = [
            HeaderPair("Upgrade", "websocket"), HeaderPair("Connection", "Upgrade"),
            HeaderPair("Sec-WebSocket-Accept", webSocketAccept(for: key)),
        ]
        return HeaderPairs(fields.filter { headers.values($0.name).isEmpty } + Array(headers))
    }

    /// Returns the `Sec-WebSocket-Accept` that answers a key.
    static func webSocketAccept(for key: String) -> String {
        MessageDigest.webSocketAccept(for: key).map { Data($0).base64EncodedString() } ?? ""
    }
}
