// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
import FoundationEssentials
import HTTPTypes

extension Pipeline {
    /// Sends a request with the credentials, token or signature of its authentication policy; see
    /// ``AuthenticationPolicy``.
    func authenticate(_ request: Request, _ call: inout Call, _ next: Next) async throws -> OpenResponse {
        var request = request
        let policy = request.authentication ?? authentication
        guard let authenticator = try beginAuthentication(of: &request, &call, by: policy) else {
            return try await answerChallenges(request, &call, next, by: policy)
        }
        return try await authorize(request, &call, next, by: authenticator, policy)
    }

    /// Adds the signature of a policy to a request, or returns the source of its token; `nil` if it has none.
    @inline(never)
    private func beginAuthentication(
        of request: inout Request, _ call: inout Call, by policy: AuthenticationPolicy
    ) throws(TransportError) -> Authenticator? {
        call.credentialOrigin = nil
        // Those of an exchange whose request an interceptor or a redirect policy has kept.
        if request.token != nil { request.token = nil }
        if request.transportAuthentication != nil { request.transportAuthentication = nil }
        guard !request.headers.contains(.authorization) else { return nil }
        call.credentialOrigin = Origin(request.url)
        guard !policy.signatures.isEmpty, let signature = try policy.signature(for: HostName(request.url)) else {
            return policy.authenticator(for: origins(of: request))
        }
        // A server accepts nothing beside the signature of a presigned URL.
        if !request.url.isPresigned { request.transportAuthentication = TransportAuthentication(signature) }
        return nil
    }

    /// Sends a request, and again with credentials as long as a server or proxy sends challenges that can be answered.
    ///
    /// Basic is a header field that is added here. The other schemes exchange several messages on one connection, which
    /// the transport performs: it receives the credential and the scheme.
    @inline(never)
    func answerChallenges(
        _ request: Request, _ call: inout Call, _ next: Next, by policy: AuthenticationPolicy
    ) async throws -> OpenResponse {
        guard policy.answersChallenges || request.credential != nil || request.challengeHandler != nil
        else { return try await next(request, &call) }
        return try await answerAll(request, &call, next, by: policy)
    }

    @inline(never)
    private func answerAll(
        _ request: Request, _ call: inout Call, _ next: Next, by policy: AuthenticationPolicy
    ) async throws -> OpenResponse {
        let origins = call.credentialOrigin == nil ? [] : origins(of: request)
        var answers = await ChallengeAnswers(request, policy, origins: origins, on: self)
        while true {
            var attempt = request
            try answers.apply(to: &attempt)
            let space: ProtectionSpace
            do {
                var response = try await next(attempt, &call)
                let refusal = Refusal(by: response.head, of: attempt, to: self)
                let isDecided =
                    refusal != nil && (policy.challengeHandler != nil || request.challengeHandler != nil)
                let ahead = isDecided ? readAhead(&response, to: request, &call) : nil
                var answered: ProtectionSpace?
                if let refusal { answered = try await answers.answer(refusal) }
                await ahead?.stop()
                guard let answered else {
                    answers.storeAccepted(after: response)
                    return response
                }
                space = answered
            } catch let error as TransportError {
                guard let refusal = Refusal(by: error, of: attempt, on: transport),
                    let answered = try await answers.answer(refusal)
                else { throw error }
                space = answered
            }
            await call.exchanges.close()
            report(.answeringChallenge(of: space), of: &call)
            guard request.body.isReplayable else { throw SessionError.authentication(.bodyNotReplayable) }
        }
    }
}

/// The state of one call's challenges and the answers to them.
private struct ChallengeAnswers {
    private let request: Request
    private let policy: AuthenticationPolicy
    private let pipeline: Pipeline
    /// Whether challenges of the server are answered; not if the program set `Authorization` itself or signs the
    /// request.
    private let answersServer: Bool
    /// Whether challenges of a proxy are answered; not if the program set `Proxy-Authorization` itself.
    private let answersProxy: Bool
    /// Whether the credentials that the session knows are used; not for a request with an authentication policy of its
    /// own.
    private let usesCache: Bool
    /// The credential for the server; `nil` if only the handler can provide one.
    private let credential: Credential?
    private var server: AuthenticationPlan
    private var proxy: AuthenticationPlan
    /// The `domain` parameter of the server's latest Digest challenge.
    private var digestDomain: String?

