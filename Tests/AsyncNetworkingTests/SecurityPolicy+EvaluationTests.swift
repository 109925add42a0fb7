// SPDX-License-Identifier: MIT

import AsyncNetworking
import AsyncNetworkingTesting
import Foundation
import TestSupport
import Testing

/// Verification of certificates without a connection: authorities, name, date, pins.
@Suite struct SecurityPolicyEvaluationTests {
    private let root: TestCertificateAuthority
    private let intermediate: TestCertificateAuthority
    private let leaf: TestCertificate

    init() throws {
        root = try TestCertificateAuthority()
        intermediate = try root.intermediate()
        leaf = try intermediate.issue()
    }

    /// The chain that a server would send.
    private var chain: [Data] { [leaf.derData, intermediate.certificate.derData] }

    private func policy(_ change: (inout SecurityPolicy) -> Void = { _ in }) -> SecurityPolicy {
        var policy = SecurityPolicy()
        policy.trustRoots = .pem(root.pemData)
        change(&policy)
        return policy
    }

    @Test func `a chain to a trusted authority is accepted, and is part of the result`() {
        let result = policy().evaluate(chain, for: "localhost")
        #expect(!result.isRefused)
        #expect(result.trust.failure == nil)
        #expect(result.trust.host == "localhost")
        #expect(result.trust.presented.map(\.der) == chain)
        #expect(result.trust.chain.map(\.der) == chain + [root.certificate.derData])
    }

    @Test(
        arguments: [
            ("localhost", true), ("LOCALHOST.", true), ("127.0.0.1", true), ("::1", true), ("[::1]", true),
            ("other.example", false), ("127.0.0.2", false), ("", false), ("localhost\0x", false), ("\0x", false),
            ("127.0.0.1\0", false), (nil, true),
        ] as [(String?, Bool)])
    func `the certificate is validated for the given name`(host: String?, isAccepted: Bool) {
        let result = policy().evaluate(chain, for: host)
        #expect(result.isRefused != isAccepted)
        #expect(result.trust.failure == (isAccepted ? nil : .wrongHost))
    }

    @Test(arguments: [("a.example.test", true), (".example.test", false), (".test", false)])
    func `a name that begins with a dot does not mean those below it`(host: String, isAccepted: Bool) throws {
        var profile = TestCertificate.Profile.localhost
        profile.dnsNames = ["a.example.test"]
        let chain = [try intermediate.issue(profile).derData, intermediate.certificate.derData]
        #expect(policy().evaluate(chain, for: host).trust.failure == (isAccepted ? nil : .wrongHost))
    }

