// SPDX-License-Identifier: MIT

import ANHTTP
import FoundationEssentials
import Testing

/// The decisions of security policies, with simulated results of chain building.
@Suite struct SecurityPolicyTests {
    private static let date = Date(timeIntervalSince1970: 1_800_000_000)

    /// A pin of 32 equal bytes.
    private static func pin(_ byte: UInt8) throws -> PublicKeyPin {
        try PublicKeyPin(sha256: Data(repeating: byte, count: 32))
    }

    /// The results of building chains for a simulated server.
    private struct Server {
        var valid: TransportError.TLSFailure?
        var keys: [PublicKeyPin] = []
        var toPinnedCertificates: TransportError.TLSFailure? = .unknownAuthority
        var toPinnedKeys: TransportError.TLSFailure? = .unknownAuthority
    }

    private func evaluate(
        _ policy: SecurityPolicy, _ server: Server, host: String? = "example.com", at now: Date = date
    ) -> SecurityPolicy.Evaluation {
        policy.evaluate(
            host: host, expectedKeys: policy.pins + policy.backupPins, at: now,
            verify: { anchors in
                switch anchors {
                case .trustRoots: .init(failure: server.valid, keys: server.keys)
                case .pinnedCertificates: .init(failure: server.toPinnedCertificates, keys: server.keys)
                case .pinnedKeys: .init(failure: server.toPinnedKeys, keys: server.keys)
                }
            },
            trust: { ServerTrust(host: host ?? "", date: now, presented: [], failure: $0) })
    }

    private func policy(
        _ mode: SecurityPolicy.PinningMode, allowingInvalid: Bool, name: Bool = true, isPinned: Bool = true
    ) throws -> SecurityPolicy {
        var policy = SecurityPolicy()
        policy.pinningMode = mode
        policy.allowsInvalidCertificates = allowingInvalid
        policy.validatesDomainName = name
        if isPinned { policy.pins = [try Self.pin(1)] }
        if isPinned { policy.pinnedCertificates = [Data([0x30])] }
        return policy
    }

    // MARK: The pinning modes of AFNetworking

    @Test(arguments: [nil, TransportError.TLSFailure.certificateExpired, .wrongHost])
    func `without pinning the valid chain decides`(failure: TransportError.TLSFailure?) throws {
        let evaluation = evaluate(try policy(.none, allowingInvalid: false), Server(valid: failure, toPinnedKeys: nil))
        #expect(evaluation.failure == failure)
        #expect(evaluation.isRefused == (failure != nil))
    }

    @Test(arguments: [nil, TransportError.TLSFailure.certificateExpired])
    func `allowing invalid chains while validating names without pins refuses all servers`(
        failure: TransportError.TLSFailure?
    ) throws {
        let evaluation = evaluate(try policy(.none, allowingInvalid: true), Server(valid: failure))
        #expect(evaluation == .init(failure: .invalidWithoutPins, isRefused: true))
    }

    @Test func `allowing invalid chains without validating names accepts all servers`() throws {
        let server = Server(valid: .certificateExpired)
        #expect(evaluate(try policy(.none, allowingInvalid: true), server, host: nil).failure == nil)
        #expect(evaluate(try policy(.none, allowingInvalid: true, name: false), server).failure == nil)
    }

    @Test func `in public-key mode a valid chain must contain a pinned key`() throws {
        let policy = try policy(.publicKey, allowingInvalid: false)
        let (ours, other) = (try Self.pin(1), try Self.pin(2))
        #expect(evaluate(policy, Server(keys: [other, ours])) == .init(matchedPin: ours))
        #expect(evaluate(policy, Server(keys: [other])).failure == .pinMismatch(expected: [ours]))
        #expect(evaluate(policy, Server(valid: .wrongHost, keys: [ours])).failure == .wrongHost)
        #expect(evaluate(policy, Server(valid: .selfSigned, keys: [ours], toPinnedKeys: nil)).failure == .selfSigned)
    }

    @Test func `in public-key mode a pinned key can excuse an invalid chain but not a wrong name`() throws {
        let policy = try policy(.publicKey, allowingInvalid: true)
        let ours = try Self.pin(1)
        let invalid = Server(valid: .certificateExpired, keys: [ours], toPinnedKeys: nil)
        #expect(evaluate(policy, invalid) == .init(matchedPin: ours))
        #expect(evaluate(policy, Server(keys: [ours])).failure == .pinMismatch(expected: [ours]))
        #expect(evaluate(policy, Server(toPinnedKeys: .wrongHost)).failure == .wrongHost)
    }

