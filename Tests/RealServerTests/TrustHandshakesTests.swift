// SPDX-License-Identifier: MIT

import AsyncNetworking
import FoundationEssentials
import HTTPTypes
import Testing

/// TLS handshakes with nginx, which has a certificate for each host name, and with openssl-s_server(1). The
/// certificates are created by `scripts/servers/pki.py`.
@Suite(.servers(.pki, .stapleGood, .stapleRevoked, .stapleForeign, .mutual), .timeLimit(.minutes(5)))
struct TrustHandshakesTests {
    private typealias Failure = TransportError.TLSFailure

    // MARK: Certificates

    /// Host names, and the failures without a policy; `nil` for an accepted certificate.
    private static let hosts: [(String, TransportError.TLSFailure?)] = [
        ("good.pki.test", nil),
        ("a.wild.pki.test", nil),
        ("b.a.wild.pki.test", .wrongHost),
        ("wild.pki.test", .wrongHost),
        ("foo.pki.test", .wrongHost),
        ("wronghost.pki.test", .wrongHost),
        ("expired.pki.test", .certificateExpired),
        ("early.pki.test", .certificateNotYetValid),
        ("late.pki.test", .certificateExpired),
        ("selfsigned.pki.test", .selfSigned),
        ("stranger.pki.test", .unknownAuthority),
        ("incomplete.pki.test", .unknownAuthority),
        ("complete.pki.test", nil),
        ("clientonly.pki.test", .wrongPurpose),
        ("weak.pki.test", .weakKey),
        ("sha1.pki.test", .weakKey),
        ("xn--bcher-kva.pki.test", nil),
        ("cnonly.pki.test", nil),
        ("revoked.pki.test", nil),
        ("www.allowed.test", nil),
        ("www.denied.test", .nameConstraints),
        ("127.0.0.1", nil),
    ]

    @Test(arguments: hosts, Carrier.available) func `certificates are accepted or rejected`(
        host: (String, TransportError.TLSFailure?), carrier: Carrier
    ) async throws {
        try await expect(host.1, from: host.0, over: carrier, SecurityPolicy())
    }

    // MARK: The table of AFNetworking

    /// The rows of the table: pinning mode, whether invalid certificates are allowed, whether the host name is
    /// validated, the pins, and the results for a good server, an expired one, one for another host, and one of another
    /// authority.
    private static let rows: [Row] = [
        Row(.none, false, true, .nothing, nil, .certificateExpired, .wrongHost, .unknownAuthority),
        Row(.none, false, false, .nothing, nil, .certificateExpired, nil, .unknownAuthority),
        Row(
            .none, true, true, .nothing, .invalidWithoutPins, .invalidWithoutPins, .invalidWithoutPins,
            .invalidWithoutPins),
        Row(.none, true, false, .nothing, nil, nil, nil, nil),
        // Without a mode, pins have no effect.
        Row(.none, false, true, .intermediate, nil, .certificateExpired, .wrongHost, .unknownAuthority),
        Row(.publicKey, false, true, .intermediate, nil, .certificateExpired, .wrongHost, .unknownAuthority),
        Row(.publicKey, false, false, .intermediate, nil, .certificateExpired, nil, .unknownAuthority),
        // Unlike in AFNetworking, the host name is validated.
        Row(.publicKey, true, true, .intermediate, nil, nil, .wrongHost, .keyMismatch),
        Row(.publicKey, true, false, .intermediate, nil, nil, nil, .keyMismatch),
        Row(.publicKey, false, true, .nothing, .noPins, .noPins, .noPins, .noPins),
        Row(.publicKey, true, false, .nothing, .noPins, .noPins, .noPins, .noPins),
        Row(.publicKey, false, true, .stranger, .keyMismatch, .certificateExpired, .wrongHost, .unknownAuthority),
        Row(.certificate, false, true, .intermediate, nil, .certificateExpired, .wrongHost, .unknownAuthority),
        Row(.certificate, false, false, .intermediate, nil, .certificateExpired, nil, .unknownAuthority),
        Row(.certificate, true, true, .intermediate, nil, .certificateExpired, .wrongHost, .certificateNotPinned),
        Row(.certificate, true, false, .intermediate, nil, .certificateExpired, nil, .certificateNotPinned),
        Row(.certificate, false, true, .nothing, .noPins, .noPins, .noPins, .noPins),
        Row(.certificate, true, false, .nothing, .noPins, .noPins, .noPins, .noPins),
        Row(
            .certificate, false, true, .stranger, .certificateNotPinned, .certificateExpired, .wrongHost,
            .unknownAuthority),
        // A pinned private authority is trusted without allowing invalid certificates.
        Row(
            .certificate, true, true, .stranger, .certificateNotPinned, .certificateNotPinned, .certificateNotPinned,
            nil),
    ]

    @Test(arguments: rows.indices, Carrier.available)
    func `each row of the table holds`(row: Int, carrier: Carrier) async throws {
        let row = Self.rows[row]
        for (host, expected) in zip(["good", "expired", "wronghost", "stranger"], row.expected) {
            try await expect(try expected.map(failure), from: "\(host).pki.test", over: carrier, try policy(row))
        }
    }