    /// - Parameter origins: The origins of which the request is one; none if the program set `Authorization` itself.
    @inline(never)
    init(_ request: Request, _ policy: AuthenticationPolicy, origins: [Origin], on pipeline: Pipeline) async {
        self.request = request
        self.policy = policy
        self.pipeline = pipeline
        usesCache = request.authentication == nil
        answersServer =
            !request.headers.contains(.authorization) && request.transportAuthentication?.signature == nil
        credential = answersServer ? await policy.credential(for: request, of: origins, on: pipeline.transport) : nil
        let cache = usesCache ? pipeline.state.withLock { $0.credentials } : nil
        let cached = answersServer ? cache?.answer(for: request, credential) : nil
        // The opening handshake of a WebSocket connection can be authenticated by a header field only.
        server = AuthenticationPlan(
            credential, cached: request.webSocketOptions == nil || cached?.answer.scheme == .basic ? cached : nil,
            unasked: answersServer ? Credential(userOf: request.url) : nil,
            limit: AuthenticationPolicy.maximumCredentials)
        answersProxy = !request.headers.contains(.proxyAuthorization)
        var own: Credential?
        if answersProxy, case .proxy(let proxy)? = request.options?.proxy { own = proxy.credential }
        let usesAnswer = answersProxy && policy.challengeHandler != nil
        proxy = AuthenticationPlan(
            nil, cached: usesAnswer ? cache?.proxyAnswer(for: request).map { ($0, nil) } : nil,
            unasked: own, limit: AuthenticationPolicy.maximumCredentials)
    }

    /// Adds the chosen answers to a request.
    ///
    /// - Throws: `TransportError.Reason.invalidRequest` for a credential that Basic cannot represent.
    func apply(to request: inout Request) throws(TransportError) {
        var answer = server.answer
        if let basic = answer, basic.scheme == .basic {
            try request.headers.setBasicAuthorization(basic.credential)
            answer = nil
        }
        guard answer != nil || proxy.answer != nil else { return }
        var transport = request.transportAuthentication ?? TransportAuthentication()
        transport.proxy = proxy.answer
        if let answer { transport.server = answer }
        request.transportAuthentication = transport
    }

    /// Chooses the answer to a refusal, and returns the protection space that it is for; `nil` if there is no answer, so
    /// that the refusal is the response.
    @inline(never)
    mutating func answer(_ refusal: Refusal) async throws -> ProtectionSpace? {
        if refusal.isProxy {
            guard answersProxy else { return nil }
            if let answer = proxy.answer {
                changeCache { $0.removeProxyAnswer(answer, for: request) }
            }
            return try await answer(refusal, by: \.proxy, nil)
        }
        guard answersServer else { return nil }
        if let answer = server.answer {
            changeCache { $0.remove(answer, for: request, refusal.spaces) }
        }
        digestDomain = refusal.digestDomain
        return try await answer(refusal, by: \.server, credential)
    }

    private mutating func answer(
        _ refusal: Refusal, by plan: WritableKeyPath<ChallengeAnswers, AuthenticationPlan>, _ credential: Credential?
    ) async throws -> ProtectionSpace? {
        let spaces = refusal.spaces
        guard self[keyPath: plan].noteRefusal(offering: spaces) else { return nil }
        if let credential, let space = self[keyPath: plan].tryCredential(credential, bySome: spaces) { return space }
        for (index, space) in spaces.enumerated() {
            var challenge = AuthenticationChallenge(request: request, head: refusal.head, protectionSpace: space)
            challenge.previousFailureCount = self[keyPath: plan].failures.count
            challenge.refusedCredential = self[keyPath: plan].failures.last
            let own = try await request.challengeHandler?(challenge)
            let other = own == nil ? try await policy.challengeHandler?(challenge) : nil
            try pipeline.checkCancellation()
            switch own ?? other ?? .performDefaultHandling {
            case .use(let credential):
                return self[keyPath: plan].tryCredential(credential, bySome: spaces[index...], isKept: own == nil)
            case .performDefaultHandling: return nil
            case .rejectProtectionSpace: continue
            case .cancel: throw CancellationError()
            }
        }
        return nil
    }

    /// Stores the accepted answers: a proxy's whenever it let the request through, a server's only if it answered a
    /// challenge, because otherwise the server may have ignored it, and only if the response is one to it.
    func storeAccepted(after response: OpenResponse) {
        let head = response.head
        if let answer = proxy.answer, proxy.isKept, head.status.code != 407 {
            changeCache { $0.storeProxyAnswer(answer, for: request) }
        }
        if let answer = server.answer, let space = server.space, server.isKept, head.status.code != 401,
            head.status.code != 407, response.body.origin != .stale, pipeline.isAnswer(head, to: request)
        {
            let domain = answer.scheme == .digest ? digestDomain : nil
            changeCache { $0.store(answer, in: space, domain: domain, for: request) }
        }
    }

