// SPDX-License-Identifier: MIT

package import ANHTTP
import ANSystem
import FoundationEssentials
import HTTPTypes

/// The opening handshake of a client's WebSocket connection (RFC 6455 §4.1), without I/O.
package struct WebSocketHandshake {
    private let options: WebSocketOptions
    private let key: String

    /// Creates a handshake with a random key.
    package init(_ options: WebSocketOptions) {
        var generator = SystemRandomNumberGenerator()
        self.init(options, key: (0..<16).map { _ in UInt8.random(in: .min ... .max, using: &generator) })
    }

    /// Creates a handshake with a key of 16 bytes.
    package init(_ options: WebSocketOptions, key: [UInt8]) {
        self.options = options
        self.key = Data(key).base64EncodedString()
    }

    /// Returns the head of the request.
    ///
    /// - Parameter cookies: The stored cookies for the URL, as in a `Cookie` field; `nil` for none.
    /// - Throws: ``ANHTTP/TransportError/Reason/invalidRequest(_:)`` for a field that the handshake sets, a method other
    ///   than `GET`, a body, or a subprotocol that is not a token or occurs twice.
    package func head(of request: Request, cookies: String?) throws(TransportError) -> [UInt8] {
        guard request.method == .get, case .none = request.body.content else {
            throw Self.error("a WebSocket connection begins with GET and without a body.")
        }
        for name in options.subprotocols where HTTPField.Name(name) == nil {
            throw Self.error("“\(name)” is not a valid subprotocol.")
        }
        guard Set(options.subprotocols).count == options.subprotocols.count else {
            throw Self.error("a subprotocol is offered twice.")
        }
        let url = request.url
        var bytes = Array("GET \(Self.target(of: url)) HTTP/1.1\r\n".utf8)
        if !request.headers.contains(.host) { Self.append("Host", try url.checkedAuthority(), to: &bytes) }
        var cookies = cookies.map { [$0] } ?? []
        for field in request.headers where field.name != .proxyAuthorization {
            guard !Self.isOfHandshake(field.name) else {
                throw Self.error("the handshake of a WebSocket connection sets \(field.name.rawName) itself.")
            }
            guard field.name != .cookie else {
                cookies.append(field.value)
                continue
            }
            bytes += Array("\(field.name.rawName): ".utf8)
            unsafe field.withUnsafeBytesOfValue { unsafe bytes.append(contentsOf: $0) }
            bytes += Array("\r\n".utf8)
        }
        if !cookies.isEmpty { Self.append("Cookie", cookies.joined(separator: "; "), to: &bytes) }
        if let authorization = try Self.authorization(of: request) {
            Self.append("Authorization", authorization, to: &bytes)
        }
        Self.append("Upgrade", "websocket", to: &bytes)
        Self.append("Connection", "Upgrade", to: &bytes)
        Self.append("Sec-WebSocket-Key", key, to: &bytes)
        Self.append("Sec-WebSocket-Version", "13", to: &bytes)
        if !options.subprotocols.isEmpty {
            Self.append("Sec-WebSocket-Protocol", options.subprotocols.joined(separator: ", "), to: &bytes)
        }
        if options.offersCompression {
            Self.append("Sec-WebSocket-Extensions", WebSocketDeflate.offer, to: &bytes)
        }
        return bytes + Array("\r\n".utf8)
    }

    /// Checks a response with status 101 (RFC 6455 §4.1).
    package func agreement(by head: ResponseHead) throws(WebSocketViolation) -> WebSocketAgreement {
        let accept = MessageDigest.webSocketAccept(for: key).map { Data($0).base64EncodedString() }
        return try WebSocketAgreement(by: head, for: options, accept: accept)
    }

    private static func error(_ reason: String) -> TransportError { TransportError(.invalidRequest(.option(reason))) }

    private static func append(_ name: String, _ value: String, to bytes: inout [UInt8]) {
        bytes += Array("\(name): \(value)\r\n".utf8)
    }

    /// Returns the path with the query, which is not empty (RFC 9112 §3.2.1).
    private static func target(of url: URL) -> String {
        let path = url.path(percentEncoded: true)
        return (path.isEmpty ? "/" : path) + (url.query(percentEncoded: true).map { "?\($0)" } ?? "")
    }

    /// Returns the value of `Authorization` from the URL's user information; `nil` if there is none or the request has
    /// the field.
    private static func authorization(of request: Request) throws(TransportError) -> String? {
        guard !request.headers.contains(.authorization), let user = Credential(userOf: request.url) else { return nil }
        var fields = HTTPFields()
        try fields.setBasicAuthorization(user)
        return fields[.authorization]
    }

    /// Whether the handshake sets a field, or the field frames a body.
    private static func isOfHandshake(_ name: HTTPField.Name) -> Bool {
        switch name {
        case .connection, .upgrade, .contentLength, .transferEncoding, .expect: true
        default: name.canonicalName.hasPrefix("sec-websocket-")
        }
    }
}