    private struct Row {
        let mode: SecurityPolicy.PinningMode
        let allowsInvalid: Bool
        let validatesName: Bool
        let pinned: Pinned
        let expected: [Outcome?]

        init(
            _ mode: SecurityPolicy.PinningMode, _ allowsInvalid: Bool, _ validatesName: Bool, _ pinned: Pinned,
            _ expected: Outcome?...
        ) {
            self.mode = mode
            self.allowsInvalid = allowsInvalid
            self.validatesName = validatesName
            self.pinned = pinned
            self.expected = expected
        }
    }

    private enum Pinned: String {
        case nothing, intermediate, stranger
    }

    private enum Outcome {
        case certificateExpired, wrongHost, unknownAuthority, invalidWithoutPins, noPins, keyMismatch
        case certificateNotPinned
    }

    private func failure(_ outcome: Outcome) throws -> TransportError.TLSFailure {
        switch outcome {
        case .certificateExpired: .certificateExpired
        case .wrongHost: .wrongHost
        case .unknownAuthority: .unknownAuthority
        case .invalidWithoutPins: .invalidWithoutPins
        case .noPins: .noPins
        // The expected pins are compared separately.
        case .keyMismatch: .pinMismatch(expected: [])
        case .certificateNotPinned: .certificateNotPinned
        }
    }

    private func policy(_ row: Row) throws -> SecurityPolicy {
        var policy = SecurityPolicy()
        policy.pinningMode = row.mode
        policy.allowsInvalidCertificates = row.allowsInvalid
        policy.validatesDomainName = row.validatesName
        if row.pinned != .nothing {
            policy.pinnedCertificates = try SecurityPolicy.certificates(in: PKI.file("\(row.pinned.rawValue).pem"))
        }
        return policy
    }

    // MARK: Revocation

    @Test(arguments: [("good", nil), ("revoked", TransportError.TLSFailure.revoked)], Carrier.available)
    func `a revocation list determines which certificates are revoked`(
        host: (String, TransportError.TLSFailure?), carrier: Carrier
    ) async throws {
        var policy = SecurityPolicy()
        policy.revocationLists = try PKI.file("intermediate.crl")
        try await expect(host.1, from: "\(host.0).pki.test", over: carrier, policy)
    }

    @Test(arguments: Carrier.available) func `a missing staple is refused if it is required`(carrier: Carrier)
        async throws
    {
        var policy = SecurityPolicy()
        policy.stapling = .required
        try await expect(.stapleMissing, from: "good.pki.test", over: carrier, policy)
    }

    @Test func `a list of another authority, or an expired one, leaves the revocation unknown`() async throws {
        var policy = SecurityPolicy()
        policy.revocationLists = try PKI.file("stranger.crl")
        try await expect(.revocationUnknown, from: "good.pki.test", policy)
        policy.revocationLists = try PKI.file("intermediate.crl")
        policy.verificationTime = .now.addingTimeInterval(8 * 86_400)
        try await expect(.revocationUnknown, from: "good.pki.test", policy)
    }

    @Test(arguments: [TLSVersion.v1_2, .v1_3]) func `a stapled response is requested and used`(version: TLSVersion)
        async throws
    {
        let cases: [(RealServer, String, SecurityPolicy.Stapling, TransportError.TLSFailure?)] = [
            (.stapleGood, "good", .required, nil),
            (.stapleGood, "good", .preferred, nil),
            (.stapleRevoked, "revoked", .required, .revoked),
            (.stapleRevoked, "revoked", .preferred, .revoked),
            (.stapleRevoked, "revoked", .ignored, nil),
            (.stapleForeign, "good", .preferred, .badStaple("its signature is not the authority's")),
            (.pki, "good", .preferred, nil),
            (.pki, "good", .required, .stapleMissing),
        ]
        for (server, host, stapling, expected) in cases {
            var policy = SecurityPolicy()
            policy.stapling = stapling
            try await expect(expected, from: "\(host).pki.test", at: server, policy) { $0.tls.maximumVersion = version }
        }
    }

    @Test func `an expired stapled response is rejected, or only reported by an audit`() async throws {
        var policy = SecurityPolicy()
        policy.stapling = .required
        policy.verificationTime = .now.addingTimeInterval(2 * 86_400)
        try await expect(.badStaple("it is not current"), from: "good.pki.test", at: .stapleGood, policy)
        policy.isAudited = true
        try await expect(nil, from: "good.pki.test", at: .stapleGood, policy)
    }

    // MARK: Clients

    @Test func `a server that requests a client certificate receives it`() async throws {
        let identity = ClientIdentity.pem(
            certificates: try PKI.file("client.pki.test.pem"), key: try PKI.file("client.pki.test.key"))
        try await expect(nil, from: "good.pki.test", at: .mutual, SecurityPolicy()) { $0.tls.identity = identity }
        let stranger = ClientIdentity.pem(
            certificates: try PKI.file("stranger.pki.test.pem"), key: try PKI.file("stranger.pki.test.key"))
        for identity in [nil, stranger] {
            let error = try await sessionError {
                _ = try await manager(SecurityPolicy(), at: .mutual, "good.pki.test") { $0.tls.identity = identity }
                    .get("/")
            }
            switch error.reason {
            case .tls(.clientCertificateRefused): break
            case .connectionLost where identity != nil: break
            default: throw error
            }
        }
    }

