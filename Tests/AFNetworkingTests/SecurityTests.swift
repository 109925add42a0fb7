// SPDX-License-Identifier: MIT

import AFNetworking
import AsyncNetworking
import AsyncNetworkingTesting
import Dispatch
import Testing

/// Rows SEC-001…011, USM-031, USM-032; the truth table of trust over TLS; the kinds of answers to challenges.
@Suite(.timeLimit(.minutes(1))) struct SecurityTests {
    /// One row of the truth table, with the server's certificate from an authority that the system does not know.
    struct Row: CustomTestStringConvertible, Sendable {
        let mode: AFSSLPinningMode
        let allowsInvalid: Bool
        let validatesName: Bool
        let pins: String
        let isTrusted: Bool

        var testDescription: String {
            "\(mode) \(allowsInvalid ? "invalid allowed" : "valid") \(validatesName ? "name" : "no name") \(pins)"
        }

        init(_ mode: AFSSLPinningMode, _ allowsInvalid: Bool, _ validatesName: Bool, _ pins: String, _ isTrusted: Bool)
        {
            self.mode = mode
            self.allowsInvalid = allowsInvalid
            self.validatesName = validatesName
            self.pins = pins
            self.isTrusted = isTrusted
        }
    }

    static let rows = [
        Row(.none, false, true, "own", false), Row(.none, false, false, "own", false),
        Row(.none, true, true, "own", false), Row(.none, true, false, "none", true),
        Row(.publicKey, true, true, "own", true), Row(.publicKey, true, true, "other", false),
        Row(.publicKey, true, true, "none", false), Row(.publicKey, false, true, "own", false),
        Row(.certificate, true, true, "own", true), Row(.certificate, true, false, "other", false),
        Row(.certificate, false, true, "own", false), Row(.certificate, true, true, "none", false),
    ]

    @Test(arguments: rows)
    func `servers are trusted as the table says`(row: Row) async throws {
        let own = try TestCertificate.selfSigned()
        let other = try TestCertificate.selfSigned()
        try await StubServer.with(.init(tls: .init(own))) { server in
            server.route("/", .json("{}"))
            let manager = AFHTTPSessionManager(for: server)
            let pins: Set<Data> = row.pins == "own" ? [own.derData] : row.pins == "other" ? [other.derData] : []
            let policy = AFSecurityPolicy(pinningMode: row.mode, withPinnedCertificates: pins)
            policy.allowInvalidCertificates = row.allowsInvalid
            policy.validatesDomainName = row.validatesName
            manager.securityPolicy = policy
            let result = await manager.fetch("")
            #expect((result.error == nil) == row.isTrusted, "\(result.error.map { "\($0)" } ?? "")")
            #expect(row.isTrusted || server.activity.requests.isEmpty)
        }
    }

    @Test func `a server that is refused is -1202 for the handler, and cancelled for the hook`() async throws {
        try await StubServer.with(.init(tls: .init(TestCertificate.selfSigned()))) { server in
            let manager = AFHTTPSessionManager(for: server)
            let log = Log<Int>()
            manager.setTaskDidCompleteBlock { _, _, error in log.add((error as NSError?)?.code ?? 0) }
            let error = try #require(await manager.fetch("").error)
            #expect(error.domain == NSURLErrorDomain)
            #expect(error.code == -1202)
            #expect(
                error.localizedDescription == """
                    The certificate for this server is invalid. You might be connecting to a server that is pretending \
                    to be “127.0.0.1” which could put your confidential information at risk.
                    """)
            #expect(log.entries == [-999])
        }
    }

    @Test func `a block, or a subclass of the policy, decides in place of the rules`() async throws {
        final class Trusting: AFSecurityPolicy, @unchecked Sendable {
            override func evaluateServerTrust(_ serverTrust: SecTrust, forDomain domain: String?) -> Bool {
                domain == "127.0.0.1" && !serverTrust.presented.isEmpty
            }
        }
        try await StubServer.with(.init(tls: .init(TestCertificate.selfSigned()))) { server in
            server.route("/", .json("{}"))
            let first = AFHTTPSessionManager(for: server)
            first.setSessionDidReceiveAuthenticationChallenge { _, challenge, credential in
                guard let trust = challenge.protectionSpace.serverTrust else { return .performDefaultHandling }
                credential?.pointee = URLCredential(trust: trust)
                return challenge.protectionSpace.host == "127.0.0.1" ? .useCredential : .cancelAuthenticationChallenge
            }
            #expect(await first.fetch("").error == nil)
            let second = AFHTTPSessionManager(for: server)
            second.securityPolicy = Trusting()
            #expect(await second.fetch("").error == nil)
        }
    }

    @Test func `a policy that is not the manager's own is asked for its own rules`() async throws {
        try await StubServer.with(.init(tls: .init(TestCertificate.selfSigned()))) { server in
            server.route("/", .json("{}"))
            let lax = AFSecurityPolicy()
            lax.allowInvalidCertificates = true
            lax.validatesDomainName = false
            let pinned = AFSecurityPolicy(pinningMode: .certificate, withPinnedCertificates: [Data([1])])
            // The manager's own policy, one that asks for more, and one that asks for as little.
            for (policy, isAccepted) in [(lax, true), (AFSecurityPolicy(), false), (pinned, false)] {
                let manager = AFHTTPSessionManager(for: server)
                manager.securityPolicy = lax
                manager.setSessionDidReceiveAuthenticationChallenge { _, challenge, _ in
                    guard let trust = challenge.protectionSpace.serverTrust else { return .performDefaultHandling }
                    return policy.evaluateServerTrust(trust, forDomain: challenge.protectionSpace.host)
                        ? .useCredential : .cancelAuthenticationChallenge
                }
                #expect(await (manager.fetch("").error == nil) == isAccepted)
            }
            let trust = ServerTrust(host: "a.example", date: Date(), presented: [], chain: [])
            #expect(AFSecurityPolicy().evaluateServerTrust(trust, forDomain: "a.example"))
            #expect(!AFSecurityPolicy().evaluateServerTrust(trust, forDomain: "b.example"))
            #expect(!pinned.evaluateServerTrust(trust, forDomain: "a.example"))
        }
    }

    @Test func `a handler of challenges is asked about certificates too`() async throws {
        try await StubServer.with(.init(tls: .init(TestCertificate.selfSigned()))) { server in
            server.route("/", .json("{}"))
            func outcome(_ answer: @escaping (SecTrust) -> Any?) async -> Int {
                let manager = AFHTTPSessionManager(for: server)
                manager.setAuthenticationChallengeHandler { _, task, challenge, _ in
                    guard challenge.protectionSpace.authenticationMethod == NSURLAuthenticationMethodServerTrust,
                        task.originalRequest?.url == server.url("/"), let trust = challenge.protectionSpace.serverTrust
                    else { return NSNumber(value: 1) }
                    return answer(trust)
                }
                return await manager.fetch("").error?.code ?? 0
            }
            #expect(await outcome { URLCredential(trust: $0) } == 0)
            #expect(await outcome { _ in NSError(domain: "mine", code: 7) } == 7)
            #expect(await outcome { _ in nil } == -1202)
            // What is meant for a server that asks for a password trusts none.
            #expect(await outcome { _ in URLCredential(user: "", password: "", persistence: .none) } == -1202)
            #expect(await outcome { _ in NSNumber(value: 1) } == -1202)
        }
    }

    @Test func `a handler of challenges may answer in four ways`() async throws {
        try await StubServer.with { server in
            server.route("/") { request in
                guard request.headers["Authorization"] == nil else { return .json("{}") }
                return .status(401, headers: ["WWW-Authenticate": "Basic realm=\"room\""])
            }
            func outcome(
                _ answer:
                    @escaping (
                        URLAuthenticationChallenge, (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
                    ) -> Any?
            ) async -> Int {
                let manager = AFHTTPSessionManager(for: server)
                manager.setAuthenticationChallengeHandler { _, _, challenge, done in answer(challenge, done) }
                return await manager.fetch("").error?.code ?? 0
            }
            let credential = URLCredential(user: "a", password: "b", persistence: .none)
            #expect(await outcome { _, _ in credential } == 0)
            #expect(await outcome { _, _ in NSError(domain: "mine", code: 7) } == 7)
            #expect(await outcome { _, _ in NSNumber(value: 1) } == -1011)
            #expect(await outcome { _, _ in NSNumber(value: 2) } == -999)
            #expect(
                await outcome { challenge, done in
                    done(
                        challenge.protectionSpace.realm == "room" ? .useCredential : .performDefaultHandling, credential
                    )
                    return nil
                } == 0)
            let manager = AFHTTPSessionManager(for: server)
            manager.setAuthenticationChallengeHandler { _, _, _, _ in "nonsense" }
            let error = await manager.fetch("").error
            #expect(error?.domain == "Invalid Return Value")
            #expect(
                error?.localizedFailureReason == """
                    The return value from the authentication challenge handler must be nil, an NSError, an NSURLCredential \
                    or an NSNumber.
                    """)
        }
    }

    @Test func `a policy is copied and archived with all it has`() throws {
        let policy = AFSecurityPolicy(pinningMode: .certificate, withPinnedCertificates: [Data([1])])
        policy.allowInvalidCertificates = true
        policy.validatesDomainName = false
        let data = try NSKeyedArchiver.archivedData(withRootObject: policy, requiringSecureCoding: true)
        let restored = try #require(try NSKeyedUnarchiver.unarchivedObject(ofClass: AFSecurityPolicy.self, from: data))
        for other in [try #require(policy.copy() as? AFSecurityPolicy), restored] {
            #expect(other.sslPinningMode == .certificate)
            #expect(other.pinnedCertificates == [Data([1])])
            #expect(other.allowInvalidCertificates)
            #expect(!other.validatesDomainName)
        }
        #expect(AFSecurityPolicy.default() !== AFSecurityPolicy.default())
        #expect(AFSecurityPolicy.default().validatesDomainName)
        #expect([AFSSLPinningMode.none, .publicKey, .certificate].map(\.rawValue) == [0, 1, 2])
    }
}