    @Test func `in certificate mode both chains must be valid`() throws {
        let policy = try policy(.certificate, allowingInvalid: false)
        #expect(evaluate(policy, Server(toPinnedCertificates: nil)) == .init())
        #expect(evaluate(policy, Server()).failure == .certificateNotPinned)
        #expect(
            evaluate(policy, Server(valid: .unknownAuthority, toPinnedCertificates: nil)).failure == .unknownAuthority)
        #expect(evaluate(policy, Server(toPinnedCertificates: .certificateExpired)).failure == .certificateExpired)
    }

    @Test func `in certificate mode with invalid chains only the pinned chain must be valid`() throws {
        let policy = try policy(.certificate, allowingInvalid: true)
        #expect(evaluate(policy, Server(valid: .unknownAuthority, toPinnedCertificates: nil)) == .init())
        #expect(evaluate(policy, Server()).failure == .certificateNotPinned)
        #expect(evaluate(policy, Server(toPinnedCertificates: .wrongHost)).failure == .wrongHost)
    }

    @Test(arguments: [SecurityPolicy.PinningMode.publicKey, .certificate], [true, false])
    func `pinning without pins refuses all servers`(mode: SecurityPolicy.PinningMode, allowingInvalid: Bool) throws {
        let policy = try policy(mode, allowingInvalid: allowingInvalid, isPinned: false)
        let server = Server(toPinnedCertificates: nil, toPinnedKeys: nil)
        #expect(evaluate(policy, server) == .init(failure: .noPins, isRefused: true))
    }

    // MARK: Additional rules

    @Test func `a backup pin is as good as a pin`() throws {
        let policy = SecurityPolicy.pinning([try Self.pin(1)], backups: [try Self.pin(2)])
        #expect(evaluate(policy, Server(keys: [try Self.pin(2)])) == .init(matchedPin: try Self.pin(2)))
        #expect(evaluate(policy, Server(keys: [try Self.pin(3)])).isRefused)
    }

    @Test(arguments: [(1, false), (2, true), (3, false), (nil, false)] as [(UInt8?, Bool)])
    func `a result names a backup pin if the key is not pinned otherwise`(matched: UInt8?, isBackup: Bool) throws {
        let policy = SecurityPolicy.pinning(
            [try Self.pin(1), try Self.pin(3)], backups: [try Self.pin(2), try Self.pin(3)])
        let trust = ServerTrust(host: "example.com", date: Self.date, presented: [], failure: nil)
        let result = policy.result(.init(matchedPin: try matched.map(Self.pin)), trust)
        #expect(result.matchedPin == (try matched.map(Self.pin)))
        #expect(result.usesBackupPin == isBackup)
    }

    @Test func `after the expiry of the pins a valid chain is required`() throws {
        var policy = SecurityPolicy.pinning([try Self.pin(1)], backups: [], until: Self.date)
        policy.allowsInvalidCertificates = true
        let stranger = Server(keys: [try Self.pin(9)])
        #expect(evaluate(policy, stranger, at: Self.date.addingTimeInterval(-1)).isRefused)
        #expect(evaluate(policy, stranger, at: Self.date) == .init())
        #expect(evaluate(policy, Server(valid: .selfSigned, toPinnedKeys: nil)).failure == .selfSigned)
    }

    @Test func `an audited failure refuses only servers that are not otherwise trusted`() throws {
        var policy = SecurityPolicy.pinning([try Self.pin(1)], backups: [])
        policy.isAudited = true
        let mismatch = TransportError.TLSFailure.pinMismatch(expected: [try Self.pin(1)])
        #expect(evaluate(policy, Server(keys: [try Self.pin(2)])) == .init(failure: mismatch, isRefused: false))
        #expect(evaluate(policy, Server(valid: .wrongHost)) == .init(failure: .wrongHost, isRefused: true))
        policy.allowsInvalidCertificates = true
        #expect(evaluate(policy, Server(valid: .selfSigned)).isRefused)
    }

    @Test func `the evaluator can override the result of the rules`() throws {
        var policy = SecurityPolicy()
        policy.evaluator = { trust in
            #expect(trust.host == "example.com")
            return trust.failure == .certificateExpired ? .accept : trust.failure == nil ? .refuse("no") : .followPolicy
        }
        #expect(evaluate(policy, Server(valid: .certificateExpired)) == .init())
        #expect(evaluate(policy, Server()) == .init(failure: .rejected("no"), isRefused: true))
        #expect(evaluate(policy, Server(valid: .wrongHost)).failure == .wrongHost)
    }

    @Test func `policies are equal if all of their parts are`() throws {
        let evaluator = SecurityPolicy.IdentifiedEvaluator { _ in .followPolicy }
        var (one, two) = (SecurityPolicy(), SecurityPolicy())
        #expect(one == two)
        one.identifiedEvaluator = evaluator
        #expect(one != two)
        two.identifiedEvaluator = evaluator
        #expect(one == two)
        #expect(one.hashValue == two.hashValue)
        two.evaluator = { _ in .followPolicy }
        #expect(one != two)
    }

    // MARK: Parsing

    @Test func `a pin is parsed in the forms of curl and RFC 7469`() throws {
        let text = "sha256/ICEiIyQlJicoKSorLC0uLzAxMjM0NTY3ODk6Ozw9Pj8="
        let pin = try PublicKeyPin(text)
        #expect(Array(pin.sha256) == Array(32..<64))
        #expect(pin.description == text)
        #expect(try PublicKeyPin("sha256//" + text.dropFirst(7)) == pin)
        // The Base64 of 0xff… begins with a slash.
        let digits = String(repeating: "/", count: 42) + "8="
        let slash = try PublicKeyPin("sha256/" + digits)
        #expect(slash.sha256 == Data(repeating: 0xff, count: 32))
        #expect(try PublicKeyPin("sha256//" + digits) == slash)
    }

    @Test(arguments: [
        "", "sha256/", "sha1/AAAA", "sha256/AAAA", "sha256/!", "ICEiIyQlJicoKSorLC0uLzAxMjM0NTY3ODk6Ozw9Pj8=",
    ])
    func `any other text is not a pin`(text: String) {
        #expect(throws: SecurityPolicy.ConfigurationError.pin(text)) { try PublicKeyPin(text) }
    }

    @Test func `the passphrase and key of an identity are never printed`() {
        let identity = ClientIdentity.pem(
            certificates: .file("/client.pem"), key: .data(Data("s3cret".utf8)), passphrase: "s3cret")
        var options = TLSOptions()
        options.identity = identity
        var text = "\(identity) \(String(reflecting: identity)) \(options)"
        dump(options, to: &text)
        #expect(!text.contains("s3cret"))
        #expect("\(identity)" == "ClientIdentity(PEM, /client.pem, key 6 bytes)")
        #expect("\(ClientIdentity.pkcs12(.file("/a.p12"), passphrase: "s3cret"))" == "ClientIdentity(PKCS #12, /a.p12)")
    }

    @Test func `the description contains the expected and the actual value`() throws {
        let leaf = ServerTrust.Certificate(
            der: Data(), publicKey: try Self.pin(2), subject: "CN=other.example", issuer: "CN=Example CA",
            dnsNames: ["other.example", "*.other.example"], notBefore: Date(timeIntervalSince1970: 0),
            notAfter: Date(timeIntervalSince1970: 86_400))
        var context = FailureContext()
        context.serverTrust = ServerTrust(
            host: "example.com", date: Date(timeIntervalSince1970: 1_000_000_000), presented: [leaf])
        let cases: [(TransportError.TLSFailure, String)] = [
            (.wrongHost, "expected example.com, got other.example, *.other.example"),
            (
                .certificateExpired,
                "expected to be valid at 2001-09-09T01:46:40Z, got 1970-01-01T00:00:00Z to 1970-01-02T00:00:00Z"
            ),
            (.unknownAuthority, "expected a trusted authority, got CN=Example CA"),
            (
                .pinMismatch(expected: [try Self.pin(1)]),
                "expected sha256/AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=, "
                    + "got sha256/AgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgI="
            ),
        ]
        for (failure, words) in cases {
            let description = TransportError(.tls(failure), context: context).description
            #expect(description.contains(words), "\(description)")
        }
    }

    @Test func `the outline and the timeline contain no texts of certificates, and the description few`() throws {
        let names = (1...5_000).map { "name\($0).example" }
        let name = "CN=" + String(repeating: "n", count: 300)
        var leaf = ServerTrust.Certificate(
            der: Data(), publicKey: try Self.pin(2), subject: name, issuer: name, dnsNames: names,
            notBefore: Date(timeIntervalSince1970: 0), notAfter: Date(timeIntervalSince1970: 86_400))
        func error(_ failure: TransportError.TLSFailure) -> TransportError {
            var context = FailureContext()
            context.serverTrust = ServerTrust(
                host: "example.com", date: Date(timeIntervalSince1970: 0),
                presented: [ServerTrust.Certificate](repeating: leaf, count: 12))
            return TransportError(.tls(failure), context: context)
        }
        let start = "No trusted TLS connection could be made: the certificate is for another host"
        let list = names[..<10].joined(separator: ", ")
        #expect(error(.wrongHost).description == "\(start): expected example.com, got \(list) and 4990 others.")
        #expect(error(.wrongHost).outline == "\(start).")
        leaf.dnsNames = []
        let cut = "CN=" + String(repeating: "n", count: 197) + "…"
        #expect(error(.wrongHost).description == "\(start): expected example.com, got \(cut).")
        #expect(error(.unknownAuthority).description.hasSuffix("expected a trusted authority, got \(cut)."))
        #expect(
            error(.certificateNotPinned).description.hasSuffix(
                "expected a chain to a pinned certificate, got \(cut) of \(cut)."))
        let keys = [String](repeating: "\(leaf.publicKey)", count: 10).joined(separator: " or ")
        #expect(error(.pinMismatch(expected: [])).description.hasSuffix("got \(keys) and 2 others."))
        for failure in [.wrongHost, .unknownAuthority, .certificateNotPinned, .selfSigned]
            as [TransportError.TLSFailure]
        {
            #expect(!error(failure).outline.contains("CN="))
            #expect(!error(failure).timeline.contains("CN="))
            #expect(error(failure).timeline.contains("\(failure)"))
        }
    }
}
