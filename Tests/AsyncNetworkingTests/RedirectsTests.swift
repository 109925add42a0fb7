// SPDX-License-Identifier: MIT

import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials
import HTTPTypes
import Testing

@Suite struct RedirectsTests {
    /// A method and whether the body `x` is sent; without a body for GET and HEAD.
    private static let followUps: [Int: [String: String]] = [
        301: ["GET": "GET ", "HEAD": "HEAD ", "POST": "GET ", "PUT": "PUT x", "DELETE": "DELETE x"],
        302: ["GET": "GET ", "HEAD": "HEAD ", "POST": "GET ", "PUT": "PUT x", "DELETE": "DELETE x"],
        303: ["GET": "GET ", "HEAD": "HEAD ", "POST": "GET ", "PUT": "GET ", "DELETE": "GET "],
        307: ["GET": "GET ", "HEAD": "HEAD ", "POST": "POST x", "PUT": "PUT x", "DELETE": "DELETE x"],
        308: ["GET": "GET ", "HEAD": "HEAD ", "POST": "POST x", "PUT": "PUT x", "DELETE": "DELETE x"],
    ]

    @Test(arguments: [301, 302, 303, 307, 308], ["GET", "HEAD", "POST", "PUT", "DELETE"])
    func `the status determines the method and the body`(status: Int, method: String) async throws {
        let transport = MockTransport(.redirect(.init(code: status), to: "/b"), .text("end"))
        let manager = SessionManager(on: transport)
        let hasBody = method != "GET" && method != "HEAD"
        let response = try await manager.data(
            for: Request(
                method: #require(HTTPRequest.Method(method)), url: url("http://a.example/v1/x"),
                headers: [.contentType: "text/plain", .accept: "text/*"], body: hasBody ? .string("x") : .none))
        #expect(response.statusCode == 200)
        let sent = transport.requests.map { "\($0.request.method) " + String(decoding: $0.body, as: UTF8.self) }
        #expect(sent.last == Self.followUps[status]?[method])
        #expect(sent.count == 2)
        let last = try #require(transport.requests.last).request
        #expect(last.url.absoluteString == "http://a.example/b")
        #expect(last.headers[.accept] == "text/*")
        let becameGet = sent.last == "GET " && method != "GET"
        #expect(last.headers[.contentType] == (becameGet ? nil : "text/plain"))
    }

    @Test func `a Location in Latin-1 is followed with its bytes`() async throws {
        let location = HTTPField(name: .location, value: Array("/caf".utf8) + [0xE9])
        let transport = MockTransport(MockResponse(status: .found, headers: HTTPFields([location])), .text("end"))
        _ = try await SessionManager(on: transport).data(for: Request(url: url("http://a.example/v1/x")))
        #expect(transport.requests.last?.request.url.absoluteString == "http://a.example/caf%E9")
    }

