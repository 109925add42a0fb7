// SPDX-License-Identifier: MIT

import AsyncNetworking
import Dispatch

/// The settings, session and unfinished tasks of a manager.
struct ManagerState: Sendable {
    let configuration: URLSessionConfiguration
    /// The core session; `nil` until it is needed for the first time, or again after a reset.
    private var existingCore: SessionManager?
    /// The resolver of URLs, with the base URL of the core session unless that was passed in. Set before the session is
    /// needed.
    var resolver = URLResolver(base: nil)
    /// Whether the core session was passed in and may have other users.
    private(set) var isShared = false

    var securityPolicy = AFSecurityPolicy()
    /// The reachability manager that was set; `nil` for the shared one.
    var reachabilityManager: AFNetworkReachabilityManager?
    var responseSerializer = UncheckedSendable<any AFURLResponseSerialization>(AFJSONResponseSerializer())
    var completionQueue: DispatchQueue?
    var completionGroup: DispatchGroup?
    var hooks = SessionHooks()
    /// A queue that older programs configure; `nil` until it is needed.
    var operationQueue: OperationQueue?
    var attemptsToRecreateUploads = false

    private(set) var validity = Validity.valid
    /// The invalidated sessions whose end has not been reported because some of their tasks are running.
    private var ending: [(session: ManagerSession?, generation: Int)] = []
    private(set) var session: ManagerSession?
    /// The number of sessions before the current one.
    private(set) var generation = 0
    private var lastIdentifier = 0
    /// The tasks that have not ended, by identifier. The manager retains them.
    private var unfinished: [Int: (task: URLSessionTask, generation: Int)] = [:]
    private var templates: [Template] = []
    /// The errors with which a challenge block ends challenges during a handshake, until the answer is stored. A subclass
    /// may have replaced the challenge by one of its own.
    var challengeErrors: [HandshakeSubject: any Error] = [:]
    /// The errors with which a challenge block refused handshakes, by the subjects and reasons of the refusals: the last ones,
    /// kept until no task is left.
    private(set) var handshakeErrors: [(subject: HandshakeSubject, reason: String, error: any Error)] = []

    /// The fields of downloads that can be resumed which their resume data lacks, by partial file.
    private(set) var secretFields: [String: (url: URL, fields: [String: String])] = [:]

    /// Keeps the secret fields of a download, up to those of 1,000 downloads.
    mutating func keep(_ fields: [String: String], of url: URL, forResuming file: String) {
        if secretFields.count >= 1_000, let other = secretFields.keys.first { secretFields[other] = nil }
        secretFields[file] = fields.isEmpty ? nil : (url, fields)
    }

    init(_ configuration: URLSessionConfiguration) {
        self.configuration = configuration.copy() as? URLSessionConfiguration ?? configuration
        if let session = self.configuration.sharedSession { share(session) }
    }

    /// Performs tasks on an existing session, with its base URL if there is no other one.
    mutating func share(_ session: SessionManager) {
        (existingCore, isShared) = (session, true)
        configuration.removeSharedSession()
        if resolver.base == nil { resolver = URLResolver(base: session.configuration.baseURL) }
    }

    /// The session that performs the requests.
    var core: SessionManager {
        mutating get {
            if let existingCore { return existingCore }
            var configuration = SessionConfiguration(configuration)
            configuration.baseURL = resolver.base
            let storage = configuration.transfer.handlesCookies ? self.configuration.httpCookieStorage : nil
            let synchronizer = storage.map(CookieSynchronizer.init)
            configuration.interceptors = [LateChallenges(isAuthorized: configuration.headers.contains(.authorization))]
            if let synchronizer { configuration.interceptors.append(synchronizer) }
            let core = SessionManager(configuration)
            synchronizer?.start(core)
            existingCore = core
            return core
        }
    }

    // MARK: Tasks

    mutating func takeIdentifier() -> Int {
        lastIdentifier += 1
        return lastIdentifier
    }

    /// Retains a task until its end, in place of one with the same identifier.
    mutating func add(_ task: URLSessionTask, _ identifier: Int, of generation: Int) {
        unfinished[identifier] = (task, generation)
    }

    /// Removes an ended task. Returns the invalidated sessions whose last task it was, and the errors that no task needs
    /// any more, which are the program's and must not be freed while the state is locked.
    mutating func end(_ identifier: Int) -> (sessions: [ManagerSession], errors: [any Error]) {
        unfinished[identifier] = nil
        guard unfinished.isEmpty else { return (takeEndedSessions(), []) }
        let errors = handshakeErrors.map(\.error) + challengeErrors.values
        (handshakeErrors, challengeErrors) = ([], [:])
        return (takeEndedSessions(), errors)
    }

    /// Keeps the error of a refused handshake. Returns those that it replaces, which must not be freed while the state is
    /// locked.
    mutating func keep(_ error: any Error, of subject: HandshakeSubject, _ reason: String) -> [any Error] {
        let old = handshakeErrors
        handshakeErrors.removeAll { $0.subject == subject && $0.reason == reason }
        handshakeErrors = handshakeErrors.suffix(Self.mostHandshakeErrors - 1) + [(subject, reason, error)]
        return old.map(\.error)
    }