    private func changeCache(_ change: (inout CredentialCache) -> Void) {
        if usesCache { pipeline.state.withLock { change(&$0.credentials) } }
    }
}

/// A response or error that asks for a credential.
private struct Refusal {
    /// Whether a proxy asks.
    let isProxy: Bool
    let head: ResponseHead?
    /// The protection spaces, strongest scheme first; each scheme occurs once and is supported by the transport.
    let spaces: [ProtectionSpace]
    /// The `domain` parameter of the Digest challenge.
    let digestDomain: String?

    /// Creates a refusal from a response; `nil` if it contains no challenge with a supported scheme.
    init?(by head: ResponseHead, of request: Request, to pipeline: Pipeline) {
        let transport = pipeline.transport
        let field: HTTPField.Name
        let isProxy: Bool
        switch head.status.code {
        case 401 where pipeline.isAnswer(head, to: request): (isProxy, field) = (false, .wwwAuthenticate)
        // Over https, a proxy refuses the tunnel, which is an error.
        case 407 where !request.url.isHTTPS && transport.features.mayUseProxy(for: request):
            (isProxy, field) = (true, .proxyAuthenticate)
        default: return nil
        }
        self.isProxy = isProxy
        self.head = head
        let challenges = head.headers.filter { $0.name == field }.flatMap {
            ChallengeParser.challenges(in: $0.value)
        }
        // libcurl, which answers challenges by the other schemes, only makes the connection of a WebSocket.
        var supported = transport.authenticationSchemes
        if request.webSocketOptions != nil, !isProxy { supported.formIntersection([.basic]) }
        // The transport answers a server by Digest only if it has the algorithm and knows what is to be protected.
        let (knowsBody, answersDigest) = (request.body.bytes != nil, transport.features.answersDigest)
        func challenge(by scheme: AuthenticationScheme) -> ChallengeParser.Challenge? {
            challenges.first { challenge in
                AuthenticationScheme(name: challenge.scheme) == scheme
                    && (isProxy || scheme != .digest
                        || DigestChallenge(challenge, knowsBody: knowsBody).map(answersDigest) == true)
            }
        }
        spaces = Self.spaces(ofProxy: isProxy, request, supported) { scheme in
            challenge(by: scheme).map { $0.parameters["realm"] }
        }
        digestDomain = challenge(by: .digest)?.parameters["domain"]
        if spaces.isEmpty { return nil }
    }

    /// Creates a refusal from an error; `nil` unless a proxy asks for a credential.
    init?(by error: TransportError, of request: Request, on transport: any Transport) {
        guard error.reason == .proxy(.authenticationRequired) else { return nil }
        isProxy = true
        head = nil
        digestDomain = nil
        spaces = Self.spaces(ofProxy: true, request, transport.authenticationSchemes) {
            error.context.proxySchemes.contains($0) ? .some(nil) : nil
        }
        if spaces.isEmpty { return nil }
    }

    private static func spaces(
        ofProxy isProxy: Bool, _ request: Request, _ supported: Set<AuthenticationScheme>,
        realm: (AuthenticationScheme) -> String??
    ) -> [ProtectionSpace] {
        let origin = Origin(request.url)
        var (host, port): (String?, Int?) = (origin.host, origin.port)
        if isProxy {
            let proxy: Proxy? = if case .proxy(let proxy) = request.options?.proxy { proxy } else { nil }
            (host, port) = (proxy?.host, proxy?.port)
        }
        return [AuthenticationScheme.digest, .ntlm, .basic, .negotiate].filter(supported.contains)
            .compactMap { scheme in
                realm(scheme).map {
                    ProtectionSpace(
                        isProxy: isProxy, host: host, port: port, isSecure: origin.scheme == "https",
                        scheme: scheme, realm: $0)
                }
            }
    }
}

extension URL {
    /// Whether the query has a signature for Amazon Web Services.
    fileprivate var isPresigned: Bool {
        query()?.split(at: "&").contains { $0.hasPrefix("X-Amz-Signature=") } ?? false
    }
}