    /// Returns a revocation list of an authority in PEM, which revokes the serial numbers.
    private func list(of authority: TestCertificateAuthority, revoking serials: [String] = []) async throws -> Data {
        let directory = "/tmp/an-crl-\(UInt64.random(in: 0 ... .max))"
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(atPath: directory) }
        try authority.certificate.write(to: directory + "/ca.pem")
        let entries = serials.map { "R\t491231235959Z\t250101000000Z\t\($0)\tunknown\t/CN=x\n" }
        try Data(entries.joined().utf8).write(to: URL(filePath: directory + "/index"))
        let configuration =
            "[ca]\ndefault_ca=d\n[d]\ndatabase=\(directory)/index\ndefault_md=sha256\ndefault_crl_days=2\n"
        try Data(configuration.utf8).write(to: URL(filePath: directory + "/configuration"))
        let outcome = try await Command(
            "openssl", "ca", "-config", directory + "/configuration", "-gencrl", "-cert", directory + "/ca.pem",
            "-keyfile", directory + "/ca.pem"
        ).run()
        try #require(outcome.status == 0, "\(String(decoding: outcome.errors, as: UTF8.self))")
        return Data(outcome.output)
    }

    @Test func `a bundle of revocation lists is read completely or not at all`() async throws {
        let good = try await list(of: intermediate)
        let serial = policy().evaluate(chain, for: nil).trust.chain[1].serialNumber
        let revoking = try await list(of: root, revoking: [serial.uppercased()])
        func failure(_ lists: Data) -> TransportError.TLSFailure? {
            policy { $0.revocationLists = .data(lists) }.evaluate(chain, for: "localhost").trust.failure
        }
        #expect(failure(good) == nil)
        #expect(failure(good + revoking) == .revoked)
        let text = String(decoding: revoking, as: UTF8.self)
        let damaged = [
            String(text.dropLast(20)), String(text.prefix(text.count / 2)), "\u{FEFF}" + text, " " + text,
            text.replacing("-----BEGIN X509 CRL-----\nM", with: "-----BEGIN X509 CRL-----\n"),
            text.replacing("-----BEGIN X509 CRL-----", with: "----BEGIN X509 CRL-----"),
        ]
        for second in damaged { #expect(failure(good + Data(second.utf8)) == .badSecurityPolicy(.revocationLists)) }
        #expect(failure(good.dropLast() + revoking) == .badSecurityPolicy(.revocationLists))
        let block = try #require(text.firstRange(of: "-----BEGIN")).lowerBound
        let digits = text[block...].split(separator: "\n").filter { !$0.hasPrefix("-----") }.joined()
        let der = try #require(Data(base64Encoded: digits))
        #expect(failure(der) == .revocationUnknown)
        for other in [der, good] { #expect(failure(der + other) == .badSecurityPolicy(.revocationLists)) }
    }

    @Test func `a pinned certificate whose issuer is not sent is checked against the list of its issuer`() async throws
    {
        let authority = try TestCertificateAuthority()
        let leaf = try authority.issue().derData
        func failure(_ lists: Data) -> TransportError.TLSFailure? {
            var policy = SecurityPolicy.pinning(certificates: [leaf])
            policy.trustRoots = .pem(authority.pemData)
            policy.revocationLists = .data(lists)
            return policy.evaluate([leaf], for: "localhost").trust.failure
        }
        let empty = try await list(of: authority)
        #expect(failure(empty) == nil)
        let serial = SecurityPolicy().evaluate([leaf], for: nil).trust.presented[0].serialNumber
        let revoking = try await list(of: authority, revoking: [serial.uppercased()])
        #expect(failure(revoking) == .revoked)
    }

    @Test func `the chain ends at the root if an intermediate is trusted, too`() async throws {
        var policy = SecurityPolicy.pinning(
            [try PublicKeyPin("sha256/" + root.certificate.publicKeySHA256)], backups: [])
        policy.trustRoots = .pem(intermediate.pemData + root.pemData)
        let trust = policy.evaluate(chain, for: "localhost").trust
        #expect(trust.failure == nil)
        #expect(trust.chain.map(\.der) == chain + [root.certificate.derData])
        let revoking = try await list(of: root, revoking: [trust.chain[1].serialNumber.uppercased()])
        policy.revocationLists = .data(try await list(of: intermediate) + revoking)
        #expect(policy.evaluate(chain, for: "localhost").trust.failure == .revoked)
    }

    @Test func `a trusted intermediate is the end of the chain if the root has expired`() throws {
        let root = try TestCertificateAuthority(validity: .expired)
        let intermediate = try root.intermediate()
        let chain = [try intermediate.issue().derData, intermediate.certificate.derData]
        for (roots, failure) in [
            (root.pemData, .certificateExpired), (intermediate.pemData + root.pemData, nil),
        ] as [(Data, TransportError.TLSFailure?)] {
            let trust = policy { $0.trustRoots = .pem(roots) }.evaluate(chain, for: "localhost").trust
            #expect(trust.failure == failure)
        }
    }

    @Test(.exitTest) func `evaluations free their memory`() async {
        // In a process of its own, where no other test allocates memory.
        await #expect(processExitsWith: .success) {
            let root = try TestCertificateAuthority()
            let chain = [try root.issue().derData]
            var policy = SecurityPolicy()
            policy.trustRoots = .pem(root.pemData)
            func evaluate(_ times: Int) { for _ in 0..<times { _ = policy.evaluate(chain, for: "localhost") } }
            evaluate(200)
            let before = try residentKilobytes()
            evaluate(2_000)
            // A certificate takes more than 4 KB.
            if !isSanitized { try #require(try residentKilobytes() - before < 4_000) }
        }
    }

    @Test func `a chain to an untrusted or missing authority is refused`() throws {
        #expect(SecurityPolicy().evaluate(chain, for: "localhost").trust.failure == .unknownAuthority)
        #expect(policy().evaluate([leaf.derData], for: "localhost").trust.failure == .unknownAuthority)
        let own = try TestCertificate.selfSigned()
        #expect(policy().evaluate([own.derData], for: "localhost").trust.failure == .selfSigned)
    }

    @Test(
        arguments: [
            (-7200.0, TransportError.TLSFailure.certificateNotYetValid), (0, nil), (90_000, .certificateExpired),
        ] as [(TimeInterval, TransportError.TLSFailure?)])
    func `the certificate is verified for the policy's date`(offset: TimeInterval, failure: TransportError.TLSFailure?)
    {
        let date = Date().addingTimeInterval(offset)
        let result = policy { $0.verificationTime = date }.evaluate(chain, for: "localhost")
        #expect(result.trust.failure == failure)
        #expect(result.trust.date == date)
    }

    @Test(arguments: [nil, 0, 90_000] as [TimeInterval?])
    func `a certificate with a pinned key is accepted at any date, if invalid ones are`(offset: TimeInterval?) throws {
        let pin = try PublicKeyPin("sha256/" + leaf.publicKeySHA256)
        var pinning = policy {
            ($0.pinningMode, $0.pins, $0.allowsInvalidCertificates) = (.publicKey, [pin], true)
            $0.verificationTime = offset.map { Date().addingTimeInterval($0) }
        }
        #expect(!pinning.evaluate([leaf.derData], for: "localhost").isRefused)
        pinning.allowsInvalidCertificates = false
        #expect(pinning.evaluate([leaf.derData], for: "localhost").isRefused)
    }

    @Test func `changes to the file of authorities take effect`() throws {
        let path = FileManager.default.temporaryDirectory.appending(path: "an-roots-\(UUID()).pem").path
        defer { try? FileManager.default.removeItem(atPath: path) }
        let policy = policy { $0.trustRoots = .file(path) }
        #expect(policy.evaluate(chain, for: "localhost").trust.failure == .badTrustRoots)
        try root.pemData.write(to: URL(filePath: path))
        #expect(!policy.evaluate(chain, for: "localhost").isRefused)
        try TestCertificateAuthority().pemData.write(to: URL(filePath: path))
        #expect(policy.evaluate(chain, for: "localhost").isRefused)
    }

    @Test func `pins are checked as in a handshake`() throws {
        let pin = try PublicKeyPin("sha256/" + intermediate.certificate.publicKeySHA256)
        let other = try PublicKeyPin("sha256/" + TestCertificate.selfSigned().publicKeySHA256)
        let pinned = policy {
            $0.pinningMode = .publicKey
            $0.pins = [other]
            $0.backupPins = [pin]
        }
        let result = pinned.evaluate(chain, for: "localhost")
        #expect(!result.isRefused)
        #expect(result.matchedPin == pin)
        #expect(result.usesBackupPin)
        let wrong = policy {
            $0.pinningMode = .publicKey
            $0.pins = [other]
        }
        #expect(wrong.evaluate(chain, for: "localhost").trust.failure == .pinMismatch(expected: [other]))
        let malformed = SecurityPolicy.pinning(certificates: [Data([1])])
        #expect(malformed.evaluate(chain, for: "localhost").isRefused)
    }

    @Test(arguments: [[], [Data()], [Data([0x30, 0x82, 0, 1, 2])]])
    func `an invalid chain is refused by every policy`(certificates: [Data]) {
        let lax = policy {
            $0.allowsInvalidCertificates = true
            $0.validatesDomainName = false
        }
        let result = lax.evaluate(certificates, for: nil)
        #expect(result.isRefused)
        #expect(result.trust.failure != nil)
        #expect(!lax.evaluate([leaf.derData], for: nil).isRefused)
    }

    @Test func `the evaluator decides, and a required staple is refused`() {
        let refusing = policy { $0.evaluator = { _ in .refuse("no") } }
        #expect(refusing.evaluate(chain, for: "localhost").trust.failure == .rejected("no"))
        let accepting = policy { $0.evaluator = { $0.failure == .wrongHost ? .accept : .followPolicy } }
        #expect(!accepting.evaluate(chain, for: "other.example").isRefused)
        let stapled = policy { $0.stapling = .required }
        #expect(stapled.evaluate(chain, for: "localhost").trust.failure == .stapleMissing)
    }

    @Test func `only a server certificate is accepted for a server`() throws {
        let client = try intermediate.issue(.client("ada"))
        let certificates = [client.derData, intermediate.certificate.derData]
        let failure = policy().evaluate(certificates, for: nil).trust.failure
        #expect(failure == nil || failure == .wrongPurpose)
    }
}
