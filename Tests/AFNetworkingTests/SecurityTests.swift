// SPDX-License-Identifier: MIT

import AFNetworking
import ANSystem
import AsyncNetworking
import AsyncNetworkingTesting
import Dispatch
import TestSupport
import Testing

/// The truth table of server trust over TLS, and the answers to challenges.
@Suite(.timeLimit(.minutes(5))) struct SecurityTests {
    /// One row of the truth table, for a server certificate from an authority that is not in the system's store.
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
    func `servers are trusted according to the table`(row: Row) async throws {
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

    @Test func `a rejected server is -1202 for the completion handler, and -999 for the hook`() async throws {
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
            let trust = try #require((error as any Error as? URLError)?.failureURLPeerTrust)
            #expect(trust.presented.first?.subject == "CN=localhost")
            #expect(error.userInfo[NSURLErrorFailingURLPeerTrustErrorKey] as? SecTrust == trust)
            #expect(log.entries == [-999])
        }
    }

    @Test func `a block or a subclass of the policy decides in place of the rules`() async throws {
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

    /// A manager that overrides its policy.
    private final class Overriding: AFHTTPSessionManager, @unchecked Sendable {
        var makePolicy: () -> AFSecurityPolicy = AFSecurityPolicy.init

        override var securityPolicy: AFSecurityPolicy {
            get { makePolicy() }
            set {}
        }
    }

    @Test(arguments: [true, false], [true, false])
    func `an override of the policy in a subclass of the manager applies`(isShared: Bool, hasBlock: Bool) async throws {
        final class Refusing: AFSecurityPolicy, @unchecked Sendable {
            override func evaluateServerTrust(_ serverTrust: SecTrust, forDomain domain: String?) -> Bool { false }
        }
        let authority = try TestCertificateAuthority()
        try await StubServer.with(.init(tls: .init(authority.issue()))) { server in
            server.route("/", .json("{}"))
            let session = SessionManager { $0.tls.trustRoots = .pem(authority.pemData) }
            let manager = isShared ? Overriding(session: session) : Overriding(for: server)
            manager.completionQueue = DispatchQueue(label: "completion")
            manager.makePolicy = {
                guard !isShared else { return Refusing() }
                let policy = AFSecurityPolicy()
                policy.allowInvalidCertificates = true
                policy.validatesDomainName = false
                return policy
            }
            if hasBlock { manager.setSessionDidReceiveAuthenticationChallenge { _, _, _ in .performDefaultHandling } }
            // The session trusts the server, and the manager without a session does not.
            let result = await manager.fetch(server.url("/").absoluteString)
            #expect(result.error?.code == (isShared ? -1202 : nil))
        }
    }

    /// A manager whose challenge methods refuse all servers.
    private final class RefusingManager: AFHTTPSessionManager, @unchecked Sendable {
        override func urlSession(
            _ session: URLSession, didReceive challenge: URLAuthenticationChallenge,
            completionHandler: @escaping (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
        ) {
            completionHandler(.cancelAuthenticationChallenge, nil)
        }

        override func urlSession(
            _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
            completionHandler: @escaping (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
        ) {
            completionHandler(.rejectProtectionSpace, nil)
        }
    }

    @Test(arguments: [true, false])
    func `an override of a challenge method decides on certificates if a block is set`(isOfSession: Bool) async throws {
        let authority = try TestCertificateAuthority()
        try await StubServer.with(.init(tls: .init(authority.issue()))) { server in
            server.route("/", .json("{}"))
            let manager = RefusingManager(session: SessionManager { $0.tls.trustRoots = .pem(authority.pemData) })
            manager.completionQueue = DispatchQueue(label: "completion")
            if isOfSession {
                manager.setSessionDidReceiveAuthenticationChallenge { _, _, _ in .performDefaultHandling }
            } else {
                manager.setAuthenticationChallengeHandler { _, _, _, _ in NSNumber(value: 1) }
            }
            #expect(await manager.fetch(server.url("/").absoluteString).error?.code == -1202)
        }
    }

    @Test(arguments: [true, false])
    func `default handling by a block calls an override in a subclass of the policy`(isOfSession: Bool) async throws {
        final class Refusing: AFSecurityPolicy, @unchecked Sendable {
            override func evaluateServerTrust(_ serverTrust: SecTrust, forDomain domain: String?) -> Bool { false }
        }
        let authority = try TestCertificateAuthority()
        try await StubServer.with(.init(tls: .init(authority.issue()))) { server in
            server.route("/", .json("{}"))
            let session = SessionManager { $0.tls.trustRoots = .pem(authority.pemData) }
            for policy in [AFSecurityPolicy(), Refusing()] {
                let manager = AFHTTPSessionManager(session: session)
                manager.completionQueue = DispatchQueue(label: "completion")
                manager.securityPolicy = policy
                if isOfSession {
                    manager.setSessionDidReceiveAuthenticationChallenge { _, _, _ in .performDefaultHandling }
                } else {
                    manager.setAuthenticationChallengeHandler { _, _, _, _ in
                        URLSession.AuthChallengeDisposition.performDefaultHandling
                    }
                }
                let result = await manager.fetch(server.url("/").absoluteString)
                #expect((result.error == nil) == !(policy is Refusing))
            }
        }
    }

    @Test(arguments: [true, false], [true, false])
    func `a block decides on hosts with a policy of their own in a shared session, and leaves it the rest`(
        isOfSession: Bool, isLate: Bool
    ) async throws {
        let authority = try TestCertificateAuthority()
        try await StubServer.with(.init(tls: .init(authority.issue()))) { server in
            server.route("/", .json("{}"))
            func code(_ disposition: URLSession.AuthChallengeDisposition, _ own: SecurityPolicy.Decision) async -> Int?
            {
                let manager = Lock<AFHTTPSessionManager?>(nil)
                let set: @Sendable () -> Void = {
                    let manager = manager.withLock { $0 }
                    if isOfSession {
                        manager?.setSessionDidReceiveAuthenticationChallenge { _, challenge, credential in
                            credential?.pointee = challenge.protectionSpace.serverTrust.map(URLCredential.init(trust:))
                            return disposition
                        }
                    } else {
                        manager?.setAuthenticationChallengeHandler { _, _, challenge, answer in
                            answer(disposition, challenge.protectionSpace.serverTrust.map(URLCredential.init(trust:)))
                            return nil
                        }
                    }
                }
                let session = SessionManager {
                    $0.tls.trustRoots = .pem(authority.pemData)
                    $0.tls.hostPolicies = ["127.0.0.1": SecurityPolicy()]
                    $0.tls.hostPolicies["127.0.0.1"]?.evaluator = { _ in own }
                    if isLate { $0.interceptors = [Calling(set)] }
                }
                let made = AFHTTPSessionManager(session: session)
                made.completionQueue = DispatchQueue(label: "completion")
                manager.set(\.self, to: made)
                if !isLate { set() }
                return await made.fetch(server.url("/").absoluteString).error?.code
            }
            #expect(await code(.useCredential, .refuse("own")) == nil)
            #expect(await code(.cancelAuthenticationChallenge, .accept) == -1202)
            #expect(await code(.performDefaultHandling, .refuse("own")) == -1202)
            #expect(await code(.performDefaultHandling, .accept) == nil)
        }
    }

    @Test func `blocks for challenges may be set and removed at the same time`() async throws {
        let request = URLRequest(url: try #require(URL(string: "https://127.0.0.1:1/")))
        for _ in 0..<rounds(20_000, few: 2_000) {
            let manager = AFHTTPSessionManager(session: Self.idle)
            manager.setSessionDidReceiveAuthenticationChallenge { _, _, _ in .performDefaultHandling }
            await withTaskGroup { group in
                group.addTask { manager.setSessionDidReceiveAuthenticationChallenge(nil) }
                group.addTask { manager.setAuthenticationChallengeHandler { _, _, _, _ in nil } }
            }
            let task = manager.dataTask(with: request)
            #expect(task.coreTask?.request?.options?.tls.identityChooser != nil)
            task.cancel()
        }
    }

    private static let idle = SessionManager()

    @Test func `a policy that is set when the previous one is freed replaces its failure, too`() async throws {
        final class Replacing: AFSecurityPolicy, @unchecked Sendable {
            weak var manager: AFHTTPSessionManager?

            deinit { manager?.securityPolicy = AFSecurityPolicy() }
        }
        try await StubServer.with { server in
            server.route("/", .json("{}"))
            let manager = AFHTTPSessionManager(for: server)
            manager.securityPolicy = {
                let policy = Replacing()
                policy.manager = manager
                return policy
            }()
            manager.securityPolicy = AFSecurityPolicy(pinningMode: .publicKey, withPinnedCertificates: [])
            #expect(manager.securityPolicy.sslPinningMode == .none)
            #expect(await manager.fetch("").error == nil)
        }
    }

    @Test func `a policy other than the manager's own applies its own rules`() async throws {
        try await StubServer.with(.init(tls: .init(TestCertificate.selfSigned()))) { server in
            server.route("/", .json("{}"))
            let lax = AFSecurityPolicy()
            lax.allowInvalidCertificates = true
            lax.validatesDomainName = false
            let pinned = AFSecurityPolicy(pinningMode: .certificate, withPinnedCertificates: [Data([1])])
            // The manager's own policy, a stricter one, and one that is equally lax.
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
        }
    }

    @Test func `a trust that the program created is verified by its certificates`() throws {
        let certificate = try TestCertificate.selfSigned()
        var trust = ServerTrust(host: "localhost", date: Date(), presented: [], chain: [])
        let strict = AFSecurityPolicy()
        let pinned = AFSecurityPolicy(pinningMode: .certificate, withPinnedCertificates: [certificate.derData])
        pinned.allowInvalidCertificates = true
        for policy in [strict, pinned] { #expect(!policy.evaluateServerTrust(trust, forDomain: "localhost")) }
        let shown = ServerTrust.Certificate(
            der: certificate.derData, publicKey: try PublicKeyPin("sha256/" + certificate.publicKeySHA256),
            subject: "", issuer: "", notBefore: .distantPast, notAfter: .distantFuture)
        trust.presented = [shown]
        // The verification results stored in the trust are ignored.
        trust.chain = [shown]
        #expect(!strict.evaluateServerTrust(trust, forDomain: "localhost"))
        trust.failure = .rejected("by hand")
        #expect(pinned.evaluateServerTrust(trust, forDomain: "localhost"))
        #expect(pinned.evaluateServerTrust(trust, forDomain: nil))
        #expect(!pinned.evaluateServerTrust(trust, forDomain: "other.example"))
        trust.date = Date().addingTimeInterval(400 * 86_400)
        #expect(!pinned.evaluateServerTrust(trust, forDomain: "localhost"))
    }

    @Test func `a trust made of certificates is not verified until a policy evaluates it`() throws {
        let certificate = try TestCertificate.selfSigned()
        let trust = SecTrust(certificates: [certificate.derData], host: "localhost")
        #expect(trust.host == "localhost")
        #expect(trust.presented.map(\.der) == [certificate.derData])
        #expect(trust.chain.isEmpty && trust.failure != nil)
        let pinned = AFSecurityPolicy(pinningMode: .publicKey, withPinnedCertificates: [certificate.derData])
        #expect(!pinned.evaluateServerTrust(trust, forDomain: "localhost"))
        pinned.allowInvalidCertificates = true
        #expect(pinned.evaluateServerTrust(trust, forDomain: "localhost"))
        #expect(!pinned.evaluateServerTrust(trust, forDomain: "other.example"))
        for bytes in [[], [Data()], [Data([1, 2, 3])]] {
            let unreadable = SecTrust(certificates: bytes, host: "localhost")
            #expect(unreadable.presented.isEmpty && unreadable.failure != nil)
            #expect(!pinned.evaluateServerTrust(unreadable, forDomain: "localhost"))
        }
        #expect(SecTrust(certificates: [certificate.derData], host: "").failure != nil)
    }

    @Test func `the manager's own policy verifies the given domain`() async throws {
        final class Asking: AFSecurityPolicy, @unchecked Sendable {
            let domain: String?

            init(_ domain: String?, _ certificate: Data) {
                self.domain = domain
                super.init()
                pinnedCertificates = [certificate]
                allowInvalidCertificates = true
            }

            required init?(coder: NSCoder) { nil }
            override var sslPinningMode: AFSSLPinningMode { .certificate }

            override func evaluateServerTrust(_ serverTrust: SecTrust, forDomain domain: String?) -> Bool {
                super.evaluateServerTrust(serverTrust, forDomain: self.domain)
            }
        }
        let certificate = try TestCertificate.selfSigned(
            .init(dnsNames: ["named.example"], ipAddresses: ["192.0.2.1"]))
        try await StubServer.with(.init(tls: .init(certificate))) { server in
            server.route("/", .json("{}"))
            for (domain, isAccepted) in [
                (nil, true), ("named.example", true), ("192.0.2.1", true), ("other.example", false),
                ("127.0.0.1", false),
            ] as [(String?, Bool)] {
                let manager = AFHTTPSessionManager(for: server)
                manager.securityPolicy = Asking(domain, certificate.derData)
                #expect(await (manager.fetch("").error == nil) == isAccepted, "\(domain ?? "nil")")
            }
        }
    }

    @Test func `a policy verifies against the authorities of the shared session`() async throws {
        let authority = try TestCertificateAuthority()
        try await StubServer.with(.init(tls: .init(authority.issue()))) { server in
            server.route("/", .json("{}"))
            let session = SessionManager { $0.tls.trustRoots = .pem(authority.pemData) }
            for (domain, isAccepted) in [("127.0.0.1", true), ("other.example", false)] {
                let manager = AFHTTPSessionManager(session: session)
                manager.completionQueue = DispatchQueue(label: "completion")
                manager.setSessionDidReceiveAuthenticationChallenge { _, challenge, _ in
                    guard let trust = challenge.protectionSpace.serverTrust else { return .performDefaultHandling }
                    return AFSecurityPolicy().evaluateServerTrust(trust, forDomain: domain)
                        ? .useCredential : .cancelAuthenticationChallenge
                }
                let result = await manager.fetch(server.url("/").absoluteString)
                #expect((result.error == nil) == isAccepted)
            }
        }
    }

    @Test func `a block for another event leaves a shared session its credentials`() async throws {
        try await StubServer.with { server in
            server.fallback { request in
                request.headers["Authorization"] == nil
                    ? .status(401, headers: ["WWW-Authenticate": "Basic realm=\"room\""]) : .json("{}")
            }
            let asked = Log<String>()
            let session = SessionManager {
                $0.authentication.challengeHandler = { challenge in
                    asked.add("\(challenge.protectionSpace.realm ?? "")")
                    return .use(Credential(user: "ada", password: "x"))
                }
            }
            let manager = AFHTTPSessionManager(session: session)
            manager.completionQueue = DispatchQueue(label: "completion")
            manager.setDataTaskDidReceiveDataBlock { _, _, _ in }
            for _ in 0..<2 { #expect(await manager.fetch(server.url("/").absoluteString).error == nil) }
            #expect(asked.entries == ["room"])
        }
    }

    private final class Plain: AFHTTPSessionManager, @unchecked Sendable {}

    /// A manager that answers challenges.
    private final class Answering: AFHTTPSessionManager, @unchecked Sendable {
        override func urlSession(
            _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
            completionHandler: @escaping (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
        ) {
            completionHandler(.useCredential, URLCredential(user: "bob", password: "y", persistence: .forSession))
        }
    }

    @Test func `a subclass uses the credentials that a shared session has stored, and stores none of its own`()
        async throws
    {
        try await StubServer.with { server in
            server.fallback { request in
                request.headers["Authorization"] == nil
                    ? .status(401, headers: ["WWW-Authenticate": "Basic realm=\"room\""]) : .json("{}")
            }
            func authorizations(_ manager: AFHTTPSessionManager) async -> [String?] {
                manager.completionQueue = DispatchQueue(label: "completion")
                let before = server.activity.requests.count
                for _ in 0..<2 { #expect(await manager.fetch(server.url("/").absoluteString).error == nil) }
                return server.activity.requests.dropFirst(before).map { $0.headers["Authorization"] }
            }
            let session = SessionManager {
                $0.authentication.challengeHandler = { _ in .use(Credential(user: "ada", password: "x")) }
            }
            let (ada, bob) = ("Basic YWRhOng=", "Basic Ym9iOnk=")
            // The override is asked before the handler of the session, which has stored nothing yet.
            #expect(await authorizations(Answering(session: session)) == [nil, bob, nil, bob])
            #expect(await authorizations(Plain(session: session)) == [nil, ada, ada])
            #expect(await authorizations(Answering(session: session)) == [ada, ada])
        }
    }

    @Test func `the pins of a shared session hold for a copied manager, unless it has its own policy`() async throws {
        let authority = try TestCertificateAuthority()
        let certificate = try authority.issue()
        let other = try TestCertificate.selfSigned()
        try await StubServer.with(.init(tls: .init(certificate))) { server in
            server.route("/", .json("{}"))
            let session = SessionManager {
                $0.tls.trustRoots = .pem(authority.pemData)
                $0.tls.policy = .pinning(certificates: [other.derData])
            }
            let manager = AFHTTPSessionManager(session: session)
            let copy = try #require(manager.copy() as? AFHTTPSessionManager)
            let url = server.url("/").absoluteString
            for manager in [manager, copy] {
                #expect(await manager.fetch(url).error != nil)
            }
            manager.securityPolicy = AFSecurityPolicy()
            #expect(await manager.fetch(url).error == nil)
            let second = try #require(manager.copy() as? AFHTTPSessionManager)
            #expect(await second.fetch(url).error == nil)
        }
    }

    @Test func `certificates are read from a directory that also has other files`() throws {
        let directory = FileManager.default.temporaryDirectory.appending(path: "af-certificates-\(UUID())")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        let certificates = [try TestCertificate.selfSigned(), try TestCertificate.selfSigned()]
        try certificates[0].derData.write(to: directory.appending(path: "a.cer"))
        try certificates[1].pemData.write(to: directory.appending(path: "z.pem"))
        try Data("no certificate".utf8).write(to: directory.appending(path: "b.cer"))
        // The beginning is that of a DER certificate.
        try Data([0x30, 0x82, 0x00, 0x04, 1, 2, 3, 4]).write(to: directory.appending(path: "c.cer"))
        try Data(certificates[0].derData.dropLast(9)).write(to: directory.appending(path: "d.cer"))
        try Data().write(to: directory.appending(path: "e.cer"))
        try FileManager.default.createDirectory(
            at: directory.appending(path: "f.cer"), withIntermediateDirectories: true)
        let bundle = try #require(Bundle(path: directory.path))
        #expect(AFSecurityPolicy.certificates(in: bundle) == Set(certificates.map(\.derData)))
    }

    @Test func `a challenge handler is also called for server certificates`() async throws {
        try await StubServer.with(.init(tls: .init(TestCertificate.selfSigned()))) { server in
            server.route("/", .json("{}"))
            func outcome(_ answer: @escaping @Sendable (SecTrust) -> Any?) async -> Int {
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
            // A credential with a password does not trust a server.
            #expect(await outcome { _ in URLCredential(user: "", password: "", persistence: .none) } == -1202)
            #expect(await outcome { _ in NSNumber(value: 1) } == -1202)
        }
    }

    /// A challenge and its completion handler, to be called later.
    private struct Asked: @unchecked Sendable {
        let task: URLSessionTask
        let challenge: URLAuthenticationChallenge
        let answer: (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    }

    /// Returns a manager whose handler defers its answers, and the stream of challenges.
    private func deferringManager(_ server: StubServer) -> (AFHTTPSessionManager, AsyncStream<Asked>) {
        let manager = AFHTTPSessionManager(for: server)
        let (asked, continuation) = AsyncStream.makeStream(of: Asked.self)
        manager.setAuthenticationChallengeHandler { _, task, challenge, answer in
            continuation.yield(Asked(task: task, challenge: challenge, answer: answer))
            return nil
        }
        return (manager, asked)
    }

    @Test(arguments: [("accepts", 0), ("default", -1202), ("cancels", -1202), ("drops", -1202)])
    func `an answer about a certificate may come later`(answer: String, code: Int) async throws {
        try await StubServer.with(.init(tls: .init(TestCertificate.selfSigned()))) { server in
            server.route("/", .json("{}"))
            let (manager, asked) = deferringManager(server)
            async let result = manager.call {
                manager.post("", parameters: ["a": 1], headers: nil, progress: nil, success: $0, failure: $1)
            }
            var iterator = asked.makeAsyncIterator()
            let challenge = try #require(await iterator.next())
            #expect(manager.tasks.count == 1)
            // While the answer is pending, there is no further handshake.
            try await StubServer.with { other in
                other.fallback { _ in .json("{}") }
                let requester = AFHTTPSessionManager(for: other)
                for _ in 0..<20 { #expect(await requester.fetch("").error == nil) }
            }
            #expect(server.activity.connectionsAccepted == 1)
            if answer != "drops" {
                let trust = try #require(challenge.challenge.protectionSpace.serverTrust)
                switch answer {
                case "accepts": challenge.answer(.useCredential, URLCredential(trust: trust))
                case "default": challenge.answer(.performDefaultHandling, nil)
                default: challenge.answer(.cancelAuthenticationChallenge, nil)
                }
            }
            manager.setAuthenticationChallengeHandler { _, _, _, _ in NSNumber(value: 1) }
            _ = consume challenge
            #expect(await result.error?.code ?? 0 == code)
            #expect(server.activity.requests.map(\.body) == (code == 0 ? [Data("a=1".utf8)] : []))
        }
    }

    @Test func `a block for sessions answers the schemes that authenticate connections`() async throws {
        try await StubServer.with { server in
            server.fallback { request in
                .status(401, headers: ["WWW-Authenticate": request.path == "/a" ? "NTLM" : "Basic realm=\"r\""])
            }
            let manager = AFHTTPSessionManager(for: server)
            let log = Log<String>()
            manager.setSessionDidReceiveAuthenticationChallenge { _, challenge, _ in
                log.add(challenge.protectionSpace.authenticationMethod)
                return .cancelAuthenticationChallenge
            }
            #expect(await manager.fetch("a").error?.code == NSURLErrorCancelled)
            #expect(await manager.fetch("b").error?.code == NSURLErrorBadServerResponse)
            #expect(log.entries == [NSURLAuthenticationMethodNTLM])
        }
    }

    @Test func `a body that can be read only once is sent completely after a deferred answer`() async throws {
        try await StubServer.with(.init(tls: .init(TestCertificate.selfSigned()))) { server in
            server.route("/", .json("{}"))
            let (manager, asked) = deferringManager(server)
            let request = NSMutableURLRequest(url: server.url("/"))
            request.httpMethod = "PUT"
            request.httpBodyStream = InputStream(data: Data("stream".utf8))
            async let result = callback { [request = request as URLRequest] done in
                manager.uploadTask(withStreamedRequest: request, progress: nil) {
                    done(Callback(response: $0, object: $1, error: $2 as NSError?))
                }.resume()
            }
            var iterator = asked.makeAsyncIterator()
            let challenge = try #require(await iterator.next())
            let trust = try #require(challenge.challenge.protectionSpace.serverTrust)
            challenge.answer(.useCredential, URLCredential(trust: trust))
            #expect(await result.error == nil)
            #expect(server.activity.requests.map(\.body) == [Data("stream".utf8)])
        }
    }

    @Test func `requests that wait for the same answer share it, and a later request asks again`() async throws {
        try await StubServer.with(.init(tls: .init(TestCertificate.selfSigned()))) { server in
            server.fallback { _ in .reply(headers: ["Connection": "close"], body: .string("x")) }
            let (manager, asked) = deferringManager(server)
            manager.responseSerializer = AFHTTPResponseSerializer()
            async let results = withTaskGroup(of: Bool.self) { group in
                for _ in 0..<4 { group.addTask { await manager.fetch("").error == nil } }
                return await group.reduce(into: [Bool]()) { $0.append($1) }
            }
            // Each has tried to connect before the answer is given.
            _ = try await server.activity { $0.failedHandshakes.count >= 4 }
            let log = Log<String>()
            manager.setAuthenticationChallengeHandler { _, _, challenge, _ in
                log.add("asked again")
                return challenge.protectionSpace.serverTrust.map { URLCredential(trust: $0) }
            }
            var iterator = asked.makeAsyncIterator()
            let challenge = try #require(await iterator.next())
            let trust = try #require(challenge.challenge.protectionSpace.serverTrust)
            challenge.answer(.useCredential, URLCredential(trust: trust))
            #expect(await results == [true, true, true, true])
            #expect(log.entries == [])
            #expect(await manager.fetch("").error == nil)
            #expect(log.entries == ["asked again"])
        }
    }

    @Test func `a challenge is for a running task, and a refused one reports the error of the block`() async throws {
        try await StubServer.with(.init(tls: .init(TestCertificate.selfSigned()))) { server in
            server.route("/", .json("{}"))
            let manager = AFHTTPSessionManager(for: server)
            let asked = Log<Int>()
            manager.setAuthenticationChallengeHandler { _, task, _, _ in
                asked.add(task.taskIdentifier)
                return NSError(domain: "mine", code: 7)
            }
            let suspended = manager.dataTask(with: URLRequest(url: server.url("/"))) { _, _, _ in }
            let results = await withTaskGroup(of: Callback.self) { group in
                for _ in 0..<4 { group.addTask { await manager.fetch("") } }
                return await group.reduce(into: [Callback]()) { $0.append($1) }
            }
            #expect(results.map { $0.error?.domain } == Array(repeating: "mine", count: 4))
            #expect(!asked.entries.contains(suspended.taskIdentifier))
            #expect(suspended.state == .suspended)
            suspended.cancel()
        }
    }

    @Test func `a refusal without an error does not report that of an earlier challenge`() async throws {
        try await StubServer.with(.init(tls: .init(TestCertificate.selfSigned()))) { server in
            let manager = AFHTTPSessionManager(for: server)
            // While a task is left, the manager keeps the errors of its challenges.
            let suspended = manager.dataTask(with: URLRequest(url: server.url("/"))) { _, _, _ in }
            manager.setAuthenticationChallengeHandler { _, _, _, _ in NSError(domain: "mine", code: 7) }
            #expect(await manager.fetch("").error?.domain == "mine")
            manager.setAuthenticationChallengeHandler { _, _, _, _ in
                URLSession.AuthChallengeDisposition.cancelAuthenticationChallenge
            }
            let refused = await manager.fetch("").error
            #expect(refused?.domain == NSURLErrorDomain && refused?.code == -1202)
            suspended.cancel()
        }
    }

    /// An error that is counted as long as it lives.
    private final class Counted: CustomNSError {
        static let living = Lock(0)
        let errorCode: Int

        init(_ code: Int) {
            errorCode = code
            Self.living.withLock { $0 += 1 }
        }

        deinit { Self.living.withLock { $0 -= 1 } }
    }

    @Test func `of refused handshakes, the last errors are kept while tasks are left`() async throws {
        try await StubServer.with(.init(tls: .init(TestCertificate.selfSigned()))) { server in
            let manager = AFHTTPSessionManager(for: server)
            let suspended = manager.dataTask(with: URLRequest(url: server.url("/"))) { _, _, _ in }
            let codes = Lock(0)
            manager.setAuthenticationChallengeHandler { _, _, _, _ in
                Counted(
                    codes.withLock {
                        $0 += 1
                        return $0
                    })
            }
            for code in 1...80 { #expect(await manager.fetch("").error?.code == code) }
            #expect(Counted.living.withLock(\.self) <= 64)
            suspended.cancel()
        }
    }

    private struct Refusal: Error, Equatable {
        let host: String
    }

    /// A manager that passes challenges on as its own.
    private final class Wrapping: AFHTTPSessionManager, @unchecked Sendable {
        override func urlSession(
            _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
            completionHandler: @escaping (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
        ) {
            let own = URLAuthenticationChallenge(authenticationChallenge: challenge, sender: NoSender())
            super.urlSession(session, task: task, didReceive: own, completionHandler: completionHandler)
        }
    }

    private final class NoSender: NSObject, URLAuthenticationChallengeSender {
        func use(_ credential: URLCredential, for challenge: URLAuthenticationChallenge) {}
        func continueWithoutCredential(for challenge: URLAuthenticationChallenge) {}
        func cancel(_ challenge: URLAuthenticationChallenge) {}
        func performDefaultHandling(for challenge: URLAuthenticationChallenge) {}
        func rejectProtectionSpaceAndContinue(with challenge: URLAuthenticationChallenge) {}
    }

    @Test(arguments: [false, true])
    func `each task reports the error of the block for its own host`(wraps: Bool) async throws {
        try await StubServer.with(.init(tls: .init(TestCertificate.selfSigned()))) { server in
            let manager = wraps ? Wrapping(for: server) : AFHTTPSessionManager(for: server)
            manager.setAuthenticationChallengeHandler { _, _, challenge, _ in
                Refusal(host: challenge.protectionSpace.host)
            }
            // While a task is left, the manager keeps the errors of its challenges.
            let suspended = manager.dataTask(with: URLRequest(url: server.url("/"))) { _, _, _ in }
            for host in ["localhost", "127.0.0.1", "localhost"] {
                let request = URLRequest(url: server.url("/", host: host))
                let result = await callback { done in
                    manager.dataTask(with: request) { done(Callback(object: $2)) }.resume()
                }
                #expect(result.object as? Refusal == Refusal(host: host))
            }
            suspended.cancel()
        }
    }

    @Test func `a challenge names the task that goes to its host`() async throws {
        try await StubServer.with(.init(tls: .init(TestCertificate.selfSigned()))) { server in
            server.route("/", .json("{}"))
            let (manager, asked) = deferringManager(server)
            var iterator = asked.makeAsyncIterator()
            async let first = manager.fetch(server.url("/").absoluteString)
            let refused = try #require(await iterator.next())
            // The first task still waits while the second one connects.
            async let second = manager.fetch(server.url("/", host: "localhost").absoluteString)
            let accepted = try #require(await iterator.next())
            for (question, host) in [(refused, "127.0.0.1"), (accepted, "localhost")] {
                #expect(question.challenge.protectionSpace.host == host)
                #expect(question.task.originalRequest?.url?.host == host)
            }
            let trust = try #require(accepted.challenge.protectionSpace.serverTrust)
            accepted.answer(.useCredential, URLCredential(trust: trust))
            #expect(await second.error == nil)
            refused.answer(.cancelAuthenticationChallenge, nil)
            #expect(await first.error?.code == -1202)
            #expect(server.activity.requests.count == 1)
        }
    }

    @Test(arguments: ["LocalHost", "127.1"])
    func `the spelling of a host does not matter for its challenge`(host: String) async throws {
        try await StubServer.with(.init(tls: .init(TestCertificate.selfSigned()))) { server in
            server.route("/", .json("{}"))
            let manager = AFHTTPSessionManager(for: server)
            manager.setAuthenticationChallengeHandler { _, _, challenge, _ in
                challenge.protectionSpace.serverTrust.map { URLCredential(trust: $0) }
            }
            #expect(await manager.fetch(server.url("/", host: host).absoluteString).error == nil)
        }
    }

    @Test func `a task that waits for an answer about a certificate can be cancelled`() async throws {
        try await StubServer.with(.init(tls: .init(TestCertificate.selfSigned()))) { server in
            let (manager, asked) = deferringManager(server)
            async let result = manager.fetch("")
            var iterator = asked.makeAsyncIterator()
            let challenge = try #require(await iterator.next())
            manager.tasks.first?.cancel()
            #expect(await result.error?.code == -999)
            challenge.answer(.cancelAuthenticationChallenge, nil)
        }
    }

    @Test func `an answer that comes after its task has ended does not apply to another task`() async throws {
        try await StubServer.with(.init(tls: .init(TestCertificate.selfSigned()))) { server in
            let (manager, asked) = deferringManager(server)
            var iterator = asked.makeAsyncIterator()
            async let first = manager.fetch("")
            let old = try #require(await iterator.next())
            manager.tasks.first?.cancel()
            #expect(await first.error?.code == -999)
            async let second = manager.fetch("")
            let new = try #require(await iterator.next())
            let trust = try #require(old.challenge.protectionSpace.serverTrust)
            old.answer(.useCredential, URLCredential(trust: trust))
            new.answer(.performDefaultHandling, nil)
            #expect(await second.error?.code == -1202)
            #expect(server.activity.requests.isEmpty)
        }
    }

    /// Runs a server that requires client certificates from an authority, and creates an identity from that authority.
    private func withMutualServer(
        _ version: TLSVersion, _ body: (StubServer, SecIdentity) async throws -> Void
    ) async throws {
        let authority = try TestCertificateAuthority()
        let client = try authority.issue(.client("ada"))
        var tls = StubServer.TLS(try authority.issue())
        tls.clientAuthority = authority.pemData
        tls.maximumVersion = version
        try await StubServer.with(.init(tls: tls)) { server in
            server.route("/", .json("{}"))
            try await body(server, .pem(certificates: .data(client.chainPEM), key: .data(client.privateKeyPEM)))
        }
    }

    @Test(arguments: [TLSVersion.v1_2, .v1_3], ["session", "task", "later"])
    func `a server that requests a client certificate receives that of the credential`(
        version: TLSVersion, kind: String
    ) async throws {
        try await withMutualServer(version) { server, identity in
            let manager = AFHTTPSessionManager(for: server)
            let log = Log<String>()
            let credential: @Sendable (URLAuthenticationChallenge) -> URLCredential? = { challenge in
                let space = challenge.protectionSpace
                log.add("\(space.authenticationMethod) \(space.host)")
                if let trust = space.serverTrust { return URLCredential(trust: trust) }
                guard space.authenticationMethod == NSURLAuthenticationMethodClientCertificate else { return nil }
                return URLCredential(identity: identity, certificates: nil, persistence: .forSession)
            }
            switch kind {
            case "session":
                manager.setSessionDidReceiveAuthenticationChallenge { _, challenge, place in
                    place?.pointee = credential(challenge)
                    return .useCredential
                }
            case "task":
                manager.setAuthenticationChallengeHandler { _, _, challenge, _ in credential(challenge) }
            default:
                manager.setAuthenticationChallengeHandler { _, task, challenge, answer in
                    let late = Asked(task: task, challenge: challenge, answer: answer)
                    DispatchQueue.global().async { late.answer(.useCredential, credential(late.challenge)) }
                    return nil
                }
            }
            let result = await manager.fetch("")
            #expect(result.error == nil)
            let methods = [NSURLAuthenticationMethodClientCertificate, NSURLAuthenticationMethodServerTrust]
            #expect(log.entries.sorted() == methods.map { "\($0) 127.0.0.1" })
        }
    }

    @Test func `a server that requests no client certificate causes no challenge for one`() async throws {
        try await StubServer.with(.init(tls: .init(TestCertificate.selfSigned()))) { server in
            server.route("/", .json("{}"))
            let manager = AFHTTPSessionManager(for: server)
            let log = Log<String>()
            manager.setSessionDidReceiveAuthenticationChallenge { _, challenge, credential in
                log.add(challenge.protectionSpace.authenticationMethod)
                credential?.pointee = challenge.protectionSpace.serverTrust.map(URLCredential.init(trust:))
                return .useCredential
            }
            #expect(await manager.fetch("").error == nil)
            #expect(log.entries == [NSURLAuthenticationMethodServerTrust])
        }
    }

    @Test(arguments: [nil, URLCredential(user: "ada", password: "secret", persistence: .none)])
    func `a session block that returns no credential with the trust does not accept the server`(
        credential: URLCredential?
    ) async throws {
        try await StubServer.with(.init(tls: .init(TestCertificate.selfSigned()))) { server in
            let manager = AFHTTPSessionManager(for: server)
            manager.setSessionDidReceiveAuthenticationChallenge { _, _, place in
                place?.pointee = credential
                return .useCredential
            }
            #expect(await manager.fetch("").error?.code == -1202)
            #expect(server.activity.requests.isEmpty)
        }
    }

    @Test(arguments: ["before the exchange", "during the handshake"], [true, false])
    func `a block that is set while a task is running decides about the server`(
        moment: String, isOfSession: Bool
    ) async throws {
        try await StubServer.with(.init(tls: .init(TestCertificate.selfSigned()))) { server in
            server.route("/", .json("{}"))
            let manager = Lock<AFHTTPSessionManager?>(nil)
            let set: @Sendable () -> Void = {
                let manager = manager.withLock { $0 }
                if isOfSession {
                    manager?.setSessionDidReceiveAuthenticationChallenge { _, challenge, credential in
                        credential?.pointee = challenge.protectionSpace.serverTrust.map(URLCredential.init(trust:))
                        return .useCredential
                    }
                } else {
                    manager?.setAuthenticationChallengeHandler { _, _, challenge, _ in
                        challenge.protectionSpace.serverTrust.map(URLCredential.init(trust:))
                    }
                }
            }
            let session = SessionManager {
                if moment == "before the exchange" {
                    $0.interceptors = [Calling(set)]
                } else {
                    $0.tls.policy.observer = { _ in set() }
                }
            }
            let made = AFHTTPSessionManager(session: session)
            made.completionQueue = DispatchQueue(label: "completion")
            manager.set(\.self, to: made)
            #expect(await made.fetch(server.url("/").absoluteString).error == nil)
        }
    }

    private static let accepting: AFURLSessionManager.TaskChallengeBlock = { _, _, challenge, _ in
        challenge.protectionSpace.serverTrust.map(URLCredential.init(trust:))
    }

    @Test func `a block that is set before a redirect to https decides about its server`() async throws {
        try await StubServer.with(.init(tls: .init(TestCertificate.selfSigned()))) { secure in
            secure.route("/", .json("{}"))
            try await StubServer.with { server in
                server.route("/", .redirect(302, to: secure.url("/").absoluteString))
                let manager = AFHTTPSessionManager(for: server)
                manager.setTaskWillPerformHTTPRedirectionBlock { [weak manager] _, _, _, request in
                    manager?.setAuthenticationChallengeHandler(Self.accepting)
                    return request
                }
                #expect(await manager.fetch("").error == nil)
            }
        }
    }

    @Test func `a body that can be read only once is sent after a handshake that had no block yet`() async throws {
        try await StubServer.with(.init(tls: .init(TestCertificate.selfSigned()))) { server in
            server.route("/", .echo)
            let manager = Lock<AFHTTPSessionManager?>(nil)
            let made = AFHTTPSessionManager(
                session: SessionManager {
                    $0.tls.policy.observer = { _ in
                        manager.withLock { $0 }?.setAuthenticationChallengeHandler(Self.accepting)
                    }
                })
            made.completionQueue = DispatchQueue(label: "completion")
            manager.set(\.self, to: made)
            let result = await made.call {
                made.post(
                    server.url("/").absoluteString, parameters: nil, headers: nil,
                    constructingBodyWith: { form in
                        let stream = InputStream(data: Data("once".utf8))
                        form.appendPart(with: stream, name: "a", fileName: "b", length: 4, mimeType: "c/d")
                    }, progress: nil, success: $0, failure: $1)
            }
            #expect(result.error == nil)
            #expect((result.dictionary?["body"] as? String)?.contains("\r\n\r\nonce\r\n") == true)
        }
    }

    /// An interceptor that calls a function before the request.
    private struct Calling: Interceptor {
        let call: @Sendable () -> Void

        init(_ call: @escaping @Sendable () -> Void) { self.call = call }

        func intercept(_ request: Request, next: Chain) async throws -> OpenResponse {
            call()
            return try await next(request)
        }
    }

    @Test func `a credential with an identity returns it, and others return nil`() {
        let identities: [SecIdentity] = [
            .pem(certificates: .file("/a"), key: .data(Data([1])), passphrase: "p"), .pem(certificates: .file("/a")),
            .pkcs12(.data(Data([0, 255])), passphrase: "p"),
        ]
        for identity in identities {
            let credential = URLCredential(identity: identity, certificates: [], persistence: .permanent)
            #expect(credential.identity == identity)
        }
        #expect(URLCredential(user: "a", password: "b", persistence: .none).identity == nil)
    }

    @Test func `a challenge handler may answer in four ways`() async throws {
        try await StubServer.with { server in
            server.route("/") { request in
                guard request.headers["Authorization"] == nil else { return .json("{}") }
                return .status(401, headers: ["WWW-Authenticate": "Basic realm=\"room\""])
            }
            func outcome(
                _ answer:
                    @escaping @Sendable (
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

    @Test(arguments: ["identity", "trust"])
    func `a credential with an identity or a trust is not sent as a password`(kind: String) async throws {
        try await StubServer.with { server in
            server.route("/", .status(401, headers: ["WWW-Authenticate": "Basic realm=\"room\""]))
            let manager = AFHTTPSessionManager(for: server)
            let identity = SecIdentity.pem(certificates: .file("/a"), key: .data(Data([1])))
            let trust = ServerTrust(host: "localhost", date: Date(), presented: [], chain: [])
            let credential =
                kind == "trust"
                ? URLCredential(trust: trust)
                : URLCredential(identity: identity, certificates: nil, persistence: .none)
            manager.setAuthenticationChallengeHandler { _, _, _, _ in credential }
            #expect(await manager.fetch("").error?.code == -1011)
            #expect(server.activity.requests.map { $0.headers["Authorization"] } == [nil])
        }
    }

    @Test func `copies and archives of a policy have all its properties`() throws {
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
