// SPDX-License-Identifier: MIT

import ANCurl
import ANHTTP
import AsyncNetworkingTesting
import Foundation
import HTTPTypes
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(5))) struct TimeoutsTests {
    private static let limit = Duration.milliseconds(60)
    /// Time enough for a head to arrive on a busy machine. Two tests are slow because they wait for its end.
    private static let limitWithinBody = Duration.seconds(2)

    private func options(_ change: (inout Timeouts) -> Void) -> TransferOptions {
        .with {
            $0.timeouts = Timeouts()
            change(&$0.timeouts)
        }
    }

    /// Performs a request that ends by its limit on time, in this phase.
    private func expect(
        _ phase: TransportError.TimeoutPhase, _ request: Request, _ transport: CurlTransport? = nil,
        limit: Duration = Self.limit, delivery: BodyDelivery = .streamed
    ) async throws {
        let error = try await (transport ?? CurlTransport()).failure(request, delivery: delivery)
        guard case .timedOut(phase) = error.reason, error.context.timeLimit == limit else { throw error }
        #expect(error.context.elapsed >= limit)
    }

    private static let head = Data("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n".utf8)

    @Test func `looking up a name is part of connecting, not of waiting in the queue`() async throws {
        let authority = try TestCertificateAuthority()
        try await StubServer.with(.init(tls: .init(try authority.issue()))) { resolver in
            resolver.fallback { _ in .hang }
            let options = options {
                $0.connect = Self.limit
                $0.queue = nil
            }
            let request = Request(
                url: try #require(URL(string: "http://name.invalid/")),
                options: options.with {
                    $0.connection.dnsOverHTTPS = resolver.url("/dns-query")
                    $0.tls.trustRoots = .pem(authority.pemData)
                })
            try await expect(.nameLookup, request)
        }
    }

    @Test func `connecting has a limit`() async throws {
        let full = try DeafPort(.full)
        let url = try #require(URL(string: "http://127.0.0.1:\(full.number)/"))
        let request = Request(url: url, options: options { $0.connect = Self.limit })
        try await expect(.connect, request)
    }

    @Test func `the handshake belongs to connecting`() async throws {
        try await StubServer.with { server in
            server.greet(.hang)
            let url = try #require(URL(string: "https://127.0.0.1:\(server.endpoint.port)/"))
            let request = Request(url: url, options: options { $0.connect = Self.limit })
            try await expect(.tlsHandshake, request)
        }
    }

    /// Requests that may use HTTP/2 wait for the handshake of the first one, to share its connection.
    @Test(.timeLimit(.minutes(1)))
    func `requests do not wait for a handshake that stalls`() async throws {
        let authority = try TestCertificateAuthority()
        try await StubServer.with(.init(tls: .init(try authority.issue()))) { server in
            server.greet(.hang)
            server.fallback { _ in .text("ok") }
            let transport = try CurlTransport(http2: .multiplexed)
            let request = server.request(
                options: options { $0.connect = nil }.with { $0.tls.trustRoots = .pem(authority.pemData) })
            try await withThrowingTaskGroup(of: String.self) { group in
                for _ in 0..<6 { group.addTask { try await transport.text(request) } }
                for _ in 0..<5 {
                    let text = try await group.next()
                    #expect(text == "ok")
                }
                group.cancelAll()
            }
        }
    }

    @Test func `a connection in place of a lost one has the limit on connecting`() async throws {
        let authority = try TestCertificateAuthority()
        try await StubServer.with(.init(tls: .init(try authority.issue()))) { server in
            server.enqueue(.text("ok"), .close)
            let transport = try CurlTransport()
            let request = server.request(
                options: options {
                    $0.connect = Self.limit
                    $0.idle = .seconds(30)
                }.with { $0.tls.trustRoots = .pem(authority.pemData) })
            let unlimited = server.request(options: .with { $0.tls.trustRoots = .pem(authority.pemData) })
            #expect(try await transport.text(unlimited) == "ok")
            server.greet(.hang)
            try await expect(.tlsHandshake, request, transport)
        }
    }

    @Test func `waiting for a connection has a limit`() async throws {
        try await StubServer.with { server in
            server.fallback { _ in .hang }
            var limits = ConnectionLimits()
            limits.maximumConnectionsPerHost = 1
            let transport = try CurlTransport(limits: limits)
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { _ = try await transport.collect(server.request()) }
                try await server.requests(count: 1)
                let request = server.request(options: options { $0.queue = Self.limit })
                try await expect(.queue, request, transport)
                let total = server.request(options: options { $0.total = Self.limit })
                try await expect(.queue, total, transport)
                group.cancelAll()
            }
            #expect(server.activity.requests.count == 1)
        }
    }

    @Test(arguments: [BodyDelivery.collected(upTo: 1000), .streamed])
    func `a head that does not come ends by the idle limit`(delivery: BodyDelivery) async throws {
        try await StubServer.with { server in
            server.fallback { _ in .hang }
            let request = server.request(options: options { $0.idle = Self.limit })
            try await expect(.responseHead, request, delivery: delivery)
        }
    }

    @Test func `half a head ends by the idle limit`() async throws {
        try await StubServer.with { server in
            server.fallback { _ in Script([.send(Self.head.prefix(20)), .hang]) }
            let request = server.request(options: options { $0.idle = Self.limit })
            try await expect(.responseHead, request)
        }
    }

    @Test(arguments: [BodyDelivery.collected(upTo: 1000), .streamed])
    func `a body that stops ends by the idle limit`(delivery: BodyDelivery) async throws {
        try await StubServer.with { server in
            server.fallback { _ in Script([.send(Self.head), .generate(50), .hang]) }
            let request = server.request(options: options { $0.idle = Self.limitWithinBody })
            try await expect(.responseBody, request, limit: Self.limitWithinBody, delivery: delivery)
        }
    }

    @Test func `an upload that the server does not read ends by the idle limit`() async throws {
        var server = StubServer.Options()
        server.receiveBufferSize = 4096
        try await StubServer.with(server) { server in
            server.fallback { _ in .text("") }
            server.route("/", Script([.hang], readsBodyFirst: false))
            let body = RequestBody.stream(Generated(count: 100_000_000), length: 100_000_000)
            let request = server.request(method: .put, body: body, options: options { $0.idle = Self.limit })
            try await expect(.request, request)
        }
    }

    @Test(arguments: [nil, 10, 0] as [Int64?])
    func `a head that does not come after the request's body ends by the idle limit`(length: Int64?) async throws {
        try await StubServer.with { server in
            server.fallback { _ in .hang }
            let body = RequestBody.stream(Generated(count: length.map { Int($0) } ?? 10), length: length)
            let request = server.request(method: .put, body: body, options: options { $0.idle = Self.limit })
            try await expect(.responseHead, request)
        }
    }

    @Test func `a server that is slow but not idle is waited for`() async throws {
        try await StubServer.with { server in
            server.route("/", .drip(bytes: 1, every: .milliseconds(100), body: .generated(12)))
            let request = server.request(options: options { $0.idle = .seconds(1) })
            let body = try await CurlTransport().collect(request).body
            #expect(body == StubServer.generatedBytes(12))
        }
    }

    @Test func `a server that sends the lines of a head slowly is waited for`() async throws {
        try await StubServer.with { server in
            let lines = ["HTTP/1.1 200 OK"] + (1...12).map { "X-\($0): a" } + ["Content-Length: 0", ""]
            server.route("/", Script(lines.flatMap { [.send(Data("\($0)\r\n".utf8)), .delay(.milliseconds(100))] }))
            let request = server.request(options: options { $0.idle = .seconds(1) })
            let head = try await CurlTransport().collect(request).head
            #expect(head.status.code == 200)
        }
    }

    @Test func `the total limit covers the body`() async throws {
        try await StubServer.with { server in
            server.route("/", .drip(bytes: 1, every: .milliseconds(5), body: .generated(100_000)))
            let request = server.request(options: options { $0.total = Self.limitWithinBody })
            try await expect(.responseBody, request, limit: Self.limitWithinBody)
        }
    }

    @Test func `the idle limit rests while the reader pauses`() async throws {
        try await StubServer.with { server in
            server.route("/", .generated(3_000_000))
            let request = server.request(
                options: options { $0.idle = .milliseconds(400) }.with { $0.streamBufferSize = 1000 })
            let count = try await CurlTransport().stream(request) { _, body in
                var count = 0
                for try await chunk in body {
                    if count == 0 { try await Task.sleep(for: .milliseconds(900)) }  // More than twice the limit.
                    count += chunk.count
                }
                return count
            }
            #expect(count == 3_000_000)
        }
    }

    @Test func `the total limit does not rest while the reader pauses`() async throws {
        try await StubServer.with { server in
            server.route("/", .generated(100_000_000))
            let request = server.request(options: options { $0.total = Self.limitWithinBody })
            try await CurlTransport().stream(request) { _, body in
                // Nothing is read until the limit has ended the exchange.
                try await server.activity { $0.requests.first?.isAbandoned == true }
                let error = await #expect(throws: TransportError.self) {
                    for try await _ in body {}
                }
                #expect(error?.reason == .timedOut(.responseBody))
                #expect(error?.context.timeLimit == Self.limitWithinBody)
            }
        }
    }

    @Test func `a response whose reader pauses is not read ahead while the request is sent`() async throws {
        let head = "HTTP/1.1 200 OK\r\nContent-Length: \(64 << 20)\r\n\r\n"
        // The server sends as long as it is sent to.
        let parts = (1...64).flatMap { [Script.Action.readBody(upTo: $0 << 16), .generate(1 << 20)] }
        try await StubServer.with { server in
            server.enqueue(Script([.send(Data(head.utf8))] + parts, readsBodyFirst: false))
            let body = RequestBody.writer { writer in while true { try await writer.write(Data(count: 1 << 16)) } }
            let request = server.request(
                method: .post, body: body, options: options { $0.total = Self.limitWithinBody })
            let recorder = EventRecorder()
            try await CurlTransport().withResponse(for: request, delivery: .streamed, reporting: recorder) { _, body in
                let end = try await recorder.first { if case .finished = $0 { true } else { false } }
                guard case .finished(let metrics) = end else { return }
                #expect(metrics.responseBodyBytes < 4 << 20)
                let error = await #expect(throws: TransportError.self) { for try await _ in body {} }
                #expect(error?.reason == .timedOut(.responseBody))
            }
        }
    }

    @Test func `the idle limit rests while the source has nothing to send`() async throws {
        try await StubServer.with { server in
            server.fallback { _ in .text("ok") }
            let feed = Feed()
            let request = server.request(
                method: .post, body: .stream(feed), options: options { $0.idle = .milliseconds(400) })
            async let text = CurlTransport().text(request)
            feed.yield("one")
            try await Task.sleep(for: .milliseconds(900))  // More than twice the limit.
            feed.finish()
            #expect(try await text == "ok")
        }
    }

    @Test func `limits that expire while the loop is blocked end requests after that`() async throws {
        try await StubServer.with { server in
            server.fallback { _ in Script([.send(Self.head), .hang]) }
            let transport = try CurlTransport()
            let executor = try #require(transport.eventLoopExecutor)
            let request = server.request(options: options { $0.idle = .milliseconds(300) })
            async let failure = transport.failure(request, delivery: .collected(upTo: 1000))
            try await server.requests(count: 1)
            await Task(executorPreference: executor) {
                blockThread(for: .milliseconds(800))
            }.value
            #expect(try await failure.reason == .timedOut(.responseBody))
        }
    }

    @Test func `a limit below zero has expired when its part begins`() async throws {
        try await StubServer.with { server in
            server.fallback { _ in .hang }
            let error = try await CurlTransport().failure(server.request(options: options { $0.idle = .seconds(-1) }))
            guard case .timedOut = error.reason else { throw error }
        }
    }

    @Test func `without limits nothing ends by itself`() async throws {
        try await StubServer.with { server in
            let gate = try ScriptGate()
            server.route("/", Script([.wait(gate), .reply(Reply(body: .string("ok")))]))
            let none = options {
                $0.connect = nil
                $0.idle = nil
            }
            async let text = CurlTransport().text(server.request(options: none))
            try await server.requests(count: 1)
            gate.open()
            #expect(try await text == "ok")
        }
    }

    @Test func `limits of one exchange do not touch another one`() async throws {
        try await StubServer.with { server in
            let gate = try ScriptGate()
            server.route("/slow", Script([.wait(gate), .reply(Reply(body: .string("ok")))]))
            server.route("/dead", .hang)
            let transport = try CurlTransport()
            async let text = transport.text(server.request("/slow"))
            for _ in 0..<3 {
                let request = server.request("/dead", options: options { $0.idle = Self.limit })
                try await expect(.responseHead, request, transport)
            }
            gate.open()
            #expect(try await text == "ok")
        }
    }

    /// One turn of the loop looks at a part of them, and those that have waited longest come last.
    @Test func `many connections whose bytes arrived while the loop was blocked have not been silent`() async throws {
        try await StubServer.with { server in
            let gates = try (0..<4).map { _ in try ScriptGate() }
            for (number, gate) in gates.enumerated() {
                server.route("/\(number)", Script([.send(Self.head), .wait(gate), .send(Data(count: 100)), .hang]))
            }
            var limits = ConnectionLimits()
            limits.maximumConnectionsPerHost = 300
            let transport = try CurlTransport(limits: limits)
            let executor = try #require(transport.eventLoopExecutor)
            try await withThrowingTaskGroup(of: Int.self) { group in
                for number in 0..<4 {
                    let request = server.request("/\(number)", options: options { $0.idle = Self.limitWithinBody })
                    for _ in 0..<75 { group.addTask { try await transport.collect(request).body.count } }
                    try await server.requests(count: 75 * (number + 1))
                }
                await Task(executorPreference: executor) {
                    for gate in gates.reversed() {
                        gate.open()
                        blockThread(for: .milliseconds(50))
                    }
                    blockThread(for: Self.limitWithinBody + .milliseconds(500))
                }.value
                for try await count in group { #expect(count == 100) }
            }
        }
    }

    @Test func `time in which a task blocks the event loop is not the server's`() async throws {
        try await StubServer.with { server in
            server.route(
                "/", Script([.send(Self.head), .delay(.milliseconds(200)), .send(Data(count: 100)), .hang]))
            let transport = try CurlTransport()
            let recorder = EventRecorder()
            let request = server.request(options: options { $0.idle = Self.limitWithinBody })
            async let response = transport.collect(request, reporting: recorder)
            _ = try await recorder.first { if case .head = $0 { true } else { false } }
            let executor = try #require(transport.eventLoopExecutor)
            await Task(executorPreference: executor) {
                blockThread(for: Self.limitWithinBody + .milliseconds(500))
            }.value
            #expect(try await response.body.count == 100)
        }
    }
}
