// SPDX-License-Identifier: MIT

import ANCurl
import ANHTTP
import ANSystem
import AsyncNetworkingTesting
import Foundation
import Testing

/// OCSP responses stapled to handshakes. `RealServerTests` has responses signed by the `openssl` tool.
@Suite(.timeLimit(.minutes(5))) struct StaplesTests {
    private let root: TestCertificateAuthority
    private let issuer: TestCertificateAuthority
    private let leaf: TestCertificate

    init() throws {
        root = try TestCertificateAuthority()
        issuer = try root.intermediate()
        leaf = try issuer.issue()
    }

    /// The OCSP response that a server staples.
    enum Staple: String, CaseIterable, Sendable {
        case none, good, goodBySHA256, revoked, unknown, past, future, strangers, roots, siblings, damaged, about,
            garbage, tryLater, latest, latestOfThePast

        /// The responses that a server sends. Since OpenSSL 3.6 it sends only those about its certificate.
        static let sent: [Staple] = {
            let library = (try? CurlLibrary.current.get().tlsLibrary) ?? ""
            let version = library.drop { $0 != "/" }.dropFirst().split(separator: ".").compactMap { Int($0) }
            return allCases.filter { version.lexicographicallyPrecedes([3, 6]) || $0 != .about && $0 != .garbage }
        }()

        /// The failure if the response is checked; `nil` if it is valid.
        var failure: TransportError.TLSFailure? {
            switch self {
            case .none, .good, .goodBySHA256, .latest: nil
            case .revoked: .revoked
            case .unknown: .badStaple("it does not know the certificate")
            case .past, .future, .latestOfThePast: .badStaple("it is not current")
            case .strangers, .roots, .siblings, .damaged: .badStaple("its signature is not the authority's")
            case .about: .badStaple("it is about another certificate")
            case .garbage: .badStaple("it is malformed")
            case .tryLater: .badStaple("it is an error message")
            }
        }
    }

    private func der(_ staple: Staple) throws -> Data? {
        var response = OCSPResponse()
        var certificate = leaf
        switch staple {
        case .none: return nil
        case .garbage: return Data([1, 2, 3])
        case .tryLater: return try OCSPResponse.tryLater()
        case .good, .damaged: break
        case .goodBySHA256: response.usesSHA256 = true
        case .revoked: response.status = .revoked
        case .unknown: response.status = .unknown
        case .past: response.validity = .expired
        case .future: response.validity = .notYetValid
        case .latest: response.hasNextUpdate = false
        case .latestOfThePast:
            response.validity = .init(from: .seconds(-2 * 86_400), to: .seconds(0))
            response.hasNextUpdate = false
        // An authority of the same name, one above the issuer, and a server of the issuer's.
        case .strangers: response.signer = try TestCertificateAuthority().intermediate().certificate
        case .roots: response.signer = root.certificate
        case .siblings: response.signer = try issuer.issue(.init(commonName: "sibling", dnsNames: ["sibling.example"]))
        case .about: certificate = try issuer.issue()
        }
        var der = try response.der(about: certificate, of: issuer.certificate)
        if staple == .damaged {
            // Changes `producedAt`, `YYYYMMDDHHMMSSZ`, by a second.
            let time = try #require(der.firstRange(of: [0x18, 0x0F]))
            der[time.upperBound + 13] ^= 1
        }
        return der
    }

    /// The failure of a request, and the failures reported to the policy's observer.
    private func outcome(
        _ staple: Staple, _ version: TLSVersion = .v1_3, _ change: (inout SecurityPolicy) throws -> Void
    ) async throws -> (failure: TransportError.TLSFailure?, observed: [TransportError.TLSFailure?]) {
        let observed = Lock([TransportError.TLSFailure?]())
        var policy = SecurityPolicy()
        policy.observer = { result in observed.withLock { $0.append(result.trust.failure) } }
        try change(&policy)
        var tls = StubServer.TLS(leaf)
        tls.staple = try der(staple)
        tls.maximumVersion = version
        return try await StubServer.with(.init(tls: tls)) { server in
            server.fallback { _ in .text("secret") }
            let options = TransferOptions.with {
                $0.tls.trustRoots = .pem(root.pemData)
                $0.tls.policy = policy
            }
            do {
                let text = try await CurlTransport().text(server.request(options: options))
                #expect(text == "secret")
                return (nil, observed.withLock { $0 })
            } catch let error as TransportError {
                guard case .tls(let failure) = error.reason else { throw error }
                #expect(server.activity.requests.isEmpty)
                return (failure, observed.withLock { $0 })
            }
        }
    }

    @Test(arguments: Staple.sent, [TLSVersion.v1_2, .v1_3])
    func `a staple must be signed by the issuer, current, and about the server's certificate`(
        staple: Staple, version: TLSVersion
    ) async throws {
        for (stapling, expected) in [
            (.ignored, nil), (.preferred, staple.failure),
            (.required, staple == .none ? .stapleMissing : staple.failure),
        ] as [(SecurityPolicy.Stapling, TransportError.TLSFailure?)] {
            let (failure, observed) = try await outcome(staple, version) { $0.stapling = stapling }
            #expect(failure == expected, "\(stapling)")
            #expect(observed == [expected], "\(stapling)")
        }
    }

    /// The private authority is not among the trusted ones.
    @Test(
        arguments: [Staple.good, .goodBySHA256, .revoked, .strangers, .siblings, .damaged], ["root", "issuer", "leaf"])
    func `the staple of a pinned chain must be signed by its issuer`(staple: Staple, pin: String) async throws {
        let pinned = ["root": root.certificate, "issuer": issuer.certificate, "leaf": leaf][pin]
        let pins = [try #require(pinned).derData]
        let foreign = try TestCertificateAuthority()
        let (failure, _) = try await outcome(staple) { policy in
            policy = .pinning(certificates: pins)
            policy.trustRoots = .pem(foreign.pemData)
            policy.allowsInvalidCertificates = true
            policy.stapling = .required
        }
        #expect(failure == staple.failure)
    }

    @Test func `a bad staple is reported but not enforced under an audited policy`() async throws {
        let (failure, observed) = try await outcome(.revoked) {
            $0.stapling = .required
            $0.isAudited = true
        }
        #expect(failure == nil)
        #expect(observed == [.revoked])
    }

    @Test(arguments: [Staple.none, .revoked])
    func `a failed verification takes precedence over a bad staple`(staple: Staple) async throws {
        let stranger = try PublicKeyPin("sha256/" + TestCertificate.selfSigned().publicKeySHA256)
        let (failure, observed) = try await outcome(staple) {
            $0.pinningMode = .publicKey
            $0.pins = [stranger]
            $0.stapling = .required
            $0.isAudited = true
        }
        #expect(failure == nil)
        #expect(observed == [.pinMismatch(expected: [stranger])])
    }
}
