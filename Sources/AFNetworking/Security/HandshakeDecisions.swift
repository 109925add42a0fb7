// SPDX-License-Identifier: MIT

import ANSystem
import AsyncNetworking
import Foundation

/// The decisions of a manager's challenge blocks during TLS handshakes.
///
/// A handshake cannot wait for a block: OpenSSL's callbacks must return a decision. If a decision is pending, the
/// handshake is refused before any byte of the request has been sent; the request waits for the decision and then opens
/// another connection. A decision is kept until the tasks that need it have ended.
final class HandshakeDecisions: Sendable {
    /// The subject of a decision.
    enum Subject: Hashable {
        /// Whether to trust a server with these certificates, in DER.
        case trust(host: String, [Data])
        /// Which client certificate to send to a server.
        case identity(host: String)
    }

    /// The reason for refusing a handshake whose decision is pending.
    static let pending = "the manager's handler has not answered yet"

    private let entries = Lock<[Subject: Entry]>([:])

    private struct Entry: Sendable {
        /// Identifies one call of the block. Decisions of an earlier call are ignored.
        let callID: UUID
        /// The thread that is calling the block; `nil` when the block has returned.
        var callingThread: pthread_t?
        /// The decision; `nil` while it is pending.
        var decision: ChallengeDecision?
        /// Whether the block answered on the calling thread, before it returned.
        var isImmediate = false
        /// The tasks that need the decision: the one passed to the block, and those that wait.
        var tasks: Set<Int>
        /// Streams to finish when the decision arrives.
        var waiters: [AsyncStream<Never>.Continuation] = []
    }

    /// Returns the decision on a subject; `nil` if it is pending.
    ///
    /// - Parameters:
    ///   - subject: The subject. `call` is not called while a decision on it is kept or pending.
    ///   - task: The identifier of the task that is passed to the block.
    ///   - fallback: The decision if `call` releases the function that takes the decision without calling it.
    ///   - call: Calls the block. It may call its argument at once or later.
    func decision(
        on subject: Subject, task: Int, fallback: ChallengeDecision,
        _ call: (@escaping @Sendable (ChallengeDecision) -> Void) -> Void
    ) -> ChallengeDecision? {
        let callID = UUID()
        let entry = entries.withLock { entries -> Entry? in
            if let entry = entries[subject] { return entry }
            entries[subject] = Entry(callID: callID, callingThread: pthread_self(), tasks: [task])
            return nil
        }
        if let entry { return entry.decision }
        let callback = OneShot(fallback: fallback) { self.store($0, on: subject, callID) }
        call { callback.call($0) }
        // A decision made before `call` returned applies to this handshake only.
        return entries.withLock { entries in
            guard var entry = entries[subject], entry.callID == callID else { return nil }
            entry.callingThread = nil
            entries[subject] = entry.isImmediate ? nil : entry
            return entry.decision
        }
    }

    /// Stores the first decision on a subject and resumes the tasks that wait for it.
    private func store(_ decision: ChallengeDecision, on subject: Subject, _ callID: UUID) {
        let waiters = entries.withLock { entries -> [AsyncStream<Never>.Continuation] in
            guard var entry = entries[subject], entry.callID == callID, entry.decision == nil else { return [] }
            defer { entries[subject] = entry }
            entry.decision = decision
            entry.isImmediate = entry.callingThread == pthread_self()
            defer { entry.waiters = [] }
            return entry.waiters
        }
        for waiter in waiters { waiter.finish() }
    }

    /// Removes the decisions that only this task needed, when it has ended.
    func remove(forTask task: Int) {
        let waiters = entries.withLock { entries in
            var waiters: [AsyncStream<Never>.Continuation] = []
            for (subject, entry) in entries where entry.tasks.contains(task) {
                entries[subject]?.tasks.remove(task)
                guard entry.tasks.count == 1 else { continue }
                waiters += entry.waiters
                entries[subject] = nil
            }
            return waiters
        }
        for waiter in waiters { waiter.finish() }
    }

    /// Waits for the decision about the given certificates, or about client certificates if `trust` is `nil`. Returns
    /// at once if the decision is known or was not asked for, and early if the calling task is cancelled.
    func wait(for trust: ServerTrust?, task: Int) async {
        let (ends, end) = AsyncStream.makeStream(of: Never.self)
        let isWaiting = entries.withLock { entries in
            var isWaiting = false
            for (subject, entry) in entries where subject.isAbout(trust) {
                entries[subject]?.tasks.insert(task)
                guard entry.decision == nil else { continue }
                entries[subject]?.waiters.append(end)
                isWaiting = true
            }
            return isWaiting
        }
        guard isWaiting else { return }
        for await _ in ends {}
    }
}

/// An interceptor that repeats an exchange whose handshake was refused because a decision was pending.
struct HandshakeRetries: Interceptor {
    let decisions: HandshakeDecisions
    /// The identifier of the task.
    let task: Int

    func intercept(
        _ interception: Interception, respond: (ResponseHead, ResponseBody) async throws -> Void
    ) async throws {
        var request = interception.request
        request.body = ReplayableBody.of(request.body)
        while true {
            do {
                return try await interception.proceed(with: request, respond)
            } catch let error as TransportError where error.reason == .tls(.rejected(HandshakeDecisions.pending)) {
                await decisions.wait(for: error.context.serverTrust, task: task)
                try Task.checkCancellation()
            }
        }
    }
}

extension HandshakeDecisions.Subject {
    /// The subject of trusting a server that presented these certificates.
    init(_ trust: ServerTrust) {
        self = .trust(host: trust.host, trust.presented.map(\.der))
    }

    /// Whether the subject is about these certificates, or about client certificates if `trust` is `nil`.
    fileprivate func isAbout(_ trust: ServerTrust?) -> Bool {
        switch self {
        case .trust: trust.map { self == .init($0) } ?? false
        case .identity: trust == nil
        }
    }
}
