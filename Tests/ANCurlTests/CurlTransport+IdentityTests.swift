// SPDX-License-Identifier: MIT

import ANCurl
import ANHTTP
import ANSystem
import AsyncNetworkingTesting
import Foundation
import HTTPTypes
import TestSupport
import Testing

/// Clients with certificates, against a server that asks for them.
@Suite(.timeLimit(.minutes(5))) struct IdentityTests {
    private let authority: TestCertificateAuthority
    private let directory = "/tmp/an-identity-\(UUID())"

    init() throws {
        authority = try TestCertificateAuthority()
    }

    /// Calls `body` with a server, and removes the written files at its end.
    private func withServer(
        requiresClientCertificate: Bool = true, _ body: (StubServer) async throws -> Void
    ) async throws {
        defer { try? FileManager.default.removeItem(atPath: directory) }
        var tls = StubServer.TLS(try authority.issue())
        tls.clientAuthority = authority.pemData
        tls.requiresClientCertificate = requiresClientCertificate
        try await StubServer.with(.init(tls: tls)) { server in
            server.fallback { _ in .text("hello") }
            try await body(server)
        }
    }

    private func options(_ identity: ClientIdentity?) -> TransferOptions {
        .with {
            $0.tls.trustRoots = .pem(authority.pemData)
            $0.tls.identity = identity
        }
    }

    private func client(_ name: String) throws -> TestCertificate {
        try authority.issue(.client(name))
    }

    private func pem(_ certificate: TestCertificate) -> ClientIdentity {
        .pem(certificates: .data(certificate.chainPEM), key: .data(certificate.privateKeyPEM))
    }

    private func write(_ data: Data, _ name: String) throws -> String {
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        let path = "\(directory)/\(name)"
        try data.write(to: URL(filePath: path))
        return path
    }

    private func openssl(_ arguments: [String]) async throws {
        let outcome = try await Command(["openssl"] + arguments).run()
        try #require(outcome.status == 0, "openssl \(arguments): \(outcome.text)")
    }

    /// Makes a request and looks by which name the server knows the client.
    private func expectName(_ name: String, _ server: StubServer, _ identity: ClientIdentity) async throws {
        let seen = server.activity.requests.count
        let text = try await CurlTransport().text(server.request(options: options(identity)))
        #expect(text == "hello")
        let request = try await server.requests(count: seen + 1)[seen]
        #expect(request.tls?.clientName == name)
    }

    private func problem(_ server: StubServer, _ identity: ClientIdentity) async throws -> ClientIdentity.LoadingError {
        let error = try await CurlTransport().failure(server.request(options: options(identity)))
        guard case .tls(.badClientIdentity(let problem)) = error.reason else { throw error }
        let context = error.context
        #expect(context.host == "127.0.0.1")
        #expect(server.activity.connectionsAccepted == 0)
        return problem
    }

    private func expectProblem(
        _ expected: ClientIdentity.LoadingError, _ server: StubServer, _ identity: ClientIdentity
    ) async throws {
        let problem = try await problem(server, identity)
        #expect(problem == expected)
    }

    @Test func `an identity in PEM is shown, from memory and from files`() async throws {
        let ada = try client("Ada")
        let both = try write(ada.chainPEM + ada.privateKeyPEM, "both.pem")
        let (chain, key) = (try write(ada.chainPEM, "chain.pem"), try write(ada.privateKeyPEM, "key.pem"))
        try await withServer { server in
            try await expectName("Ada", server, pem(ada))
            try await expectName("Ada", server, .pem(certificates: .file(both)))
            try await expectName("Ada", server, .pem(certificates: .file(chain), key: .file(key)))
        }
    }

    @Test(arguments: [TLSVersion.v1_2, .v1_3])
    func `an identity is chosen for each connection, although its sessions could be resumed`(
        version: TLSVersion
    ) async throws {
        let ada = pem(try client("Ada"))
        let isLoggedIn = Lock(true)
        try await withServer(requiresClientCertificate: false) { server in
            server.fallback { _ in .data(Data("hello".utf8), headers: ["Connection": "close"]) }
            var options = options(nil)
            options.tls.maximumVersion = version
            options.tls.identityChooser = .init { _ in isLoggedIn.withLock { $0 ? .identity(ada) : .none } }
            let transport = try CurlTransport()
            for isKnown in [true, true, false] {
                isLoggedIn.withLock { $0 = isKnown }
                _ = try await transport.text(server.request(options: options))
            }
            let names = try await server.requests(count: 3).map { $0.tls?.clientName }
            #expect(names == ["Ada", "Ada", nil])
        }
    }

    @Test func `an identity that an intermediate authority signed is shown with its chain`() async throws {
        let ada = try authority.intermediate().issue(.client("Ada"))
        try await withServer { server in
            try await expectName("Ada", server, pem(ada))
        }
    }

    @Test(arguments: [[], ["-traditional"]]) func `an encrypted key needs its passphrase`(form: [String]) async throws {
        let ada = try client("Ada")
        let plain = try write(ada.privateKeyPEM, "plain.pem")
        let encrypted = directory + "/encrypted.pem"
        try await openssl(
            ["pkey", "-in", plain, "-aes256"] + form + ["-passout", "pass:open sesame", "-out", encrypted])
        func identity(_ passphrase: String?) -> ClientIdentity {
            .pem(certificates: .data(ada.chainPEM), key: .file(encrypted), passphrase: passphrase)
        }
        try await withServer { server in
            try await expectProblem(.wrongPassphrase, server, identity("wrong"))
            try await expectProblem(.passphraseMissing, server, identity(nil))
            try await expectName("Ada", server, identity("open sesame"))
        }
    }

    @Test func `an identity in PKCS #12 is shown with its chain`() async throws {
        let ada = try authority.intermediate().issue(.client("Ada"))
        let pem = try write(ada.chainPEM + ada.privateKeyPEM, "ada.pem")
        let (bundle, open) = (directory + "/ada.p12", directory + "/open.p12")
        try await openssl(["pkcs12", "-export", "-in", pem, "-passout", "pass:open sesame", "-out", bundle])
        try await openssl(["pkcs12", "-export", "-in", pem, "-passout", "pass:", "-out", open])
        let (keyless, lone) = (directory + "/keyless.p12", directory + "/lone.p12")
        try await openssl(["pkcs12", "-export", "-in", pem, "-nokeys", "-passout", "pass:", "-out", keyless])
        try await openssl(["pkcs12", "-export", "-in", pem, "-nocerts", "-passout", "pass:", "-out", lone])
        try await withServer { server in
            try await expectProblem(.noKey, server, .pkcs12(.file(keyless)))
            try await expectProblem(.noCertificate, server, .pkcs12(.file(lone)))
            try await expectProblem(.wrongPassphrase, server, .pkcs12(.file(bundle), passphrase: "wrong"))
            try await expectProblem(.wrongPassphrase, server, .pkcs12(.file(bundle)))
            try await expectName("Ada", server, .pkcs12(.file(bundle), passphrase: "open sesame"))
            let bytes = try Data(contentsOf: URL(filePath: open))
            try await expectName("Ada", server, .pkcs12(.data(bytes)))
        }
    }

    @Test func `an identity that cannot be used is an error before anything is connected`() async throws {
        let (ada, ben) = (try client("Ada"), try client("Ben"))
        var late = TestCertificate.Profile.client("Late")
        late.validity = .expired
        var early = TestCertificate.Profile.client("Early")
        early.validity = .notYetValid
        let (expired, notYetValid) = (pem(try authority.issue(late)), pem(try authority.issue(early)))
        try await withServer { server in
            let mismatched = ClientIdentity.pem(certificates: .data(ada.chainPEM), key: .data(ben.privateKeyPEM))
            try await expectProblem(.keyMismatch, server, mismatched)
            try await expectProblem(.noCertificate, server, .pem(certificates: .data(ada.privateKeyPEM)))
            try await expectProblem(.noKey, server, .pem(certificates: .data(ada.chainPEM)))
            try await expectProblem(.malformed("it is no PKCS #12"), server, .pkcs12(.data(Data("no".utf8))))
            let missing = try await problem(server, .pem(certificates: .file("/none.pem")))
            guard case .unusable(let reason) = missing, reason.hasPrefix("/none.pem: ") else {
                Issue.record("A file that is not there is named.")
                return
            }
            let end = try await Self.date("its certificate expired at ", problem(server, expired))
            #expect(abs(end.timeIntervalSinceNow + 3600) < 60)
            _ = try await Self.date("its certificate is not valid before ", problem(server, notYetValid))
        }
    }

    /// In a process of its own, where no other test allocates memory. Slow, because a leak differs from noise only after
    /// some hundred requests.
    @Test(.exitTest) func `identities that cannot be used free their memory`() async {
        await #expect(processExitsWith: .success) {
            let authority = try TestCertificateAuthority()
            let ada = try authority.intermediate().issue(.client("Ada"))
            let directory = "/tmp/an-identity-\(UUID())"
            try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: false)
            defer { try? FileManager.default.removeItem(atPath: directory) }
            try (ada.chainPEM + ada.privateKeyPEM).write(to: URL(filePath: "\(directory)/ada.pem"))
            func bundle(_ option: String) async throws -> Data {
                // With one iteration, the derivation of keys takes no time.
                let command = Command(
                    "openssl", "pkcs12", "-export", "-in", "\(directory)/ada.pem", option, "-passout", "pass:", "-iter",
                    "1")
                return Data(try await command.run().output)
            }
            let (keyless, lone) = (try await bundle("-nokeys"), try await bundle("-nocerts"))
            let broken = ada.chainPEM + Data("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n".utf8)
            let other = try authority.issue(.client("Ben")).privateKeyPEM
            let identities: [ClientIdentity] = [
                .pem(certificates: .data(ada.chainPEM), key: .data(other)), .pem(certificates: .data(ada.chainPEM)),
                .pem(certificates: .data(broken), key: .data(ada.privateKeyPEM)), .pkcs12(.data(keyless)),
                .pkcs12(.data(lone)),
            ]
            let transport = try CurlTransport()
            let url = try #require(URL(string: "https://127.0.0.1:1/"))
            for identity in identities {
                func fail(_ times: Int) async throws {
                    for _ in 0..<times {
                        let error = try await transport.failure(
                            Request(
                                url: url,
                                options: .with {
                                    // The system's authorities would be loaded for each request.
                                    $0.tls.trustRoots = .pem(authority.pemData)
                                    $0.tls.identity = identity
                                }))
                        guard case .tls(.badClientIdentity) = error.reason else { throw error }
                    }
                }
                // Caches and the heap grow at first.
                try await fail(200)
                let before = allocatedBytes()
                try await fail(100)
                // A certificate or a key takes more than 500 bytes.
                if !isSanitized { #expect(allocatedBytes() - before < 40_000) }
            }
        }
    }

    /// Returns the date after the given words in the description of a problem.
    private static func date(_ words: String, _ problem: ClientIdentity.LoadingError) throws -> Date {
        try #require(problem.description.hasPrefix(words), "\(problem)")
        return try Date(String(problem.description.dropFirst(words.count)), strategy: .iso8601)
    }

    @Test func `files that have changed are read again, and old connections are left alone`() async throws {
        let (ada, ben) = (try client("Ada"), try client("Ben"))
        let path = try write(ada.chainPEM + ada.privateKeyPEM, "client.pem")
        let options = options(.pem(certificates: .file(path)))
        try await withServer { server in
            let transport = try CurlTransport()
            for _ in 0..<2 { _ = try await transport.text(server.request(options: options)) }
            _ = try write(ben.chainPEM + ben.privateKeyPEM, "client.pem")
            for _ in 0..<2 { _ = try await transport.text(server.request(options: options)) }
            let requests = try await server.requests(count: 4)
            #expect(requests.map { $0.tls?.clientName } == ["Ada", "Ada", "Ben", "Ben"])
            #expect(requests.map(\.connection) == [0, 0, 1, 1])
        }
    }

    @Test func `while a certificate does not match the key in another file, the earlier identity is used`() async throws
    {
        let (ada, ben) = (try client("Ada"), try client("Ben"))
        let options = options(
            .pem(
                certificates: .file(try write(ada.chainPEM, "chain.pem")),
                key: .file(try write(ada.privateKeyPEM, "key.pem"))))
        try await withServer { server in
            let transport = try CurlTransport()
            _ = try await transport.text(server.request(options: options))
            _ = try write(ben.chainPEM, "chain.pem")
            for _ in 0..<2 { _ = try await transport.text(server.request(options: options)) }
            // A file that is missing is no half of a change.
            try FileManager.default.removeItem(atPath: "\(directory)/key.pem")
            let error = try await transport.failure(server.request(options: options))
            guard case .tls(.badClientIdentity(.unusable)) = error.reason else { throw error }
            _ = try write(ben.privateKeyPEM, "key.pem")
            _ = try await transport.text(server.request(options: options))
            let names = try await server.requests(count: 4).map { $0.tls?.clientName }
            #expect(names == ["Ada", "Ada", "Ada", "Ben"])
        }
    }

    @Test func `identities are chosen by host`() async throws {
        var options = options(pem(try client("Ada")))
        options.tls.hostIdentities["localhost"] = pem(try client("Ben"))
        try await withServer { server in
            let transport = try CurlTransport()
            _ = try await transport.text(server.request(options: options))
            _ = try await transport.text(Request(url: server.url(host: "localhost"), options: options))
            let names = try await server.requests(count: 2).map { $0.tls?.clientName }
            #expect(names == ["Ada", "Ben"])
        }
    }

    @Test(arguments: [TLSVersion.v1_2, .v1_3])
    func `a server that does not take the identity is named as the one who refuses`(version: TLSVersion) async throws {
        let stranger = try TestCertificateAuthority(name: "Stranger").issue(.client("Eve"))
        let options = options(pem(stranger)).with { $0.tls.maximumVersion = version }
        try await withServer { server in
            let error = try await CurlTransport().failure(server.request(options: options))
            #expect(server.activity.requests.isEmpty)
            switch error.reason {
            case .tls(.clientCertificateRefused): break
            // With TLS 1.3 the request follows the certificate at once. The reset with which the server answers that can
            // overtake its reason.
            case .connectionLost where version == .v1_3: break
            default: throw error
            }
        }
    }

    @Test(arguments: [TLSVersion.v1_2, .v1_3])
    func `a server that asks for an identity in vain is named as the one who refuses`(version: TLSVersion) async throws
    {
        try await withServer { server in
            let transport = try CurlTransport()
            let options = options(nil).with { $0.tls.maximumVersion = version }
            for _ in 0..<20 {
                let error = try await transport.failure(
                    server.request(method: .post, body: .bytes(Data(repeating: 1, count: 100_000)), options: options))
                guard case .tls(.clientCertificateRefused) = error.reason else { throw error }
                let context = error.context
                #expect(context.message?.contains("certificate") == true)
            }
            #expect(server.activity.requests.isEmpty)
        }
    }

    /// Some servers, such as those on Python's asyncio, refuse clients after the handshake by closing the connection.
    @Test(arguments: [TLSVersion.v1_2, .v1_3])
    func `a connection that is closed without an identity is refused for it until it has served a request`(
        version: TLSVersion
    ) async throws {
        try await withServer(requiresClientCertificate: false) { server in
            let transport = try CurlTransport()
            let options = options(nil).with { $0.tls.maximumVersion = version }
            server.enqueue(.close)
            let refused = try await transport.failure(server.request(options: options))
            guard case .tls(.clientCertificateRefused) = refused.reason else { throw refused }
            #expect(try await transport.text(server.request(options: options)) == "hello")
            server.enqueue(.close)
            let lost = try await transport.failure(
                server.request(method: .post, body: .string("x"), options: options))
            guard case .connectionLost = lost.reason else { throw lost }
        }
    }

    @Test func `a connection that is closed without an identity after the head is lost`() async throws {
        try await withServer(requiresClientCertificate: false) { server in
            server.enqueue(.truncated(declared: 10, sent: 4))
            let error = try await CurlTransport().failure(server.request(options: options(nil)))
            guard case .connectionLost(.inBody) = error.reason else { throw error }
        }
    }
}
