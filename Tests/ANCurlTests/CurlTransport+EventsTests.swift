// SPDX-License-Identifier: MIT

import ANCurl
import ANHTTP
import AsyncNetworkingTesting
import FoundationEssentials
import HTTPTypes
import Testing

@Suite(.timeLimit(.minutes(5))) struct EventsTests {
    @Test func `metrics add up`() async throws {
        try await StubServer.with { server in
            server.route("/", .reply(headers: ["X": "y"], body: .generated(1000)))
            let metrics = try await CurlTransport().ending(
                of: server.request(method: .post, body: .string("hello"))
            ).metrics
            #expect(metrics.remoteAddress == SocketAddress(host: "127.0.0.1", port: server.endpoint.port))
            #expect(metrics.localAddress?.host == "127.0.0.1")
            #expect(metrics.httpVersion == .http1_1)
            #expect(metrics.tlsVersion == nil)
            #expect(metrics.sendCount == 1)
            #expect(metrics.requestBodyBytes == 5)
            #expect(metrics.requestHeadBytes > 50)
            #expect(metrics.responseBodyBytes == 1000)
            // `HTTP/1.1 200 OK`, `X: y`, `Content-Length: 1000` and the empty line.
            #expect(metrics.responseHeadBytes == 17 + 6 + 22 + 2)
            let steps = [metrics.queued, metrics.connect, metrics.requestStart, metrics.firstByte, metrics.total]
            #expect(steps.compactMap(\.self).count == 5)
            #expect(steps.compactMap(\.self) == steps.compactMap(\.self).sorted())
        }
    }

    @Test func `time in the queue is part of all later times`() async throws {
        try await StubServer.with { server in
            server.enqueue(Script.text("first").delayed(by: .milliseconds(60)))
            server.fallback { _ in .text("ok") }
            var limits = ConnectionLimits()
            limits.maximumConnectionsPerHost = 1
            let transport = try CurlTransport(limits: limits)
            async let first = transport.text(server.request())
            try await server.requests(count: 1)
            let metrics = try await transport.ending(of: server.request()).metrics
            _ = try await first
            let steps = [metrics.queued, metrics.requestStart, metrics.firstByte, metrics.total].compactMap(\.self)
            #expect(steps.count == 4)
            #expect(steps == steps.sorted())
        }
    }

    @Test func `an exchange that never left the queue has no one else's metrics`() async throws {
        try await StubServer.with { server in
            server.enqueue(.generated(1000))
            server.fallback { _ in .hang }
            var limits = ConnectionLimits()
            limits.maximumConnectionsPerHost = 1
            let transport = try CurlTransport(limits: limits)
            _ = try await transport.collect(server.request())
            let running = Task { _ = try await transport.collect(server.request()) }
            try await server.requests(count: 2)
            let recorder = EventRecorder()
            let queued = Task { _ = try await transport.collect(server.request(), reporting: recorder) }
            await Task.yield()
            queued.cancel()
            _ = await queued.result
            running.cancel()
            _ = await running.result
            let metrics = try #require(recorder.metrics)
            #expect(metrics.responseBodyBytes == 0)
            #expect(metrics.remoteAddress == nil)
            #expect(metrics.firstByte == nil)
        }
    }

    @Test func `an exchange that fails is over for its events too`() async throws {
        try await StubServer.with { server in
            server.route("/", .truncated(declared: 100, sent: 40))
            let recorder = EventRecorder()
            await #expect(throws: TransportError.self) {
                _ = try await CurlTransport().collect(server.request(), reporting: recorder)
            }
            #expect(recorder.metrics?.responseBodyBytes == 40)
            guard case .finished = recorder.events.last else {
                Issue.record("The last event is not the end.")
                return
            }
            #expect(recorder.events.count { if case .finished = $0 { true } else { false } } == 1)
        }
    }

    @Test func `progress is reported while a body arrives`() async throws {
        try await StubServer.with { server in
            let gate = try ScriptGate()
            server.route(
                "/",
                Script([
                    .send(Data("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nabc".utf8)), .wait(gate),
                    .send(Data("def".utf8)),
                ]))
            let recorder = EventRecorder()
            let transport = try CurlTransport()
            async let body = transport.collect(server.request(), reporting: recorder).body
            _ = try await recorder.first { if case .downloadProgress = $0 { true } else { false } }
            gate.open()
            #expect(try await body == Data("abcdef".utf8))
            #expect(recorder.downloads.first == TransferProgress(completedBytes: 3, totalBytes: 6))
            #expect(recorder.downloads.last == TransferProgress(completedBytes: 6, totalBytes: 6))
        }
    }

    @Test func `an exchange without a response has no progress of a download`() async throws {
        try await StubServer.with { server in
            server.route("/", .close)
            let recorder = EventRecorder()
            await #expect(throws: TransportError.self) {
                _ = try await CurlTransport().collect(
                    server.request(method: .post, body: .string("abc")), reporting: recorder)
            }
            #expect(recorder.downloads.isEmpty)
            let uploads = recorder.events.compactMap { event in
                if case .uploadProgress(let progress) = event { progress } else { nil }
            }
            #expect(uploads.last == TransferProgress(completedBytes: 3, totalBytes: 3))
        }
    }

    @Test func `an exchange that was refused by this side has an end too`() async throws {
        let url = try #require(URL(string: "http://localhost/"))
        let recorder = EventRecorder()
        let transport = try CurlTransport()
        await transport.shutdown()
        await #expect(throws: TransportError.self) {
            _ = try await transport.collect(Request(url: url), reporting: recorder)
        }
        #expect(recorder.events.count { if case .finished = $0 { true } else { false } } == 1)
    }
}

extension EventRecorder {
    fileprivate var downloads: [TransferProgress] {
        events.compactMap { if case .downloadProgress(let progress) = $0 { progress } else { nil } }
    }
}

@Suite(.timeLimit(.minutes(5))) struct CurlTransportConformanceTests {
    @Test(arguments: TransportConformanceCase.all)
    func `the engine is a transport`(_ testCase: TransportConformanceCase) async throws {
        try await testCase.run { try CurlTransport() }
    }

    @Test(arguments: TransportConformanceCase.all)
    func `the engine is a transport over TLS`(_ testCase: TransportConformanceCase) async throws {
        let authority = try TestCertificateAuthority()
        let options = StubServer.Options(tls: .init(try authority.issue()))
        let transfer = TransferOptions.with { $0.tls.trustRoots = .pem(authority.pemData) }
        try await testCase.run(options: options, transfer: transfer) { try CurlTransport() }
    }
}
