// SPDX-License-Identifier: MIT

import ANCurl
import ANHTTP
import AsyncNetworkingTesting
import FoundationEssentials
import HTTPTypes
import Testing

@Suite(.timeLimit(.minutes(5))) struct HeadersTests {
    private static let own = HTTPField.Name("X-Own")

    @Test func `fields are sent in order, with repeated names apart and empty values kept`() async throws {
        try await StubServer.with { server in
            server.fallback { _ in .text("") }
            let own = try #require(Self.own)
            let empty = try #require(HTTPField.Name("X-Empty"))
            var headers = HTTPFields()
            headers.append(HTTPField(name: own, value: "1"))
            headers.append(HTTPField(name: empty, value: ""))
            headers.append(HTTPField(name: own, value: "2"))
            headers.append(HTTPField(name: own, value: "a: b; c"))
            _ = try await CurlTransport().collect(server.request(headers: headers))
            let sent = try await server.requests(count: 1)[0].headers.filter { $0.name.hasPrefix("X-") }
            #expect(
                sent == [
                    HeaderPair("X-Own", "1"), HeaderPair("X-Empty", ""), HeaderPair("X-Own", "2"),
                    HeaderPair("X-Own", "a: b; c"),
                ])
        }
    }

    @Test func `a thousand fields and a long value are sent`() async throws {
        try await StubServer.with { server in
            server.fallback { _ in .text("") }
            let own = try #require(Self.own)
            var headers = HTTPFields()
            for number in 0..<1000 { headers.append(HTTPField(name: own, value: "\(number)")) }
            headers.append(HTTPField(name: own, value: String(repeating: "v", count: 60_000)))
            let transport = try CurlTransport()
            _ = try await transport.collect(server.request(headers: headers))
            _ = try await transport.collect(server.request())
            let requests = try await server.requests(count: 2)
            #expect(
                requests[0].headers.values("X-Own") == (0..<1000).map(String.init) + [
                    String(repeating: "v", count: 60_000)
                ])
            #expect(requests[1].headers.values("X-Own") == [])
        }
    }

    @Test func `Host, Accept and User-Agent can be chosen`() async throws {
        try await StubServer.with { server in
            server.fallback { _ in .text("") }
            let host = try #require(HTTPField.Name("Host"))
            _ = try await CurlTransport().collect(
                server.request(headers: [host: "example.test", .accept: "text/plain", .userAgent: "me/1"]))
            let headers = try await server.requests(count: 1)[0].headers
            #expect(headers.values("Host") == ["example.test"])
            #expect(headers.values("Accept") == ["text/plain"])
            #expect(headers.values("User-Agent") == ["me/1"])
        }
    }

    /// Debian sid's libcurl (8.23) lacks NTLM.
    @Test(
        arguments: [AuthenticationScheme.digest, .ntlm].filter(try CurlTransport().authenticationSchemes.contains),
        ["ada\r\nX-Own: 1", "ada\nX-Own: 1", "ada\0"])
    func `a user name with a control character is refused, for a server and a proxy`(
        scheme: AuthenticationScheme, user: String
    ) async throws {
        let credential = Credential(user: user, password: "lovelace", schemes: [scheme])
        try await StubServer.with { server in
            server.fallback { _ in .text("") }
            let transport = try CurlTransport()
            var request = server.request()
            var authentication = TransportAuthentication()
            authentication.server = .init(credential, by: scheme)
            request.transportAuthentication = authentication
            let refusal = try await transport.failure(request).reason
            #expect(refusal == .invalidRequest(.headerValue(name: "Authorization")))
            authentication.server = nil
            authentication.proxy = .init(credential, by: scheme)
            request.transportAuthentication = authentication
            let proxied = server.request(
                options: .with {
                    $0.proxy = .proxy(
                        Proxy(.http, host: "127.0.0.1", port: server.endpoint.port, credential: credential))
                })
            for request in [request, proxied] {
                let refusal = try await transport.failure(request).reason
                #expect(refusal == .invalidRequest(.headerValue(name: "Proxy-Authorization")))
            }
            #expect(server.activity.requests.isEmpty)
        }
    }

    @Test(arguments: [
        AWSSignature(accessKeyID: "AK\r\nX-Own: 1", secretAccessKey: "s", region: "r", service: "s3"),
        AWSSignature(accessKeyID: "AK", secretAccessKey: "s\0", region: "r", service: "s3"),
        AWSSignature(accessKeyID: "AK", secretAccessKey: "s", sessionToken: "t\n", region: "r", service: "s3"),
        AWSSignature(accessKeyID: "AK", secretAccessKey: "s", region: "r\r\nX-Own: 1", service: "s3"),
        AWSSignature(accessKeyID: "AK", secretAccessKey: "s", region: "r", service: "s3\u{7F}"),
    ])
    func `a signature with a control character is refused`(signature: AWSSignature) async throws {
        try await StubServer.with { server in
            server.fallback { _ in .text("") }
            var request = server.request()
            request.transportAuthentication = TransportAuthentication(signature)
            let refusal = try await CurlTransport().failure(request).reason
            let field = signature.sessionToken == nil ? "Authorization" : "x-amz-security-token"
            #expect(refusal == .invalidRequest(.headerValue(name: field)))
            #expect(server.activity.requests.isEmpty)
        }
    }

    /// The proxy stands for servers of any name.
    @Test(
        arguments: [
            "a.example", "A.Example.", "ex%61mple.test:81", "127.1", "0x7f.1:81", "[::1]", "[fe80::1%25eth0]:81",
            "[0:0:0:0:0:0:0:1]",
        ])
    func `the host that is signed is the one that is sent`(authority: String) async throws {
        try await StubServer.with { proxy in
            proxy.fallback { _ in .text("") }
            var request = Request(
                url: try #require(URL(string: "http://\(authority)/")),
                options: .with { $0.proxy = .proxy(Proxy(.http, host: "127.0.0.1", port: proxy.endpoint.port)) })
            let transport = try CurlTransport()
            _ = try await transport.collect(request)
            request.transportAuthentication = TransportAuthentication(
                AWSSignature(accessKeyID: "id", secretAccessKey: "key", region: "r", service: "s3"))
            _ = try await transport.collect(request)
            let hosts = proxy.activity.requests.map { $0.headers.values("Host") }
            #expect(hosts == [[request.url.authority], [request.url.authority]])
        }
    }

    @Test func `a field for a proxy is not signed, because the server does not get it`() async throws {
        try await StubServer.with { server in
            server.fallback { _ in .text("") }
            var request = server.request(
                headers: [.proxyAuthorization: "Bearer a", .accept: "b"], options: .with { $0.proxy = .none })
            request.transportAuthentication = TransportAuthentication(
                AWSSignature(accessKeyID: "id", secretAccessKey: "key", region: "r", service: "s3"))
            _ = try await CurlTransport().collect(request)
            let value = try #require(server.activity.requests.first?.headers["Authorization"])
            #expect(value.contains("SignedHeaders=accept;host;x-amz-content-sha256;x-amz-date,"))
        }
    }

    @Test func `codings are asked for by a field that is signed only if it is the request's own`() async throws {
        try await StubServer.with { server in
            server.fallback { _ in .text("") }
            let transport = try CurlTransport()
            for headers in [[:], [.acceptEncoding: "gzip"]] as [HTTPFields] {
                var request = server.request(headers: headers)
                request.transportAuthentication = TransportAuthentication(
                    AWSSignature(accessKeyID: "id", secretAccessKey: "key", region: "r", service: "s3"))
                _ = try await transport.collect(request)
            }
            let sent = server.activity.requests
            #expect(sent.map { $0.headers["Accept-Encoding"] } == [ContentDecoder.supportedCodings, "gzip"])
            let isSigned = sent.map { $0.headers["Authorization"]?.contains("SignedHeaders=accept-encoding;") }
            #expect(isSigned == [false, true])
        }
    }

    /// libcurl sends the ASCII form, `xn--bcher-kva.example`.
    @Test func `an international name that is not in its ASCII form is not signed`() async throws {
        try await StubServer.with { server in
            var request = Request(url: try #require(URL(string: "http://b%C3%BCcher.example/")))
            request.transportAuthentication = TransportAuthentication(
                AWSSignature(accessKeyID: "id", secretAccessKey: "key", region: "r", service: "s3"))
            let reason = try await CurlTransport().failure(request).reason
            #expect("\(reason)".contains("“bücher.example” is not ASCII"))
        }
    }

    /// libcurl would ask for a 100 itself before a body of more than 1 MiB.
    @Test(arguments: [nil, .seconds(3600)] as [Duration?])
    func `a signed upload asks for a 100 only if it should, and not again after a 417`(timeout: Duration?) async throws
    {
        try await StubServer.with { server in
            let refusal = Script([.reply(Reply(status: 417, body: .string("refused")))], readsBodyFirst: false)
            server.fallback { $0.headers["Expect"] == nil ? .text("stored") : refusal }
            var request = server.request(
                method: .put, body: .bytes(Data(count: 2 << 20)),
                options: .with { $0.expectContinueTimeout = timeout })
            request.transportAuthentication = TransportAuthentication(
                AWSSignature(accessKeyID: "AK", secretAccessKey: "s", region: "r", service: "s3"))
            #expect(try await CurlTransport().text(request) == "stored")
            let expectations = try await server.requests(count: timeout == nil ? 1 : 2).map { $0.headers["Expect"] }
            #expect(expectations == (timeout == nil ? [nil] : ["100-continue", nil]))
        }
    }

    private static let optionsWithNUL = {
        var (path, interface, host, address) = (
            ConnectionOptions(), ConnectionOptions(), ConnectionOptions(), ConnectionOptions()
        )
        path.unixSocketPath = "/tmp/a\0b"
        interface.localInterface = "lo\0x"
        host.hostOverrides = [.init(host: "a\0b", port: 80, address: "127.0.0.1", addressPort: 80)]
        address.hostOverrides = [.init(host: "a", port: 80, address: "127.0.0.1\0.example", addressPort: 80)]
        return [path, interface, host, address]
    }()

    @Test(arguments: [(0, 80), (-1, 80), (65_536, 80), (80, 0), (80, .max), (.min, 80)])
    func `a port of a host override that is none is refused`(port: Int, addressPort: Int) async throws {
        try await StubServer.with { server in
            var connection = ConnectionOptions()
            connection.hostOverrides = [
                .init(host: "a", port: port, address: "127.0.0.1", addressPort: addressPort)
            ]
            let failure = try await CurlTransport().failure(
                server.request(options: .with { $0.connection = connection }))
            guard case .invalidRequest = failure.reason else { throw failure }
        }
    }

    @Test(arguments: optionsWithNUL)
    func `an option with a NUL, at which libcurl would cut it, is refused`(connection: ConnectionOptions) async throws {
        try await StubServer.with { server in
            server.fallback { _ in .text("") }
            let failure = try await CurlTransport().failure(
                server.request(options: .with { $0.connection = connection }))
            guard case .invalidRequest = failure.reason else { throw failure }
        }
    }

    @Test func `fields are received in order, with repeated names apart and empty values kept`() async throws {
        try await StubServer.with { server in
            server.enqueue(
                .reply(headers: ["Set-Cookie": "a=1", "X-Empty": "", "Set-Cookie": "b=2", "X-Blanks": "  x  "]))
            let (head, _) = try await CurlTransport().collect(server.request())
            #expect(
                head.headers.map { "\($0.name.rawName)=\($0.value)" } == [
                    "Set-Cookie=a=1", "X-Empty=", "Set-Cookie=b=2", "X-Blanks=x", "Content-Length=0",
                ])
        }
    }

    @Test func `a folded line continues the value before it`() async throws {
        try await StubServer.with { server in
            server.enqueue(.raw("HTTP/1.1 200 OK\r\nX-Own: one\r\n  two\r\n\tthree\r\nContent-Length: 0\r\n\r\n"))
            let (head, _) = try await CurlTransport().collect(server.request())
            #expect(head.headers[try #require(Self.own)] == "one two three")
        }
    }

    @Test func `lines may end with LF alone`() async throws {
        try await StubServer.with { server in
            server.enqueue(.raw("HTTP/1.1 200 OK\nX-Own: one\nContent-Length: 2\n\nok"))
            let (head, body) = try await CurlTransport().collect(server.request())
            #expect(head.headers[try #require(Self.own)] == "one")
            #expect(body == Data("ok".utf8))
        }
    }

    @Test func `values beyond ASCII survive`() async throws {
        try await StubServer.with { server in
            server.enqueue(.reply(headers: ["X-Own": "grün"]))
            let (head, _) = try await CurlTransport().collect(server.request())
            #expect(head.headers[try #require(Self.own)] == "grün")
        }
    }

    @Test func `interim responses are events with their fields`() async throws {
        try await StubServer.with { server in
            server.enqueue(
                Script([
                    .informational(103, headers: ["Link": "</a.css>"]), .informational(102),
                    .informational(103, headers: ["Link": "</b.css>"]), .reply(Reply(body: .string("ok"))),
                ]))
            let recorder = EventRecorder()
            let (head, body) = try await CurlTransport().collect(server.request(), reporting: recorder)
            #expect(head.status.code == 200)
            #expect(head.headers[try #require(HTTPField.Name("Link"))] == nil)
            #expect(body == Data("ok".utf8))
            let interim = recorder.informationalHeads
            #expect(interim.map(\.status.code) == [103, 102, 103])
            #expect(interim.map { $0.headers.map(\.value) } == [["</a.css>"], [], ["</b.css>"]])
        }
    }

    @Test func `trailers are known after the body, and not before`() async throws {
        try await StubServer.with { server in
            server.enqueue(
                .reply(body: .string("body"), framing: .chunked, trailers: ["X-Sum": "1", "X-Sum": "2", "X-Empty": ""]))
            try await CurlTransport().stream(server.request()) { head, body in
                #expect(body.trailers == nil)
                for try await _ in body {}
                let trailers = try #require(body.trailers)
                #expect(trailers.map { "\($0.name.rawName)=\($0.value)" } == ["X-Sum=1", "X-Sum=2", "X-Empty="])
                #expect(head.headers[try #require(HTTPField.Name("X-Sum"))] == nil)
            }
        }
    }

    @Test func `trailers that arrive while the reader has no room are fields of their own`() async throws {
        try await StubServer.with { server in
            server.fallback { _ in
                .reply(
                    body: .bytes(Data(count: 100_000)), framing: .chunked, trailers: ["X-Sum": "1", "X-Other": "2"])
            }
            let transport = try CurlTransport()
            let options = TransferOptions.with { $0.streamBufferSize = 1 }
            for _ in 0..<5 {
                try await transport.stream(server.request(options: options)) { head, body in
                    for try await _ in body {}
                    #expect(body.trailers?.map { "\($0.name.rawName)=\($0.value)" } == ["X-Sum=1", "X-Other=2"])
                }
            }
        }
    }

    @Test func `very many trailer lines that arrive while the reader has no room are harmless`() async throws {
        try await StubServer.with { server in
            let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n186A0\r\n"
            let trailers = "\r\n0\r\nX: 1\r\n" + String(repeating: " \n", count: 60_000) + "\r\n"
            server.fallback { _ in
                Script([.send(Data(head.utf8) + Data(count: 100_000) + Data(trailers.utf8)), .hang])
            }
            let options = TransferOptions.with { $0.streamBufferSize = 1 }
            try await CurlTransport().stream(server.request(options: options)) { _, body in
                // Depending on the version of libcurl, folded lines are refused.
                do { for try await _ in body {} } catch is TransportError {}
            }
        }
    }

    @Test(arguments: [RequestBody.none, .string("body"), .stream(Generated(count: 4), length: 4)])
    func `trailers are sent after a body of any kind`(body: RequestBody) async throws {
        try await StubServer.with { server in
            server.fallback { _ in .text("ok") }
            let sum = try #require(HTTPField.Name("X-Sum"))
            var request = server.request(method: .post, body: body)
            request.trailers = { [sum: "42"] }
            let transport = try CurlTransport()
            #expect(try await transport.text(request) == "ok")
            #expect(try await transport.text(server.request(method: .post, body: .string("next"))) == "ok")
            let received = try await server.requests(count: 2)
            #expect(received[0].headers["Transfer-Encoding"] == "chunked")
            #expect(received[0].trailers == ["X-Sum": "42"])
            #expect(received[0].bodyLength == body.length)
            #expect(received[1].headers["Transfer-Encoding"] == nil)
            #expect(received[1].trailers == [:])
        }
    }

    @Test(arguments: ["Content-Length", "Transfer-Encoding", "host", "Authorization", "Content-Type", "Trailer"])
    func `a field that frames, routes, authenticates or describes a message is no trailer`(name: String) async throws {
        try await StubServer.with { server in
            server.fallback { _ in .text("ok") }
            var request = server.request(method: .post, body: .string("body"))
            let field = try #require(HTTPField.Name(name))
            request.trailers = { [field: "42"] }
            let failure = try await CurlTransport().failure(request)
            guard case .requestBody(.source(let error as TransportError)) = failure.reason,
                case .invalidRequest = error.reason
            else {
                Issue.record("\(failure)")
                return
            }
        }
    }

    @Test func `the server's 100 lets the body go`() async throws {
        try await StubServer.with { server in
            server.enqueue(.echo)
            let options = TransferOptions.with { $0.expectContinueTimeout = .seconds(3600) }
            let recorder = EventRecorder()
            let request = server.request(method: .put, body: .string("hello"), options: options)
            _ = try await CurlTransport().collect(request, reporting: recorder)
            let received = try await server.requests(count: 1)[0]
            #expect(received.headers.values("Expect") == ["100-continue"])
            #expect(received.text == "hello")
            #expect(recorder.informationalHeads.map(\.status.code) == [100])
        }
    }

    @Test func `without a 100 the body goes after the wait`() async throws {
        try await StubServer.with { server in
            server.enqueue(.echo.expecting(.withhold))
            let options = TransferOptions.with { $0.expectContinueTimeout = .milliseconds(50) }
            _ = try await CurlTransport().collect(
                server.request(method: .post, body: .string("hello"), options: options))
            #expect(try await server.requests(count: 1)[0].text == "hello")
        }
    }

    @Test(arguments: [413, 400, 401, 303, 300])
    func `a refusal instead of a 100 is the response, and the body stays here`(status: Int) async throws {
        try await StubServer.with { server in
            server.enqueue(.refusingBody(status))
            server.fallback { _ in .text("next") }
            let options = TransferOptions.with { $0.expectContinueTimeout = .seconds(3600) }
            let transport = try CurlTransport()
            let request = server.request(method: .post, body: .string("hello"), options: options)
            #expect(try await transport.collect(request).head.status.code == status)
            let received = try await server.requests(count: 1)[0]
            #expect(received.bodyLength == 0)
            #expect(try await transport.text(request) == "next")
            let requests = try await server.requests(count: 2)
            #expect(requests.count == 2)
            #expect(requests[1].headers.values("Expect") == ["100-continue"])
            #expect(requests[1].text == "hello")
        }
    }

    /// RFC 9110 §10.1.1.
    @Test(arguments: [true, false], [true, false])
    func `a refused expectation is left out of a second request`(closes: Bool, isStreamed: Bool) async throws {
        try await StubServer.with { server in
            let refusal = Reply(status: 417, headers: closes ? ["Connection": "close"] : [:], body: .string("refused"))
            server.enqueue(Script([.reply(refusal)], readsBodyFirst: false))
            server.fallback { .text("answer to \($0.text)") }
            let options = TransferOptions.with { $0.expectContinueTimeout = .seconds(3600) }
            let feed = Feed()
            feed.yield("hello")
            feed.finish()
            let body: RequestBody = isStreamed ? .stream(feed) : .string("hello")
            let request = server.request(method: .post, body: body, options: options)
            #expect(try await CurlTransport().text(request) == "answer to hello")
            let requests = try await server.requests(count: 2)
            #expect(requests.map { $0.headers["Expect"] } == ["100-continue", nil])
        }
    }

    @Test(arguments: [true, false])
    func `a 417 to a request without an expectation is the response, with its body`(isRepeated: Bool) async throws {
        try await StubServer.with { server in
            server.fallback { _ in .text("not as expected", status: 417) }
            let options = TransferOptions.with { $0.expectContinueTimeout = isRepeated ? .seconds(3600) : nil }
            let (head, body) = try await CurlTransport().collect(
                server.request(method: .post, body: .string("hello"), options: options))
            #expect(head.status.code == 417)
            #expect(String(decoding: body, as: UTF8.self) == "not as expected")
            #expect(server.activity.requests.count == (isRepeated ? 2 : 1))
        }
    }

    @Test func `a 417 to a body that was begun and can be read once is an error`() async throws {
        try await StubServer.with { server in
            server.enqueue(
                Script([.readBody(upTo: 5), .reply(Reply(status: 417, body: .string("no")))], readsBodyFirst: false)
                    .expecting(.withhold))
            let options = TransferOptions.with { $0.expectContinueTimeout = .milliseconds(10) }
            let feed = Feed()
            feed.yield("hello")
            let error = try await CurlTransport().failure(
                server.request(method: .post, body: .stream(feed), options: options))
            #expect(error.reason == .requestBody(.notReplayable))
        }
    }

    @Test func `framing fields that contradict the body are refused`() async throws {
        try await StubServer.with { server in
            let transport = try CurlTransport()
            for headers: HTTPFields in [[.contentLength: "6"], [.transferEncoding: "chunked"]] {
                let error = try await transport.failure(
                    server.request(method: .post, headers: headers, body: .string("hello")))
                guard case .invalidRequest(let reason) = error.reason, let field = headers.first,
                    reason.hasPrefix(field.name.rawName)
                else { throw error }
            }
            #expect(server.activity.connectionsAccepted == 0)
        }
    }

    @Test func `framing fields that agree with the body are sent once`() async throws {
        try await StubServer.with { server in
            server.fallback { _ in .text("") }
            let transport = try CurlTransport()
            _ = try await transport.collect(
                server.request(method: .post, headers: [.contentLength: "5"], body: .string("hello")))
            _ = try await transport.collect(
                server.request(
                    method: .post, headers: [.transferEncoding: "chunked"],
                    body: .stream(Generated(count: 5), isReplayable: true)))
            let requests = try await server.requests(count: 2)
            #expect(requests[0].headers.values("Content-Length") == ["5"])
            #expect(requests[1].headers.values("Transfer-Encoding") == ["chunked"])
            #expect(requests.map(\.bodyLength) == [5, 5])
        }
    }
}
