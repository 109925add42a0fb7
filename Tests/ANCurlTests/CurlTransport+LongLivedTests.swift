// SPDX-License-Identifier: MIT

import ANCurl
import ANHTTP
import ANSystem
import AsyncNetworkingTesting
import Foundation
import HTTPTypes
import TestSupport
import Testing

/// Event streams and WebSockets beside ordinary requests to the same host.
@Suite(.timeLimit(.minutes(5))) struct LongLivedTests {
    /// Whether the server speaks TLS.
    enum Scheme: CaseIterable {
        case http
        case https
    }

    private let authority: TestCertificateAuthority

    init() throws {
        authority = try TestCertificateAuthority()
    }

    /// Options with which a request that waits for a connection fails after a while.
    private func options(queue: Duration = .seconds(20)) -> TransferOptions {
        .with {
            $0.timeouts.queue = queue
            $0.timeouts.idle = nil
            $0.tls.trustRoots = .pem(authority.pemData)
        }
    }

    /// Runs a closure with a server of event streams that do not end, WebSockets and answers.
    private func withServer(
        _ scheme: Scheme = .http, protocols: [String]? = nil, _ body: (StubServer) async throws -> Void
    ) async throws {
        var options = StubServer.Options()
        if scheme == .https {
            var tls = StubServer.TLS(try authority.issue())
            if let protocols { tls.protocols = protocols }
            options.tls = tls
        }
        try await StubServer.with(options) { server in
            server.route("/events", .events([ServerSentEvent(data: "a")], then: .hang))
            server.route("/socket", Script([.acceptWebSocket(), .echoMessages()]))
            server.route("/hang", .hang)
            server.fallback { _ in .text("ok") }
            try await body(server)
        }
    }

    private func events(_ server: StubServer, queue: Duration = .seconds(20)) -> Request {
        server.request("/events", headers: [.accept: "text/event-stream"], options: options(queue: queue))
    }

    private func webSocket(_ server: StubServer, queue: Duration = .seconds(20)) -> Request {
        var request = server.request("/socket", options: options(queue: queue))
        request.webSocketOptions = WebSocketOptions()
        return request
    }

    /// Runs a closure while responses to requests are open.
    private func whileOpen(
        _ requests: [Request], on transport: CurlTransport, _ body: () async throws -> Void
    ) async throws {
        let (opened, opening) = AsyncStream.makeStream(of: Void.self)
        let (closed, closing) = AsyncStream.makeStream(of: Never.self)
        let end = Task { for await _ in closed {} }
        try await withThrowingTaskGroup(of: Void.self) { group in
            defer { closing.finish() }
            for request in requests {
                group.addTask {
                    // The wait for all ends early if one fails.
                    defer { opening.finish() }
                    try await transport.stream(request) { _, _ in
                        opening.yield()
                        await end.value
                    }
                }
            }
            var left = requests.count
            for await _ in opened {
                left -= 1
                if left == 0 { break }
            }
            if left == 0 { try await body() }
            closing.finish()
            try await group.waitForAll()
        }
    }

    private func expectTimeout(_ request: Request, on transport: CurlTransport) async throws {
        let error = try await transport.failure(request)
        #expect(error.reason == .timedOut(.queue))
    }

    @Test(arguments: Scheme.allCases)
    func `requests are answered beside six event streams, as many at a time as without them`(
        scheme: Scheme
    ) async throws {
        try await withServer(scheme) { server in
            let transport = try CurlTransport()
            try await whileOpen(Array(repeating: events(server), count: 6), on: transport) {
                #expect(try await transport.text(server.request(options: options())) == "ok")
                let gate = try ScriptGate()
                server.route("/wait", Script([.wait(gate), .reply(Reply())]))
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for _ in 0..<6 {
                        group.addTask { _ = try await transport.collect(server.request("/wait", options: options())) }
                    }
                    try await server.requests(count: 13)
                    try await expectTimeout(server.request(options: options(queue: .milliseconds(300))), on: transport)
                    gate.open()
                    try await group.waitForAll()
                }
                #expect(server.activity.connectionsAccepted == 12)
            }
        }
    }

    @Test(arguments: Scheme.allCases)
    func `seven WebSockets are open at the same time, beside a request`(scheme: Scheme) async throws {
        try await withServer(scheme) { server in
            let transport = try CurlTransport()
            try await whileOpen(Array(repeating: webSocket(server), count: 7), on: transport) {
                let text = try await transport.text(server.request(options: options()))
                #expect(text == "ok")
            }
        }
    }

    @Test func `40 WebSockets take no connection from 100 downloads, of which six run at a time`() async throws {
        try await withServer { server in
            server.route("/file", .generated(100_000))
            let transport = try CurlTransport()
            try await whileOpen(Array(repeating: webSocket(server), count: 40), on: transport) {
                try await withThrowingTaskGroup(of: Int.self) { group in
                    for _ in 0..<100 {
                        group.addTask {
                            try await transport.collect(server.request("/file", options: options())).body.count
                        }
                    }
                    for try await count in group { #expect(count == 100_000) }
                }
                #expect(server.activity.connectionsAccepted <= 46)
            }
        }
    }

    // MARK: Limits

    private func transport(_ change: (inout ConnectionLimits) -> Void) throws -> CurlTransport {
        var limits = ConnectionLimits()
        change(&limits)
        return try CurlTransport(limits: limits)
    }

    @Test func `event streams and WebSockets have a limit of their own, at which they wait`() async throws {
        try await withServer { server in
            let transport = try transport { $0.maximumLongLivedPerHost = 2 }
            try await whileOpen([events(server), webSocket(server)], on: transport) {
                try await expectTimeout(events(server, queue: .milliseconds(300)), on: transport)
                try await expectTimeout(webSocket(server, queue: .milliseconds(300)), on: transport)
                let text = try await transport.text(server.request(options: options()))
                #expect(text == "ok")
            }
        }
    }

    @Test func `0 means no limit`() async throws {
        try await withServer { server in
            let transport = try transport { $0.maximumLongLivedPerHost = 0 }
            try await whileOpen(Array(repeating: webSocket(server), count: 300), on: transport) {
                let text = try await transport.text(server.request(options: options()))
                #expect(text == "ok")
            }
        }
    }

    @Test func `the limit for all connections holds for both`() async throws {
        try await withServer { server in
            let transport = try transport { $0.maximumConnections = 3 }
            try await whileOpen([events(server), webSocket(server), events(server)], on: transport) {
                try await expectTimeout(server.request(options: options(queue: .milliseconds(300))), on: transport)
            }
            #expect(try await transport.text(server.request(options: options())) == "ok")
        }
    }

    @Test func `a place is given to the next, after the end of an event stream or its cancellation`() async throws {
        try await withServer { server in
            let gate = try ScriptGate()
            var ending = Script.events([ServerSentEvent(data: "a")])
            ending.actions.insert(.wait(gate), at: 1)
            server.route("/ending", ending)
            let transport = try transport { $0.maximumLongLivedPerHost = 1 }
            let first = server.request("/ending", headers: [.accept: "text/event-stream"], options: options())
            try await transport.stream(first) { _, body in
                let cancelled = Task { try await transport.collect(events(server)) }
                // Two wait: one for a while, and one until it is cancelled.
                try await expectTimeout(events(server, queue: .milliseconds(300)), on: transport)
                cancelled.cancel()
                await #expect(throws: CancellationError.self) { try await cancelled.value }
                async let second: Void = transport.stream(events(server)) { _, _ in }
                gate.open()
                for try await _ in body {}
                // It leaves its stream early.
                try await second
            }
            try await whileOpen([webSocket(server)], on: transport) {}
            #expect(server.activity.requests.count == 3)
        }
    }

    @Test func `connections of requests are kept beside more event streams than connections may be idle`() async throws
    {
        try await withServer { server in
            let transport = try transport { $0.maximumIdleConnections = 3 }
            try await whileOpen(Array(repeating: events(server), count: 3), on: transport) {
                _ = try await transport.text(server.request(options: options()))
                let metrics = try await transport.ending(of: server.request(options: options())).metrics
                #expect(metrics.isConnectionReused)
            }
        }
    }

    @Test func `connections that event streams leave are used again, and hinder no WebSocket`() async throws {
        try await withServer { server in
            let gate = try ScriptGate()
            var ending = Script.events([ServerSentEvent(data: "a")])
            ending.actions.insert(.wait(gate), at: 1)
            server.route("/ending", ending)
            // With several loops, requests avoid one that is much busier than another, even if it has free connections.
            let transport = try transport { ($0.maximumIdleAge, $0.eventLoops) = (.seconds(3600), 1) }
            try await withThrowingTaskGroup(of: Void.self) { group in
                let request = server.request("/ending", headers: [.accept: "text/event-stream"], options: options())
                for _ in 0..<20 { group.addTask { _ = try await transport.collect(request) } }
                try await server.requests(count: 20)
                gate.open()
                try await group.waitForAll()
            }
            try await whileOpen(Array(repeating: webSocket(server), count: 20), on: transport) {
                let gate = try ScriptGate()
                server.route("/wait", Script([.wait(gate), .reply(Reply())]))
                try await withThrowingTaskGroup(of: Bool.self) { group in
                    for _ in 0..<6 {
                        let request = server.request("/wait", options: options())
                        group.addTask { try await transport.ending(of: request).metrics.isConnectionReused }
                    }
                    try await server.requests(count: 46)
                    gate.open()
                    for try await isReused in group { #expect(isReused) }
                }
            }
        }
    }

    @Test func `an open WebSocket is not closed to make room for a connection`() async throws {
        try await withServer { server in
            var request = server.request("/socket", options: options())
            request.webSocketOptions = WebSocketOptions()
            let transport = try transport { $0.maximumConnectionsPerHost = 1 }
            try await transport.stream(request) { head, _ in
                let link = try #require(head.webSocket)
                for interface in [nil, "host!127.0.0.1", nil, "host!127.0.0.1"] {
                    let options = options().with { $0.connection.localInterface = interface }
                    // A connection that is idle cannot be used by the next request.
                    let metrics = try await transport.ending(of: server.request(options: options)).metrics
                    #expect(!metrics.isConnectionReused)
                }
                try await link.send { WebSocketFrame(.text, [1]) }
                #expect(try await link.receive() == [WebSocketFrame(.text, [1])])
            }
        }
    }

    @Test func `over HTTP/2 a request shares the connection of an event stream, even the only one`() async throws {
        try await withServer(.https, protocols: ["h2"]) { server in
            let gate = try ScriptGate()
            server.fallback { _ in
                var script = Script.http2([.head(1)])
                script.actions.removeLast()
                let answer = HTTP2Frame.head(3).bytes + HTTP2Frame.data(3, "3", endsStream: true).bytes
                script.actions += [.wait(gate), .send(answer), .hang]
                return script
            }
            var limits = ConnectionLimits()
            limits.maximumConnections = 1
            let transport = try CurlTransport(limits: limits, http2: .multiplexed)
            let options = options().with { $0.httpVersion = .http2 }
            let events = server.request(headers: [.accept: "text/event-stream"], options: options)
            let request = server.request(method: .post, body: .string("body"), options: options)
            let recorder = EventRecorder()
            try await transport.stream(events) { _, _ in
                async let other = transport.collect(request, reporting: recorder)
                _ = try await recorder.first { if case .uploadProgress = $0 { true } else { false } }
                gate.open()
                #expect(String(decoding: try await other.body, as: UTF8.self) == "3")
            }
            #expect(server.activity.connectionsAccepted == 1)
        }
    }

    /// Runs a closure while an event stream is open over HTTP/2, at a limit of one connection to the host.
    ///
    /// - Parameters:
    ///   - frames: The frames that follow the first event, once the gate is open.
    ///   - body: Called with requests to the server.
    private func withEvents(
        then frames: [HTTP2Frame],
        _ body: (CurlTransport, ScriptGate, @Sendable (Duration?) -> Request) async throws -> Void
    ) async throws {
        try await withServer(.https, protocols: ["h2"]) { server in
            let gate = try ScriptGate()
            server.fallback { _ in
                guard server.activity.connectionsAccepted == 1 else {
                    return .http2([.head(1), .data(1, "ok", endsStream: true)])
                }
                var script = Script.http2([.head(1), .data(1, "a")])
                script.actions.removeLast()
                script.actions += [.wait(gate)] + frames.map { .send($0.bytes) } + [.hang]
                return script
            }
            var limits = ConnectionLimits()
            limits.maximumConnectionsPerHost = 1
            let transport = try CurlTransport(limits: limits, http2: .multiplexed)
            let options = options().with { $0.httpVersion = .http2 }
            let events = server.request(headers: [.accept: "text/event-stream"], options: options)
            try await transport.stream(events) { _, chunks in
                var iterator = chunks.makeAsyncIterator()
                let first = try await iterator.next()
                #expect(first == Data("a".utf8))
                try await body(transport, gate) { idle in
                    server.request(
                        method: .post, body: .string("body"), options: options.with { $0.timeouts.idle = idle })
                }
            }
            #expect(server.activity.connectionsAccepted == 2)
        }
    }

    @Test func `a request that GOAWAY leaves out does not wait for an event stream on its connection`() async throws {
        try await withEvents(then: [.goAway(last: 1)]) { transport, gate, request in
            let recorder = EventRecorder()
            async let response = transport.collect(request(nil), reporting: recorder)
            _ = try await recorder.first { if case .uploadProgress = $0 { true } else { false } }
            gate.open()
            #expect(String(decoding: try await response.body, as: UTF8.self) == "ok")
        }
    }

    @Test func `a request does not wait for an event stream on a connection that may be dead`() async throws {
        try await withEvents(then: []) { transport, _, request in
            let failure = try await transport.failure(request(.milliseconds(100)))
            #expect(failure.reason == .timedOut(.responseHead))
            let text = try await transport.text(request(nil))
            #expect(text == "ok")
        }
    }

    @Test func `a request does not wait for an event stream on a connection that its server closes`() async throws {
        try await withServer(.https, protocols: ["h2"]) { server in
            server.fallback { _ in
                let number = server.activity.connectionsAccepted
                return .http2([.goAway(last: 1), .head(1), .data(1, "\(number)", endsStream: number == 4)])
            }
            var limits = ConnectionLimits()
            limits.maximumConnectionsPerHost = 1
            let transport = try CurlTransport(limits: limits, http2: .multiplexed)
            let options = options().with { $0.httpVersion = .http2 }
            let events = server.request(headers: [.accept: "text/event-stream"], options: options)
            try await transport.stream(events) { _, first in
                for try await _ in first { break }
                try await transport.stream(events) { _, second in
                    for try await _ in second { break }
                    try await transport.stream(events) { _, third in
                        for try await _ in third { break }
                        #expect(try await transport.text(server.request(options: options)) == "4")
                    }
                }
            }
        }
    }

    @Test func `a response that comes whole permits several exchanges on its connection`() async throws {
        try await withServer(.https, protocols: ["h2"]) { server in
            let (answers, others) = (try ScriptGate(), try ScriptGate())
            server.fallback { _ in
                var script = Script.http2([])
                script.actions.removeLast()
                func whole(_ stream: UInt32) -> Data {
                    HTTP2Frame.head(stream).bytes + HTTP2Frame.data(stream, "x", endsStream: true).bytes
                }
                script.actions += [.wait(answers), .send(whole(1)), .wait(others), .send(whole(3) + whole(5)), .hang]
                return script
            }
            var limits = ConnectionLimits()
            limits.maximumConnectionsPerHost = 1
            let transport = try CurlTransport(limits: limits, http2: .multiplexed)
            let options = options().with { $0.httpVersion = .http2 }
            let recorders = (0..<3).map { _ in EventRecorder() }
            try await withThrowingTaskGroup(of: Void.self) { group in
                for recorder in recorders {
                    let request = server.request(method: .post, body: .string("body"), options: options)
                    group.addTask { _ = try await transport.collect(request, reporting: recorder) }
                }
                while await transport.features.snapshot().exchanges.count < 3 { await Task.yield() }
                answers.open()
                // Both others are sent before one has a response.
                for recorder in recorders {
                    _ = try await recorder.first { if case .uploadProgress = $0 { true } else { false } }
                }
                others.open()
                try await group.waitForAll()
            }
            #expect(server.activity.connectionsAccepted == 1)
        }
    }

    // MARK: Kinds

    @Test(
        arguments: [
            (nil, nil, false), ("text/event-stream", nil, true), ("Text/Event-Stream", nil, true),
            ("application/json, text/event-stream", nil, false), ("application/json", true, true),
            ("text/event-stream", false, false),
        ] as [(String?, Bool?, Bool)])
    func `what a request accepts makes it long-lived, unless it says so itself`(
        type: String?, isLongLived: Bool?, expected: Bool
    ) {
        var request = Request(url: URL(filePath: "/"))
        request.headers[.accept] = type
        request.isLongLived = isLongLived
        #expect(request.mayGoOnForLong == expected)
    }
}
