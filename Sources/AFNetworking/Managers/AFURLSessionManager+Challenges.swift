// SPDX-License-Identifier: MIT

import ANSystem
import AsyncNetworking

extension AFURLSessionManager {
    /// A block that decides whether to trust a server, in place of the security policy. It returns `.useCredential` to
    /// trust the server and may store a credential in its last argument.
    public typealias SessionChallengeBlock = (
        URLSession, URLAuthenticationChallenge, AutoreleasingUnsafeMutablePointer<URLCredential?>?
    ) -> URLSession.AuthChallengeDisposition

    /// A block that answers an authentication challenge. It returns one of: an `NSError`, with which the task fails; a
    /// `URLCredential`; an `NSNumber` with the `rawValue` of a disposition; or `nil`, after which it must call the
    /// completion handler.
    public typealias TaskChallengeBlock = (
        URLSession, URLSessionTask, URLAuthenticationChallenge,
        @escaping (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) -> Any?

    /// Sets the block that decides whether to trust a server, in place of the security policy, and that answers
    /// requests for a client certificate; `nil` removes it.
    ///
    /// The block is called during the TLS handshake, on the thread that serves all connections, not on the manager's
    /// queue: it must return at once. `.performDefaultHandling` applies the rules of the security policy and sends no
    /// client certificate. A client certificate is a `URLCredential` that was created with an identity.
    public func setSessionDidReceiveAuthenticationChallenge(_ block: SessionChallengeBlock?) {
        setHook(\.sessionChallenge, block)
        installHandshakeHooks()
    }

    /// Sets the block that answers servers and proxies that request a credential; `nil` removes it. Without a block
    /// their 401 and 407 responses are results.
    ///
    /// Unless ``setSessionDidReceiveAuthenticationChallenge(_:)`` has set a block, this block also decides on server
    /// certificates and answers requests for a client certificate. For these it is called during the TLS handshake, on
    /// the thread that serves all connections, with one of the tasks for the host. A credential created with the trust
    /// accepts the server, one created with an identity is sent to it, and an error ends the task; any other answer
    /// applies the rules of the security policy. If the answer comes after the block has returned, the handshake is
    /// repeated on a new connection; no byte of the request has been sent before.
    public func setAuthenticationChallengeHandler(_ handler: TaskChallengeBlock?) {
        setHook(\.taskChallenge, handler)
        installHandshakeHooks()
    }

    private func installHandshakeHooks() {
        let hooks = HandshakeHooks(
            evaluator: .init { [weak self] trust in self?.decision(on: trust) ?? .followPolicy },
            chooser: .init { [weak self] host in self?.identity(for: host) ?? .none })
        let isWanted = state.withLock { $0.hooks.sessionChallenge != nil || $0.hooks.taskChallenge != nil }
        state.set(\.handshakeHooks, to: isWanted ? hooks : nil)
    }

    private func decision(on trust: ServerTrust) -> SecurityPolicy.Decision {
        switch ask(.init(trust), host: trust.host, .of(trust)) {
        case .noTask: .followPolicy
        case .pending: .refuse(HandshakeDecisions.pending)
        case .decided(let decision, isOfSession: let isOfSession):
            switch decision.disposition {
            case .useCredential: isOfSession || decision.credential?.isOfTrust == true ? .accept : .followPolicy
            case .performDefaultHandling: .followPolicy
            default: .refuse("the manager's challenge block rejected the server certificate")
            }
        }
    }

    private func identity(for host: String) -> ClientIdentity.Choice {
        switch ask(.identity(host: host), host: host, .forIdentity(host: host)) {
        case .noTask: .none
        case .pending: .refuse(HandshakeDecisions.pending)
        case .decided(let decision, _):
            switch decision.disposition {
            case .useCredential: decision.credential?.identity.map { .identity($0) } ?? .none
            case .cancelAuthenticationChallenge: .refuse("the manager's challenge block provided no client certificate")
            default: .none
            }
        }
    }

    /// The outcome of a challenge during a TLS handshake.
    private enum Outcome {
        /// No task is connecting to the host.
        case noTask
        /// The decision is pending.
        case pending
        /// The result of the delegate method for session challenges (`isOfSession`) or for task challenges.
        case decided(ChallengeDecision, isOfSession: Bool)
    }

    /// Calls the delegate method for session challenges if a block is set for it, or else the method for task
    /// challenges.
    private func ask(
        _ subject: HandshakeDecisions.Subject, host: String, _ challenge: URLAuthenticationChallenge
    ) -> Outcome {
        let isOfSession = state.withLock { $0.hooks.sessionChallenge != nil }
        let drivers = state.withLock { $0.tasks }.compactMap { ($0 as? any DrivenTask)?.driver }
        guard let driver = drivers.first(where: { $0.currentURL?.host == host }), let task = driver.task else {
            return .noTask
        }
        let fallback = ChallengeDecision(
            isOfSession ? .cancelAuthenticationChallenge : .performDefaultHandling, nil)
        let decision = handshakeDecisions.decision(on: subject, task: driver.identifier, fallback: fallback) {
            handler in
            if isOfSession {
                urlSession(session, didReceive: challenge) { handler(ChallengeDecision($0, $1)) }
            } else {
                urlSession(session, task: task, didReceive: challenge) { handler(ChallengeDecision($0, $1)) }
            }
        }
        return decision.map { .decided($0, isOfSession: isOfSession) } ?? .pending
    }

    /// Sets the block that answers servers and proxies that request a credential, with the signature of AFNetworking 3:
    /// the block stores the credential in its last argument and returns the disposition. `nil` removes it. See
    /// ``setAuthenticationChallengeHandler(_:)``.
    public func setTaskDidReceiveAuthenticationChallenge(
        _ block: (
            (
                URLSession, URLSessionTask, URLAuthenticationChallenge,
                AutoreleasingUnsafeMutablePointer<URLCredential?>?
            ) -> URLSession.AuthChallengeDisposition
        )?
    ) {
        guard let block else { return setAuthenticationChallengeHandler(nil) }
        setAuthenticationChallengeHandler { session, task, challenge, _ in
            let pointer = AutoreleasingUnsafeMutablePointer<URLCredential?>(nil)
            let disposition = block(session, task, challenge, pointer)
            if disposition == .useCredential, let credential = pointer.pointee { return credential }
            return NSNumber(value: disposition.rawValue)
        }
    }
}

extension TaskDriver {
    /// Returns the core's authentication policy with the manager's delegate method as its first challenge handler.
    func authentication(of core: SessionManager) -> AuthenticationPolicy {
        var policy = core.configuration.authentication
        let others = policy.challengeHandler
        policy.challengeHandler = { [weak self] challenge in
            if let self, let answer = await answer(challenge) { return answer }
            return try await others?(challenge) ?? .performDefaultHandling
        }
        return policy
    }

    /// Returns the answer of the manager's delegate method; `nil` for default handling.
    private func answer(_ challenge: AuthenticationChallenge) async -> AuthenticationChallenge.Disposition? {
        guard let task else { return nil }
        let challenge = UncheckedSendable(URLAuthenticationChallenge.of(challenge))
        let given = await manager.awaitCallback(fallback: ChallengeDecision(.cancelAuthenticationChallenge, nil)) {
            [manager, session] handler in
            manager.urlSession(session, task: task, didReceive: challenge.value) {
                handler(ChallengeDecision($0, $1))
            }
        }
        switch given.disposition {
        case .useCredential:
            guard let user = given.credential?.user else { return .performDefaultHandling }
            return .use(Credential(user: user, password: given.credential?.password ?? ""))
        case .performDefaultHandling: return nil
        case .rejectProtectionSpace: return .rejectProtectionSpace
        default: return .cancel
        }
    }
}
