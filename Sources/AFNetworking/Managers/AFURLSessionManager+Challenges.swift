// SPDX-License-Identifier: MIT

import ANSystem
import AsyncNetworking

extension AFURLSessionManager {
    /// Decides on a server, in place of the security policy: it returns `.useCredential` to trust it, and may put a
    /// credential into the place that it is given.
    public typealias SessionChallengeBlock = (
        URLSession, URLAuthenticationChallenge, AutoreleasingUnsafeMutablePointer<URLCredential?>?
    ) -> URLSession.AuthChallengeDisposition

    /// Answers a server that wants to know who asks. It returns an `NSError`, which ends the task with this error; a
    /// `URLCredential`; the `rawValue` of a disposition as a number; or nil, and calls the completion handler later.
    public typealias TaskChallengeBlock = (
        URLSession, URLSessionTask, URLAuthenticationChallenge,
        @escaping (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) -> Any?

    /// Sets what decides on servers in place of the security policy; nil removes it.
    ///
    /// It is called within the handshake, on the thread of all connections, and not on the manager's queue: it must return
    /// at once. `.performDefaultHandling` leaves the decision to the rules of the security policy.
    public func setSessionDidReceiveAuthenticationChallenge(_ block: SessionChallengeBlock?) {
        setHook(\.sessionChallenge, block)
        installEvaluator()
    }

    /// Sets what answers servers and proxies that ask for a credential; nil removes it, and their refusals are responses.
    ///
    /// It is asked about certificates too, unless ``setSessionDidReceiveAuthenticationChallenge(_:)`` decides on them: within
    /// the handshake, on the thread of all connections, for one of the tasks to the host. A credential made of the trust
    /// accepts the server, an error ends the task; all else leaves the decision to the rules of the security policy, and so
    /// does an answer that comes after the handler has returned.
    public func setAuthenticationChallengeHandler(_ handler: TaskChallengeBlock?) {
        setHook(\.taskChallenge, handler)
        installEvaluator()
    }

    private func installEvaluator() {
        let evaluator = SecurityPolicy.Evaluator { [weak self] trust in self?.verdict(on: trust) ?? .followRules }
        let isWanted = state.withLock { $0.hooks.sessionChallenge != nil || $0.hooks.taskChallenge != nil }
        state.set(\.trustEvaluator, to: isWanted ? evaluator : nil)
    }

    private func verdict(on trust: ServerTrust) -> SecurityPolicy.Decision {
        let isOfSession = state.withLock { $0.hooks.sessionChallenge != nil }
        let decision = Lock<SecurityPolicy.Decision?>(nil)
        AFSecurityPolicy.$judge.withValue(securityPolicy) {
            guard !isOfSession else {
                return urlSession(session, didReceive: .of(trust)) { disposition, _ in
                    decision.withLock { $0 = .of(disposition, accepts: true) }
                }
            }
            let drivers = state.withLock { $0.tasks }.compactMap { ($0 as? any DrivenTask)?.driver }
            guard let task = drivers.first(where: { $0.currentURL?.host == trust.host })?.task else { return }
            urlSession(session, task: task, didReceive: .of(trust)) { disposition, credential in
                decision.withLock { $0 = .of(disposition, accepts: credential?.isOfTrust ?? false) }
            }
        }
        return decision.withLock { $0 }
            ?? (isOfSession ? .refuse("the manager's block has not answered") : .followRules)
    }

    /// Sets what answers servers and proxies that ask for a credential, as AFNetworking 3 had it: the credential goes into
    /// the place for it.
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
            let place = AutoreleasingUnsafeMutablePointer<URLCredential?>(nil)
            let disposition = block(session, task, challenge, place)
            if disposition == .useCredential, let credential = place.pointee { return credential }
            return NSNumber(value: disposition.rawValue)
        }
    }
}

extension SecurityPolicy.Decision {
    /// What a handler says of a server.
    fileprivate static func of(_ disposition: URLSession.AuthChallengeDisposition, accepts: Bool) -> Self {
        switch disposition {
        case .useCredential: accepts ? .accept : .followRules
        case .performDefaultHandling: .followRules
        default: .refuse("the manager's block refuses it")
        }
    }
}

extension TaskDriver {
    /// The core's policy for challenges, with the manager's method for them.
    func authentication(of core: SessionManager) -> AuthenticationPolicy {
        var policy = core.configuration.authentication
        let others = policy.challengeHandler
        policy.challengeHandler = { [weak self] challenge in
            if let self, let answer = await answer(challenge) { return answer }
            return try await others?(challenge) ?? .carryOn
        }
        return policy
    }

    /// The answer of the manager's method; nil for none of its own.
    private func answer(_ challenge: AuthenticationChallenge) async -> AuthenticationChallenge.Answer? {
        guard let task else { return nil }
        let challenge = Handover(URLAuthenticationChallenge.of(challenge))
        let given = await manager.answer(unless: ChallengeAnswer(.cancelAuthenticationChallenge, nil)) {
            [manager, session] answer in
            manager.urlSession(session, task: task, didReceive: challenge.value) {
                answer(ChallengeAnswer($0, $1))
            }
        }
        switch given.disposition {
        case .useCredential:
            guard let user = given.credential?.user else { return .carryOn }
            return .use(Credential(user: user, password: given.credential?.password ?? ""))
        case .performDefaultHandling: return nil
        case .rejectProtectionSpace: return .rejectProtectionSpace
        default: return .cancel
        }
    }
}

/// What a handler says to a challenge.
private struct ChallengeAnswer: Sendable {
    let disposition: URLSession.AuthChallengeDisposition
    let credential: URLCredential?

    init(_ disposition: URLSession.AuthChallengeDisposition, _ credential: URLCredential?) {
        self.disposition = disposition
        self.credential = credential
    }
}