    @Test(arguments: [
        "Content-Digest", "Repr-Digest", "Digest", "Content-MD5", "Content-Range", "Content-Disposition",
        "Last-Modified", "Trailer",
    ])
    func `each field that describes the body is removed with it`(name: String) async throws {
        let transport = MockTransport(.redirect(.seeOther, to: "/b"), .text("end"))
        var request = try Request(method: .post, url: url("http://a.example/v1/x"), body: .string("x"))
        request.headers[try #require(HTTPField.Name(name))] = "1"
        _ = try await SessionManager(on: transport).data(for: request)
        #expect(transport.requests.map(\.request.headers.count) == [1, 0])
    }

    @Test func `fields that describe the body, and trailers, are removed with it`() async throws {
        let transport = MockTransport(.redirect(.seeOther, to: "/b"), .text("end"))
        var request = try Request(
            method: .put, url: url("http://a.example/v1/x"),
            headers: [
                .contentType: "a", .contentEncoding: "gzip", .contentLanguage: "c",
                .contentLocation: "d", .transferEncoding: "chunked", .expect: "100-continue", .ifMatch: "kept",
            ], body: .string("x"))
        request.trailers = { [.from: "trailer"] }
        _ = try await SessionManager(on: transport).data(for: request)
        #expect(transport.requests.map(\.request.headers.count) == [7, 1])
        #expect(transport.requests[1].request.headers[.ifMatch] == "kept")
        #expect(transport.requests.map(\.trailers.count) == [1, 0])
    }

    @Test(arguments: [
        ("/b", "http://a.example/b"),
        ("b", "http://a.example/v1/b"),
        ("../b", "http://a.example/b"),
        ("?z=1", "http://a.example/v1/x?z=1"),
        ("//b.example/c", "http://b.example/c"),
        ("http://b.example:81/c?d#e", "http://b.example:81/c?d#e"),
        ("https://a.example/", "https://a.example/"),
        ("/a b/é", "http://a.example/a%20b/%C3%A9"),
        ("/a%20b", "http://a.example/a%20b"),
        ("/echo/a%2Fb[1].zip", "http://a.example/echo/a%2Fb%5B1%5D.zip"),
        ("?u=http%3A%2F%2Fa.b%2F&v=<x>", "http://a.example/v1/x?u=http%3A%2F%2Fa.b%2F&v=%3Cx%3E"),
        ("http://b.example/a/../c", "http://b.example/c"),
        ("?q=1", "http://a.example/v1/x?q=1"),
    ])
    func `Location is resolved against the URL of the redirected request`(location: String, expected: String)
        async throws
    {
        let transport = MockTransport(.redirect(.found, to: location), .text("end"))
        _ = try await SessionManager(on: transport).get("x?q=1")
        #expect(transport.requests.map(\.request.url.absoluteString) == ["http://a.example/v1/x?q=1", expected])
    }

    @Test(arguments: [
        ("/b", "http://a.example/b#top%20left"),
        ("/b#own", "http://a.example/b#own"),
        ("http://b.example/?q", "http://b.example/?q#top%20left"),
    ])
    func `a fragment is kept if the new URL has none`(location: String, expected: String) async throws {
        let transport = MockTransport(.redirect(.found, to: location), .text("end"))
        _ = try await SessionManager(on: transport).get("x#top%20left")
        #expect(transport.requests.last?.request.url.absoluteString == expected)
    }

    @Test(arguments: [
        "ftp://a.example/", "mailto:a@b.example", "javascript:alert(1)", "file:///etc/passwd", "http://", "http:///x",
        "https:x",
    ])
    func `a Location that is not an http or https URL is an error`(location: String) async throws {
        let transport = MockTransport(.redirect(.found, to: location), .text("end"))
        let error = try await sessionError { _ = try await SessionManager(on: transport).get("x") }
        #expect(error.redirectFailure == .location(location))
        #expect(transport.requests.count == 1)
    }

    @Test func `a redirect from https to http is refused`() async throws {
        let transport = MockTransport(.redirect(.found, to: "http://u:p@a.example/b?token=secret"), .text("end"))
        let manager = SessionManager(on: transport, baseURL: "https://a.example/")
        let error = try await sessionError { _ = try await manager.get("x") }
        #expect(error.redirectFailure == .downgrade(to: "http://a.example/b?token=…"))
        #expect(transport.requests.count == 1)
    }

    @Test(arguments: [HTTPResponse.Status.multipleChoices, .notModified, .init(code: 305), .ok, .created])
    func `other statuses with a Location are returned as responses`(status: HTTPResponse.Status) async throws {
        let transport = MockTransport(.redirect(status, to: "/b"))
        let response = try await SessionManager(on: transport).data(for: Request(url: url("http://a.example/")))
        #expect(response.head.status == status)
        #expect(transport.requests.count == 1)
    }

    @Test(arguments: [HTTPResponse.Status.found, .temporaryRedirect], [nil, ""] as [String?])
    func `a redirect without a Location is returned as the response`(
        status: HTTPResponse.Status, location: String?
    ) async throws {
        let transport = MockTransport(location.map { .redirect(status, to: $0) } ?? .status(status))
        let request = try Request(method: .post, url: url("http://a.example/"), body: .string("order"))
        let response = try await SessionManager(on: transport).data(for: request)
        #expect(response.statusCode == status.code)
        #expect(transport.requests.count == 1)
    }

    @Test func `redirects are returned as responses if they are not followed`() async throws {
        let transport = MockTransport(.redirect(.found, to: "/b"))
        let manager = SessionManager(on: transport) { $0.redirectPolicy.isEnabled = false }
        let response = try await manager.data(for: Request(url: url("http://a.example/")))
        #expect(response.headers[.location] == "/b")
        #expect(transport.requests.count == 1)
    }

    @Test func `the redirects are recorded in order`() async throws {
        let transport = MockTransport(
            .redirect(.movedPermanently, to: "/two"), .redirect(.found, to: "/three"), .text("end"))
        let response = try await SessionManager(on: transport).get("one")
        #expect(response.redirectHistory.map(\.status.code) == [301, 302])
        #expect(
            response.redirectHistory.map(\.url.absoluteString) == ["http://a.example/v1/one", "http://a.example/two"])
        #expect(response.head.url.absoluteString == "http://a.example/three")
    }

