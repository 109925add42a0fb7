// SPDX-License-Identifier: MIT

import ANCurl
import ANHTTP
import AsyncNetworkingTesting
import Foundation
import HTTPTypes
import Testing

@Suite(.timeLimit(.minutes(5))) struct TLSTests {
    private let authority: TestCertificateAuthority

    init() throws {
        authority = try TestCertificateAuthority()
    }

    private var trusting: TransferOptions {
        .with { $0.tls.trustRoots = .pem(authority.pemData) }
    }

    /// Runs `body` with a server that shows a certificate of the authority.
    private func withServer(
        _ profile: TestCertificate.Profile = .localhost, _ change: (inout StubServer.TLS) -> Void = { _ in },
        _ body: (StubServer) async throws -> Void
    ) async throws {
        var tls = StubServer.TLS(try authority.issue(profile))
        change(&tls)
        try await StubServer.with(.init(tls: tls)) { server in
            server.fallback { _ in .text("secret") }
            try await body(server)
        }
    }

    private func failure(
        _ server: StubServer, _ options: TransferOptions? = nil
    ) async throws -> TransportError.TLSFailure {
        let error = try await CurlTransport().failure(server.request(options: options ?? trusting))
        guard case .tls(let failure) = error.reason else { throw error }
        let context = error.context
        #expect(context.host == "127.0.0.1")
        #expect(server.activity.requests.isEmpty, "Nothing is sent to a server that is not trusted.")
        return failure
    }

    /// libcurl 7.88 sends two buffers of a head over TLS, and waits for the response.
    @Test(arguments: [20_000, 40_000, 70_000, 140_000, 300_000, 900_000], [nil, "body"])
    func `a head of any size up to 1 MB is sent, or the request fails`(size: Int, body: String?) async throws {
        let isSent = try size < 307_000 || !CurlLibrary.current.get().defects.contains(.droppedFields)
        try await withServer { server in
            let value = String(repeating: "a", count: size)
            let request = server.request(
                method: body == nil ? .get : .post, headers: [HTTPField.Name(constant: "x-large"): value],
                body: body.map { .string($0) } ?? .none, options: trusting)
            guard isSent else {
                let failure = try await CurlTransport().failure(request)
                guard case .invalidRequest = failure.reason else { throw failure }
                return
            }
            #expect(try await CurlTransport().text(request) == "secret")
            let received = try #require(server.activity.requests.last)
            #expect(received.headers.values("x-large") == [value])
            #expect(String(decoding: received.body, as: UTF8.self) == body ?? "")
        }
    }

    @Test func `a trusted server is spoken to, and the metrics say how`() async throws {
        try await withServer { server in
            let transport = try CurlTransport()
            let metrics = try await transport.ending(of: server.request(options: trusting)).metrics
            #expect(metrics.tlsVersion == "TLSv1.3")
            #expect(metrics.cipher?.hasPrefix("TLS_") == true)
            #expect(metrics.tlsHandshake != nil)
            #expect(metrics.httpVersion == .http1_1)
            let again = try await transport.ending(of: server.request(options: trusting)).metrics
            #expect(again.isConnectionReused)
            #expect(again.tlsVersion == "TLSv1.3")
            #expect(again.tlsHandshake == nil)
            let request = try await server.requests(count: 1)[0]
            #expect(request.tls?.applicationProtocol == "http/1.1")
        }
    }

    @Test func `a file of authorities is read`() async throws {
        let path = FileManager.default.temporaryDirectory.appendingPathComponent("ca-\(UUID()).pem").path
        try authority.write(to: path)
        defer { try? FileManager.default.removeItem(atPath: path) }
        try await withServer { server in
            let options = TransferOptions.with { $0.tls.trustRoots = .file(path) }
            let text = try await CurlTransport().text(server.request(options: options))
            #expect(text == "secret")
        }
    }

    @Test func `the name in the URL is the one that is asked for`() async throws {
        try await withServer { server in
            let url = try #require(URL(string: "https://localhost:\(server.endpoint.port)/"))
            let text = try await CurlTransport().text(Request(url: url, options: trusting))
            #expect(text == "secret")
            #expect(try await server.requests(count: 1)[0].tls?.serverName == "localhost")
        }
    }

    @Test(arguments: [
        (TestCertificate.Profile.expired, TransportError.TLSFailure.certificateExpired, "certificate expired"),
        (.notYetValid, .certificateNotYetValid, "bad certificate"), (.wrongHost, .wrongHost, "bad certificate"),
    ])
    func `a certificate that is not good is refused, and the server learns why`(
        profile: TestCertificate.Profile, expected: TransportError.TLSFailure, alert: String
    ) async throws {
        try await withServer(profile) { server in
            let failure = try await failure(server)
            #expect(failure == expected)
            let reasons = try await server.activity { !$0.failedHandshakes.isEmpty }.failedHandshakes
            #expect(reasons.allSatisfy { $0.contains(alert) }, "\(reasons)")
        }
    }

    @Test func `an authority that is not trusted is refused`() async throws {
        try await withServer { server in
            let unknown = try await failure(server, .with { _ in })
            #expect(unknown == .unknownAuthority)
            let other = try TestCertificateAuthority(name: "Another Root")
            let distrusted = try await failure(server, .with { $0.tls.trustRoots = .pem(other.pemData) })
            #expect(distrusted == .unknownAuthority)
        }
    }

    @Test func `a certificate signed by itself is refused`() async throws {
        try await StubServer.with(.init(tls: .init(try .selfSigned()))) { server in
            let failure = try await failure(server)
            #expect(failure == .selfSigned)
        }
    }

    @Test func `trust in one exchange is not trust in the next`() async throws {
        try await withServer { server in
            let transport = try CurlTransport()
            #expect(try await transport.text(server.request(options: trusting)) == "secret")
            let error = try await transport.failure(server.request(options: .with { _ in }))
            guard case .tls(.unknownAuthority) = error.reason else { throw error }
            #expect(try await transport.text(server.request(options: trusting)) == "secret")
            #expect(server.activity.requests.count == 2)
        }
    }

    @Test func `the versions can be limited`() async throws {
        try await withServer { server in
            let old = trusting.with { $0.tls.maximumVersion = .v1_2 }
            let metrics = try await CurlTransport().ending(of: server.request(options: old)).metrics
            #expect(metrics.tlsVersion == "TLSv1.2")
        }
        try await withServer(.localhost, { $0.maximumVersion = .v1_2 }) { server in
            let failure = try await failure(server, trusting.with { $0.tls.minimumVersion = .v1_3 })
            #expect(failure == .handshake)
        }
    }

    @Test(arguments: [TrustRoots.file("/nonexistent.pem"), .pem(Data("nothing".utf8))])
    func `authorities that cannot be read are an error`(roots: TrustRoots) async throws {
        try await withServer { server in
            let failure = try await failure(server, .with { $0.tls.trustRoots = roots })
            #expect(failure == .badTrustRoots)
        }
    }

    @Test func `TLS to a server without it fails the handshake`() async throws {
        try await StubServer.with { server in
            let url = try #require(URL(string: "https://127.0.0.1:\(server.endpoint.port)/"))
            let error = try await CurlTransport().failure(Request(url: url, options: trusting))
            guard case .tls(.handshake) = error.reason else { throw error }
        }
    }

    @Test func `no TLS to a server that wants it is no HTTP`() async throws {
        try await withServer { server in
            let url = try #require(URL(string: "http://127.0.0.1:\(server.endpoint.port)/"))
            let error = try await CurlTransport().failure(Request(url: url))
            switch error.reason {
            case .connectionLost, .invalidResponse: break
            default: throw error
            }
        }
    }

    @Test func `a truncation is not taken for the end of a body`() async throws {
        try await withServer { server in
            server.enqueue(.truncated(declared: 1000, sent: 400))
            let error = try await CurlTransport().failure(server.request(options: trusting))
            guard case .connectionLost(.inBody(received: 400, expected: 1000)) = error.reason else { throw error }
        }
    }

    @Test func `a stale connection with TLS is replaced once`() async throws {
        try await withServer { server in
            server.enqueue(.text("first"), .close, .text("again"))
            let transport = try CurlTransport()
            _ = try await transport.text(server.request(options: trusting))
            let metrics = try await transport.ending(of: server.request(options: trusting)).metrics
            #expect(metrics.sendCount == 2)
        }
    }

    @Test func `large bodies pass through TLS both ways`() async throws {
        try await withServer { server in
            server.route("/down", .generated(5_000_000))
            let transport = try CurlTransport()
            let down = try await transport.collect(server.request("/down", options: trusting)).body
            #expect(down == StubServer.generatedBytes(5_000_000))
            let body = RequestBody.stream(Generated(count: 5_000_000))
            _ = try await transport.text(server.request("/up", method: .post, body: body, options: trusting))
            #expect(try await server.requests(count: 2)[1].bodyLength == 5_000_000)
        }
    }

    @Test func `many exchanges at once to a new host all end`() async throws {
        try await withServer { server in
            let transport = try CurlTransport()
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<50 { group.addTask { _ = try await transport.text(server.request(options: trusting)) } }
                try await group.waitForAll()
            }
            #expect(server.activity.connectionsAccepted <= 6)
        }
    }
}