extension AuthenticationPolicy {
    /// Returns the first signature whose patterns match a host.
    ///
    /// - Throws: `TransportError.Reason.invalidRequest` for an invalid pattern that precedes the match.
    func signature(for host: HostName) throws(TransportError) -> AWSSignature? {
        for signature in signatures {
            for pattern in signature.hosts {
                do throws(SecurityPolicy.ConfigurationError) {
                    try pattern.check()
                } catch {
                    throw TransportError(.invalidRequest(.option("The hosts of a signature: \(error).")))
                }
                if pattern.matches(host) { return signature }
            }
        }
        return nil
    }
}

/// The credentials tried for one call with either the server or the proxy, and the one to send next.
struct AuthenticationPlan {
    /// The answer to send with the next request; `nil` for none.
    private(set) var answer: TransportAuthentication.SchemeCredential?
    /// The protection space of the answer; `nil` for an answer sent before any challenge.
    private(set) var space: ProtectionSpace?
    /// Whether the answer is stored if it is accepted: not that of the request's own handler.
    private(set) var isKept = true
    /// The refused credentials, oldest first.
    private(set) var refused: [Credential] = []
    /// Those of them that were meant for the realm that refused them: not one that was sent because the path is below
    /// that of another realm.
    private(set) var failures: [Credential] = []
    private var isCached: Bool
    /// The realm in which a cached answer was accepted; `nil` if it is unknown.
    private let cachedRealm: String?
    /// The credential that the transport sends without an answer; `nil` after the first refusal.
    private var unasked: Credential?
    private let limit: Int

    /// Creates the plan of a call.
    ///
    /// - Parameters:
    ///   - credential: The credential to use; `nil` if only a handler can provide one.
    ///   - cached: The answer accepted earlier, and its realm. It is sent with the first request, unless `credential` names a
    ///     single scheme, which then is sent instead.
    ///   - unasked: The credential that the transport sends without an answer, with Basic unless its schemes say otherwise:
    ///     the one of a proxy, or the user information of a URL.
    ///   - limit: The maximum number of credentials to try.
    init(
        _ credential: Credential?, cached: (answer: TransportAuthentication.SchemeCredential, realm: String?)?,
        unasked: Credential?, limit: Int
    ) {
        (self.unasked, self.limit) = (unasked, limit)
        cachedRealm = cached?.realm
        if let credential, let scheme = credential.schemes?.first, credential.schemes?.count == 1 {
            answer = TransportAuthentication.SchemeCredential(credential, by: scheme)
            isCached = false
        } else {
            answer = credential == nil || cached?.answer.credential == credential ? cached?.answer : nil
            isCached = answer != nil
        }
    }

    /// Records that the request was refused with challenges for these protection spaces.
    ///
    /// The credential counts as refused, unless it was sent by a cached scheme and would now be sent by another:
    /// then the scheme was wrong, not the credential.
    ///
    /// - Returns: `false` if the limit of credentials is reached.
    mutating func noteRefusal(offering spaces: [ProtectionSpace]) -> Bool {
        if let answer {
            let space = answer.credential.space(among: spaces)
            if !isCached || space?.scheme == answer.scheme {
                refused.append(answer.credential)
                if !isCached || cachedRealm == nil || space?.realm == cachedRealm { failures.append(answer.credential) }
            }
        } else if let unasked, spaces.contains(where: { (unasked.schemes ?? [.basic]).contains($0.scheme) }) {
            refused.append(unasked)
            failures.append(unasked)
        }
        (answer, space, isCached, unasked) = (nil, nil, false, nil)
        return refused.count < limit
    }

    /// Selects a credential as the next answer, with the first of these spaces whose scheme it supports. The answer is
    /// stored if it is accepted, unless `isKept` is `false`.
    ///
    /// - Returns: The selected space; `nil` if no scheme matches, or if the credential was refused before.
    mutating func tryCredential(
        _ credential: Credential, bySome spaces: some Sequence<ProtectionSpace>, isKept: Bool = true
    ) -> ProtectionSpace? {
        guard !refused.contains(credential), let space = credential.space(among: spaces) else { return nil }
        answer = TransportAuthentication.SchemeCredential(credential, by: space.scheme)
        self.space = space
        self.isKept = isKept
        return space
    }
}

extension Credential {
    /// Returns the first space whose scheme the credential supports. A password cannot be used for Negotiate, which
    /// takes the system's Kerberos ticket.
    fileprivate func space(among spaces: some Sequence<ProtectionSpace>) -> ProtectionSpace? {
        spaces.first { schemes?.contains($0.scheme) ?? ($0.scheme != .negotiate) }
    }
}