    @Test func `the body of a redirect is not part of the response's body`() async throws {
        let moved = MockResponse(status: .found, headers: [.location: "/b"], chunks: [Data("moved".utf8)])
        let manager = SessionManager(on: MockTransport { $0.url.path == "/b" ? .text("end") : moved })
        let directory = try TemporaryDirectory()
        #expect(try await manager.get("x").text == "end")
        #expect(
            try await manager.withResponse(for: manager.request(.get, "x")) { _, body in
                try await body.collect(upTo: 100)
            } == Data("end".utf8))
        #expect(try await manager.download("x", to: "\(directory.path)/file").value.size == 3)
        #expect(try directory.read("file") == Data("end".utf8))
    }

    @Test(arguments: [0, 1, 3])
    func `the number of redirects is limited`(maximum: Int) async throws {
        let transport = MockTransport { _ in .redirect(.found, to: "/loop?token=secret") }
        let manager = SessionManager(on: transport) { $0.redirectPolicy.maximum = maximum }
        let error = try await sessionError { _ = try await manager.get("loop") }
        #expect(error.redirectFailure == .tooMany(limit: maximum, to: "http://a.example/loop?token=…"))
        #expect(transport.requests.count == maximum + 1)
    }

    @Test func `20 redirects are followed by default`() async throws {
        let transport = MockTransport { request in
            let number = Int(request.url.lastPathComponent) ?? 0
            return number == 20 ? .text("end") : .redirect(.found, to: "/\(number + 1)")
        }
        let response = try await SessionManager(on: transport).get("/0")
        #expect(response.redirectHistory.count == 20)
        let error = try await sessionError {
            let endless = MockTransport { _ in .redirect(.found, to: "/") }
            _ = try await SessionManager(on: endless).get("/")
        }
        #expect(error.redirectFailure == .tooMany(limit: 20, to: "http://a.example/"))
    }
}

/// The header fields of redirects to another origin.
@Suite struct RedirectedHeadersTests {
    private static let own: HTTPFields = [
        .authorization: "secret", .cookie: "a=1", .proxyAuthorization: "secret", .accept: "*/*",
    ]

    private func headersAfter(
        redirectTo location: String, headers: HTTPFields = own,
        configure: (inout SessionConfiguration) -> Void = { _ in }
    ) async throws -> [String] {
        let transport = MockTransport(.redirect(.temporaryRedirect, to: location), .text("end"))
        let manager = SessionManager(.on(transport, configure: configure))
        _ = try await manager.data(for: Request(url: url("http://a.example/x"), headers: headers))
        return try #require(transport.requests.last).request.headers.lines
    }

