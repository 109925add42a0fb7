// SPDX-License-Identifier: MIT

import ANSystem
import AsyncNetworking

extension AFURLSessionManager {
    /// A block that decides whether to trust a server, in place of the security policy, and that answers requests for a
    /// client certificate.
    ///
    /// | returned | about the server's certificate | about a client certificate |
    /// |---|---|---|
    /// | `.useCredential` | accepts it, if the credential stored in the last argument was created with the trust; otherwise applies the security policy | sends that of the credential, or none |
    /// | `.performDefaultHandling` | applies the security policy | sends none |
    /// | `.cancelAuthenticationChallenge` | refuses it (-1202) | refuses the connection (-1202) |
    /// | `.rejectProtectionSpace` | refuses it (-1202) | sends none |
    ///
    /// The authentication method of the protection space is ``NSURLAuthenticationMethodServerTrust`` or
    /// ``NSURLAuthenticationMethodClientCertificate``, its port always 443.
    ///
    /// It is called for each new connection, during the TLS handshake, on the thread that serves all connections: it
    /// must return at once, and cannot answer later. A client certificate that cannot be used fails the task with
    /// -1205.
    ///
    /// If it was set before the task began, it is called on the manager's own serial queue, in place of a block for tasks,
    /// when a server or a proxy offers `NSURLAuthenticationMethodNTLM` or `NSURLAuthenticationMethodNegotiate`; the
    /// dispositions then mean what they mean to a ``TaskChallengeBlock``.
    public typealias SessionChallengeBlock =
        @Sendable (
            URLSession, URLAuthenticationChallenge, AutoreleasingUnsafeMutablePointer<URLCredential?>?
        ) -> URLSession.AuthChallengeDisposition

    /// A block that answers an authentication challenge. It returns one of: an `NSError`, with which the task fails; a
    /// `URLCredential`; a disposition, or an `NSNumber` with its `rawValue`; or `nil`, after which it must call the
    /// completion handler, at once or later. For any other value the task fails with an error of the domain
    /// `Invalid Return Value`.
    ///
    /// For a challenge of HTTP, `.performDefaultHandling` uses the 401 or 407 response as the result, unless a shared
    /// session can answer it, and `.useCredential` without a user name uses it in any case, as with a credential that
    /// was created with a trust or an identity; `.rejectProtectionSpace` continues with the next scheme that the server
    /// offers; `.cancelAuthenticationChallenge`, and releasing the completion handler without a call, end the task with
    /// -999.
    ///
    /// For a challenge during a TLS handshake, it is called on the thread that serves all connections and must return
    /// at once; see ``setAuthenticationChallengeHandler(_:)``.
    public typealias TaskChallengeBlock =
        @Sendable (
            URLSession, URLSessionTask, URLAuthenticationChallenge,
            @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
        ) -> Any?

    /// Sets the block that decides whether to trust a server, in place of the security policy, and that answers
    /// requests for a client certificate; `nil` removes it.
    ///
    /// The block is called for each new connection, during the TLS handshake, on the thread that serves all
    /// connections, not on the manager's queue: it must return at once, and cannot answer later.
    /// ``SessionChallengeBlock`` describes its results. A client certificate is a `URLCredential` that was created with
    /// an identity; one that cannot be used fails the task with -1205. A shared session with a client certificate of
    /// its own sends that without a call.
    ///
    /// A block that is set while a task is running applies to its later exchanges, and if the handshake has failed by
    /// then, the exchange is repeated. In a manager with a cache, it applies to later tasks only, unless a block was set
    /// when the task began. There it is also called for the validation of a stored response in the background, which is
    /// refused if the manager has been freed.
    @preconcurrency
    public func setSessionDidReceiveAuthenticationChallenge(_ block: SessionChallengeBlock?) {
        setChallengeHook(\.sessionChallenge, block)
    }

