// SPDX-License-Identifier: MIT

import ANSystem
import AsyncNetworking

extension AFURLSessionManager {
    /// A block that decides whether to trust a server, in place of the security policy, and that answers requests for a
    /// client certificate.
    ///
    /// It returns `.useCredential` to trust the server, or to send the certificate of the credential that it has stored
    /// in its last argument. `.performDefaultHandling` applies the security policy and sends no certificate;
    /// `.cancelAuthenticationChallenge` refuses the connection. It is called during the TLS handshake and must return
    /// at once; see ``setSessionDidReceiveAuthenticationChallenge(_:)``.
    public typealias SessionChallengeBlock = (
        URLSession, URLAuthenticationChallenge, AutoreleasingUnsafeMutablePointer<URLCredential?>?
    ) -> URLSession.AuthChallengeDisposition

    /// A block that answers an authentication challenge. It returns one of: an `NSError`, with which the task fails; a
    /// `URLCredential`; an `NSNumber` with the `rawValue` of a disposition; or `nil`, after which it must call the
    /// completion handler. For any other value the task fails with an error of the domain `Invalid Return Value`.
    public typealias TaskChallengeBlock = (
        URLSession, URLSessionTask, URLAuthenticationChallenge,
        @escaping (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) -> Any?

    /// Sets the block that decides whether to trust a server, in place of the security policy, and that answers
    /// requests for a client certificate; `nil` removes it.
    ///
    /// The block is called during the TLS handshake, on the thread that serves all connections, not on the manager's
    /// queue: it must return at once. `.performDefaultHandling` applies the rules of the security policy and sends no
    /// client certificate; `.cancelAuthenticationChallenge` refuses the connection. A client certificate is a
    /// `URLCredential` that was created with an identity.
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
        guard let answer = ask(.init(trust), host: trust.host, .init(trust)) else { return .followPolicy }
        guard let decision = answer.decision else { return .refuse(HandshakeDecisions<ChallengeDecision>.pending) }
        switch decision.disposition {
        case .useCredential:
            return answer.isOfSession || decision.credential?.isOfTrust == true ? .accept : .followPolicy
        case .performDefaultHandling: return .followPolicy
        default: return .refuse("the manager's challenge block rejected the server certificate")
        }
    }

    private func identity(for host: String) -> ClientIdentity.Choice {
        guard let answer = ask(.identity(host: host), host: host, .init(identityFor: host)) else { return .none }
        guard let decision = answer.decision else { return .refuse(HandshakeDecisions<ChallengeDecision>.pending) }
        switch decision.disposition {
        case .useCredential: return decision.credential?.identity.map { .identity($0) } ?? .none
        case .cancelAuthenticationChallenge:
            return .refuse("the manager's challenge block provided no client certificate")
        default: return .none
        }
    }

    /// Calls the delegate method for session challenges if a block is set for it, or else the method for task
    /// challenges.
    ///
    /// - Returns: The decision, `nil` while it is pending, and which method was called; `nil` if no task is connecting
    ///   to the host.
    private func ask(
        _ subject: HandshakeSubject, host: String, _ challenge: URLAuthenticationChallenge
    ) -> (decision: ChallengeDecision?, isOfSession: Bool)? {
        let isOfSession = state.withLock { $0.hooks.sessionChallenge != nil }
        let drivers = state.withLock { $0.tasks }.compactMap { ($0 as? any DrivenTask)?.driver }
        let isConnecting = { (driver: TaskDriver) in driver.currentURL.map { HostName($0) == HostName(host) } == true }
        guard let driver = drivers.first(where: isConnecting), let task = driver.task else { return nil }
        let fallback = ChallengeDecision(
            disposition: isOfSession ? .cancelAuthenticationChallenge : .performDefaultHandling)
        let decision = handshakeDecisions.decision(on: subject, task: driver.identifier, fallback: fallback) { store in
            if isOfSession {
                urlSession(session, didReceive: challenge) { store(.init(disposition: $0, credential: $1)) }
            } else {
                urlSession(session, task: task, didReceive: challenge) { store(.init(disposition: $0, credential: $1)) }
            }
        }
        return (decision, isOfSession)
    }

    /// Sets the block that answers servers and proxies that request a credential, with the signature of AFNetworking 3;
    /// `nil` removes it.
    ///
    /// The block returns the disposition, and stores a credential in its last argument for `.useCredential`. It
    /// replaces the block of ``setAuthenticationChallengeHandler(_:)``, and is called for the same challenges and on
    /// the same queues.
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
        let challenge = UncheckedSendable(URLAuthenticationChallenge(challenge))
        let given = await manager.awaitCallback(
            fallback: ChallengeDecision(disposition: .cancelAuthenticationChallenge)
        ) {
            [manager, session] handler in
            manager.urlSession(session, task: task, didReceive: challenge.value) {
                handler(.init(disposition: $0, credential: $1))
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

extension AFURLSessionManager {
    /// Calls a block with a completion handler on the manager's own queue and suspends until the handler is called.
    /// Returns the fallback if the handler is released uncalled, or if the calling task is cancelled.
    func awaitCallback<Value: Sendable>(
        fallback: Value, _ call: @escaping @Sendable (_ handler: @escaping @Sendable (Value) -> Void) -> Void
    ) async -> Value {
        let pending = Lock(WeakCallback<Value>())
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let callback = OneShot(fallback: fallback) { continuation.resume(returning: $0) }
                pending.withLock { $0.value = callback }
                // The cancellation handler may have run before the callback was stored.
                guard !Task.isCancelled else { return }
                sessionQueue.async { call { callback.call($0) } }
            }
        } onCancel: {
            pending.withLock { $0.value }?.call(fallback)
        }
    }
}

/// A weak reference to a callback: the completion handlers retain it.
private struct WeakCallback<Value: Sendable>: Sendable {
    weak var value: OneShot<Value>?
}

/// The result of a challenge block: a disposition and an optional credential.
struct ChallengeDecision: Sendable {
    let disposition: URLSession.AuthChallengeDisposition
    var credential: URLCredential?
}
