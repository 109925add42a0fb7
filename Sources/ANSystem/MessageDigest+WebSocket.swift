// SPDX-License-Identifier: MIT

extension MessageDigest {
    /// Returns the bytes of the `Sec-WebSocket-Accept` that answers a `Sec-WebSocket-Key`, before Base64 (RFC 6455
    /// §4.2.2); `nil` if OpenSSL failed.
    package static func webSocketAccept(for key: String) -> [UInt8]? {
        let digest = MessageDigest(.sha1)
        let text = Array((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").utf8)
        digest.update(unsafe text.span.bytes)
        return digest.value
    }
}
