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

    /// Sets what decides on servers in place of the security policy, and what servers are shown that ask for a client's
    /// certificate; `nil` removes it.
    ///
    /// It is called within the handshake, on the thread of all connections, and not on the manager's queue: it must return
    /// at once. `.performDefaultHandling` leaves the decision to the rules of the security policy, and shows no certificate. A
    /// client's certificate is a credential made of an identity.
    public func setSessionDidReceiveAuthenticationChallenge(_ block: SessionChallengeBlock?) {
        setHook(\.sessionChallenge, block)
        installHandshakeHooks()
    }

    /// Sets what answers servers and proxies that ask for a credential; nil removes it, and their refusals are responses.
    ///
    /// Unless ``setSessionDidReceiveAuthenticationChallenge(_:)`` decides on them, it is asked about servers' certificates too,
    /// and by servers that want a client's: within the handshake, on the thread of all connections, for one of the tasks to the
    /// host. A credential made of the trust accepts the server, one made of an identity is shown to it, an error ends the task;
    /// all else leaves the decision to the rules of the security policy. An answer may come after the handler has returned: the
    /// connection is then made again, of which the request has not seen anything yet.
    public func setAuthenticationChallengeHandler(_ handler: TaskChallengeBlock?) {
        setHook(\.taskChallenge, handler)
        installHandshakeHooks()
    }

    private func installHandshakeHooks() {
        let hooks = HandshakeHooks(
            evaluator: .init { [weak self] trust in self?.verdict(on: trust) ?? .followRules },
            chooser: .init { [weak self] host in self?.identity(for: host) ?? .none })
        let isWanted = state.withLock { $0.hooks.sessionChallenge != nil || $0.hooks.taskChallenge != nil }
        state.set(\.handshakeHooks, to: isWanted ? hooks : nil)
    }

    private func verdict(on trust: ServerTrust) -> SecurityPolicy.Decision {
        switch ask(.init(trust), host: trust.host, .of(trust)) {
        case .nobody: .followRules
        case .later: .refuse(HandshakeAnswers.pending)
        case .answered(let answer, isOfSession: let isOfSession):
            switch answer.disposition {
            case .useCredential: isOfSession || answer.credential?.isOfTrust == true ? .accept : .followRules
            case .performDefaultHandling: .followRules
            default: .refuse("the manager's block refuses it")
            }
        }
    }

    private func identity(for host: String) -> ClientIdentity.Choice {
        switch ask(.identity(host: host), host: host, .forIdentity(host: host)) {
        case .nobody: .none
        case .later: .refuse(HandshakeAnswers.pending)
        case .answered(let answer, _):
            switch answer.disposition {
            case .useCredential: answer.credential?.identity.map { .identity($0) } ?? .none
            case .cancelAuthenticationChallenge: .refuse("the manager's block shows it no certificate")
            default: .none
            }
        }
    }

    /// What becomes of a question within a handshake.
    private enum Reply {
        /// There is nobody to ask.
        case nobody
        /// The answer is not there yet.
        case later
        /// The answer of the manager's method for the session, or of that for a task.
        case answered(ChallengeAnswer, isOfSession: Bool)
    }

    /// Asks the manager's method for challenges of the session, if there is a block for it, or else the one for a task.
    private func ask(
        _ question: HandshakeAnswers.Question, host: String, _ challenge: URLAuthenticationChallenge
    ) -> Reply {
        let isOfSession = state.withLock { $0.hooks.sessionChallenge != nil }
        let drivers = state.withLock { $0.tasks }.compactMap { ($0 as? any DrivenTask)?.driver }
        guard let driver = drivers.first(where: { $0.currentURL?.host == host }), let task = driver.task else {
            return .nobody
        }
        let fallback = ChallengeAnswer(
            isOfSession ? .cancelAuthenticationChallenge : .performDefaultHandling, nil)
        let answer = handshakeAnswers.answer(to: question, task: driver.identifier, unless: fallback) { answer in
            if isOfSession {
                urlSession(session, didReceive: challenge) { answer(ChallengeAnswer($0, $1)) }
            } else {
                urlSession(session, task: task, didReceive: challenge) { answer(ChallengeAnswer($0, $1)) }
            }
        }
        return answer.map { .answered($0, isOfSession: isOfSession) } ?? .later
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
