// SPDX-License-Identifier: MIT

import ANCurl
import ANHTTP
import FoundationEssentials
import HTTPTypes
import Testing

/// The opening handshake of RFC 6455 §4.1.
@Suite struct WebSocketHandshakeTests {
    /// The key of the example in RFC 6455 §1.3, `dGhlIHNhbXBsZSBub25jZQ==`.
    private static let key = Array("the sample nonce".utf8)

    private func head(
        _ text: String, _ options: WebSocketOptions = WebSocketOptions(), cookies: String? = nil,
        _ change: (inout Request) -> Void = { _ in }
    ) throws -> [String] {
        var request = Request(url: try #require(URL(string: text)))
        change(&request)
        let bytes = try WebSocketHandshake(options, key: Self.key).head(of: request, cookies: cookies)
        return String(decoding: bytes, as: UTF8.self).components(separatedBy: "\r\n")
    }

    private static let fields = [
        "Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        "Sec-WebSocket-Version: 13",
    ]

    @Test(arguments: [
        ("http://a.example", "/", "a.example"), ("http://a.example:80/x?y=%20#z", "/x?y=%20", "a.example"),
        ("http://a.example:443/", "/", "a.example:443"), ("https://a.example:443/", "/", "a.example"),
        ("https://[::1]:8443/%C3%A4", "/%C3%A4", "[::1]:8443"), ("http://a.example?q", "/?q", "a.example"),
        ("http://[fe80::1%25eth0]/", "/", "[fe80::1]"), ("http://127.1:81/", "/", "127.0.0.1:81"),
    ])
    func `the head has the target and the host of the URL`(url: String, target: String, host: String) throws {
        #expect(try head(url) == ["GET \(target) HTTP/1.1", "Host: \(host)"] + Self.fields + ["", ""])
    }

    @Test func `an international name that is not in its ASCII form is refused`() {
        #expect(throws: TransportError.self) { try head("http://b%C3%BCcher.example/") }
    }

    @Test func `the head has the request's fields, the cookies and the offers`() throws {
        var options = WebSocketOptions()
        options.subprotocols = ["chat.v2", "chat"]
        options.offersCompression = true
        let lines = try head("http://me:p%40ss@a.example/", options, cookies: "a=1; b=2") {
            $0.headers[.userAgent] = "x"
            $0.headers[.cookie] = "c=3"
            $0.headers[.proxyAuthorization] = "for the proxy"
        }
        #expect(
            lines == [
                "GET / HTTP/1.1", "Host: a.example", "User-Agent: x", "Cookie: a=1; b=2; c=3",
                "Authorization: Basic bWU6cEBzcw==",
            ] + Self.fields + [
                "Sec-WebSocket-Protocol: chat.v2, chat", "Sec-WebSocket-Extensions: permessage-deflate", "", "",
            ])
    }

    @Test func `the request's own Host and Authorization are sent`() throws {
        let lines = try head("http://me:secret@a.example/") {
            $0.headers[.authorization] = "Bearer t"
            if let host = HTTPField.Name(parsed: "host") { $0.headers[host] = "b.example" }
        }
        #expect(lines.filter { $0.hasPrefix("Authorization") } == ["Authorization: Bearer t"])
        #expect(lines.filter { $0.lowercased().hasPrefix("host:") }.count == 1)
        #expect(lines.contains { $0.lowercased() == "host: b.example" })
    }

