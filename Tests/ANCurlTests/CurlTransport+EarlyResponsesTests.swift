// SPDX-License-Identifier: MIT

import ANCurl
import ANHTTP
import AsyncNetworkingTesting
import Foundation
import HTTPTypes
import Synchronization
import TestSupport
import Testing

/// Responses that are complete while the request's body is not.
@Suite(.timeLimit(.minutes(2))) struct EarlyResponsesTests {
    /// Complete responses, in each framing of HTTP/1.1 that tells their end.
    static let responses = [
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nearly",
        "HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nearly\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nearly\r\n0\r\nX-Trailer: 1\r\n\r\n",
    ]

    private static func script(_ response: String, isClosed: Bool = false) -> Script {
        let end: [Script.Action] = isClosed ? [.end(.closeWithoutReading)] : [.hang]
        return Script([.readBody(upTo: 4), .send(Data(response.utf8))] + end, readsBodyFirst: false)
    }

    /// Fails by the suite's time limit if the end of the response waits for that of the body.
    @Test(arguments: responses, [false, true])
    func `a response ends although its request's body never does`(response: String, isSecure: Bool) async throws {
        let authority = try TestCertificateAuthority()
        let tls = try isSecure ? StubServer.TLS(authority.issue()) : nil
        try await StubServer.with(.init(tls: tls)) { server in
            for _ in 0..<2 { server.enqueue(Self.script(response)) }
            let transport = try CurlTransport(options: .with { $0.tls.trustRoots = .pem(authority.pemData) })
            let request = server.request(method: .post, body: .stream(Endless()))
            #expect(try await transport.text(request) == "early")
            let streamed = try await transport.stream(request) { _, body in try await body.collect(upTo: 100) }
            #expect(streamed == Data("early".utf8))
        }
    }

    @Test(arguments: [nil, 1_000] as [Int64?], [false, true])
    func `a response ends although the source of its request's body has nothing to send`(
        length: Int64?, isClosed: Bool
    ) async throws {
        try await StubServer.with { server in
            for response in Self.responses { server.enqueue(Self.script(response, isClosed: isClosed)) }
            let transport = try CurlTransport(
                options: .with { ($0.timeouts.total, $0.timeouts.idle) = (.seconds(60), nil) })
            for _ in Self.responses {
                let feed = Feed()
                feed.yield("ping")
                let request = server.request(method: .put, body: .stream(feed, length: length))
                let metrics = try await transport.ending(of: request).metrics
                #expect(metrics.responseBodyBytes == 5)
            }
        }
    }

    /// The reader takes nothing, so that libcurl does not read the end of the connection.
    @Test(arguments: [false, true])
    func `nothing is taken from a source once the connection is lost`(isSecure: Bool) async throws {
        let authority = try TestCertificateAuthority()
        let tls = try isSecure ? StubServer.TLS(authority.issue()) : nil
        try await StubServer.with(.init(tls: tls)) { server in
            let gate = try ScriptGate()
            let head = Data("HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n".utf8)
            let part: [Script.Action] = [.send(head), .send(Data(count: 4 << 20)), .wait(gate)]
            server.enqueue(
                Script([.readBody(upTo: 4)] + part + [.end(.closeWithoutReading)], readsBodyFirst: false))
            let transport = try CurlTransport(options: .with { $0.tls.trustRoots = .pem(authority.pemData) })
            let count = Atomic(0)
            let body = RequestBody.writer { writer in
                while true {
                    try await writer.write(Data(count: 64 << 10))
                    count.wrappingAdd(1, ordering: .relaxed)
                }
            }
            _ = try? await transport.stream(server.request(method: .post, body: body)) { _, _ in
                gate.open()
                // A connection that is lost takes some hundred chunks at once.
                let pause = ContinuousClock.now + .seconds(1)
                while count.load(ordering: .relaxed) < 1_000, .now < pause { await Task.yield() }
            }
            #expect(count.load(ordering: .relaxed) < 1_000)
        }
    }

    @Test(arguments: responses)
    func `the rest of a body is sent while the reader of the response stays`(response: String) async throws {
        try await StubServer.with { server in
            server.enqueue(
                Script([.readBody(upTo: 4), .send(Data(response.utf8)), .readBody()], readsBodyFirst: false))
            let feed = Feed()
            feed.yield("ping")
            try await CurlTransport().stream(server.request(method: .put, body: .stream(feed))) { _, body in
                let received = try await body.collect(upTo: 100)
                #expect(received == Data("early".utf8))
                #expect(body.metrics != nil)
                feed.yield(" and more")
                feed.finish()
                try await server.activity { $0.requests.first?.isComplete == true }
            }
            #expect(server.activity.requests.map(\.text) == ["ping and more"])
        }
    }

    /// The scope of the response waits for the source, and the connection takes no more.
    @Test(arguments: [false, true])
    func `a source is stopped when the connection is lost after the response`(isSecure: Bool) async throws {
        let authority = try TestCertificateAuthority()
        let tls = try isSecure ? StubServer.TLS(authority.issue()) : nil
        try await StubServer.with(.init(tls: tls)) { server in
            server.enqueue(Self.script(Self.responses[0], isClosed: true))
            let transport = try CurlTransport(options: .with { $0.tls.trustRoots = .pem(authority.pemData) })
            let isStopped = Flag()
            let feed = Feed()
            feed.yield("ping")
            let body = RequestBody.writer { writer in
                defer { isStopped.raise() }
                try await writer.write("ping")
                for try await part in feed { try await writer.write(part) }
                while true { try await writer.write(Data(count: 64 << 10)) }
            }
            try await transport.stream(server.request(method: .post, body: body)) { _, body in
                let received = try await body.collect(upTo: 100)
                #expect(received == Data("early".utf8))
                feed.finish()
                try await eventually { isStopped.isRaised }
            }
        }
    }

    @Test(arguments: ["HTTP/1.1 200 OK\r\nConnection: close", "HTTP/1.0 200 OK"])
    func `the rest of a body is not sent after the last response of its connection`(head: String) async throws {
        try await StubServer.with { server in
            server.enqueue(Self.script(head + "\r\nContent-Length: 5\r\n\r\nearly"))
            let isStopped = Flag()
            let body = RequestBody.writer { writer in
                defer { isStopped.raise() }
                while true { try await writer.write("ping") }
            }
            try await CurlTransport().stream(server.request(method: .put, body: body)) { _, body in
                let received = try await body.collect(upTo: 100)
                #expect(received == Data("early".utf8))
                try await eventually { isStopped.isRaised }
            }
        }
    }

    @Test func `an error of a body's source after the response does not change the response`() async throws {
        try await StubServer.with { server in
            server.enqueue(Self.script(Self.responses[0]))
            let feed = Feed()
            feed.yield("ping")
            try await CurlTransport().stream(server.request(method: .put, body: .stream(feed))) { _, body in
                var chunks = body.makeAsyncIterator()
                let first = try await chunks.next()
                #expect(first == Data("early".utf8))
                let second = try await chunks.next()
                feed.finish(throwing: Planned())
                let third = try await chunks.next()
                #expect(second == nil && third == nil)
            }
        }
    }

    @Test(arguments: [nil, 1_000] as [Int64?])
    func `a response that is cut while its request's body is open is not complete`(length: Int64?) async throws {
        try await StubServer.with { server in
            let cut = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nearly\r\n"
            server.enqueue(Self.script(cut, isClosed: true))
            let feed = Feed()
            feed.yield("ping")
            let request = server.request(method: .put, body: .stream(feed, length: length))
            let error = try await CurlTransport().failure(request)
            guard case .connectionLost(.inBody(received: 5, expected: nil)) = error.reason else { throw error }
        }
    }

    @Test func `a response ends although the server reads no more of a body in memory`() async throws {
        try await StubServer.with { server in
            for response in Self.responses { server.enqueue(Self.script(response)) }
            server.fallback { _ in .text("next") }
            let transport = try CurlTransport()
            for _ in Self.responses {
                let request = server.request(method: .post, body: .bytes(Data(count: 50_000_000)))
                #expect(try await transport.text(request) == "early")
            }
            // Nothing of the body is taken for another request.
            #expect(try await transport.text(server.request()) == "next")
        }
    }
}

/// Chunks without end.
private struct Endless: AsyncSequence, AsyncIteratorProtocol, Sendable {
    func makeAsyncIterator() -> Endless { self }

    func next() async throws -> Data? { Data(count: 4096) }
}
