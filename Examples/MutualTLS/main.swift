// SPDX-License-Identifier: MIT

// A server that requires client certificates, and two clients: one with a certificate and one without.
//
//     swift run MutualTLS

import AsyncNetworking
import AsyncNetworkingTesting

let authority = try TestCertificateAuthority()
let ada = try authority.issue(.client("Ada"))
var tls = StubServer.TLS(try authority.issue())
tls.clientAuthority = authority.pemData

try await StubServer.with(.init(tls: tls)) { server in
    server.fallback { request in .text("Hello, \(request.tls?.clientName ?? "stranger")!") }
    let identity = ClientIdentity.pem(certificates: .data(ada.chainPEM), key: .data(ada.privateKeyPEM))
    for identity in [identity, nil] {
        var configuration = SessionConfiguration(baseURL: server.url())
        configuration.tls.trustRoots = .pem(authority.pemData)
        configuration.tls.identity = identity
        do {
            print(try await SessionManager(configuration).get("/", as: .string).value)
        } catch {
            print(error)
        }
    }
}
