// SPDX-License-Identifier: MIT

import ANSystem
package import AsyncNetworking
import Foundation

/// Decisions during TLS handshakes by a callback that may answer late.
///
/// A handshake cannot wait for a callback: OpenSSL's callbacks must return a decision. If a decision is pending, the
/// handshake is refused before any byte of the request has been sent; the request waits for the decision and then opens
/// another connection. A decision is kept until the tasks that need it have ended.
package final class HandshakeDecisions<Decision: Sendable>: Sendable {
    /// The reason for refusing a handshake whose decision is pending.
    package static var pending: String { "the challenge handler has not answered yet" }

    private let state = Lock(State())

    private struct State: Sendable {
        var entries: [HandshakeSubject: Entry] = [:]
        /// The tasks that wait for decisions.
        var waiters = Waiters<CheckedContinuation<Void, Never>>()
    }

    private struct Entry: Sendable {
        /// Identifies one call of the callback. Decisions of an earlier call are ignored.
        let callID: UUID
        /// The thread that calls the callback; `nil` when the call has returned.
        var callingThread: UInt?
        /// The decision; `nil` while it is pending.
        var decision: Decision?
        /// Whether the decision was made on the calling thread, before the call returned.
        var isImmediate = false
        /// The tasks that need the decision: the one for which the callback was called, and those that wait.
        var tasks: Set<Int>
    }

    /// Creates a store without decisions.
    package init() {}

    /// Returns the decision on a subject; `nil` if it is pending.
    ///
    /// - Parameters:
    ///   - subject: The subject. `call` is not called while a decision on it is kept or pending.
    ///   - task: The identifier of the task for which the decision is made.
    ///   - isOver: Returns whether the task has ended, as it may while `call` is running: nothing else would then remove
    ///     the decision.
    ///   - fallback: The decision if `call` releases the function that takes the decision without calling it.
    ///   - call: Calls the callback. It may call its argument at once or later.
    package func decision(
        on subject: HandshakeSubject, task: Int, isOver: () -> Bool, fallback: Decision,
        _ call: (@escaping @Sendable (Decision) -> Void) -> Void
    ) -> Decision? {
        let callID = UUID()
        let entry = state.withLock { state -> Entry? in
            if let entry = state.entries[subject] { return entry }
            state.entries[subject] = Entry(callID: callID, callingThread: SystemThread.current, tasks: [task])
            return nil
        }
        if let entry { return entry.decision }
        call(callback(on: subject, callID, fallback))
        defer { if isOver() { remove(forTask: task) } }
        // A decision made before `call` returned applies to this handshake only.
        return state.withLock { state in
            guard var entry = state.entries[subject], entry.callID == callID else { return nil }
            entry.callingThread = nil
            state.entries[subject] = entry.isImmediate ? nil : entry
            return entry.decision
        }
    }

    /// Returns a function that takes the decision on a subject. When the function is released uncalled, the fallback is
    /// the decision.
    private func callback(
        on subject: HandshakeSubject, _ callID: UUID, _ fallback: Decision
    ) -> @Sendable (Decision) -> Void {
        let callback = OneShot(fallback: fallback) { self.store($0, on: subject, callID) }
        return { callback.call($0) }
    }

    /// Stores the decision on a subject and resumes the tasks that wait for it.
    private func store(_ decision: Decision, on subject: HandshakeSubject, _ callID: UUID) {
        state.change { state in
            guard var entry = state.entries[subject], entry.callID == callID else { return ((), resuming: []) }
            entry.decision = decision
            entry.isImmediate = entry.callingThread == SystemThread.current
            state.entries[subject] = entry
            return ((), resuming: state.waiters.takeAll())
        }
    }

    /// Removes the decisions that only this task needed, when it has ended.
    package func remove(forTask task: Int) {
        // They are the program's, and must not be freed while the state is locked.
        _ = state.change { state -> ([Entry], resuming: [CheckedContinuation<Void, Never>]) in
            var removed: [Entry] = []
            guard !state.entries.isEmpty else { return (removed, resuming: []) }
            for (subject, entry) in state.entries where entry.tasks.contains(task) {
                state.entries[subject]?.tasks.remove(task)
                guard entry.tasks.count == 1 else { continue }
                state.entries[subject] = nil
                removed.append(entry)
            }
            return (removed, resuming: state.waiters.takeAll())
        }
    }

    /// Waits for the decision about the given certificates, or about the client certificate for a host if `trust` is
    /// `nil`; for any host if that is `nil`, too. Returns at once if the decision is known or was not asked for, and early if the calling task is cancelled.
    ///
    /// - Parameter isOver: Returns whether the task has ended: nothing else would then remove the decision.
    package func wait(
        for trust: ServerTrust?, host: String? = nil, task: Int, isOver: () -> Bool = { false }
    ) async {
        let subjects = state.withLock { state in
            let subjects = state.entries.keys.filter { $0.isAbout(trust, host: host) }
            for subject in subjects { state.entries[subject]?.tasks.insert(task) }
            return subjects
        }
        if isOver() { remove(forTask: task) }
        await state.wait(among: \.waiters) { state -> Void? in
            let isPending = subjects.contains { subject in state.entries[subject].map { $0.decision == nil } ?? false }
            return isPending ? nil : ()
        }
    }

    /// Returns an interceptor that repeats an exchange whose handshake was refused because a decision was pending.
    ///
    /// - Parameter isOver: Returns whether the task has ended.
    package func interceptor(forTask task: Int, isOver: @escaping @Sendable () -> Bool) -> any Interceptor {
        HandshakeRetries(decisions: self, task: task, isOver: isOver)
    }
}

/// The subject of a decision during a TLS handshake.
package enum HandshakeSubject: Hashable, Sendable {
    /// Whether to trust a server with these certificates, in DER.
    case trust(host: String, [Data])
    /// Which client certificate to send to a server.
    case identity(host: String)

    /// Creates the subject of trusting a server that presented these certificates.
    package init(_ trust: ServerTrust) {
        self = .trust(host: trust.host, trust.presented.map(\.der))
    }

    /// Whether the subject is about these certificates, or about the client certificate for a host if `trust` is `nil`.
    func isAbout(_ trust: ServerTrust?, host: String?) -> Bool {
        switch self {
        case .trust: trust.map { self == .init($0) } ?? false
        case .identity(let other): trust == nil && (host.map { HostName($0) == HostName(other) } ?? true)
        }
    }
}

private struct HandshakeRetries<Decision: Sendable>: Interceptor {
    let decisions: HandshakeDecisions<Decision>
    let task: Int
    let isOver: @Sendable () -> Bool

    func intercept(_ request: Request, next: Chain) async throws -> OpenResponse {
        while true {
            do {
                // A refused handshake has read nothing of the body, so that it need not be replayable.
                return try await next(request)
            } catch let error as TransportError
                where error.reason == .tls(.rejected(HandshakeDecisions<Decision>.pending))
            {
                await decisions.wait(
                    for: error.context.serverTrust, host: error.context.host, task: task, isOver: isOver)
                try Task.checkCancellation()
            }
        }
    }
}