    /// Sets the block that answers servers and proxies that request a credential; `nil` removes it. Without a block
    /// their 401 and 407 responses are results, unless a shared session can answer them; a proxy that refuses to open a
    /// tunnel fails the task with -1004. ``TaskChallengeBlock`` describes its results. The block may be set while a task
    /// is running, unless the manager shares a session; a task whose request was redirected by then is challenged only
    /// if its method is safe, such as GET, because it begins anew.
    ///
    /// For these it is called on the manager's own serial queue, after any credentials of a shared session were
    /// refused. It is not called for a 401 if the request has an `Authorization` field, or a shared session signs it or
    /// adds a bearer token. Accepted credentials are not kept for later tasks. By default, after five refused
    /// credentials, or a second time the same one, the response is the result. If the body cannot be sent again, as a
    /// stream without ``setTaskNeedNewBodyStreamBlock(_:)``, the task fails with -1013.
    ///
    /// Unless ``setSessionDidReceiveAuthenticationChallenge(_:)`` has set a block, this block also decides on server
    /// certificates and answers requests for a client certificate. For these it is called during the TLS handshake, on
    /// the thread that serves all connections, with one of the tasks for the host: it must return at once. To answer
    /// later, it returns `nil` and calls the completion handler when the answer is known; the handshake is then
    /// repeated on a new connection, and no byte of the request has been sent before.
    ///
    /// The validation of a stored response in the background, whose task has ended, opens no connection: then no task can
    /// be passed to the block.
    ///
    /// During a handshake, a credential created with the trust accepts the server, one created with an identity is sent
    /// to it, and an error ends the task. An identity that cannot be used fails the task with -1205.
    /// `.cancelAuthenticationChallenge` refuses the connection, and `.rejectProtectionSpace` the server's certificate
    /// (-1202). Any other answer, and releasing the completion handler without a call, applies the security
    /// policy and sends no client certificate.
    @preconcurrency
    public func setAuthenticationChallengeHandler(_ handler: TaskChallengeBlock?) {
        setChallengeHook(\.taskChallenge, handler)
    }

    /// Sets a block for challenges together with the hooks that call it during handshakes, since blocks may be set and
    /// removed at the same time. A connection for a manager that has been freed is refused.
    private func setChallengeHook<Block>(_ hook: WritableKeyPath<SessionHooks, Block?>, _ block: Block?) {
        let hooks = HandshakeHooks(
            evaluator: .init { [weak self] trust in
                self?.decision(on: trust) ?? .refuse(HandshakeRefusal.serverCertificate)
            },
            chooser: .init { [weak self] host in
                self?.identity(for: host) ?? .refuse(HandshakeRefusal.clientCertificate)
            })
        setHook(hook, block) { $0.handshakeHooks = $0.hooks.hasChallenge ? hooks : nil }
    }

    private func decision(on trust: ServerTrust) -> SecurityPolicy.Decision {
        switch ask(.init(trust), TrustProtectionSpace(trust)) {
        case .pending: return .refuse(HandshakeDecisions<ChallengeDecision>.pending)
        case .notAsked: return policyDecision(on: trust)
        case .decided(let decision):
            switch decision.disposition {
            case .useCredential where decision.credential?.isOfTrust == true: return .accept
            case .useCredential, .performDefaultHandling: return policyDecision(on: trust)
            default: return .refuse(refusal(by: decision, on: .init(trust), HandshakeRefusal.serverCertificate))
            }
        }
    }

    /// Returns the decision of the own evaluator of the host's policy, such as an override in a subclass; the rules apply
    /// without one.
    private func policyDecision(on trust: ServerTrust) -> SecurityPolicy.Decision {
        // The evaluator of the policy does not retain it.
        let own = ownPolicy
        let tls = coreSession.configuration.tls
        let policy = tls.hostPolicies.value(for: HostName(trust.host)) ?? own?.policy ?? tls.policy
        return withExtendedLifetime(own) { policy.evaluator?(trust) ?? .followPolicy }
    }

    private func identity(for host: String) -> ClientIdentity.Choice {
        let space = URLProtectionSpace(
            host: host, port: 443, protocol: "https", realm: nil,
            authenticationMethod: NSURLAuthenticationMethodClientCertificate)
        switch ask(.identity(host: host), space) {
        case .pending: return .refuse(HandshakeDecisions<ChallengeDecision>.pending)
        case .notAsked: return .none
        case .decided(let decision):
            switch decision.disposition {
            case .useCredential: return decision.credential?.identity.map { .identity($0) } ?? .none
            case .cancelAuthenticationChallenge:
                return .refuse(refusal(by: decision, on: .identity(host: host), HandshakeRefusal.clientCertificate))
            default: return .none
            }
        }
    }