    // MARK: Connections

    @Test func `a connection is shared only by requests with the same policy`() async throws {
        let intermediate = try SecurityPolicy.certificates(in: PKI.file("intermediate.pem"))
        let stranger = try SecurityPolicy.certificates(in: PKI.file("stranger.pem"))
        let manager = try manager(.pinning(certificates: intermediate), at: .pki, "good.pki.test") {
            $0.httpVersion = .http2
        }
        let plain = manager.configuration.transfer.with { $0.tls.policy = SecurityPolicy() }
        let wrong = manager.configuration.transfer.with { $0.tls.policy = .pinning(certificates: stranger) }
        let ports = try await withThrowingTaskGroup { group in
            for index in 0..<20 {
                group.addTask {
                    var request = try manager.request(.get, "/multiplexed")
                    if index.isMultiple(of: 2) { request.options = plain }
                    let response = try await manager.data(for: request)
                    #expect(response.metrics.httpVersion == .http2)
                    return (index % 2, response.metrics.localAddress?.port)
                }
            }
            return try await group.reduce(into: [Int: Set<Int?>]()) { $0[$1.0, default: []].insert($1.1) }
        }
        #expect(ports[0]?.isDisjoint(with: ports[1] ?? []) == true)
        var request = try manager.request(.get, "/wrong")
        request.options = wrong
        let error = try await sessionError { _ = try await manager.data(for: request) }
        guard case .tls(.certificateNotPinned) = error.reason else { throw error }
    }

    // MARK: Helpers

    /// Performs a handshake and compares its result with the expected one. It also fails if a rejected server received
    /// the request.
    private func expect(
        _ expected: TransportError.TLSFailure?, from host: String, at server: RealServer = .pki,
        over carrier: Carrier = .tcp, _ policy: SecurityPolicy, _ change: (inout TransferOptions) -> Void = { _ in }
    ) async throws {
        let path = "/\(UInt64.random(in: 0...UInt64.max))"
        let manager = try manager(policy, at: server, host) { options in
            if carrier == .quic { options.httpVersion = .http3Only }
            change(&options)
        }
        var got: TransportError.TLSFailure?
        do {
            let response = try await manager.get(path)
            #expect(response.statusCode == 200)
            #expect((response.head.version == .http3) == (carrier == .quic))
        } catch let error as SessionError {
            guard case .tls(let failure) = error.reason else { throw error }
            got = failure
            if case .pinMismatch(let pins) = failure {
                #expect(error.context?.serverTrust?.presented.map(\.publicKey).contains(where: pins.contains) == false)
                got = .pinMismatch(expected: [])
            }
            #expect(error.context?.serverTrust?.host == host)
        }
        #expect(got == expected, "\(host) under \(policy)")
        guard server == .pki else { return }
        let name = host == "127.0.0.1" ? "address" : host
        // nginx may log a request over HTTP/3 after the next one.
        if expected == nil {
            while try !PKI.log().contains("\(name)\(path)") { await Task.yield() }
            return
        }
        // The log contains this request when it contains the next one.
        let marker = try self.manager(SecurityPolicy(), at: .pki, "good.pki.test")
        _ = try await marker.get(path + "/after")
        while try !PKI.log().contains("good.pki.test\(path)/after") { await Task.yield() }
        #expect(try !PKI.log().contains("\(name)\(path)"), "requests that the server received")
    }

    private func manager(
        _ policy: SecurityPolicy, at server: RealServer, _ host: String,
        _ change: (inout TransferOptions) -> Void = { _ in }
    ) throws -> SessionManager {
        let port = try #require(try server.url().port)
        var configuration = SessionConfiguration(baseURL: URL(string: "https://\(host):\(port)/"))
        configuration.proxy = .none
        configuration.tls.policy = policy
        configuration.tls.trustRoots = .file(try RealServer.directory() + "/pki/root.pem")
        configuration.connection.hostOverrides = [.init(host: host, port: port, address: "127.0.0.1")]
        change(&configuration.transfer)
        return SessionManager(configuration)
    }
}

/// The transport protocol of a TLS handshake.
enum Carrier: Sendable {
    case tcp, quic

    /// QUIC only if libcurl and nginx support it.
    static let available: [Carrier] = canTestHTTP3 ? [.tcp, .quic] : [.tcp]
}

/// The files of `scripts/servers/pki.py`.
private enum PKI {
    static func file(_ name: String) throws -> FileOrData {
        .file(try RealServer.directory() + "/pki/" + name)
    }

    /// Returns the requests that nginx received, each with the requested host name as a prefix.
    static func log() throws -> Set<String> {
        let bytes = try Data(contentsOf: URL(filePath: RealServer.directory() + "/nginx/pki.log"))
        return Set(String(decoding: bytes, as: UTF8.self).split(separator: "\n").map(String.init))
    }
}
