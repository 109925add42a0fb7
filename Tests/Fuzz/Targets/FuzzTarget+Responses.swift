// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials
import HTTPTypes

extension FuzzTarget {
    /// The whole client, with what a server sends in place of a response: a request ends within its time limit, with a
    /// response or an error that is not one of the library itself.
    static let responses: [FuzzTarget] = [
        FuzzTarget(name: "http1-responses", maximumSize: 1_024, check: .client { try await perform(on: .http1, $0) }),
        FuzzTarget(name: "http2-responses", maximumSize: 1_024, check: .client { try await perform(on: .http2, $0) }),
    ]

    /// A server and a session.
    private struct Exchange: Sendable {
        let server: StubServer
        let session: SessionManager
        /// The reaction to the next request.
        let script = Lock(Script.text("done"))
        /// The authority of the server's certificate, as PEM.
        let authority: Data

        static let http1 = try? Exchange(nil)
        static let http2 = try? Exchange(["h2"])

        init(_ protocols: [String]?) throws {
            let authority = try TestCertificateAuthority()
            let tls = try protocols.map { protocols in
                var tls = StubServer.TLS(try authority.issue())
                tls.protocols = protocols
                return tls
            }
            server = try StubServer(.init(tls: tls))
            server.fallback { [script] _ in script.withLock { $0 } }
            var configuration = SessionConfiguration()
            configuration.redirectPolicy = .none
            session = SessionManager(configuration)
            self.authority = authority.pemData
        }
    }

    /// The first byte determines the method, and the end of the connection; the others are what the server sends.
    private static func perform(on exchange: Exchange?, _ input: [UInt8]) async throws {
        guard let exchange else { throw Violation(description: "there is no server") }
        let flags = input.first ?? 0
        let bytes = Data(input.dropFirst())
        let isMultiplexed = exchange.server.options.tls != nil
        // After the settings, a client sends the request that the frames refer to.
        let start: [Script.Action] = [
            .send(Data([0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 4, 1, 0, 0, 0, 0])), .delay(.milliseconds(2)),
        ]
        let end = Script.Action.end(flags & 1 == 0 ? .close : .reset)
        exchange.script.withLock { $0 = Script((isMultiplexed ? start : []) + [.send(bytes), end]) }
        let method: HTTPRequest.Method = flags & 6 == 0 ? .get : flags & 6 == 2 ? .post : .head
        var request = Request(method: method, url: exchange.server.url("/"))
        if flags & 6 == 2 { request.body = .string("body") }
        request.changeOptions {
            $0.proxy = .none
            $0.timeouts.total = .seconds(15)
            $0.maximumBodySize = 1 << 20
            $0.tls.trustRoots = .pem(exchange.authority)
        }
        do {
            let response = try await exchange.session.data(for: request)
            try require(response.value.count <= 1 << 20, "a body of \(response.value.count) bytes is within the limit")
        } catch SessionError.transport(let error) {
            switch error.reason {
            case .timedOut, .internalInconsistency: throw Violation(description: "\(error)")
            default: break
            }
        }
    }
}
