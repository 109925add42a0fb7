// SPDX-License-Identifier: MIT

import ANSystem
import AsyncNetworking
import HTTPTypes

extension AFURLSessionManager {
    /// Returns the core session and the core request for a task that is about to start.
    ///
    /// - Throws: ``AsyncNetworking/SessionError``, or the error of an invalid security policy.
    func coreRequest(for driver: TaskDriver) throws -> (SessionManager, Request) {
        let original = driver.original
        let limit = original.timeoutInterval
        // The evaluator of the policy does not retain it.
        let ownPolicy = ownPolicy
        driver.change { $0.securityPolicy = ownPolicy }
        let policy = ownPolicy?.policy
        let (core, template, hooks) = try state.withLock { state in
            state.renew()
            guard state.validity == .valid else { throw SessionError.invalidated as any Error }
            if let failure = state.policyFailure { throw failure }
            let isOwn = limit.map { $0 != state.configuration.timeoutIntervalForRequest } ?? false
            return (state.core, state.template(timeout: isOwn ? limit : nil, policy), state.handshakeHooks)
        }
        var request = template.request
        request.headers = [:]
        try original.fill(&request, for: driver)
        request.headers.fill(from: template.request.headers)
        if case .upload(let body?) = driver.source { request.body = body }
        request.origin = RequestOrigin(
            driver: Weak(object: driver),
            decidesOnStorage: template.hasCache && !driver.source.isDownload && decides(\.willCache))
        // Otherwise only the core's own decisions apply.
        if decides(\.taskChallenge) || decides(\.sessionChallenge) {
            request.askAboutChallenges()
            // The answers of a block take the place of credentials that a shared session has stored.
            if state.withLock({ $0.hooks.taskChallenge != nil }) {
                request.authentication = core.configuration.authentication
            }
        }
        // A response that passed interceptors is not used for the other users of a cache. A redirect may lead to https.
        if hooks != nil || !template.hasCache {
            request.attemptInterceptors = [
                LateHandshakeHooks { [weak self] in self?.state.withLock { $0.handshakeHooks } },
                handshakeDecisions.interceptor(forTask: driver.identifier) { [weak driver] in
                    driver.map { $0.taskState == .completed } ?? true
                },
            ]
        }
        return (core, request)
    }

    /// The security policy of tasks that start now, including an override in a subclass; `nil` if that of a shared
    /// session applies.
    ///
    /// It and its rules must be read while the state is not locked, since a subclass may override their getters.
    var ownPolicy: AFSecurityPolicy? {
        let policy = securityPolicy
        let isOfSession = state.withLock { $0.isShared && !$0.hasOwnPolicy && $0.securityPolicy === policy }
        return isOfSession ? nil : policy
    }

    /// Keeps the fields of a download that its resume data lacks, because they are secret and it may be stored.
    func keepFields(of request: URLRequest, for data: ResumeData) {
        guard let url = request.url, data.url == url, let fields = request.allHTTPHeaderFields else { return }
        let secret = fields.filter { name, _ in HTTPField.Name(name).map { !data.headers.contains($0) } ?? false }
        state.withLock { $0.keep(secret, of: url, forResuming: data.partialFile) }
    }

    /// Forgets the kept fields of a download that is complete.
    func forgetFields(for data: ResumeData) {
        state.withLock { $0.keep([:], of: data.url, forResuming: data.partialFile) }
    }

    /// Returns the fields of a download with resume data, with those that were kept.
    func fields(of data: ResumeData) -> [String: String] {
        let kept = state.withLock { $0.secretFields[data.partialFile] }
        guard let kept, kept.url == data.url else { return data.headers.dictionary }
        return data.headers.dictionary.merging(kept.fields) { stored, _ in stored }
    }

    /// Whether a block is set for a decision, or a subclass may make it.
    func decides<Block>(_ hook: KeyPath<SessionHooks, Block?>) -> Bool {
        isSubclassed || state.withLock { $0.hooks[keyPath: hook] != nil }
    }

    /// Releases an ended task.
    func taskEnded(_ identifier: Int) {
        handshakeDecisions.remove(forTask: identifier)
        for session in state.withLock({ $0.end(identifier) }).sessions { tellEnd(of: session) }
    }