    /// Calls the delegate method for session challenges if a block is set for it, or else the method for task
    /// challenges.
    private func ask(_ subject: HandshakeSubject, _ space: URLProtectionSpace) -> HandshakeAnswer {
        let (isOfSession, isAsked) = state.withLock { ($0.hooks.sessionChallenge != nil, $0.hooks.hasChallenge) }
        let name = HostName(space.host).text
        let drivers = allTasks().compactMap { ($0 as? any DrivenTask)?.driver }
            .filter { $0.wasStarted && $0.currentURL.map { HostName($0).text } == name }
        let challenge = URLAuthenticationChallenge(space)
        // A task that has a response connects again only if its transfer is repeated.
        guard let driver = drivers.first(where: \.isAwaitingResponse) ?? drivers.first, let task = driver.task else {
            guard isAsked else { return .notAsked }
            return .decided(isOfSession ? decisionAtOnce(on: challenge) : .refused)
        }
        let fallback = isOfSession ? ChallengeDecision.refused : .init(disposition: .performDefaultHandling)
        let decision = handshakeDecisions.decision(
            on: subject, task: driver.identifier, isOver: { driver.taskState == .completed }, fallback: fallback
        ) { store in
            let state = state
            _ = state.withLock { $0.challengeErrors.removeValue(forKey: subject) }
            let store: @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void = {
                let error = state.withLock { $0.challengeErrors.removeValue(forKey: subject) }
                store(.init(disposition: $0, credential: $1, error: error))
            }
            if isOfSession {
                urlSession(session, didReceive: challenge, completionHandler: store)
            } else {
                urlSession(session, task: task, didReceive: challenge, completionHandler: store)
            }
        }
        return decision.map { .decided($0) } ?? .pending
    }

    /// Calls the delegate method for session challenges about a connection that no task waits for, such as that of a
    /// validation in the background. An answer that comes later is too late.
    private func decisionAtOnce(on challenge: URLAuthenticationChallenge) -> ChallengeDecision {
        let decision = Lock<ChallengeDecision?>(nil)
        urlSession(session, didReceive: challenge) { decision.set(\.self, to: .init(disposition: $0, credential: $1)) }
        return decision.withLock { $0 } ?? .refused
    }

    /// Ends a challenge with the error of a block, which the task that fails reports. For a challenge during a handshake,
    /// this need not be the task passed to the block.
    func endChallenge(_ challenge: URLAuthenticationChallenge, of task: URLSessionTask, with error: any Error) {
        if let subject = challenge.protectionSpace.handshakeSubject {
            _ = state.withLock { $0.challengeErrors.updateValue(error, forKey: subject) }
        } else {
            (task as? any DrivenTask)?.driver.setChallengeError(error)
        }
    }

    /// Returns the reason for refusing a handshake. That of a decision with an error identifies the error, with the
    /// subject, and the error is kept for the tasks that fail with both.
    private func refusal(by decision: ChallengeDecision, on subject: HandshakeSubject, _ reason: String) -> String {
        guard let error = decision.error else { return reason }
        let reason = "\(reason), with the error \((error as NSError).domain) \((error as NSError).code)"
        _ = state.withLock { $0.keep(error, of: subject, reason) }
        return reason
    }

    /// Returns the error with which a block refused a handshake, given the error of the transfer; `nil` for other
    /// failures.
    func handshakeError(_ failure: any Error) -> (any Error)? {
        guard let error = (failure as? SessionError)?.transport, case .tls(.rejected(let reason)) = error.reason
        else { return nil }
        return state.withLock { state in
            state.handshakeErrors.first {
                $0.reason == reason && $0.subject.isAbout(error.context.serverTrust, host: error.context.host)
            }?.error
        }
    }

