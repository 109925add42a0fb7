// SPDX-License-Identifier: MIT

import ANCurl
import ANHTTP
import AsyncNetworkingTesting
import Foundation
import HTTPTypes
import Testing

/// Nothing of an exchange must reach the next one. Most of these tests crashed the process with libcurl 7.88.1 when exchanges
/// shared an easy handle.
@Suite(.timeLimit(.minutes(30))) struct HandlesTests {
    @Test func `a first header line that begins with a blank is refused after another exchange`() async throws {
        let redirect = "HTTP/1.1 302 F\r\nX-A: bbbbbbbbbbbbbbbbbbbbbbbb\r\nLocation: /b\r\nContent-Length: 0\r\n\r\n"
        let folded = "HTTP/1.1 200 OK\r\n X: y\r\nContent-Length: 2\r\n\r\nok"
        try await StubServer.with { server in
            server.route("/a", Script([.send(Data(redirect.utf8))]))
            server.route("/b", Script([.send(Data(folded.utf8))]))
            let transport = try CurlTransport()
            for _ in 0..<3 {
                #expect(try await transport.collect(server.request("/a")).head.status.code == 302)
                let failure = try await transport.failure(server.request("/b"))
                guard case .invalidResponse(.headerLine) = failure.reason else {
                    Issue.record("\(failure)")
                    return
                }
            }
        }
    }

    @Test func `requests with trailers and chunked uploads follow one another`() async throws {
        try await StubServer.with { server in
            server.fallback { _ in .text("ok") }
            let sum = try #require(HTTPField.Name("X-Sum"))
            let transport = try CurlTransport()
            for number in 0..<12 {
                var request = server.request(
                    method: .post, body: .stream(Generated(count: 40_000, chunkSize: 1000)))
                if number % 3 != 2 { request.trailers = { [sum: "\(number)"] } }
                #expect(try await transport.text(request) == "ok")
            }
            let received = try await server.requests(count: 12)
            #expect(received.map(\.bodyLength) == Array(repeating: 40_000, count: 12))
            #expect(
                received.map(\.trailers) == (0..<12).map { $0 % 3 == 2 ? [:] : ["X-Sum": "\($0)"] })
        }
    }

    @Test func `a request whose trailers were sent is not repeated when its connection is lost`() async throws {
        try await StubServer.with { server in
            server.enqueue(.text("first"), .close)
            server.fallback { _ in .text("ok") }
            let sum = try #require(HTTPField.Name("X-Sum"))
            let transport = try CurlTransport()
            #expect(try await transport.text(server.request()) == "first")
            var request = server.request(method: .put, body: .bytes(Data("body".utf8)))
            request.trailers = { [sum: "42"] }
            let failure = try await transport.failure(request)
            guard case .connectionLost(.beforeResponse) = failure.reason else {
                Issue.record("\(failure)")
                return
            }
            #expect(try await transport.text(server.request()) == "ok")
            #expect(server.activity.requests.map(\.method) == ["GET", "PUT", "GET"])
        }
    }

    /// All kinds of exchanges at once, many times: a build with AddressSanitizer sees what they do to memory.
    /// `AN_MIXED_EXCHANGES` sets their number.
    @Test(arguments: [false, true])
    func `a finished exchange is released at once, not when its time limit expires`(isCancelled: Bool) async throws {
        try await StubServer.with { server in
            server.fallback { $0.path == "/hang" ? .hang : .text("ok") }
            let transport = try CurlTransport()
            weak var recorder: EventRecorder?
            do {
                let new = EventRecorder()
                recorder = new
                let request = server.request(isCancelled ? "/hang" : "/")
                let task = Task { try await transport.collect(request, reporting: new) }
                if isCancelled {
                    try await server.requests(count: 1)
                    task.cancel()
                }
                _ = await task.result
            }
            // The loop may still be in the turn that ended the exchange.
            _ = try await transport.text(server.request())
            #expect(recorder == nil)
        }
    }

    @Test func `exchanges of all kinds do not disturb each other`() async throws {
        let count = ProcessInfo.processInfo.environment["AN_MIXED_EXCHANGES"].flatMap { Int($0) } ?? 2000
        try await StubServer.with { server in
            let folded = Data("HTTP/1.1 200 OK\r\n X: y\r\nContent-Length: 2\r\n\r\nok".utf8)
            server.route("/folded") { _ in Script([.send(folded), .end(.close)]) }
            server.route("/417") { _ in .status(417) }
            server.route("/cut") { _ in .truncated(declared: 1000, sent: 10) }
            server.route("/reset") { _ in .resetAfter(bytes: 60) }
            server.route("/close") { _ in .close }
            server.route("/401") { _ in .status(401, headers: ["WWW-Authenticate": "Digest realm=\"r\", nonce=\"n\""]) }
            server.route("/chunked") { _ in
                .reply(headers: ["Set-Cookie": "a=b"], body: .string("ok"), framing: .chunked, trailers: ["X-T": "1"])
            }
            server.fallback { _ in .text("ok") }
            let kinds = Self.kinds(on: server)
            let transport = try CurlTransport()
            try await withThrowingTaskGroup(of: Void.self) { group in
                for worker in 0..<8 {
                    group.addTask {
                        var random = SplitMix64(seed: UInt64(worker))
                        for _ in 0..<(count / 8) {
                            let kind = kinds[Int(random.next() % UInt64(kinds.count))]
                            try await kind.perform(by: transport)
                        }
                    }
                }
                try await group.waitForAll()
            }
            #expect(try await transport.text(server.request()) == "ok")
        }
    }

    private struct Kind: Sendable {
        let request: Request
        let status: Int?

        /// Performs the request; either it has the expected status, or it fails where no status is expected.
        func perform(by transport: CurlTransport) async throws {
            do {
                let head = try await transport.collect(request).head
                #expect(head.status.code == status, "\(request.url)")
            } catch let error as TransportError {
                guard status != nil else { return }
                throw error
            }
        }
    }

    private static func kinds(on server: StubServer) -> [Kind] {
        var trailing = server.request("/ok", method: .post, body: .stream(Generated(count: 3000, chunkSize: 700)))
        trailing.trailers = { [HTTPField.Name.eTag: "x", HTTPField.Name.contentLanguage: "y"] }
        let chunked = server.request("/ok", method: .put, body: .stream(Generated(count: 3000, chunkSize: 700)))
        var digest = server.request("/401", method: .post, body: .bytes(Data("body".utf8)))
        var authentication = TransportAuthentication()
        authentication.server = .init(Credential(user: "u", password: "p"), by: .digest)
        digest.transportAuthentication = authentication
        let expecting = server.request(
            "/417", method: .post, body: .bytes(Data(repeating: 1, count: 5000)),
            options: .with { $0.expectContinueTimeout = .milliseconds(10) })
        return [
            Kind(request: server.request("/ok"), status: 200), Kind(request: server.request("/chunked"), status: 200),
            Kind(request: server.request("/ok", method: .head), status: 200),
            Kind(request: server.request("/folded"), status: nil), Kind(request: server.request("/417"), status: 417),
            Kind(request: server.request("/cut"), status: nil), Kind(request: server.request("/reset"), status: nil),
            Kind(request: server.request("/close"), status: nil), Kind(request: trailing, status: 200),
            Kind(request: chunked, status: 200), Kind(request: digest, status: 401),
            Kind(request: expecting, status: 417),
        ]
    }
}
