// SPDX-License-Identifier: MIT

import ANCurl
import ANHTTP
import ANSystem
import AsyncNetworkingTesting
import Foundation
import HTTPTypes
import Testing

/// Policies against a server of a private authority with an intermediate one.
@Suite(.timeLimit(.minutes(5))) struct TrustTests {
    private let root: TestCertificateAuthority
    private let intermediate: TestCertificateAuthority
    private let leaf: TestCertificate

    init() throws {
        root = try TestCertificateAuthority()
        intermediate = try root.intermediate()
        leaf = try intermediate.issue()
    }

    /// Options that trust the root and have a policy.
    private func options(_ policy: SecurityPolicy) -> TransferOptions {
        .with {
            $0.tls.trustRoots = .pem(root.pemData)
            $0.tls.policy = policy
        }
    }

    private func pin(_ certificate: TestCertificate) throws -> PublicKeyPin {
        try PublicKeyPin("sha256/" + certificate.publicKeySHA256)
    }

    private var strangersPin: PublicKeyPin {
        get throws { try pin(.selfSigned()) }
    }

    private func withServer(
        _ certificate: TestCertificate? = nil, _ change: (inout StubServer.TLS) -> Void = { _ in },
        _ body: (StubServer) async throws -> Void
    ) async throws {
        var tls = StubServer.TLS(certificate ?? leaf)
        change(&tls)
        try await StubServer.with(.init(tls: tls)) { server in
            server.fallback { _ in .text("secret") }
            try await body(server)
        }
    }

    /// The failure of a request, of which the server must not have seen a byte.
    private func failure(
        _ server: StubServer, _ options: TransferOptions, _ transport: CurlTransport? = nil
    ) async throws -> (TransportError.TLSFailure, FailureContext) {
        let seen = server.activity.requests.count
        let error = try await (try transport ?? CurlTransport()).failure(server.request(options: options))
        guard case .tls(let failure) = error.reason else { throw error }
        let context = error.context
        #expect(server.activity.requests.count == seen, "Nothing is sent to a server that is refused.")
        return (failure, context)
    }

    private func expectFailure(
        _ expected: TransportError.TLSFailure, _ server: StubServer, _ options: TransferOptions,
        _ transport: CurlTransport? = nil
    ) async throws {
        let (failure, _) = try await failure(server, options, transport)
        #expect(failure == expected)
    }

    private func expectAnswer(
        _ server: StubServer, _ options: TransferOptions, _ transport: CurlTransport? = nil
    ) async throws {
        let text = try await (try transport ?? CurlTransport()).text(server.request(options: options))
        #expect(text == "secret")
    }

    // MARK: Pins

    @Test(arguments: 0..<3) func `a pinned key anywhere in the verified chain is accepted`(place: Int) async throws {
        let pinned = [leaf, intermediate.certificate, root.certificate][place]
        try await withServer { server in
            let policy = SecurityPolicy.pinning([try pin(pinned)], backups: [try strangersPin])
            try await expectAnswer(server, options(policy))
        }
    }

    @Test func `a chain without a pinned key is refused, and the error has both sides`() async throws {
        try await withServer { server in
            let pins = [try strangersPin]
            let (failure, context) = try await failure(server, options(.pinning(pins, backups: [])))
            #expect(failure == .pinMismatch(expected: pins))
            let trust = try #require(context.serverTrust)
            #expect(trust.host == "127.0.0.1")
            #expect(
                trust.chain.map(\.publicKey)
                    == [try pin(leaf), try pin(intermediate.certificate), try pin(root.certificate)])
            #expect(trust.presented.map(\.der) == [leaf.derData, intermediate.certificate.derData])
        }
    }

    @Test func `a key that the server only sends along counts for nothing`() async throws {
        let stranger = try TestCertificateAuthority(name: "Stranger")
        let own = try stranger.issue()
        // The pinned authority's certificate follows a chain that it has no part in.
        let forged = own.sending(intermediate.certificate.pemData)
        var policy = SecurityPolicy.pinning([try pin(intermediate.certificate)], backups: [])
        policy.trustRoots = .pem(root.pemData + stranger.pemData)
        try await withServer(forged) { server in
            try await expectFailure(.pinMismatch(expected: policy.pins), server, options(policy))
            policy.allowsInvalidCertificates = true
            let (failure, context) = try await failure(server, options(policy))
            #expect(failure == .pinMismatch(expected: policy.pins))
            #expect(context.serverTrust?.chain == [])
        }
    }

    @Test func `a chain that is valid for its pinned key alone ends at that key`() async throws {
        let results = Lock<[TrustResult]>([])
        var policy = SecurityPolicy.pinning([try pin(intermediate.certificate)], backups: [])
        policy.allowsInvalidCertificates = true
        policy.observer = { result in results.withLock { $0.append(result) } }
        try await withServer(leaf.sending(intermediate.certificate.pemData + root.pemData)) { server in
            try await expectAnswer(server, options(policy))
        }
        let chains = results.withLock { $0 }.map { $0.trust.chain.map(\.der) }
        #expect(chains == [[leaf.derData, intermediate.certificate.derData]])
    }

    @Test func `an invalid chain is accepted for its pinned key alone, and never for another name`() async throws {
        let expired = try intermediate.issue(.expired)
        var policy = SecurityPolicy.pinning([try pin(intermediate.certificate)], backups: [])
        policy.trustRoots = .pem(try TestCertificateAuthority(name: "Other").pemData)
        try await withServer(expired) { server in
            try await expectFailure(.unknownAuthority, server, options(policy))
            policy.allowsInvalidCertificates = true
            try await expectAnswer(server, options(policy))
        }
        try await withServer(try intermediate.issue(.wrongHost)) { server in
            try await expectFailure(.wrongHost, server, options(policy))
            policy.validatesDomainName = false
            try await expectAnswer(server, options(policy))
        }
    }

    @Test func `a key is pinned by its certificate too`() async throws {
        try await withServer { server in
            let policy = SecurityPolicy.pinning(certificates: [leaf.derData], mode: .publicKey)
            try await expectAnswer(server, options(policy))
        }
    }

    @Test(arguments: 0..<3) func `any certificate of the chain can be the pinned anchor`(place: Int) async throws {
        let pinned = [leaf, intermediate.certificate, root.certificate][place]
        var policy = SecurityPolicy.pinning(certificates: [pinned.derData])
        try await withServer { server in
            try await expectAnswer(server, options(policy))
            // The pin alone, with authorities that know nothing of it.
            policy.allowsInvalidCertificates = true
            policy.trustRoots = .pem(try TestCertificateAuthority(name: "Other").pemData)
            try await expectAnswer(server, options(policy))
        }
    }

    @Test func `a chain to no pinned certificate is refused`() async throws {
        let policy = SecurityPolicy.pinning(certificates: [try TestCertificate.selfSigned().derData])
        try await withServer { server in
            try await expectFailure(.certificateNotPinned, server, options(policy))
        }
    }

    @Test func `a leaf or an intermediate can be the only trusted authority`() async throws {
        try await withServer { server in
            for pem in [leaf.pemData, intermediate.pemData] {
                let options = TransferOptions.with { $0.tls.trustRoots = .pem(pem) }
                try await expectAnswer(server, options)
            }
        }
    }

    @Test func `authorities of one's own can be added to the system's`() async throws {
        try await withServer { server in
            let options = TransferOptions.with { $0.tls.trustRoots = .systemAnd(root.pemData) }
            try await expectAnswer(server, options)
            let others = TransferOptions.with {
                $0.tls.trustRoots = .systemAnd((try? TestCertificateAuthority(name: "Other").pemData) ?? Data())
            }
            try await expectFailure(.unknownAuthority, server, others)
        }
    }

    @Test func `a name that is not validated may be any, and the chain still counts`() async throws {
        var policy = SecurityPolicy()
        policy.validatesDomainName = false
        try await withServer(try intermediate.issue(.wrongHost)) { server in
            try await expectAnswer(server, options(policy))
            let stranger = TransferOptions.with { $0.tls.policy = policy }
            try await expectFailure(.unknownAuthority, server, stranger)
        }
    }

    @Test func `policies that cannot be used are errors before anything is connected`() async throws {
        try await withServer { server in
            for malformed in [Data("no certificate".utf8), leaf.derData + [0]] {
                let policy = SecurityPolicy.pinning(certificates: [malformed])
                try await expectFailure(.badSecurityPolicy(.malformedCertificate), server, options(policy))
            }
            // A complete certificate before a damaged one.
            let damaged = root.pemData + intermediate.certificate.pemData.dropLast(30)
            let path = "/tmp/an-roots-\(UUID().uuidString).pem"
            defer { try? FileManager.default.removeItem(atPath: path) }
            try damaged.write(to: URL(filePath: path))
            for roots in [TrustRoots.pem(damaged), .systemAnd(damaged), .file(path)] {
                try await expectFailure(.badTrustRoots, server, .with { $0.tls.trustRoots = roots })
            }
            var lists = SecurityPolicy()
            lists.revocationLists = .file("/nonexistent.crl")
            let (missing, _) = try await failure(server, options(lists))
            guard case .badSecurityPolicy(let error) = missing, error.description.hasPrefix("/nonexistent.crl: ") else {
                Issue.record("\(missing)")
                return
            }
            lists.revocationLists = .data(root.pemData)
            try await expectFailure(.badSecurityPolicy(.revocationLists), server, options(lists))
            #expect(server.activity.connectionsAccepted == 0)
        }
    }

    // MARK: Connections

    @Test func `two policies never share a connection, and one does`() async throws {
        try await withServer { server in
            let transport = try CurlTransport()
            let pinned = options(.pinning([try pin(leaf)], backups: []))
            let wrong = options(.pinning([try strangersPin], backups: []))
            for options in [options(SecurityPolicy()), pinned, pinned, options(SecurityPolicy())] {
                try await expectAnswer(server, options, transport)
            }
            let connections = try await server.requests(count: 4).map(\.connection)
            #expect(connections == [0, 1, 1, 0])
            let expected = wrong.tls.policy.pins
            try await expectFailure(.pinMismatch(expected: expected), server, wrong, transport)
        }
    }

    @Test(arguments: [TLSVersion.v1_2, .v1_3])
    func `a session is resumed without a policy, and never under one`(version: TLSVersion) async throws {
        try await withServer(nil, { $0.maximumVersion = version }) { server in
            server.fallback { _ in .text("secret").thenClose }
            let transport = try CurlTransport()
            func resumptions(_ options: TransferOptions) async throws -> [Bool] {
                let seen = server.activity.requests.count
                for _ in 0..<2 { _ = try await transport.text(server.request(options: options)) }
                return try await server.requests(count: seen + 2).dropFirst(seen).map { $0.tls?.isResumed == true }
            }
            let plain = try await resumptions(options(SecurityPolicy()))
            #expect(plain == [false, true])
            let pinned = try await resumptions(options(.pinning([try pin(leaf)], backups: [])))
            #expect(pinned == [false, false])
            let never = try await resumptions(options(SecurityPolicy()).with { $0.tls.resumesSessions = false })
            #expect(never == [false, false])
        }
    }

    @Test func `policies are chosen by host`() async throws {
        try await withServer { server in
            let options = options(.pinning([try strangersPin], backups: [])).with {
                $0.tls.hostPolicies["LOCALHOST"] = SecurityPolicy()
            }
            let named = Request(url: server.url(host: "localhost"), options: options)
            let text = try await CurlTransport().text(named)
            #expect(text == "secret")
            let (refused, _) = try await failure(server, options)
            guard case .pinMismatch = refused else {
                Issue.record("\(refused)")
                return
            }
        }
    }

    @Test(arguments: [
        "127.0.0.1", "127.1", "0x7f.1", "2130706433", "example.com", "example.com.", "Example.COM", "ex%61mple.com",
        "[::1]", "[0:0::0001]", "bücher.example",
    ])
    func `another spelling of a host has the same policy`(host: String) async throws {
        let url = try #require(URL(string: "https://\(host)/"))
        // A policy that cannot be used fails before anything is looked up.
        let unusable = SecurityPolicy.pinning(certificates: [Data("no certificate".utf8)])
        let options = TransferOptions.with {
            for host: HostPattern in ["127.0.0.1", "::1", "example.com", "xn--bcher-kva.example"] {
                $0.tls.hostPolicies[host] = unusable
            }
        }
        let error = try await CurlTransport().failure(Request(url: url, options: options))
        guard case .tls(.badSecurityPolicy(.malformedCertificate)) = error.reason else { throw error }
    }

    @Test(arguments: ["bücher.example", "https://example.com", "*.10.0.0.1"] as [HostPattern])
    func `a literal that is no pattern fails requests instead of covering none`(pattern: HostPattern) async throws {
        let url = try #require(URL(string: "https://other.example/"))
        for options in [
            TransferOptions.with { $0.tls.hostPolicies[pattern] = SecurityPolicy() },
            TransferOptions.with {
                $0.tls.hostIdentities[pattern] = .pem(certificates: .data(Data()), key: .data(Data()))
            },
        ] {
            let error = try await CurlTransport().failure(Request(url: url, options: options))
            guard case .tls(.badSecurityPolicy(.hostPattern(pattern.description))) = error.reason else { throw error }
        }
    }

    @Test func `a file of authorities that has changed holds for new connections`() async throws {
        let path = "/tmp/an-roots-\(UUID())"
        try TestCertificateAuthority(name: "Other").write(to: path)
        defer { try? FileManager.default.removeItem(atPath: path) }
        try await withServer { server in
            let transport = try CurlTransport()
            let options = TransferOptions.with { $0.tls.trustRoots = .file(path) }
            try await expectFailure(.unknownAuthority, server, options, transport)
            try root.write(to: path)
            try await expectAnswer(server, options, transport)
        }
    }

    @Test(arguments: [TLSVersion.v1_2, .v1_3])
    func `no session of an authority that was removed is resumed`(version: TLSVersion) async throws {
        let path = "/tmp/an-roots-\(UUID())"
        defer { try? FileManager.default.removeItem(atPath: path) }
        let stranger = try TestCertificateAuthority(name: "Other")
        try await withServer { server in
            let transport = try CurlTransport(
                options: .with {
                    $0.tls.trustRoots = .file(path)
                    $0.tls.maximumVersion = version
                })
            for _ in 0..<3 {
                try root.write(to: path)
                for _ in 0..<2 {
                    #expect(try await transport.collect(server.request()).head.status.code == 200)
                    server.disconnectAll()
                    try await server.connections(open: 0)
                }
                try stranger.write(to: path)
                for _ in 0..<5 {
                    guard try await transport.failure(server.request()).reason == .tls(.unknownAuthority) else {
                        Issue.record("The server was trusted.")
                        return
                    }
                }
            }
        }
    }

    // MARK: Results

    @Test func `an audited policy reports and lets pass, but not what is invalid anyway`() async throws {
        let results = Lock<[TrustResult]>([])
        var policy = SecurityPolicy.pinning([try strangersPin], backups: [])
        policy.isAudited = true
        policy.observer = { result in results.withLock { $0.append(result) } }
        try await withServer { server in
            try await expectAnswer(server, options(policy))
            let stranger = TransferOptions.with { $0.tls.policy = policy }
            try await expectFailure(.unknownAuthority, server, stranger)
        }
        let seen = results.withLock { $0 }
        #expect(seen.map(\.trust.failure) == [.pinMismatch(expected: policy.pins), .unknownAuthority])
        #expect(seen.map(\.isRefused) == [false, true])
    }

    @Test func `the observer hears of every handshake, and of backup pins`() async throws {
        let results = Lock<[TrustResult]>([])
        var policy = SecurityPolicy.pinning([try strangersPin], backups: [try pin(intermediate.certificate)])
        policy.observer = { result in results.withLock { $0.append(result) } }
        try await withServer { server in
            let transport = try CurlTransport()
            for _ in 0..<2 { _ = try await transport.text(server.request(options: options(policy))) }
        }
        let seen = results.withLock { $0 }
        #expect(seen.count == 1)
        #expect(seen.first?.trust.failure == nil)
        #expect(seen.first?.matchedPin == (try pin(intermediate.certificate)))
        #expect(seen.first?.usesBackupPin == true)
    }

    @Test func `an evaluator sees what the server showed and decides`() async throws {
        let trusts = Lock<[ServerTrust]>([])
        var policy = SecurityPolicy()
        policy.evaluator = { trust in
            trusts.withLock { $0.append(trust) }
            return trust.presented.first?.dnsNames == ["wrong.example"] ? .accept : .refuse("not ours")
        }
        let wrongHost = try intermediate.issue(.wrongHost)
        try await withServer(wrongHost) { server in
            try await expectAnswer(server, options(policy))
        }
        try await withServer { server in
            try await expectFailure(.rejected("not ours"), server, options(policy))
        }
        let seen = trusts.withLock { $0 }
        #expect(seen.map(\.failure) == [.wrongHost, nil])
        let certificate = try #require(seen.first?.presented.first)
        #expect(certificate.der == wrongHost.derData)
        #expect(certificate.publicKey == (try pin(wrongHost)))
        #expect(certificate.subject == "CN=wrong.example")
        #expect(certificate.issuer == "CN=AsyncNetworking Test Intermediate")
        #expect(abs(certificate.notBefore.timeIntervalSinceNow + 3600) < 60)
        #expect(abs(certificate.notAfter.timeIntervalSinceNow - 86_400) < 60)
        let local = try #require(seen.last?.presented.first)
        #expect(local.dnsNames == ["localhost"])
        #expect(local.ipAddresses == ["127.0.0.1", "::1"])
        #expect(seen.last?.chain.count == 3)
    }

    @Test func `the time of verification can be given`() async throws {
        var policy = SecurityPolicy()
        policy.verificationTime = .now.addingTimeInterval(-5400)
        let early = try TestCertificateAuthority(validity: .init(from: .seconds(-9000), to: .seconds(86_400)))
        policy.trustRoots = .pem(early.pemData)
        try await withServer(try early.issue(.expired)) { server in
            try await expectAnswer(server, options(policy))
        }
        try await withServer(try early.issue()) { server in
            let (failure, context) = try await failure(server, options(policy))
            #expect(failure == .certificateNotYetValid)
            #expect(context.serverTrust?.date == policy.verificationTime)
        }
    }

    // MARK: Other options

    @Test func `ciphers and groups can be limited`() async throws {
        try await withServer { server in
            let suite = options(SecurityPolicy()).with {
                $0.tls.cipherSuites = "TLS_CHACHA20_POLY1305_SHA256"
                $0.tls.curves = "P-384"
            }
            let new = try await CurlTransport().ending(of: server.request(options: suite)).metrics
            #expect(new.cipher == "TLS_CHACHA20_POLY1305_SHA256")
            let list = options(SecurityPolicy()).with {
                $0.tls.maximumVersion = .v1_2
                $0.tls.cipherList = "ECDHE-ECDSA-AES128-GCM-SHA256"
            }
            let old = try await CurlTransport().ending(of: server.request(options: list)).metrics
            #expect(old.cipher == "ECDHE-ECDSA-AES128-GCM-SHA256")
            let none = options(SecurityPolicy()).with { $0.tls.curves = "no-such-group" }
            try await expectFailure(.handshake, server, none)
        }
    }

    @Test func `the secrets of connections are written where the options say so`() async throws {
        let path = "/tmp/an-keys-\(UUID())"
        defer { try? FileManager.default.removeItem(atPath: path) }
        try await withServer { server in
            let logged = options(SecurityPolicy()).with { $0.tls.keyLogPath = path }
            try await expectAnswer(server, logged)
            let kinds = try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n").map {
                String($0.prefix { $0 != " " })
            }
            #expect(Set(kinds).isSuperset(of: ["CLIENT_HANDSHAKE_TRAFFIC_SECRET", "CLIENT_TRAFFIC_SECRET_0"]))
            let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
            #expect(mode == 0o600)
            let nowhere = logged.with { $0.tls.keyLogPath = "/nonexistent/keys" }
            try await expectFailure(.keyLog(path: "/nonexistent/keys"), server, nowhere)
            // Opening a pipe for writing would wait for a reader.
            let pipe = path + "-pipe"
            defer { try? FileManager.default.removeItem(atPath: pipe) }
            let isMade = unsafe mkfifo(pipe, 0o600) == 0
            try #require(isMade)
            try await expectFailure(.keyLog(path: pipe), server, logged.with { $0.tls.keyLogPath = pipe })
        }
    }

    @Test(arguments: [(Script.Ending.close, true), (.closeWithoutNotify, false)])
    func `a body that ends with its connection must be ended by the server`(
        ending: Script.Ending, isComplete: Bool
    ) async throws {
        try await withServer { server in
            server.fallback { _ in
                Script([.reply(Reply(body: .string("hello"), framing: .untilClose)), .end(ending)])
            }
            let request = server.request(options: options(SecurityPolicy()))
            if isComplete {
                let text = try await CurlTransport().text(request)
                #expect(text == "hello")
            } else {
                let error = try await CurlTransport().failure(request)
                guard case .connectionLost(.inBody(received: 5, expected: nil)) = error.reason else { throw error }
            }
        }
    }

    @Test(arguments: [
        ("OpenSSL/3.0.19", true), ("OpenSSL/3.0.18", false), ("(OpenSSL/3.0.19) GnuTLS/3.7.9", false),
        ("GnuTLS/3.7.9", false), ("", false),
    ])
    func `contexts are handed only to the OpenSSL that made them`(library: String, expected: Bool) {
        #expect(CurlLibrary.isOpenSSL(library, version: "3.0.19") == expected)
    }
}
