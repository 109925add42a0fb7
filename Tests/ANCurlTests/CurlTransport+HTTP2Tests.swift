// SPDX-License-Identifier: MIT

import ANCurl
import ANHTTP
import AsyncNetworkingTesting
import Foundation
import HTTPTypes
import Testing

@Suite(.timeLimit(.minutes(1))) struct HTTP2Tests {
    private let authority: TestCertificateAuthority

    init() throws {
        authority = try TestCertificateAuthority()
    }

    private func options(_ change: (inout TransferOptions) -> Void = { _ in }) -> TransferOptions {
        .with {
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
                guard case .timedOut(.responseHead, _, _) = failure else {
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

    @Test func `a body that is shorter than its declared length is an error`() async throws {
        try await withServer { server in
            server.fallback { _ in .http2([.head(1, length: "40"), .data(1, "short", endsStream: true)]) }
            let failure = try await CurlTransport().failure(server.request(options: options()))
            switch failure {
            case .connectionLost, .invalidResponse(.framing, _): break
            default: Issue.record("\(failure)")
            }
        }
    }

    @Test(arguments: [UInt8(1), 2, 8, 11])
    func `a stream that the server resets is an error`(code: UInt8) async throws {
        try await withServer { server in
            server.fallback { _ in .http2([.head(1), .data(1, "hel"), .reset(1, code: code)]) }
            let failure = try await CurlTransport().failure(server.request(options: options()))
            guard case .connectionLost = failure else {
                Issue.record("\(failure)")
                return
            }
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
                guard case .connectionLost(.inBody(received: 0, expected: nil), _) = failure else {
                    Issue.record("\(failure)")
                    return
                }
            }
        }
    }
}