    /// Sets the block that answers servers and proxies that request a credential, with the signature of AFNetworking 3;
    /// `nil` removes it.
    ///
    /// The block returns the disposition, and stores a credential in its last argument for `.useCredential`. Without a
    /// credential, `.useCredential` uses a 401 or 407 response as the result and applies the security policy to a
    /// server's certificate. ``TaskChallengeBlock`` describes the other dispositions for challenges of HTTP, and
    /// ``setAuthenticationChallengeHandler(_:)`` those during a handshake.
    ///
    /// The block replaces that of ``setAuthenticationChallengeHandler(_:)``, is called for the same challenges, and
    /// cannot answer later. For challenges of HTTP it is called on the manager's own serial queue. For those about
    /// certificates it is called during the TLS handshake, on the thread that serves all connections, and must return
    /// at once; a client certificate that cannot be used fails the task with -1205.
    @preconcurrency
    public func setTaskDidReceiveAuthenticationChallenge(
        _ block: (
            @Sendable (
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
    /// Returns the answer of the manager's delegate method; `nil` for default handling.
    ///
    /// The schemes that authenticate a connection belong to the session, if it has a block.
    func answer(_ challenge: AuthenticationChallenge) async -> AuthenticationChallenge.Disposition? {
        guard let manager, let task else { return nil }
        let isOfSession =
            [AuthenticationScheme.ntlm, .negotiate].contains(challenge.protectionSpace.scheme)
            && manager.state.withLock { $0.hooks.sessionChallenge != nil }
        guard isOfSession || manager.decides(\.taskChallenge) else { return nil }
        do { try await waitUntilRunning() } catch { return .cancel }
        let challenge = UncheckedSendable(URLAuthenticationChallenge(challenge))
        let given = await ask(fallback: ChallengeDecision.refused) {
            manager, session, handler in
            let store: @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void = {
                handler(.init(disposition: $0, credential: $1))
            }
            if isOfSession {
                manager.urlSession(session, didReceive: challenge.value, completionHandler: store)
            } else {
                manager.urlSession(session, task: task, didReceive: challenge.value, completionHandler: store)
            }
        }
        switch given.disposition {
        case .useCredential:
            if let credential = given.credential?.userCredential { return .use(credential) }
            // A block that knows only challenges of handshakes returns a credential of those.
            return isOfSession ? nil : .performDefaultHandling
        case .performDefaultHandling: return nil
        case .rejectProtectionSpace: return .rejectProtectionSpace
        default: return .cancel
        }
    }
}

/// The reasons with which challenge blocks refuse a handshake.
private enum HandshakeRefusal {
    static let serverCertificate = "the manager's challenge block rejected the server certificate"
    static let clientCertificate = "the manager's challenge block provided no client certificate"
}

extension URLProtectionSpace {
    /// The subject of a challenge during a TLS handshake; `nil` for that of a response.
    fileprivate var handshakeSubject: HandshakeSubject? {
        if let serverTrust { return .init(serverTrust) }
        return authenticationMethod == NSURLAuthenticationMethodClientCertificate ? .identity(host: host) : nil
    }
}

/// The result of a challenge block.
struct ChallengeDecision: Sendable {
    let disposition: URLSession.AuthChallengeDisposition
    var credential: URLCredential?
    /// The error with which the block ended a challenge during a handshake.
    var error: (any Error)?

    static var refused: ChallengeDecision { ChallengeDecision(disposition: .cancelAuthenticationChallenge) }
}

/// The result of asking the blocks during a handshake.
private enum HandshakeAnswer {
    /// All blocks have been removed.
    case notAsked
    /// The block answers later.
    case pending
    case decided(ChallengeDecision)
}

/// Lets blocks that were set after their task was started take part in TLS handshakes.
struct LateHandshakeHooks: Interceptor {
    /// Returns the current hooks; `nil` if no block is set.
    let hooks: @Sendable () -> HandshakeHooks?

    func intercept(_ request: Request, next: Chain) async throws -> OpenResponse {
        let present = hooks()
        do {
            return try await next(request.with(present))
        } catch let error as TransportError where present == nil {
            guard case .tls(let failure) = error.reason, let later = hooks(),
                // No other failure of a handshake has read anything of the body.
                failure != .clientCertificateRefused || request.body.isReplayable
            else { throw error }
            return try await next(request.with(later))
        }
    }
}

extension Request {
    /// Returns a copy that calls hooks during TLS handshakes, if there are any.
    fileprivate func with(_ hooks: HandshakeHooks?) -> Request {
        guard let hooks, options?.tls.identityChooser == nil else { return self }
        var copy = self
        copy.changeOptions { $0.tls.ask(hooks) }
        return copy
    }
}
