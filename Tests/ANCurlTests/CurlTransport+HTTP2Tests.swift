// SPDX-License-Identifier: MIT

import ANCurl
import ANHTTP
import AsyncNetworkingTesting
import Foundation
import HTTPTypes
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(5))) struct HTTP2Tests {
    private let authority: TestCertificateAuthority

    init() throws {
        authority = try TestCertificateAuthority()
    }

    private func options(_ change: (inout TransferOptions) -> Void = { _ in }) -> TransferOptions {
        .with {
            $0.httpVersion = .http2
            $0.tls.trustRoots = .pem(authority.pemData)
            change(&$0)
        }
    }

    private func withServer(_ body: (StubServer) async throws -> Void) async throws {
        var tls = StubServer.TLS(try authority.issue())
        tls.protocols = ["h2"]
        try await StubServer.with(.init(tls: tls), body)
    }

    @Test func `a connection on which nothing came within the limit takes no more requests`() async throws {
        try await withServer { server in
            server.fallback { _ in .http2([]) }
            let transport = try CurlTransport()
            let options = options { $0.timeouts.idle = .milliseconds(300) }
            for number in 1...4 {
                let failure = try await transport.failure(server.request(options: options))
                guard case .timedOut(.responseHead) = failure.reason else {
                    Issue.record("\(failure)")
                    return
                }
                #expect(server.activity.connectionsAccepted == number)
            }
        }
    }

    @Test func `the reader sees the end of a response of known length while the request's body is open`() async throws {
        try await withServer { server in
            server.fallback { _ in .http2([.head(1, length: "4"), .data(1, "done", endsStream: true)]) }
            let feed = Feed()
            feed.yield("ping")
            let request = server.request(
                method: .post, body: .stream(feed), options: options { $0.timeouts.idle = nil })
            let transport = try CurlTransport()
            #expect(try await transport.text(request) == "done")
            feed.finish()
        }
    }

    @Test func `an empty response ends while the request's body is open, also without frames to inspect`() async throws
    {
        try await StubServer.with { server in
            server.fallback { _ in .http2([.head(1, length: "0")]) }
            let feed = Feed()
            feed.yield("ping")
            let request = server.request(
                method: .post, body: .stream(feed),
                options: .with {
                    $0.httpVersion = .http2PriorKnowledge
                    $0.timeouts.total = .seconds(30)
                })
            let transport = try CurlTransport()
            #expect(try await transport.text(request) == "")
            feed.finish()
        }
    }

    @Test func `a body that is shorter than its declared length is an error`() async throws {
        try await withServer { server in
            server.fallback { _ in .http2([.head(1, length: "40"), .data(1, "short", endsStream: true)]) }
            let failure = try await CurlTransport().failure(server.request(options: options()))
            if case .connectionLost = failure.reason {} else { #expect(failure.reason == .invalidResponse(.framing)) }
        }
    }

    @Test(arguments: [UInt8(1), 2, 8, 11])
    func `a stream that the server resets is an error`(code: UInt8) async throws {
        try await withServer { server in
            server.fallback { _ in .http2([.head(1), .data(1, "hel"), .reset(1, code: code)]) }
            let failure = try await CurlTransport().failure(server.request(options: options()))
            guard case .connectionLost = failure.reason else {
                Issue.record("\(failure)")
                return
            }
        }
    }

    /// At code 13, HTTP_1_1_REQUIRED, libcurl would send the request again.
    @Test(arguments: [UInt8(8), 13])
    func `a request whose response is cut by a reset is not sent again`(code: UInt8) async throws {
        try await withServer { server in
            let gate = try ScriptGate()
            server.fallback { _ in
                var script = Script.http2([.head(1), .data(1, "hel")])
                script.actions.removeLast()
                script.actions += [.wait(gate), .send(HTTP2Frame.reset(1, code: code).bytes), .hang]
                return script
            }
            try await CurlTransport().stream(server.request(options: options())) { _, body in
                let error = await #expect(throws: TransportError.self) {
                    for try await _ in body { gate.open() }
                }
                #expect(error?.reason == .connectionLost(.inBody(received: 3, expected: nil)))
            }
            #expect(server.activity.connectionsAccepted == 1)
        }
    }

    @Test func `a server that sends empty frames without end is given up, and holds up no other`() async throws {
        try await StubServer.with { other in
            other.fallback { _ in .text("other") }
            try await withServer { server in
                let flood = (0..<20_000).reduce(into: Data()) { data, _ in data += HTTP2Frame.data(1, "").bytes }
                server.fallback { _ in
                    var script = Script.http2([.head(1)])
                    script.actions.removeLast()
                    script.actions += Array(repeating: .send(flood), count: 5000)
                    return script
                }
                let transport = try CurlTransport()
                async let flooded = transport.failure(server.request(options: options()), delivery: .streamed)
                try await server.requests(count: 1)
                for _ in 0..<20 { #expect(try await transport.text(other.request()) == "other") }
                let failure = try await flooded
                guard failure.reason == .invalidResponse(.framing) else {
                    Issue.record("\(failure)")
                    return
                }
            }
        }
    }

    @Test(arguments: [
        [HTTP2Frame(type: 0, flags: 1, stream: 1, payload: Array(repeating: 65, count: 20_000))],
        [.data(1, "hel"), HTTP2Frame(type: 0, flags: 9, stream: 1, payload: [9, 65, 66])],
        [.data(1, "hel"), HTTP2Frame(type: 0, flags: 1, stream: 1, payload: [65], claimedLength: 1 << 20)],
    ])
    func `a response in which the server breaks the protocol is an error, and ends its connection`(
        frames: [HTTP2Frame]
    ) async throws {
        try await withServer { server in
            server.fallback { _ in .http2([.head(1)] + frames) }
            let transport = try CurlTransport()
            for number in 1...2 {
                let failure = try await transport.failure(server.request(options: options()))
                if case .connectionLost = failure.reason {
                } else {
                    #expect(failure.reason == .invalidResponse(.framing))
                }
                #expect(server.activity.connectionsAccepted == number)
            }
        }
    }

    /// RFC 9113 §8.1.1. A response to a request with a body may be read from the frames, where libcurl loses it.
    @Test(
        arguments: [
            [.head(1), .data(1, "hello"), .head(1, status: "500")],
            [.head(1, status: "204", endsStream: false), .data(1, "hello", endsStream: true)],
            [.head(1), .data(1, "hello"), .trailers(1, ":status", "200")],
            [.head(1), .data(1, "hello"), .trailers(1, "X-Upper", "1")],
            [.head(1), .data(1, "hello"), .trailers(1, "connection", "close")],
            [.head(1, field: "X-Upper", "1"), .data(1, "hello", endsStream: true)],
            [.head(1, field: "transfer-encoding", "chunked"), .data(1, "hello", endsStream: true)],
            [.head(1, field: ":path", "/"), .data(1, "hello", endsStream: true)],
            [.trailers(1, "a", "b")],
        ] as [[HTTP2Frame]], [HTTPRequest.Method.get, .post])
    func `a malformed response is an error`(frames: [HTTP2Frame], method: HTTPRequest.Method) async throws {
        try await withServer { server in
            server.fallback { _ in .http2(frames) }
            let body = method == .post ? RequestBody.bytes(Data("body".utf8)) : .none
            let failure = try await CurlTransport().failure(
                server.request(method: method, body: body, options: options()))
            guard case .invalidResponse = failure.reason else { throw failure }
        }
    }

    @Test(arguments: [HTTPRequest.Method.get, .post])
    func `a response that ends before its declared length has lost its connection`(method: HTTPRequest.Method)
        async throws
    {
        try await withServer { server in
            server.fallback { _ in
                var script = Script.http2([.head(1, length: "9"), .data(1, "he")])
                script.actions.removeLast()
                script.actions += [
                    .delay(.milliseconds(50)), .send(HTTP2Frame.data(1, "llo", endsStream: true).bytes), .hang,
                ]
                return script
            }
            let body = method == .post ? RequestBody.bytes(Data("body".utf8)) : .none
            let failure = try await CurlTransport().failure(
                server.request(method: method, body: body, options: options()))
            guard case .connectionLost(.inBody(_, expected: 9)) = failure.reason else { throw failure }
        }
    }

    @Test func `trailers that cannot be decompressed end the exchange and its connection`() async throws {
        try await withServer { server in
            let trailers = HTTP2Frame(type: 1, flags: 5, stream: 1, payload: [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF])
            server.fallback { _ in .http2([.head(1), .data(1, "hel"), trailers]) }
            let transport = try CurlTransport()
            for number in 1...2 {
                // libcurl 7.88 takes them for the end of the response.
                _ = try? await transport.text(server.request(options: options { $0.timeouts.idle = nil }))
                #expect(server.activity.connectionsAccepted == number)
            }
        }
    }

    @Test func `a response that is cut by a reset without an error is an error`() async throws {
        try await withServer { server in
            server.fallback { _ in .http2([.head(1), .data(1, "hel"), .reset(1, code: 0)]) }
            let failure = try await CurlTransport().failure(server.request(options: options()))
            guard case .connectionLost = failure.reason else {
                Issue.record("\(failure)")
                return
            }
        }
    }

    @Test func `each exchange of a connection ends when the server breaks the protocol`() async throws {
        try await withServer { server in
            server.fallback { _ in
                .http2(
                    [
                        .head(1), .head(3), .data(1, "one"), .data(3, "three"),
                        HTTP2Frame(type: 0, flags: 9, stream: 1, payload: [9, 65]),
                    ], after: .milliseconds(300))
            }
            let transport = try CurlTransport(http2: .multiplexed)
            let options = options { $0.timeouts.idle = nil }
            try await withThrowingTaskGroup { group in
                for _ in 0..<2 {
                    group.addTask { try await transport.failure(server.request(options: options)) }
                }
                for try await failure in group {
                    if case .connectionLost = failure.reason {
                    } else {
                        #expect(failure.reason == .invalidResponse(.framing))
                    }
                }
            }
        }
    }

    @Test func `the reader sees the end of a response without a length while the request's body is open`() async throws
    {
        try await withServer { server in
            server.fallback { _ in
                .http2([.head(1), .data(1, "do"), .data(1, "ne"), .data(1, "", endsStream: true)])
            }
            let feed = Feed()
            feed.yield("ping")
            let request = server.request(
                method: .post, body: .stream(feed), options: options { $0.timeouts.idle = nil })
            let transport = try CurlTransport()
            #expect(try await transport.text(request) == "done")
            feed.finish()
        }
    }

    @Test(arguments: [HTTPRequest.Method.get, .post])
    func `a request that GOAWAY leaves out is sent again on another connection`(method: HTTPRequest.Method) async throws
    {
        try await withServer { server in
            server.fallback { _ in
                server.activity.connectionsAccepted == 1
                    ? .http2([.goAway(last: 0)]) : .http2([.head(1), .data(1, "done", endsStream: true)])
            }
            let request = server.request(
                method: method, body: method == .post ? .bytes(Data("body".utf8)) : .none, options: options())
            let transport = try CurlTransport()
            #expect(try await transport.text(request) == "done")
            #expect(server.activity.connectionsAccepted == 2)
        }
    }

    @Test func `a POST whose stream is refused is sent again, a few times`() async throws {
        try await withServer { server in
            server.fallback { _ in .http2([.reset(1, code: 7)]) }
            let request = server.request(method: .post, body: .bytes(Data("body".utf8)), options: options())
            let failure = try await CurlTransport().failure(request)
            guard case .connectionLost(.beforeResponse) = failure.reason else {
                Issue.record("\(failure)")
                return
            }
            #expect(server.activity.connectionsAccepted == 10)
        }
    }

    @Test func `a POST that GOAWAY may have left to the server is not sent again`() async throws {
        try await withServer { server in
            server.fallback { _ in .http2([.goAway(last: 1)], thenClose: true) }
            let request = server.request(method: .post, body: .bytes(Data("body".utf8)), options: options())
            let failure = try await CurlTransport().failure(request)
            guard case .connectionLost(.beforeResponse) = failure.reason else {
                Issue.record("\(failure)")
                return
            }
            #expect(server.activity.connectionsAccepted == 1)
        }
    }

    /// Returns the status of a request by Basic, the rest of whose body fails once the engine has received a 103.
    private func statusOfFailingRequest(to server: StubServer, _ options: TransferOptions) async throws -> Int {
        let barrier = Barrier { if case .informational = $0 { true } else { false } }
        let body = RequestBody.writer(length: 10) { writer in
            try await writer.write("hello")
            try await eventually { barrier.isReached.isRaised }
            barrier.mayPass.signal()
            throw Planned()
        }
        var request = server.request(method: .post, body: body, options: options)
        var authentication = TransportAuthentication()
        authentication.server = .init(Credential(user: "user", password: "password"), by: .basic)
        request.transportAuthentication = authentication
        return try await CurlTransport().collect(request, reporting: barrier).head.status.code
    }

    @Test(arguments: [[], [HTTP2Frame.goAway(last: 1)]])
    func `a challenge that is complete is the response although the body's source has failed`(
        frames: [HTTP2Frame]
    ) async throws {
        try await withServer { server in
            let interim = HTTP2Frame.head(1, status: "103", endsStream: false)
            server.fallback { _ in .http2([interim] + frames + [.challenge(1, "Basic realm=\"r\"")]) }
            let status = try await statusOfFailingRequest(to: server, options())
            #expect(status == 401)
        }
    }

    @Test func `an exchange with two streams is released, though its connection stays open`() async throws {
        try await withServer { server in
            server.fallback { _ in
                var script = Script.http2([.challenge(1, "Digest realm=\"r\", nonce=\"n\"")])
                script.actions.removeLast()
                // The client answers the challenge meanwhile, and later sends another request: a response to a stream that
                // is not open yet would break the protocol.
                for stream: UInt32 in [3, 5] {
                    script.actions += [
                        .delay(.seconds(1)),
                        .send(HTTP2Frame.head(stream).bytes + HTTP2Frame.data(stream, "ok", endsStream: true).bytes),
                    ]
                }
                script.actions.append(.hang)
                return script
            }
            let transport = try CurlTransport()
            weak var recorder: EventRecorder?
            do {
                let new = EventRecorder()
                recorder = new
                var request = server.request(options: options())
                var authentication = TransportAuthentication()
                authentication.server = .init(Credential(user: "user", password: "password"), by: .digest)
                request.transportAuthentication = authentication
                let (head, body) = try await transport.collect(request, reporting: new)
                #expect(head.status == 200)
                #expect(String(decoding: body, as: UTF8.self) == "ok")
            }
            // The loop may still be in the turn that ended the exchange.
            #expect(try await transport.text(server.request(options: options())) == "ok")
            #expect(recorder == nil)
            #expect(server.activity.connectionsAccepted == 1)
        }
    }

    @Test func `a final response that comes before a reset is delivered, though the request's body is open`()
        async throws
    {
        try await withServer { server in
            server.fallback { _ in
                var script = Script.http2([.head(1)])
                script.actions.removeLast()
                script.actions += [
                    .delay(.milliseconds(50)), .send(HTTP2Frame.data(1, "no", endsStream: true).bytes),
                    .delay(.milliseconds(50)), .send(HTTP2Frame.reset(1, code: 0).bytes), .hang,
                ]
                return script
            }
            let feed = Feed()
            feed.yield("ping")
            let request = server.request(
                method: .post, body: .stream(feed), options: options { $0.timeouts.idle = nil })
            let transport = try CurlTransport()
            #expect(try await transport.text(request) == "no")
            feed.finish()
        }
    }

    /// Without a time limit, the exchange would otherwise never end.
    @Test(.timeLimit(.minutes(1)))
    func `a response that is cut by a reset is an error, though the request's body is open`() async throws {
        try await withServer { server in
            server.fallback { _ in .http2([.head(1), .data(1, "hel"), .reset(1, code: 0)]) }
            let feed = Feed()
            feed.yield("ping")
            let request = server.request(
                method: .post, body: .stream(feed), options: options { $0.timeouts.idle = nil })
            let failure = try await CurlTransport(http2: .multiplexed).failure(request)
            guard case .connectionLost = failure.reason else {
                Issue.record("\(failure)")
                return
            }
            feed.finish()
        }
    }

    /// The buffer is full when the end of the response arrives with the reset, and libcurl 7.88 drops it.
    @Test(.timeLimit(.minutes(1)))
    func `the end of a response that comes with a reset is delivered, though the reader's buffer is full`() async throws
    {
        try await withServer { server in
            server.fallback { _ in
                var script = Script.http2([.head(1), .data(1, String(repeating: "a", count: 1_000))])
                script.actions.removeLast()
                let end = HTTP2Frame.data(1, String(repeating: "b", count: 500), endsStream: true).bytes
                script.actions += [.delay(.milliseconds(50)), .send(end + HTTP2Frame.reset(1, code: 0).bytes), .hang]
                return script
            }
            let feed = Feed()
            feed.yield("ping")
            let request = server.request(
                method: .post, body: .stream(feed),
                options: options {
                    $0.timeouts.idle = nil
                    $0.streamBufferSize = 1_024
                })
            let transport = try CurlTransport(http2: .multiplexed)
            try await transport.stream(request) { _, body in
                // Nothing is read until the reset has arrived.
                try await Task.sleep(for: .milliseconds(300))
                #expect(try await body.collect(upTo: 10_000).count == 1_500)
            }
            feed.finish()
        }
    }

    @Test(arguments: [UInt8(0), 5, 8])
    func `a final response in one record with a reset is delivered, though the request's body is open`(
        code: UInt8
    ) async throws {
        try await withServer { server in
            // Status 403 as a literal, a field of its own in the table, and both again from the table (RFC 7541 §6).
            let head = HTTP2Frame(
                type: 1, flags: 4, stream: 1,
                payload: [0x48, 3] + Array("403".utf8) + [0x40, 3] + Array("x-a".utf8) + [1] + Array("b".utf8))
            server.fallback { _ in
                .http2([
                    HTTP2Frame(type: 1, flags: 4, stream: 1, payload: [0x08, 3] + Array("103".utf8)), head,
                    .data(1, "not "), .data(1, "this", endsStream: true), .reset(1, code: code),
                ])
            }
            let feed = Feed()
            feed.yield("ping")
            let request = server.request(
                method: .post, body: .stream(feed), options: options { $0.timeouts.idle = nil })
            let transport = try CurlTransport()
            let recorder = EventRecorder()
            let response = try await transport.collect(request, reporting: recorder)
            let versions = recorder.events.compactMap { event -> HTTPVersion? in
                if case .finished(let metrics) = event { metrics.httpVersion } else { nil }
            }
            #expect(versions == [.http2])
            #expect(response.head.status == 403)
            #expect(response.head.headers[HTTPField.Name("x-a")!] == "b")
            #expect(String(decoding: response.body, as: UTF8.self) == "not this")
            feed.finish()
        }
    }

    @Test func `final responses on two streams are delivered, though both are reset in a later record`() async throws {
        try await withServer { server in
            server.fallback { _ in
                var script = Script.http2(
                    [.head(1), .head(3), .data(3, "a"), .data(1, "a")], after: .milliseconds(300))
                script.actions.removeLast()
                let rest: [HTTP2Frame] = [
                    .data(1, "b", endsStream: true), .data(3, "b", endsStream: true), .reset(1, code: 8),
                    .reset(3, code: 8),
                ]
                script.actions += rest.map { .send($0.bytes) } + [.hang]
                return script
            }
            let transport = try CurlTransport(http2: .multiplexed)
            let options = options { $0.timeouts.idle = nil }
            let feeds = [Feed(), Feed()]
            try await withThrowingTaskGroup { group in
                for feed in feeds {
                    feed.yield("ping")
                    group.addTask {
                        try await transport.text(
                            server.request(method: .post, body: .stream(feed), options: options))
                    }
                }
                for try await text in group { #expect(text == "ab") }
            }
            for feed in feeds { feed.finish() }
        }
    }

    // MARK: Sharing

    @Test(arguments: [(HTTP2Sharing.exclusive, 2), (.multiplexed, 1)])
    func `concurrent requests share a connection if libcurl can be trusted with that`(
        sharing: HTTP2Sharing, connections: Int
    ) async throws {
        try await withServer { server in
            let gate = try ScriptGate()
            server.fallback { _ in
                var script = Script.http2([.head(1)])
                script.actions.removeLast()
                script.actions += [.wait(gate), .send(HTTP2Frame.data(1, "1", endsStream: true).bytes)]
                if sharing == .multiplexed {
                    script.actions.append(
                        .send(HTTP2Frame.head(3).bytes + HTTP2Frame.data(3, "3", endsStream: true).bytes))
                }
                script.actions.append(.hang)
                return script
            }
            let transport = try CurlTransport(http2: sharing)
            let (options, recorder) = (options(), EventRecorder())
            try await transport.stream(server.request(options: options)) { _, body in
                let request = server.request(method: .post, body: .bytes(Data("body".utf8)), options: options)
                async let other = transport.collect(request, reporting: recorder)
                _ = try await recorder.first { if case .uploadProgress = $0 { true } else { false } }
                gate.open()
                for try await _ in body {}
                #expect(String(decoding: try await other.body, as: UTF8.self) == (sharing == .multiplexed ? "3" : "1"))
            }
            #expect(server.activity.connectionsAccepted == connections)
        }
    }

    @Test
    func `a connection of an older libcurl carries one exchange after the other, and none after an unfinished one`()
        async throws
    {
        try await withServer { server in
            let (second, third) = (try ScriptGate(), try ScriptGate())
            server.fallback { _ in
                var script = Script.http2([.head(1), .data(1, "1", endsStream: true)])
                guard server.activity.connectionsAccepted == 1 else { return script }
                script.actions.removeLast()
                // The third exchange of the first connection remains unfinished.
                script.actions += [
                    .wait(second), .send(HTTP2Frame.head(3).bytes + HTTP2Frame.data(3, "3", endsStream: true).bytes),
                    .wait(third), .send(HTTP2Frame.head(5).bytes), .hang,
                ]
                return script
            }
            let transport = try CurlTransport(http2: .exclusive)
            let request = server.request(options: options())
            @Sendable func open(_ gate: ScriptGate) async throws {
                try await eventually { await transport.features.snapshot().exchanges.first?.connection != nil }
                gate.open()
            }
            #expect(try await transport.text(request) == "1")
            async let opening: Void = open(second)
            #expect(try await transport.text(request) == "3")
            try await opening
            #expect(server.activity.connectionsAccepted == 1)
            async let openingLast: Void = open(third)
            try await transport.stream(request) { _, _ in }
            try await openingLast
            #expect(try await transport.text(request) == "1")
            #expect(server.activity.connectionsAccepted == 2)
        }
    }

    private func withBothVersions(_ body: (StubServer) async throws -> Void) async throws {
        var tls = StubServer.TLS(try authority.issue())
        tls.protocols = ["h2", "http/1.1"]
        try await StubServer.with(.init(tls: tls)) { server in
            server.fallback { request in
                request.method == "PRI" ? .http2([.head(1), .data(1, "2", endsStream: true)]) : .text("1")
            }
            try await body(server)
        }
    }

    @Test(
        arguments: [
            (.exclusive, .automatic, "1"), (.exclusive, .http2, "2"), (.multiplexed, .automatic, "2"),
            (.multiplexed, .http2, "2"), (.multiplexed, .http1, "1"), (.unsupported, .http2, "1"),
        ] as [(HTTP2Sharing, HTTPVersionPolicy, String)])
    func `HTTP/2 is negotiated as the policy and the linked libcurl allow`(
        sharing: HTTP2Sharing, policy: HTTPVersionPolicy, expected: String
    ) async throws {
        try await withBothVersions { server in
            let transport = try CurlTransport(http2: sharing)
            let request = server.request(options: options { $0.httpVersion = policy })
            #expect(try await transport.text(request) == expected)
        }
    }

    @Test func `an open connection of a version that is not allowed or was not offered is not used`() async throws {
        try await withBothVersions { server in
            let transport = try CurlTransport(http2: .multiplexed)
            let first = options()
            let second = options { $0.httpVersion = .http1 }
            #expect(try await transport.text(server.request(options: first)) == "2")
            #expect(try await transport.text(server.request(options: second)) == "1")
        }
        try await withBothVersions { server in
            let transport = try CurlTransport(http2: .exclusive)
            let first = options { $0.httpVersion = .automatic }
            #expect(try await transport.text(server.request(options: first)) == "1")
            #expect(try await transport.text(server.request(options: options())) == "2")
        }
    }

    @Test func `a head that is too large for HTTP/2 is sent over HTTP/1.1, and one of more than 1 MB not at all`()
        async throws
    {
        try await withBothVersions { server in
            let transport = try CurlTransport()
            func request(_ size: Int, _ policy: HTTPVersionPolicy = .http2) -> Request {
                var request = server.request(options: options { $0.httpVersion = policy })
                request.headers[HTTPField.Name("x-large")!] = String(repeating: "a", count: size)
                return request
            }
            #expect(try await transport.text(request(10)) == "2")
            #expect(try await transport.text(request(60_000)) == "1")
            for invalid in [request(60_000, .http2PriorKnowledge), request(1_100_000)] {
                let failure = try await transport.failure(invalid)
                guard case .invalidRequest = failure.reason else {
                    Issue.record("\(failure)")
                    continue
                }
            }
        }
    }

    /// Answers requests one after the other, each when its gate opens, on a connection with one stream at a time.
    private func answering(_ gates: [ScriptGate]) -> Script {
        let settings = HTTP2Frame(type: 4, payload: [0, 3, 0, 0, 0, 1])
        var script = Script([.send(settings.bytes + HTTP2Frame.settingsAcknowledged.bytes)])
        for (index, gate) in gates.enumerated() {
            let stream = UInt32(2 * index + 1)
            // Meanwhile, none of the others waits for the handshake any more.
            if stream == 1 { script.actions.append(.delay(.milliseconds(500))) }
            script.actions += [
                .wait(gate),
                .send(HTTP2Frame.head(stream).bytes + HTTP2Frame.data(stream, "\(stream)", endsStream: true).bytes),
            ]
        }
        script.actions.append(.hang)
        return script
    }

    /// libcurl keeps the requests of all hosts in one queue, and tries one of them when another one ends.
    @Test func `requests beyond the streams that a server allows do not hold up those to another server`() async throws
    {
        try await withServer { busy in
            try await withServer { other in
                let (never, gates) = (try ScriptGate(), try (0..<3).map { _ in try ScriptGate() })
                busy.fallback { _ in answering([never]) }
                other.fallback { _ in answering(gates) }
                var limits = ConnectionLimits()
                limits.maximumConnectionsPerHost = 1
                let transport = try CurlTransport(limits: limits, http2: .multiplexed)
                let options = options {
                    $0.timeouts.idle = nil
                    $0.timeouts.queue = .seconds(20)
                }
                let exchanges = ([busy, busy, busy, busy, busy] + gates.map { _ in other }).map { server in
                    (server.request(method: .post, body: .string("body"), options: options), EventRecorder())
                }
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for (index, (request, recorder)) in exchanges.enumerated() {
                        group.addTask {
                            do {
                                _ = try await transport.collect(request, reporting: recorder)
                            } catch is CancellationError where index < 5 {
                                // Those to the busy server end with the test.
                            }
                        }
                        try await eventually { await transport.features.snapshot().exchanges.count == index + 1 }
                        guard index == 0 else { continue }
                        _ = try await recorder.first { if case .uploadProgress = $0 { true } else { false } }
                    }
                    for ((_, recorder), gate) in zip(exchanges[5...], gates) {
                        _ = try await recorder.first { if case .uploadProgress = $0 { true } else { false } }
                        gate.open()
                        _ = try await recorder.first { if case .finished = $0 { true } else { false } }
                    }
                    group.cancelAll()
                    try await group.waitForAll()
                }
            }
        }
    }

    /// Whether exchanges share connections by default. Those versions of libcurl with which they do not pass over a
    /// connection that is being made, if there is another one to the server.
    private static let sharesConnections = (try? CurlLibrary.current.get().http2) == .multiplexed

    @Test(.enabled(if: sharesConnections))
    func `requests share one connection in place of one that was lost`() async throws {
        try await withServer { server in
            let gate = try ScriptGate()
            let streams: [UInt32] = [1, 3, 5, 7, 9]
            server.fallback { _ in
                guard server.activity.connectionsAccepted == 1 else {
                    return .http2(streams.map { .head($0, endsStream: true) }, after: .milliseconds(500))
                }
                var script = Script.http2([.head(1, endsStream: true)])
                script.actions.removeLast()
                script.actions += [.wait(gate), .end(.close)]
                return script
            }
            let transport = try CurlTransport(http2: .multiplexed)
            #expect(try await transport.text(server.request(options: options())) == "")
            let recorders = streams.map { _ in EventRecorder() }
            try await withThrowingTaskGroup(of: Void.self) { group in
                for recorder in recorders {
                    let request = server.request(method: .put, body: .string("body"), options: options())
                    group.addTask { _ = try await transport.collect(request, reporting: recorder) }
                }
                for recorder in recorders {
                    _ = try await recorder.first { if case .uploadProgress = $0 { true } else { false } }
                }
                gate.open()
                try await group.waitForAll()
            }
            expectOneMaker(of: recorders)
        }
    }

    /// Expects that at most one of the requests made a connection at once. One that has waited for the handshake of another
    /// one for 300 ms makes a connection of its own.
    private func expectOneMaker(of recorders: [EventRecorder], sourceLocation: SourceLocation = #_sourceLocation) {
        let makers = recorders.flatMap(\.events).count { event in
            guard case .finished(let metrics) = event else { return false }
            return !metrics.isConnectionReused && metrics.queued < .milliseconds(300)
        }
        #expect(makers <= 1, sourceLocation: sourceLocation)
    }

    // MARK: Connections in trouble

    @Test func `a connection that froze within a body takes no more requests`() async throws {
        try await withServer { server in
            server.fallback { _ in
                server.activity.connectionsAccepted == 1
                    ? .http2([.head(1), .data(1, "hel")]) : .http2([.head(1), .data(1, "done", endsStream: true)])
            }
            let transport = try CurlTransport(http2: .multiplexed)
            let failure = try await transport.failure(
                server.request(options: options { $0.timeouts.idle = .milliseconds(500) }))
            #expect(failure.reason == .timedOut(.responseBody))
            #expect(try await transport.text(server.request(options: options())) == "done")
            #expect(server.activity.connectionsAccepted == 2)
        }
    }

    @Test func `requests share one connection in place of one that may be dead, which closes after its exchanges`()
        async throws
    {
        try await withServer { server in
            let gate = try ScriptGate()
            server.fallback { _ in
                guard server.activity.connectionsAccepted > 1 else { return .http2([]) }
                var script = Script.http2([.head(1), .data(1, "1", endsStream: true)])
                script.actions.removeLast()
                script.actions += [
                    .wait(gate), .send(HTTP2Frame.head(3).bytes + HTTP2Frame.data(3, "3", endsStream: true).bytes),
                    .hang,
                ]
                return script
            }
            let transport = try CurlTransport(http2: .multiplexed)
            func request(idle: Duration? = nil) -> Request {
                server.request(
                    method: .post, body: .bytes(Data("body".utf8)), options: options { $0.timeouts.idle = idle })
            }
            let (first, second) = (EventRecorder(), EventRecorder())
            let silent = Task { try await transport.collect(request(), reporting: first) }
            _ = try await first.first { if case .uploadProgress = $0 { true } else { false } }
            let failure = try await transport.failure(request(idle: .milliseconds(100)))
            #expect(failure.reason == .timedOut(.responseHead))
            #expect(try await transport.text(request()) == "1")
            async let other = transport.collect(request(), reporting: second)
            _ = try await second.first { if case .uploadProgress = $0 { true } else { false } }
            gate.open()
            #expect(String(decoding: try await other.body, as: UTF8.self) == "3")
            #expect(server.activity.connectionsAccepted == 2)
            silent.cancel()
            _ = await silent.result
            try await server.connections(open: 1)
        }
    }

    @Test(.enabled(if: sharesConnections))
    func `requests that come together share one connection besides one that may be dead`() async throws {
        try await withServer { server in
            let streams: [UInt32] = [1, 3, 5, 7, 9]
            server.fallback { _ in
                server.activity.connectionsAccepted == 1
                    ? .http2([]) : .http2(streams.map { .head($0, endsStream: true) }, after: .milliseconds(500))
            }
            let transport = try CurlTransport(http2: .multiplexed)
            func request(idle: Duration? = nil) -> Request {
                server.request(method: .put, body: .string("body"), options: options { $0.timeouts.idle = idle })
            }
            let first = EventRecorder()
            let silent = Task { try await transport.collect(request(), reporting: first) }
            _ = try await first.first { if case .uploadProgress = $0 { true } else { false } }
            let failure = try await transport.failure(request(idle: .milliseconds(100)))
            #expect(failure.reason == .timedOut(.responseHead))
            let recorders = streams.map { _ in EventRecorder() }
            try await withThrowingTaskGroup(of: Void.self) { group in
                for recorder in recorders {
                    group.addTask { _ = try await transport.collect(request(), reporting: recorder) }
                }
                try await group.waitForAll()
            }
            expectOneMaker(of: recorders)
            silent.cancel()
            _ = await silent.result
        }
    }

    /// libcurl sends a request that was refused again, and the engine one that comes too early.
    @Test(arguments: [(.put, 7, 3), (.get, 11, 2)] as [(HTTPRequest.Method, UInt8, Int)])
    func `a replaced connection closes when its last exchange is sent again`(
        method: HTTPRequest.Method, code: UInt8, connections: Int
    ) async throws {
        try await withServer { server in
            let gate = try ScriptGate()
            server.fallback { _ in
                guard server.activity.connectionsAccepted == 1 else {
                    return .http2([.head(1), .data(1, "1", endsStream: true)])
                }
                var script = Script.http2([])
                script.actions.removeLast()
                script.actions += [.wait(gate), .send(HTTP2Frame.reset(1, code: code).bytes), .hang]
                return script
            }
            let transport = try CurlTransport(http2: .multiplexed)
            func request(idle: Duration? = nil) -> Request {
                server.request(
                    method: method, body: method == .put ? .bytes(Data("body".utf8)) : .none,
                    options: options { $0.timeouts.idle = idle })
            }
            let refused = Task { try await transport.collect(request()) }
            try await eventually { await transport.features.snapshot().exchanges.first?.connection != nil }
            let failure = try await transport.failure(request(idle: .milliseconds(100)))
            #expect(failure.reason == .timedOut(.responseHead))
            #expect(try await transport.text(request()) == "1")
            gate.open()
            try await server.activity { $0.connectionsAccepted == connections }
            try await server.connections(open: connections - 1)
            refused.cancel()
            _ = await refused.result
        }
    }

    @Test(arguments: [false, true])
    func `a connection that was silent and recovers takes requests at the limit of connections`(
        whichWait: Bool
    ) async throws {
        try await withServer { server in
            let (recovery, answer) = (try ScriptGate(), try ScriptGate())
            server.fallback { _ in
                var script = Script.http2([.head(1), .data(1, "1")])
                script.actions.removeLast()
                script.actions += [
                    .wait(recovery), .send(HTTP2Frame.data(1, "2").bytes), .wait(answer),
                    .send(HTTP2Frame.head(5).bytes + HTTP2Frame.data(5, "5", endsStream: true).bytes), .hang,
                ]
                return script
            }
            var limits = ConnectionLimits()
            limits.maximumConnectionsPerHost = 1
            let transport = try CurlTransport(limits: limits, http2: .multiplexed)
            func request(_ change: (inout Timeouts) -> Void) -> Request {
                server.request(
                    method: .post, body: .bytes(Data("body".utf8)),
                    options: options {
                        $0.timeouts.idle = nil
                        change(&$0.timeouts)
                    })
            }
            try await transport.stream(request { _ in }) { _, body in
                var chunks = body.makeAsyncIterator()
                let chunk = try await chunks.next()
                #expect(chunk.map { String(decoding: $0, as: UTF8.self) } == "1")
                let failure = try await transport.failure(request { $0.idle = .milliseconds(100) })
                #expect(failure.reason == .timedOut(.responseHead))
                func recover() async throws {
                    recovery.open()
                    let chunk = try await chunks.next()
                    #expect(chunk.map { String(decoding: $0, as: UTF8.self) } == "2")
                }
                if !whichWait { try await recover() }
                let events = EventRecorder()
                async let third = transport.collect(request { $0.queue = .seconds(10) }, reporting: events)
                if whichWait {
                    try await eventually {
                        await transport.features.snapshot().exchanges.contains { $0.phase == .queue }
                    }
                    try await recover()
                }
                _ = try await events.first {
                    switch $0 {
                    case .uploadProgress, .finished: true
                    default: false
                    }
                }
                answer.open()
                #expect(String(decoding: try await third.body, as: UTF8.self) == "5")
            }
            #expect(server.activity.connectionsAccepted == 1)
        }
    }

    @Test(arguments: [true, false], [BodyDelivery.streamed, .collected(upTo: 1_000)])
    func `a refusal of an expectation is no response, with or without content`(
        isEmpty: Bool, delivery: BodyDelivery
    ) async throws {
        try await withServer { server in
            let content = isEmpty ? [] : [HTTP2Frame.data(1, "refused", endsStream: true)]
            server.enqueue(.http2([.head(1, status: "417", endsStream: isEmpty)] + content))
            server.fallback { _ in .http2([.head(1), .data(1, "answer", endsStream: true)]) }
            let request = server.request(
                method: .post, body: .string("hello"), options: options { $0.expectContinueTimeout = .seconds(3600) })
            let transport = try CurlTransport()
            #expect(try await transport.text(request, delivery: delivery) == "answer")
        }
    }

    /// Each would otherwise wait for 5 s.
    @Test(.timeLimit(.minutes(1)))
    func `an early success that is followed by a reset ends the exchange at once`() async throws {
        try await withServer { server in
            server.fallback { _ in
                .http2([.head(1), .data(1, "done", endsStream: true), .reset(1, code: 0)], after: .milliseconds(10))
            }
            let transport = try CurlTransport()
            let body = RequestBody.bytes(Data(count: 1 << 20))
            for _ in 0..<20 {
                let request = server.request(method: .post, body: body, options: options())
                #expect(try await transport.text(request) == "done")
            }
        }
    }

    @Test(arguments: [(HTTPRequest.Method.get, true), (.post, false)])
    func `a request that an overloaded server resets is sent again later on the connection, if its method allows it`(
        method: HTTPRequest.Method, isRepeated: Bool
    ) async throws {
        try await withServer { server in
            server.fallback { _ in
                var script = Script.http2([.reset(1, code: 11)])
                script.actions.removeLast()
                script.actions += [
                    .delay(.milliseconds(400)),
                    .send(HTTP2Frame.head(3).bytes + HTTP2Frame.data(3, "done", endsStream: true).bytes), .hang,
                ]
                return script
            }
            let transport = try CurlTransport(http2: .multiplexed)
            let request = server.request(
                method: method, body: method == .post ? .bytes(Data("body".utf8)) : .none, options: options())
            if isRepeated {
                #expect(try await transport.text(request) == "done")
            } else {
                let failure = try await transport.failure(request)
                #expect(failure.reason == .connectionLost(.beforeResponse))
            }
            #expect(server.activity.connectionsAccepted == 1)
        }
    }

    @Test func `a body that contradicts its declared length is an error`() async throws {
        try await withServer { server in
            server.fallback { _ in .http2([.head(1, length: "0"), .data(1, "body", endsStream: true)]) }
            _ = try await CurlTransport().failure(server.request(options: options()))
        }
    }

    @Test(arguments: [HTTPRequest.Method.get, .post])
    func `trailers that follow a body of known length are delivered`(method: HTTPRequest.Method) async throws {
        try await withServer { server in
            server.fallback { _ in
                var script = Script.http2([.head(1, length: "2"), .data(1, "ok")])
                script.actions.removeLast()
                script.actions += [
                    .delay(.milliseconds(50)), .send(HTTP2Frame.trailers(1, "x-sum", "7").bytes), .hang,
                ]
                return script
            }
            let body = method == .post ? RequestBody.bytes(Data("body".utf8)) : .none
            let ending = try await CurlTransport().ending(
                of: server.request(method: method, body: body, options: options()))
            #expect(ending.trailers[HTTPField.Name("x-sum")!] == "7")
        }
    }

    @Test(.enabled(if: (try? CurlLibrary.current.get().defects.contains(.lostAnswers)) == true))
    func `trailers are delivered while the request's body is open`() async throws {
        try await withServer { server in
            server.fallback { _ in .http2([.head(1), .data(1, "ok"), .trailers(1, "x-sum", "7")]) }
            let feed = Feed()
            feed.yield("ping")
            let request = server.request(
                method: .post, body: .stream(feed), options: options { $0.timeouts.idle = nil })
            let trailers = try await CurlTransport().stream(request) { _, body in
                for try await _ in body {}
                return body.trailers
            }
            #expect(trailers?[HTTPField.Name("x-sum")!] == "7")
            feed.finish()
        }
    }

    /// With TLS 1.3, tickets follow the handshake.
    @Test func `sessions that arrive while frames are read ahead are resumed`() async throws {
        try await withServer { server in
            server.fallback { _ in
                var script = Script.http2([.head(1), .data(1, "ok", endsStream: true), .goAway(last: 1)])
                script.actions.removeLast()
                return script
            }
            let transport = try CurlTransport()
            for _ in 0..<2 { #expect(try await transport.text(server.request(options: options())) == "ok") }
            let connections = try await server.requests(count: 2)
            #expect(connections.map { $0.tls?.isResumed } == [false, true])
        }
    }

    @Test func `a connection that ends within trailers is an error`() async throws {
        try await withServer { server in
            server.fallback { _ in
                var script = Script.http2([.head(1), .data(1, "ok")])
                script.actions.removeLast()
                script.actions += [.send(HTTP2Frame.trailers(1, "x-sum", "7").bytes.prefix(14)), .end(.close)]
                return script
            }
            let failure = try await CurlTransport().failure(server.request(options: options()))
            if case .connectionLost = failure.reason {} else { #expect(failure.reason == .invalidResponse(.framing)) }
        }
    }

    @Test(arguments: [Script.Ending.close, .reset])
    func `a large request that GOAWAY leaves out is sent again, though sending it failed first`(
        ending: Script.Ending
    ) async throws {
        try await withServer { server in
            server.fallback { _ in
                guard server.activity.connectionsAccepted.isMultiple(of: 2) == false else {
                    return .http2([.head(1), .data(1, "done", endsStream: true), .reset(1, code: 0)])
                }
                // Large windows, so that the body fills the socket.
                let window = HTTP2Frame(type: 8, payload: [0x0F, 0, 0, 0])
                let streamWindow = HTTP2Frame(type: 4, payload: [0, 4, 0x0F, 0, 0, 0])
                return Script([
                    .send(HTTP2Frame.settings.bytes + streamWindow.bytes + window.bytes), .delay(.milliseconds(50)),
                    .send(HTTP2Frame.goAway(last: 0).bytes), .end(ending),
                ])
            }
            let transport = try CurlTransport()
            for _ in 0..<10 {
                let body = RequestBody.bytes(Data(count: 8 << 20))
                let request = server.request(method: .post, body: body, options: options())
                #expect(try await transport.text(request) == "done")
            }
        }
    }

    @Test(arguments: [Script.close, Script([.end(.reset)])])
    func `what a server said about a stream does not hold for the next connection`(end: Script) async throws {
        try await withServer { server in
            server.fallback { _ in server.activity.connectionsAccepted == 1 ? .http2([.goAway(last: 0)]) : end }
            let request = server.request(
                method: .post, body: .bytes(Data("body".utf8)), options: options())
            let failure = try await CurlTransport().failure(request)
            guard case .connectionLost = failure.reason else {
                Issue.record("\(failure)")
                return
            }
            #expect(server.activity.connectionsAccepted == 2)
        }
    }

    private static let replayable = [
        RequestBody.string("body"), .stream(SilentAfterFirst(), isReplayable: true),
    ]

    @Test(arguments: [HTTP2Sharing.exclusive, .multiplexed], replayable)
    func `a refused request is sent again, though its body has no bytes to send yet`(
        sharing: HTTP2Sharing, body: RequestBody
    ) async throws {
        try await withServer { server in
            let gate = try ScriptGate()
            server.fallback { _ in
                guard server.activity.connectionsAccepted == 1 else {
                    return .http2([.head(1), .data(1, "done", endsStream: true)])
                }
                var script = Script.http2([])
                script.actions.removeLast()
                script.actions += [.wait(gate), .send(HTTP2Frame.reset(1, code: 7).bytes), .hang]
                return script
            }
            let transport = try CurlTransport(http2: sharing)
            let recorder = EventRecorder()
            let request = server.request(method: .post, body: body, options: options())
            async let response = transport.collect(request, reporting: recorder)
            _ = try await recorder.first { if case .uploadProgress = $0 { true } else { false } }
            gate.open()
            #expect(String(decoding: try await response.body, as: UTF8.self) == "done")
            #expect(server.activity.connectionsAccepted == 2)
        }
    }

    /// Serves the first of two requests on one connection until the gate opens, then refuses the second one, which waits
    /// for another connection.
    private func refusing(_ gate: ScriptGate, then rest: [HTTP2Frame] = []) -> Script {
        // One stream at a time, with which the first request is busy.
        let settings = HTTP2Frame(type: 4, payload: [0, 3, 0, 0, 0, 1])
        var script = Script.http2([.head(1)])
        script.actions.removeLast()
        script.actions += [.wait(gate), .send(settings.bytes + HTTP2Frame.reset(3, code: 7).bytes)]
        script.actions += rest.map { .send($0.bytes) } + [.hang]
        return script
    }

    @Test(arguments: replayable)
    func `a limit that expires while a refused request waits for a connection names the queue`(
        body: RequestBody
    ) async throws {
        try await withServer { server in
            let gate = try ScriptGate()
            server.fallback { _ in refusing(gate) }
            var limits = ConnectionLimits()
            limits.maximumConnectionsPerHost = 1
            let transport = try CurlTransport(limits: limits, http2: .multiplexed)
            let recorder = EventRecorder()
            let limited = server.request(
                method: .post, body: body, options: options { $0.timeouts.total = .seconds(1) })
            try await transport.stream(server.request(options: options())) { _, _ in
                async let failure = #expect(throws: TransportError.self) {
                    try await transport.collect(limited, reporting: recorder)
                }
                _ = try await recorder.first { if case .uploadProgress = $0 { true } else { false } }
                gate.open()
                let reason = await failure?.reason
                #expect(reason == .timedOut(.queue))
            }
        }
    }

    @Test(arguments: replayable)
    func `a refused request is sent again, though its connection breaks while it waits for another one`(
        body: RequestBody
    ) async throws {
        try await withServer { server in
            let gate = try ScriptGate()
            server.fallback { _ in
                server.activity.connectionsAccepted == 1
                    ? refusing(gate, then: [.data(99, "never opened")])
                    : .http2([.head(1), .data(1, "done", endsStream: true)])
            }
            var limits = ConnectionLimits()
            limits.maximumConnectionsPerHost = 1
            let transport = try CurlTransport(limits: limits, http2: .multiplexed)
            let recorder = EventRecorder()
            let refused = server.request(method: .post, body: body, options: options())
            try await transport.stream(server.request(options: options())) { _, broken in
                async let response = transport.collect(refused, reporting: recorder)
                _ = try await recorder.first { if case .uploadProgress = $0 { true } else { false } }
                gate.open()
                await #expect(throws: TransportError.self) { try await broken.collect(upTo: 100) }
                #expect(String(decoding: try await response.body, as: UTF8.self) == "done")
            }
        }
    }
}

/// A sequence of four bytes that does not end after them.
private struct SilentAfterFirst: AsyncSequence, Sendable {
    func makeAsyncIterator() -> Iterator { Iterator() }

    struct Iterator: AsyncIteratorProtocol {
        private var hasBegun = false

        mutating func next() async throws -> Data? {
            guard hasBegun else {
                hasBegun = true
                return Data("ping".utf8)
            }
            try await Task.sleep(for: .seconds(3600))
            return nil
        }
    }
}