    @Test(arguments: ["https://a.example/", "http://b.example/", "http://a.example:8080/", "//sub.a.example/"])
    func `credentials and cookies are removed if the scheme, host or port changes`(location: String) async throws {
        var headers = Self.own
        headers[.proxyAuthorization] = nil
        #expect(try await headersAfter(redirectTo: location, headers: headers) == ["Accept: */*"])
    }

    @Test(arguments: ["/y", "http://a.example/", "HTTP://A.EXAMPLE:80/", "http://u:p@a.example/"])
    func `credentials and cookies are kept for the same origin`(location: String) async throws {
        #expect(try await headersAfter(redirectTo: location) == Self.own.lines)
    }

    @Test func `an explicit Host field is not sent to another host`() async throws {
        let host = try #require(HTTPField.Name("Host"))
        #expect(try await headersAfter(redirectTo: "/y", headers: [host: "virtual"]) == ["Host: virtual"])
        #expect(try await headersAfter(redirectTo: "//b.example/y", headers: [host: "virtual"]) == [])
    }

    @Test func `a policy can name additional sensitive fields`() async throws {
        let token = try #require(HTTPField.Name("X-Token"))
        let lines = try await headersAfter(redirectTo: "//b.example/", headers: [token: "t", .accept: "*/*"]) {
            $0.redirectPolicy.sensitiveHeaders.insert(token)
        }
        #expect(lines == ["Accept: */*"])
    }

    @Test func `the session's credentials are not sent to another origin either`() async throws {
        let lines = try await headersAfter(redirectTo: "//b.example/", headers: [.accept: "*/*"]) {
            $0.headers = [.authorization: "secret", .from: "me"]
        }
        #expect(lines == ["Accept: */*", "From: me"])
    }

    private static let office = ProxyPolicy.proxy(Proxy(.http, host: "proxy.example", port: 1))

    @Test(
        arguments: [
            (office, "//b.example/", true), (office, "https://b.example/", true), (.environment, "//b.example/", true),
            // For the other scheme, the environment may name another proxy.
            (.environment, "https://a.example/", false), (.environment, "https://b.example/", false),
        ] as [(ProxyPolicy, String, Bool)], [true, false])
    func `the field for a proxy is kept while the proxy stays the same`(
        redirect: (proxy: ProxyPolicy, location: String, isKept: Bool), isOfSession: Bool
    ) async throws {
        let headers: HTTPFields = [.authorization: "secret", .proxyAuthorization: "Bearer p", .accept: "*/*"]
        let lines = try await headersAfter(redirectTo: redirect.location, headers: isOfSession ? [:] : headers) {
            $0.proxy = redirect.proxy
            if isOfSession { $0.headers = headers }
        }
        #expect(lines == (redirect.isKept ? ["Proxy-Authorization: Bearer p"] : []) + ["Accept: */*"])
    }

    @Test func `removed fields are not restored by a redirect back to the first origin`() async throws {
        let transport = MockTransport(
            .redirect(.found, to: "//b.example/"), .redirect(.found, to: "http://a.example/y"), .text("end"))
        let manager = SessionManager(on: transport) { $0.headers = [.authorization: "session"] }
        _ = try await manager.get("x", headers: [.authorization: "secret"])
        #expect(transport.requests.map(\.request.headers[.authorization]) == ["secret", nil, nil])
    }
}

/// Redirects that require the body to be sent again.
@Suite struct RedirectedBodiesTests {
    private func send(_ body: RequestBody, status: HTTPResponse.Status = .temporaryRedirect) async throws -> [String] {
        let transport = MockTransport(.redirect(status, to: "/b"), .text("end"))
        let manager = SessionManager(on: transport)
        _ = try await manager.data(for: manager.request(.post, "x", body: body))
        return transport.requests.map { String(decoding: $0.body, as: UTF8.self) }
    }

    private static let chunks = [Data("ab".utf8), Data("c".utf8)]