    /// Invalidates the session, without waiting for its tasks. When they have ended, the block of
    /// ``setSessionDidBecomeInvalidBlock(_:)`` is called and its notification is posted.
    ///
    /// A subclass may call it in `deinit`: then the block is called and the notification posted, but not an override of
    /// `urlSession(_:didBecomeInvalidWithError:)`, which could retain the manager.
    ///
    /// An AsyncNetworking session that the manager shares is not invalidated: it only receives no later tasks of this
    /// manager, unless `resetSession` is `true`. A later call with `resetSession` makes the manager usable again; one
    /// without it can only cancel the tasks that are still running.
    ///
    /// - Parameters:
    ///   - cancelPendingTasks: Whether the tasks of the session are cancelled (error -999), and so are other requests of
    ///     the manager's own ``coreSession``. If `false`, they run to completion, also if later calls cancel those of a
    ///     new session; suspended ones can still be resumed.
    ///   - resetSession: Whether later tasks run in a new session with the same configuration, or again in the shared
    ///     one; `false` by default: they fail with -1 of `NSURLErrorDomain`. AFNetworking raised an exception
    ///     for them.
    public func invalidateSessionCancelingTasks(_ cancelPendingTasks: Bool, resetSession: Bool = false) {
        // Create the session if it has not been used yet: it is an argument of the notification about its end.
        _ = session
        invalidate(generation: nil, cancellingTasks: cancelPendingTasks, resetting: resetSession)
    }

    /// Invalidates the session. If it is not of the given generation, that one was invalidated by a reset, and only the
    /// tasks that it still has may be cancelled.
    func invalidate(generation: Int?, cancellingTasks isCancelling: Bool, resetting: Bool) {
        // The core accepts no tasks after this: suspended tasks must be registered with it first.
        if !isCancelling { for task in allTasks(of: generation) { _ = task.coreTask } }
        let (tasks, core) = state.withLock { state in
            let isOld = generation.map { $0 != state.generation } ?? false
            return (
                state.tasks(of: generation ?? state.generation), isOld ? nil : state.invalidate(resetting: resetting)
            )
        }
        if isCancelling { for task in tasks { task.cancel() } }
        if let core {
            // Ends when the core session is invalidated; no caller waits for it.
            Task { await core.invalidate(cancellingTasks: isCancelling) }
        }
        for session in state.withLock({ $0.takeEndedSessions() }) { tellEnd(of: session) }
    }

    private func tellEnd(of session: ManagerSession) {
        // `nil` in the `deinit` of a subclass, in which a strong reference would end the process.
        if let manager = Weak(object: self).object {
            sessionQueue.async { manager.urlSession(session, didBecomeInvalidWithError: nil) }
        } else {
            let block = state.withLock { $0.hooks.didBecomeInvalid }
            sessionQueue.async { session.becomeInvalid(nil, block) }
        }
    }
}

// Blocks may be set while a task is running, so a request asks for them when their event occurs. What asks is the same for
// all requests of a session; the task is an attribute of the request.

extension Request {
    /// The task that the request belongs to.
    fileprivate var origin: RequestOrigin {
        get { self[OriginOfRequest.self] }
        set { self[OriginOfRequest.self] = newValue }
    }

    private enum OriginOfRequest: RequestAttribute {
        static var defaultValue: RequestOrigin { RequestOrigin() }
    }

    /// The driver of the task that the request belongs to; `nil` if the task has been freed.
    fileprivate var driver: TaskDriver? { origin.driver.object }

    /// Calls the manager's delegate method for challenges before the handler of a session.
    fileprivate mutating func askAboutChallenges() {
        challengeHandler = { challenge in await challenge.request.driver?.answer(challenge) }
    }

    /// Sets policies that call the manager's delegate methods after the decisions of a session's policies.
    mutating func askBlocks(after configuration: SessionConfiguration) {
        redirectPolicy = configuration.redirectPolicy.with { policy in
            let decide = policy.decision
            policy.decision = { redirection in
                var proposed = redirection.proposed
                if let decide {
                    guard let decided = try await decide(redirection) else { return nil }
                    proposed = decided
                }
                guard let driver = redirection.original.driver else { return proposed }
                return try await driver.decide(on: redirection.head, proposed)
            }
        }
        guard configuration.cache != nil else { return }
        willCache = { [decide = configuration.willCache] proposal in
            var proposal = proposal
            if let decide {
                guard let decided = await decide(proposal) else { return nil }
                proposal = decided
            }
            let origin = proposal.request.origin
            guard let driver = origin.driver.object, let manager = driver.manager else {
                // A validation in the background has outlived its task, without which no block can be called.
                proposal.keepsStored = origin.decidesOnStorage
                return proposal
            }
            return manager.decides(\.willCache) ? await driver.decide(on: proposal) : proposal
        }
    }
}

