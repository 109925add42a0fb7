// SPDX-License-Identifier: MIT

import AsyncNetworking
import Dispatch

/// What a manager is made of, and what it was told.
struct ManagerState: Sendable {
    let configuration: URLSessionConfiguration
    private(set) var core: SessionManager
    /// Whether others may use the core's session too.
    let isShared: Bool

    var securityPolicy = AFSecurityPolicy()
    /// The shared one where it is nil.
    var reachabilityManager: AFNetworkReachabilityManager?
    var responseSerializer = Handover<any AFURLResponseSerialization>(AFJSONResponseSerializer())
    var completionQueue: DispatchQueue?
    var completionGroup: DispatchGroup?
    var hooks = SessionHooks()

    /// Whether new tasks fail.
    private(set) var isInvalid = false
    /// The sessions whose end is still to be told, once the last of their tasks is over.
    private var ending: [(session: ManagerSession?, generation: Int)] = []
    private(set) var session: ManagerSession?
    /// How many sessions there were before this one.
    private(set) var generation = 0
    private var lastIdentifier = 0
    /// The tasks that are not over, whoever else holds them.
    private var unfinished: [Int: (task: URLSessionTask, generation: Int)] = [:]
    private var templates: [Template] = []

    init(_ configuration: URLSessionConfiguration) {
        self.configuration = configuration.copy() as? URLSessionConfiguration ?? configuration
        let shared = self.configuration.takeSharedSession()
        core = shared ?? SessionManager(SessionConfiguration(self.configuration))
        isShared = shared != nil
    }

    // MARK: Tasks

    mutating func takeIdentifier() -> Int {
        lastIdentifier += 1
        return lastIdentifier
    }

    /// Keeps a task until its end, in place of one with the same identifier.
    mutating func add(_ task: URLSessionTask, _ identifier: Int, of generation: Int) {
        unfinished[identifier] = (task, generation)
    }

    /// Notes that a task is over; returns the sessions that end with it.
    mutating func end(_ identifier: Int) -> [ManagerSession] {
        unfinished[identifier] = nil
        return takeEndedSessions()
    }

    /// The tasks that are not over, oldest first.
    var tasks: [URLSessionTask] {
        unfinished.sorted { $0.key < $1.key }.map(\.value.task)
    }

    // MARK: Sessions

    /// The present session, or one before it whose tasks are not over.
    mutating func session(of manager: AFURLSessionManager, generation: Int? = nil) -> ManagerSession {
        if let old = ending.first(where: { $0.generation == generation }), let session = old.session { return session }
        if let session { return session }
        let made = ManagerSession(configuration: configuration, manager: manager)
        session = made
        return made
    }

    /// Takes no more tasks, or takes them in a new session.
    ///
    /// - Returns: The core's session that is to end; nil where others use it.
    mutating func invalidate(resetting: Bool) -> SessionManager? {
        let old = core
        isInvalid = true
        ending.append((session, generation))
        if resetting {
            generation += 1
            nextIsNew = true
            session = nil
        }
        return isShared ? nil : old
    }

    private var nextIsNew = false

    /// The sessions that were invalidated and have ended, because their last task is over.
    mutating func takeEndedSessions() -> [ManagerSession] {
        guard !ending.isEmpty else { return [] }
        let alive = Set(unfinished.values.map(\.generation))
        defer { ending.removeAll { !alive.contains($0.generation) } }
        return ending.filter { !alive.contains($0.generation) }.compactMap(\.session)
    }

    /// Makes the session that a reset has asked for, when it is used.
    mutating func renew() {
        guard nextIsNew else { return }
        nextIsNew = false
        isInvalid = false
        if !isShared { core = SessionManager(SessionConfiguration(configuration)) }
    }

    // MARK: Requests

    /// A request without URL, with the options for a time limit and a security policy: requests that share one are known
    /// by the core to have the same options.
    private struct Template {
        let timeout: TimeInterval?
        let policy: SecurityPolicy
        let core: ObjectIdentifier
        let request: Request
    }

    /// A request with options for a time limit; nil for the session's.
    mutating func template(timeout: TimeInterval?) -> Request {
        var policy = isShared && !hasOwnPolicy ? core.configuration.securityPolicy : securityPolicy.policy
        if let handshakeHooks { policy.evaluator = handshakeHooks.evaluator }
        let id = ObjectIdentifier(core)
        if let known = templates.first(where: { $0.core == id && $0.timeout == timeout && $0.policy == policy }) {
            return known.request
        }
        let options = core.configuration.transfer.with { options in
            options.tls.policy = policy
            options.tls.identityChooser = handshakeHooks?.chooser
            if let timeout { options.timeouts.idle = timeout.limit }
        }
        let request = Request(url: URL(filePath: "/"), options: options)
        if templates.count >= 8 { templates.removeFirst() }
        templates.append(Template(timeout: timeout, policy: policy, core: id, request: request))
        return request
    }

    /// Asks the manager's methods for challenges; `nil` if there is no block for any.
    var handshakeHooks: HandshakeHooks?
    /// Why tasks fail under the security policy.
    var policyProblem: NSError?

    /// Whether the security policy was set, so that it counts in place of a shared session's.
    var hasOwnPolicy = false
}

/// What is asked within handshakes.
struct HandshakeHooks: Sendable {
    /// Decides on servers in place of the security policy.
    let evaluator: SecurityPolicy.Evaluator
    /// Chooses what servers are shown that ask for a client's certificate.
    let chooser: ClientIdentity.Chooser
}