    @Test(arguments: [
        "Connection", "Upgrade", "Sec-WebSocket-Key", "sec-websocket-protocol", "Sec-WebSocket-Extensions",
        "Content-Length", "Transfer-Encoding", "Expect",
    ])
    func `a field that the handshake sets is refused`(name: String) throws {
        #expect(throws: TransportError.self) {
            try head("http://a.example/") { request in
                if let name = HTTPField.Name(name) { request.headers[name] = "x" }
            }
        }
    }

    @Test func `a method other than GET, a body and an invalid subprotocol are refused`() throws {
        #expect(throws: TransportError.self) { try head("http://a.example/") { $0.method = .post } }
        #expect(throws: TransportError.self) { try head("http://a.example/") { $0.body = .bytes(Data()) } }
        var options = WebSocketOptions()
        for subprotocols in [["a b"], ["a", "b", "a"]] {
            options.subprotocols = subprotocols
            #expect(throws: TransportError.self) { try head("http://a.example/", options) }
        }
    }

    @Test func `each handshake has another key`() throws {
        let request = Request(url: try #require(URL(string: "http://a.example/")))
        let heads = try (0..<2).map { _ in
            try WebSocketHandshake(WebSocketOptions()).head(of: request, cookies: nil)
        }
        #expect(heads[0] != heads[1])
        #expect(heads[0].count == heads[1].count)
    }

    // MARK: The response

    private static let accepted: [(String, String)] = [
        ("Upgrade", "WebSocket"), ("Connection", "keep-alive, Upgrade"),
        ("Sec-WebSocket-Accept", "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="),
    ]

    private func agreement(
        _ fields: [(String, String)], version: HTTPVersion = .http1_1, compression: Bool = false
    ) throws -> WebSocketAgreement {
        var options = WebSocketOptions()
        options.subprotocols = ["chat", "other"]
        options.offersCompression = compression
        var head = ResponseHead(
            status: .init(code: 101), version: version, url: try #require(URL(string: "http://a.example/")))
        for (name, value) in fields {
            head.headers.append(HTTPField(name: try #require(HTTPField.Name(name)), value: value))
        }
        return try WebSocketHandshake(options, key: Self.key).agreement(by: head)
    }

    @Test func `the example of the RFC is accepted`() throws {
        #expect(try agreement(Self.accepted).subprotocol == nil)
        #expect(try agreement(Self.accepted).deflate == nil)
        #expect(try agreement(Self.accepted + [("Sec-WebSocket-Protocol", "other")]).subprotocol == "other")
        let compressed = Self.accepted + [("Sec-WebSocket-Extensions", "permessage-deflate")]
        #expect(try agreement(compressed, compression: true).deflate == WebSocketDeflate())
    }

    @Test(arguments: [
        ", permessage-deflate", "permessage-deflate ,, ", ",\tpermessage-deflate;server_no_context_takeover,",
    ])
    func `empty members of the list of extensions are ignored`(list: String) throws {
        let fields = Self.accepted + [("Sec-WebSocket-Extensions", list), ("Sec-WebSocket-Extensions", " ,")]
        let expected = WebSocketDeflate(serverResets: list.contains("server"))
        #expect(try agreement(fields, compression: true).deflate == expected)
        #expect(throws: WebSocketViolation.self) {
            try agreement(fields + [("Sec-WebSocket-Extensions", "permessage-deflate")], compression: true)
        }
    }

    @Test(
        arguments: [
            Array(accepted.dropFirst()), Array(accepted.dropLast()), [accepted[0], accepted[2]],
            [("Upgrade", "h2c")] + accepted.dropFirst(),
            accepted.dropLast() + [("Sec-WebSocket-Accept", "s3pPLMBiTxaQ9kYGzzhZRbK+xOO=")],
            accepted + [("Sec-WebSocket-Accept", "x")],
            accepted + [("Sec-WebSocket-Protocol", "third")],
            accepted + [("Sec-WebSocket-Protocol", "chat"), ("Sec-WebSocket-Protocol", "other")],
            accepted + [("Sec-WebSocket-Extensions", "permessage-deflate")],
        ] as [[(String, String)]])
    func `a response that does not fit the request is refused`(fields: [(String, String)]) {
        #expect(throws: WebSocketViolation.self) { try agreement(fields) }
    }

    @Test func `a response of HTTP 1_0 is refused`() {
        #expect(throws: WebSocketViolation.self) { try agreement(Self.accepted, version: .http1_0) }
    }
}