/// The task that a request belongs to.
private struct RequestOrigin: Sendable {
    var driver = Weak<TaskDriver>()
    /// Whether a block or an override decided on the storage of responses when the task began.
    var decidesOnStorage = false
}

/// Repeats requests that a server or proxy challenged, if the block for challenges was set after their task had started.
/// Requests that ask for it from the beginning take longer.
struct LateChallenges: Interceptor {
    /// Whether the session adds an `Authorization` field.
    let isAuthorized: Bool

    func intercept(_ request: Request, next: Chain) async throws -> OpenResponse {
        // The requests before a redirect were answered, and would be sent again.
        func isLate(redirected isRedirected: Bool) -> Bool {
            request.challengeHandler == nil && request.body.isReplayable
                && (!isRedirected || [.get, .head, .options, .trace].contains(request.method))
                && request.driver?.manager?.decides(\.taskChallenge) == true
        }
        do {
            let response = try await next(request)
            let isRedirected = !response.head.redirectHistory.isEmpty
            let isChallenge =
                switch response.head.status.code {
                // A redirect to another origin removes the field, and a block for redirects may set it.
                case 401 where isRedirected:
                    request.driver?.sentRequest?.headers.contains(.authorization) == false
                case 401: !isAuthorized && !request.headers.contains(.authorization)
                case 407: true
                default: false
                }
            guard isChallenge, isLate(redirected: isRedirected) else { return response }
        } catch let error as TransportError {
            let isRedirected = error.context.url != request.url.redactedDescription
            guard error.reason == .proxy(.authenticationRequired), isLate(redirected: isRedirected) else { throw error }
        }
        var again = request
        again.askAboutChallenges()
        return try await next(again)
    }
}

extension TaskDriver {
    /// Returns the response to store; `nil` to prevent the storage.
    fileprivate func decide(on proposal: CacheProposal) async -> CacheProposal? {
        guard let task else { return nil }
        guard let dataTask = task as? URLSessionDataTask, let response = HTTPURLResponse.make(proposal.head)
        else { return proposal }
        let proposed = UncheckedSendable(CachedURLResponse(response: response, data: proposal.body))
        let decided = await ask(fallback: UncheckedSendable(CachedURLResponse?.none)) { manager, session, handler in
            manager.urlSession(session, dataTask: dataTask, willCacheResponse: proposed.value) {
                handler(UncheckedSendable($0))
            }
        }.value
        // A response for memory only may be secret, and the cache may have a directory.
        guard let decided, decided.storagePolicy == .allowed else { return nil }
        var accepted = proposal
        accepted.body = decided.data
        if let changed = decided.response as? HTTPURLResponse, changed !== response {
            accepted.head.status = HTTPResponse.Status(code: min(max(changed.statusCode, 200), 999))
            accepted.head.headers = HTTPFields(valid: changed.allHeaderFields)
        }
        return accepted
    }

    /// Returns a new stream for a body that must be sent again.
    func newBodyStream() async -> UncheckedSendable<InputStream?> {
        guard let task else { return UncheckedSendable(nil) }
        return await ask(fallback: UncheckedSendable(nil)) { manager, session, handler in
            manager.urlSession(session, task: task) { handler(UncheckedSendable($0)) }
        }
    }

    /// Returns the core request with which to follow a redirect; `nil` to use the redirect response as the result.
    fileprivate func decide(on head: ResponseHead, _ proposed: Request) async throws -> Request? {
        guard manager?.decides(\.redirection) == true, let task, let response = HTTPURLResponse.make(head)
        else { return proposed }
        try await waitUntilRunning()
        let request = URLRequest(proposed, basedOn: original.urlRequest)
        let decided = await ask(fallback: URLRequest?.none) { manager, session, handler in
            manager.urlSession(
                session, task: task, willPerformHTTPRedirection: response, newRequest: request,
                completionHandler: handler)
        }
        guard let decided else { return nil }
        var result = proposed
        if decided.cachePolicy != request.cachePolicy
            || decided.httpShouldHandleCookies != request.httpShouldHandleCookies
        {
            result.apply(decided.cachePolicy, handlesCookies: decided.httpShouldHandleCookies)
        }
        guard !decided.hasSameMessage(as: request) else { return result }
        result.headers = [:]
        result.body = .none
        try result.take(decided)
        if decided.httpBody == nil, decided.keepsHiddenBody(of: request) { result.body = proposed.body }
        return result
    }
}