    private static let mostHandshakeErrors = 64

    /// Returns the tasks that are retained, oldest first: those of a session of the given generation, or all.
    func tasks(of generation: Int?) -> [URLSessionTask] {
        unfinished.filter { generation == nil || $0.value.generation == generation }.sorted { $0.key < $1.key }
            .map(\.value.task)
    }

    // MARK: Sessions

    /// Returns the current session, or an invalidated one of the given generation whose tasks have not all ended.
    mutating func session(of manager: AFURLSessionManager, generation: Int? = nil) -> ManagerSession {
        if let old = ending.first(where: { $0.generation == generation }), let session = old.session { return session }
        if let session { return session }
        let made = ManagerSession(configuration: configuration, manager: manager, generation: self.generation)
        session = made
        return made
    }

    /// Invalidates the session. New tasks fail or, with `resetting`, run in a new session.
    ///
    /// - Returns: The core session to invalidate; `nil` if it is shared.
    mutating func invalidate(resetting: Bool) -> SessionManager? {
        // Until then, the core session is the one before, whose tasks may be running to completion.
        renew()
        let old = core
        if validity != .invalid { ending.append((session, generation)) }
        validity = resetting ? .resetting : .invalid
        if resetting {
            generation += 1
            session = nil
        }
        return isShared ? nil : old
    }

    /// Removes and returns the invalidated sessions whose last task has ended.
    mutating func takeEndedSessions() -> [ManagerSession] {
        guard !ending.isEmpty else { return [] }
        let alive = Set(unfinished.values.map(\.generation))
        defer { ending.removeAll { !alive.contains($0.generation) } }
        return ending.filter { !alive.contains($0.generation) }.compactMap(\.session)
    }

    /// Creates the core session after a reset, at its first use.
    mutating func renew() {
        guard validity == .resetting else { return }
        validity = .valid
        if !isShared { existingCore = nil }
    }

    // MARK: Requests

    /// A request without a URL, with the options for a timeout and a security policy, and with the policies of the
    /// session that ask the blocks of the manager. The core recognizes requests copied from one template as having equal
    /// options.
    struct Template {
        fileprivate let timeout: TimeInterval?
        fileprivate let policy: SecurityPolicy
        fileprivate let core: ObjectIdentifier
        let request: Request
        let hasCache: Bool
    }

    /// Returns a request with the options for a timeout in seconds and a security policy; `nil` for those of the
    /// session.
    mutating func template(timeout: TimeInterval?, _ policy: SecurityPolicy?) -> Template {
        var policy = policy ?? core.configuration.tls.policy
        if let handshakeHooks { policy.identifiedEvaluator = handshakeHooks.evaluator }
        let id = ObjectIdentifier(core)
        if let known = templates.first(where: { $0.core == id && $0.timeout == timeout && $0.policy == policy }) {
            return known
        }
        let configuration = core.configuration
        let options = configuration.transfer.with { options in
            options.tls.policy = policy
            if let handshakeHooks { options.tls.ask(handshakeHooks) }
            if let timeout { options.timeouts.idle = timeout.limit }
        }
        var request = Request(url: URL(filePath: "/"), options: options)
        request.askBlocks(after: configuration)
        // A session of the manager's own has them.
        if isShared { request.headers = HTTPFields(valid: self.configuration.httpAdditionalHeaders ?? [:]) }
        let template = Template(
            timeout: timeout, policy: policy, core: id, request: request, hasCache: configuration.cache != nil)
        if templates.count >= 8 { templates.removeFirst() }
        templates.append(template)
        return template
    }

    /// The hooks that call the manager's challenge methods; `nil` if no block is set for challenges.
    var handshakeHooks: HandshakeHooks?
    /// The error with which tasks fail because the security policy does not fit the base URL; `nil` if it does.
    var policyFailure: NSError?

    /// Whether the security policy was set and so takes precedence over that of a shared core session.
    var hasOwnPolicy = false
}

/// The state of a manager's current session.
enum Validity {
    /// New tasks run in the session.
    case valid
    /// New tasks fail: the session was invalidated.
    case invalid
    /// The next task runs in a new core session: the last one was invalidated with a reset.
    case resetting
}

/// The functions that are called during TLS handshakes.
struct HandshakeHooks: Sendable {
    /// Decides whether to trust a server, in place of the security policy.
    let evaluator: SecurityPolicy.IdentifiedEvaluator
    /// Selects the client certificate for a server that requests one.
    let chooser: ClientIdentity.Chooser
}

extension TLSOptions {
    /// Calls hooks during handshakes, also with hosts that have a policy of their own.
    mutating func ask(_ hooks: HandshakeHooks) {
        policy.identifiedEvaluator = hooks.evaluator
        for host in hostPolicies.keys { hostPolicies[host]?.identifiedEvaluator = hooks.evaluator }
        identityChooser = hooks.chooser
    }
}
