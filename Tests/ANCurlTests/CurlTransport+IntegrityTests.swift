// SPDX-License-Identifier: MIT

import ANCurl
import ANHTTP
import AsyncNetworkingTesting
import Foundation
import HTTPTypes
import TestSupport
import Testing

/// Each response is that of its request, whole, and ends where the server ended it.
@Suite(.timeLimit(.minutes(5))) struct IntegrityTests {
    // MARK: Bytes that no request asked for

    private static let unasked = "HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nSMUGGLED"

    @Test(arguments: [HTTPRequest.Method.get, .post, .put], [false, true])
    func `a response that no request asked for is not delivered to the next request`(
        method: HTTPRequest.Method, isSecure: Bool
    ) async throws {
        let authority = try TestCertificateAuthority()
        let tls = try isSecure ? StubServer.TLS(authority.issue()) : nil
        try await StubServer.with(.init(tls: tls)) { server in
            let hasSent = Flag()
            server.enqueue(
                Script([
                    .reply(Reply(body: .string("first"))), .send(Data(Self.unasked.utf8)),
                    .respond { _ in
                        hasSent.raise()
                        return Reply(body: .string("more"))
                    },
                ]))
            server.fallback { .text("answer to \($0.path)") }
            let transport = try CurlTransport(options: .with { $0.tls.trustRoots = .pem(authority.pemData) })
            #expect(try await transport.text(server.request("/1")) == "first")
            try await eventually { hasSent.isRaised }
            for path in ["/2", "/3", "/4"] {
                let body: RequestBody = method == .get ? .none : .bytes(Data("body".utf8))
                #expect(
                    try await transport.text(server.request(path, method: method, body: body)) == "answer to \(path)")
            }
            // The first connection was given up before anything was sent on it.
            let requests = try await server.requests(count: 4)
            #expect(requests.map(\.connection) == [0, 1, 1, 1])
        }
    }

    @Test(arguments: [1, 3])
    func `a response that no request asked for is not delivered over a Unix-domain socket`(count: Int) async throws {
        let path = FileManager.default.temporaryDirectory.appendingPathComponent("an-\(UUID()).sock").path
        try await StubServer.with(.init(.unix(path: path))) { server in
            let gate = try ScriptGate()
            let sent = (0..<count).map { _ in Flag() }
            server.route(
                "/first",
                Script([
                    .wait(gate), .reply(Reply(body: .string("first"))), .send(Data(Self.unasked.utf8)),
                    .respond { request in
                        sent[request.connection].raise()
                        return Reply(body: .string("more"))
                    },
                ]))
            server.fallback { .text("answer to \($0.path)") }
            let transport = try CurlTransport(options: .with { $0.connection.unixSocketPath = path })
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<count { group.addTask { _ = try await transport.text(server.request("/first")) } }
                try await server.requests(count: count)
                gate.open()
                try await group.waitForAll()
            }
            // The server cannot send more on a connection that the client has closed.
            try await eventually { server.activity.openConnections == 0 || sent.allSatisfy(\.isRaised) }
            for number in 0..<(2 * count) {
                #expect(try await transport.text(server.request("/\(number)")) == "answer to /\(number)")
            }
        }
    }

    @Test func `a timeout that the server announces on an idle connection is not a response`() async throws {
        try await StubServer.with { server in
            server.enqueue(
                Script([
                    .reply(Reply(body: .string("first"))),
                    .send(Data("HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n".utf8)),
                    .end(.close),
                ]))
            server.fallback { _ in .text("second") }
            let transport = try CurlTransport()
            #expect(try await transport.text(server.request()) == "first")
            try await server.connections(open: 0)
            #expect(try await transport.text(server.request(method: .post)) == "second")
        }
    }

    @Test func `many connections with waiting bytes are all given up`() async throws {
        try await StubServer.with { server in
            let gate = try ScriptGate()
            let sent = (0..<6).map { _ in Flag() }
            server.route(
                "/first",
                Script([
                    .wait(gate), .reply(Reply(body: .string("first"))), .send(Data(Self.unasked.utf8)),
                    .respond { request in
                        sent[request.connection].raise()
                        return Reply()
                    },
                ]))
            server.fallback { .text("answer to \($0.path)") }
            let transport = try CurlTransport()
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<6 { group.addTask { _ = try await transport.text(server.request("/first")) } }
                try await server.connections(open: 6)
                gate.open()
                try await group.waitForAll()
            }
            try await eventually { sent.allSatisfy(\.isRaised) }
            for number in 0..<12 {
                #expect(try await transport.text(server.request("/\(number)")) == "answer to /\(number)")
            }
        }
    }

    // MARK: Framing

    /// RFC 9112 §5.2 lets a client replace the line break by spaces, as recent versions of libcurl (8.23) do.
    @Test func `a folded Transfer-Encoding applies or is an invalid response`() async throws {
        try await StubServer.with { server in
            let bytes = "HTTP/1.1 200 OK\r\nTransfer-Encoding:\r\n chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"
            server.fallback { _ in Script([.send(Data(bytes.utf8)), .end(.close)]) }
            do {
                #expect(try await CurlTransport().text(server.request()) == "ok")
            } catch let error as TransportError {
                guard case .invalidResponse = error.reason else { throw error }
            }
        }
    }

    @Test(arguments: [
        ("HTTP/2 200 OK\r\nContent-Length: 2\r\n\r\nok", "status"),
        ("HTTP/2 200 \r\nContent-Length: 2\r\n\r\nok", "status"),
        ("HTTP/3 200 OK\r\nContent-Length: 2\r\n\r\nok", "status"),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0x5\r\nhello\r\n0\r\n\r\n", "framing"),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nno colon\r\n\r\n", "framing"),
    ])
    func `broken framing is an invalid response`(bytes: String, expected: String) async throws {
        try await StubServer.with { server in
            server.fallback { _ in Script([.send(Data(bytes.utf8)), .end(.close)]) }
            let transport = try CurlTransport()
            for delivery: BodyDelivery in [.collected(upTo: 1000), .streamed] {
                let failure = try await transport.failure(server.request(), delivery: delivery)
                switch (expected, failure.reason) {
                case ("header", .invalidResponse(.headerLine)), ("status", .invalidResponse(.statusLine)),
                    ("status", .invalidResponse(.notHTTP)), ("framing", .invalidResponse(.framing)):
                    break
                default: Issue.record("\(failure)")
                }
            }
        }
    }

    @Test func `a list of equal lengths is one length`() async throws {
        try await StubServer.with { server in
            server.fallback { _ in .raw("HTTP/1.1 200 OK\r\nContent-Length: 4, 4\r\n\r\nbody") }
            let transport = try CurlTransport()
            #expect(try await transport.text(server.request()) == "body")
        }
    }

    @Test func `a reset after an interim response is a lost connection`() async throws {
        try await StubServer.with { server in
            server.fallback { _ in Script([.informational(103), .end(.reset)]) }
            let failure = try await CurlTransport().failure(server.request())
            guard case .connectionLost(.beforeResponse) = failure.reason else {
                Issue.record("\(failure)")
                return
            }
        }
    }

    // MARK: The end of a response before that of its request

    private static let endings: [(name: String, script: Script)] = [
        ("length", .text("done")),
        ("chunked", .reply(body: .string("done"), framing: .chunked)),
        ("chunked with trailers", .reply(body: .string("done"), framing: .chunked, trailers: ["X-A": "1"])),
        ("close", Script([.send(Data("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\ndone".utf8)), .end(.close)])),
        ("204", .status(204)),
    ]

    /// Takes a second: the time that an exchange waits for the rest of its request. All cases wait at the same time.
    @Test func `the reader sees the end of a response while the request's body is open`() async throws {
        try await withThrowingTaskGroup { group in
            for (name, script) in Self.endings {
                for delivery in [BodyDelivery.collected(upTo: 100), .streamed] {
                    group.addTask { try await expectEnd(name, of: script, delivery) }
                }
            }
            try await group.waitForAll()
        }
    }

    private func expectEnd(_ name: String, of script: Script, _ delivery: BodyDelivery) async throws {
        var script = script
        script.readsBodyFirst = false
        script.actions.insert(.readBody(upTo: 4), at: 0)
        try await StubServer.with { [script] server in
            server.route("/open", script)
            server.fallback { _ in .text("next") }
            let transport = try CurlTransport()
            let feed = Feed()
            feed.yield("ping")
            let request = server.request(
                "/open", method: .post, body: .stream(feed), options: .with { $0.timeouts.idle = nil })
            let text = try await transport.withResponse(for: request, delivery: delivery, reporting: nil) { _, body in
                String(decoding: try await body.collect(upTo: 100), as: UTF8.self)
            }
            #expect(text == (name == "204" ? "" : "done"), "\(name), \(delivery)")
            #expect(try await transport.text(server.request("/next")) == "next", "\(name), \(delivery)")
            feed.finish()
        }
    }

    @Test(arguments: [417, 413, 200])
    func `a connection whose request was not sent whole serves no other request`(status: Int) async throws {
        try await StubServer.with { server in
            var script = Script.status(status)
            script.readsBodyFirst = false
            script.expectation = .withhold
            server.route("/refused", script)
            server.fallback { .text("answer to \($0.path), \($0.bodyLength) bytes") }
            let transport = try CurlTransport()
            for number in 1...3 {
                let request = server.request(
                    "/refused", method: .put, body: .bytes(Data(repeating: 1, count: 2000)),
                    options: .with { $0.expectContinueTimeout = .seconds(60) })
                #expect(try await transport.collect(request).head.status.code == status)
                let next = server.request("/\(number)", method: .post, body: .bytes(Data("body".utf8)))
                #expect(try await transport.text(next) == "answer to /\(number), 4 bytes")
            }
        }
    }

    /// Takes a second, like the test above.
    @Test func `a response that ends early is an error while the request's body is open`() async throws {
        let rests = [
            "Content-Length: 40\r\n\r\nshort", "Transfer-Encoding: chunked\r\n\r\n5\r\nshort\r\n",
            "Transfer-Encoding: chunked\r\n\r\n9\r\nshort",
        ]
        try await withThrowingTaskGroup { group in
            for rest in rests { group.addTask { try await expectEarlyEnd(rest) } }
            try await group.waitForAll()
        }
    }

    private func expectEarlyEnd(_ rest: String) async throws {
        try await StubServer.with { server in
            server.route(
                "/",
                Script(
                    [.readBody(upTo: 4), .send(Data("HTTP/1.1 200 OK\r\n\(rest)".utf8)), .end(.close)],
                    readsBodyFirst: false))
            let feed = Feed()
            feed.yield("ping")
            let failure = try await CurlTransport().failure(
                server.request(
                    "/", method: .post, body: .stream(feed), options: .with { $0.timeouts.idle = .seconds(20) }))
            guard case .connectionLost(.inBody(received: 5, expected: _)) = failure.reason else {
                Issue.record("\(failure)")
                return
            }
            feed.finish()
        }
    }

    @Test func `a server that answers at once and reads on gets the whole body`() async throws {
        let bytes = StubServer.generatedBytes(3_000_000)
        try await StubServer.with { server in
            server.route("/", Script([.reply(Reply(body: .string("early"))), .readBody()], readsBodyFirst: false))
            let transport = try CurlTransport()
            #expect(try await transport.text(server.request(method: .post, body: .bytes(bytes))) == "early")
            try await server.activity { $0.requests.first?.isComplete == true }
            #expect(server.activity.requests.map(\.bodyLength) == [3_000_000])
        }
    }

    @Test func `a paused reader sees the end of a response while the request's body is open`() async throws {
        try await StubServer.with { server in
            server.route(
                "/", Script([.readBody(upTo: 4), .reply(Reply(body: .generated(200_000)))], readsBodyFirst: false))
            let feed = Feed()
            feed.yield("ping")
            let request = server.request(
                method: .post, body: .stream(feed),
                options: .with {
                    $0.timeouts.idle = nil
                    $0.streamBufferSize = 1000
                })
            let count = try await CurlTransport().stream(request) { _, body in
                var count = 0
                for try await chunk in body {
                    count += chunk.count
                    for _ in 0..<100 { await Task.yield() }
                }
                return count
            }
            #expect(count == 200_000)
            feed.finish()
        }
    }

    @Test func `a request and its response are a conversation that the server ends`() async throws {
        let rounds = 1000
        try await StubServer.with { server in
            var actions: [Script.Action] = [.send(Data("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".utf8))]
            for round in 1...rounds {
                actions += [.readBody(upTo: Int64(round * 4)), .send(Data("4\r\npong\r\n".utf8))]
            }
            actions += [.send(Data("0\r\n\r\n".utf8)), .hang]
            server.route("/", Script(actions, readsBodyFirst: false))
            let feed = Feed()
            let transport = try CurlTransport()
            let request = server.request(method: .post, body: .stream(feed))
            let pongs = try await transport.stream(request) { _, body in
                var pongs = 0
                var bytes = 0
                feed.yield("ping")
                for try await chunk in body {
                    bytes += chunk.count
                    while pongs < bytes / 4 {
                        pongs += 1
                        feed.yield("ping")
                    }
                }
                return pongs
            }
            #expect(pongs == rounds)
        }
    }
}