    @Test(arguments: [HTTPResponse.Status.temporaryRedirect, .permanentRedirect])
    func `bytes, files and replayable streams are sent again`(status: HTTPResponse.Status) async throws {
        let directory = try TemporaryDirectory()
        let path = try directory.write(Data("abc".utf8), to: "body")
        let stream = AsyncStreamOf(Self.chunks)
        #expect(try await send(.string("abc"), status: status) == ["abc", "abc"])
        #expect(try await send(.file(path), status: status) == ["abc", "abc"])
        #expect(try await send(.stream(stream, isReplayable: true), status: status) == ["abc", "abc"])
    }

    @Test func `a stream that is not replayable fails the request`() async throws {
        let error = try await sessionError { _ = try await send(.stream(AsyncStreamOf(Self.chunks))) }
        #expect(error.redirectFailure == .bodyNotReplayable)
    }

    @Test func `a stream that is not replayable does not fail a redirect that drops the body`() async throws {
        #expect(try await send(.stream(AsyncStreamOf(Self.chunks)), status: .seeOther) == ["abc", ""])
    }

    @Test func `the decision can return the redirect as the response, or provide a replayable body`() async throws {
        let transport = MockTransport(.redirect(.temporaryRedirect, to: "/b"), .text("end"))
        let once = RequestBody.stream(AsyncStreamOf(Self.chunks))
        let stopping = SessionManager(on: transport) { $0.redirectPolicy.decision = { _ in nil } }
        let response = try await stopping.data(for: stopping.request(.post, "x", body: once))
        #expect(response.statusCode == 307)

        let second = MockTransport(.redirect(.temporaryRedirect, to: "/b"), .text("end"))
        let replacing = SessionManager(on: second) {
            $0.redirectPolicy.decision = { redirection in
                var request = redirection.proposed
                request.body = .string("other")
                return request
            }
        }
        #expect(try await replacing.data(for: replacing.request(.post, "x", body: once)).text == "end")
        #expect(second.requests.map(\.body) == [Data("abc".utf8), Data("other".utf8)])
    }
}

@Suite struct RedirectDecisionTests {
    private let transport = MockTransport(
        .redirect(.found, to: "/b"), .redirect(.movedPermanently, to: "/c"), .text("end"))

    @Test func `it receives each redirect, and the returned request is sent`() async throws {
        let seen = EventList<String>()
        let manager = SessionManager(on: transport) {
            $0.redirectPolicy.decision = { redirection in
                await seen.append(
                    "\(redirection.head.status.code) \(redirection.original.url.path) \(redirection.proposed.url.path)")
                var request = redirection.proposed
                request.headers[.from] = "decision"
                return request
            }
        }
        #expect(try await manager.get("x").text == "end")
        #expect(await seen.values == ["302 /v1/x /b", "301 /b /c"])
        #expect(transport.requests.map(\.request.headers[.from]) == [nil, "decision", "decision"])
    }

    @Test(arguments: ["p", "q"])
    func `the session's field for a proxy is not sent to another one that it chooses`(host: String) async throws {
        let manager = SessionManager(on: transport) {
            $0.headers = [.proxyAuthorization: "Bearer p"]
            $0.proxy = .proxy(Proxy(.http, host: "p", port: 1))
            $0.redirectPolicy.decision = { redirection in
                var request = redirection.proposed
                request.changeOptions { $0.proxy = .proxy(Proxy(.http, host: host, port: 1)) }
                return request
            }
        }
        _ = try await manager.get("x")
        let fields = transport.requests.map(\.request.headers[.proxyAuthorization])
        #expect(fields == ["Bearer p"] + Array(repeating: host == "p" ? "Bearer p" : nil, count: 2))
    }

    @Test func `a field for a proxy that it puts back is sent`() async throws {
        let transport = MockTransport(.redirect(.found, to: "https://a.example/"), .text("end"))
        let manager = SessionManager(on: transport) {
            $0.headers = [.proxyAuthorization: "Bearer p"]
            $0.redirectPolicy.decision = { redirection in
                #expect(!redirection.proposed.headers.contains(.proxyAuthorization))
                var request = redirection.proposed
                request.headers[.proxyAuthorization] = redirection.original.headers[.proxyAuthorization]
                return request
            }
        }
        _ = try await manager.get("x")
        #expect(transport.requests.map(\.request.headers[.proxyAuthorization]) == ["Bearer p", "Bearer p"])
    }

