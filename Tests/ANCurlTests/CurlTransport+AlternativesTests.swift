// SPDX-License-Identifier: MIT

import ANCurl
import ANHTTP
import ANSystem
import AsyncNetworkingTesting
import FoundationEssentials
import Testing

/// Exchanges with an alternative service that the transport cannot use, or where nothing listens.
@Suite(.timeLimit(.minutes(5))) struct CurlTransportAlternativesTests {
    @Test func `an exchange whose alternative cannot be used is performed by the origin`() async throws {
        let authority = try TestCertificateAuthority()
        try await StubServer.with(.init(tls: .init(authority.issue()))) { server in
            server.fallback { _ in .echo }
            let reports = Lock<[Bool]>([])
            for (port, isProven) in [
                (server.endpoint.port, false), (server.endpoint.port, true), (1, false), (1, true),
            ] {
                var request = server.request(
                    options: .with {
                        $0.proxy = .none
                        $0.tls.trustRoots = .pem(authority.pemData)
                    })
                request[AlternativeRoute.self] = AlternativeRoute(port: port, isProven: isProven) { hasWorked in
                    reports.withLock { $0.append(hasWorked) }
                }
                _ = try await CurlTransport().collect(request)
            }
            let requests = try await server.requests(count: 4)
            #expect(requests.allSatisfy { $0.headers["Alt-Used"] == nil })
            let library = try CurlLibrary.current.get()
            #expect(
                reports.withLock { $0 } == (library.usesNGTCP2 ? [false, false, false, false] : []))
        }
    }
}