    @Test func `it can return a redirect as the response`() async throws {
        let manager = SessionManager(on: transport) {
            $0.redirectPolicy.decision = { $0.proposed.url.path == "/c" ? nil : $0.proposed }
        }
        let response = try await manager.data(for: manager.request(.get, "x"))
        #expect(response.statusCode == 301)
        #expect(response.headers[.location] == "/c")
        #expect(response.redirectHistory.map(\.status.code) == [302])
        #expect(transport.requests.count == 2)
    }

    @Test func `an error that it throws is passed on unchanged`() async throws {
        let manager = SessionManager(on: transport) { $0.redirectPolicy.decision = { _ in throw Planned(number: 7) } }
        await #expect(throws: Planned(number: 7)) { _ = try await manager.get("x") }
        #expect(transport.requests.count == 1)
    }

    @Test func `it is not called for redirects that the policy refuses`() async throws {
        let transport = MockTransport(.redirect(.found, to: "http://a.example/"))
        let manager = SessionManager(on: transport, baseURL: "https://a.example/") {
            $0.redirectPolicy.decision = { redirection in
                Issue.record("asked about \(redirection.proposed)")
                return nil
            }
        }
        #expect(try await sessionError { _ = try await manager.get("x") }.redirectFailure != nil)
    }
}

/// Redirect policies of single requests.
@Suite struct RedirectsOfARequestTests {
    private let transport = MockTransport { $0.url.path == "/end" ? .text("end") : .redirect(.found, to: "/end") }

    @Test func `a request can have a policy of its own`() async throws {
        let manager = SessionManager(on: transport)
        var request = try manager.request(.get, "x")
        request.redirectPolicy = RedirectPolicy.none
        #expect(try await manager.data(for: request).statusCode == 302)
        request.redirectPolicy = manager.configuration.redirectPolicy.with { $0.maximum = 0 }
        let error = try await sessionError { _ = try await manager.data(for: request) }
        #expect(error.redirectFailure == .tooMany(limit: 0, to: "http://a.example/end"))
        request.redirectPolicy = nil
        #expect(try await manager.data(for: request).text == "end")
    }

    @Test func `the policy of a request decides about all redirects, whatever request it returns`() async throws {
        let transport = MockTransport(
            .redirect(.found, to: "/b"), .redirect(.found, to: "/c"), .redirect(.found, to: "/d"), .text("end"))
        let manager = SessionManager(on: transport) { $0.redirectPolicy = .none }
        let seen = EventList<String>()
        var request = try manager.request(.get, "x")
        request.redirectPolicy = RedirectPolicy().with {
            $0.maximum = 2
            $0.decision = { redirection in
                await seen.append(redirection.proposed.url.path)
                return Request(url: redirection.proposed.url)
            }
        }
        let error = try await sessionError { _ = try await manager.data(for: request) }
        #expect(error.redirectFailure == .tooMany(limit: 2, to: "http://a.example/d"))
        #expect(await seen.values == ["/b", "/c", "/d"])
    }

    @Test func `a request can follow redirects if the session does not`() async throws {
        let manager = SessionManager(on: transport) { $0.redirectPolicy = .none }
        var request = try manager.request(.get, "x")
        #expect(try await manager.data(for: request).statusCode == 302)
        request.redirectPolicy = RedirectPolicy()
        #expect(try await manager.data(for: request).text == "end")
    }

    @Test func `the closure of a streamed response receives the redirects`() async throws {
        let manager = SessionManager(on: transport)
        try await manager.withResponse(for: manager.request(.get, "x")) { head, _ in
            #expect(head.redirectHistory.map(\.url.absoluteString) == ["http://a.example/v1/x"])
            #expect(head.redirectHistory.map(\.status) == [.found])
        }
    }
}
