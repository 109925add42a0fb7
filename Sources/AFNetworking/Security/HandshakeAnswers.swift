// SPDX-License-Identifier: MIT

import ANSystem
import AsyncNetworking
import Foundation

/// The answers of a manager's handlers to what is asked within TLS handshakes.
///
/// A handshake cannot wait for an answer: OpenSSL's callbacks return a decision. So one whose answer is not there yet is
/// refused, before a byte of the request has left; the request waits for the answer, and makes another connection. The answer
/// is kept until the tasks that need it are over.
final class HandshakeAnswers: Sendable {
    /// What is asked.
    enum Question: Hashable {
        /// Whether a server with these certificates, in DER, is trusted.
        case trust(host: String, [Data])
        /// Which identity is shown to a server.
        case identity(host: String)
    }

    /// Why a handshake is refused whose answer is not there yet.
    static let pending = "the manager's handler has not answered yet"

    private let entries = Lock<[Question: Entry]>([:])

    private struct Entry: Sendable {
        /// Which time the question is asked: an answer to an earlier time does not count.
        let occasion: UUID
        /// The thread that asks; `nil` when it has asked.
        var askingThread: pthread_t?
        /// The answer; `nil` before it is there.
        var answer: ChallengeAnswer?
        /// Whether the answer was given by the thread that asked, before it had asked.
        var isImmediate = false
        /// The tasks that need it: the one that is asked about, and those that wait.
        var tasks: Set<Int>
        /// Ended when the answer is there.
        var waiters: [AsyncStream<Never>.Continuation] = []
    }

    /// The answer to a question; `nil` if it is not there yet.
    ///
    /// - Parameters:
    ///   - question: What is asked; while an answer is kept or awaited, `ask` is not called for it.
    ///   - task: The number of the task that is asked about.
    ///   - fallback: The answer if `ask` lets go of the function that takes it.
    ///   - ask: Asks, and may answer at once or later.
    func answer(
        to question: Question, task: Int, unless fallback: ChallengeAnswer,
        _ ask: (@escaping @Sendable (ChallengeAnswer) -> Void) -> Void
    ) -> ChallengeAnswer? {
        let occasion = UUID()
        let entry = entries.withLock { entries -> Entry? in
            if let entry = entries[question] { return entry }
            entries[question] = Entry(occasion: occasion, askingThread: pthread_self(), tasks: [task])
            return nil
        }
        if let entry { return entry.answer }
        ask(taker(of: question, occasion, fallback))
        // An immediate answer is for this handshake alone.
        return entries.withLock { entries in
            guard var entry = entries[question], entry.occasion == occasion else { return nil }
            entry.askingThread = nil
            entries[question] = entry.isImmediate ? nil : entry
            return entry.answer
        }
    }

    /// A function that takes the answer to a question, of which the fallback is taken when it is let go of.
    private func taker(
        of question: Question, _ occasion: UUID, _ fallback: ChallengeAnswer
    ) -> @Sendable (ChallengeAnswer) -> Void {
        let taker = Taker(answers: self, question: question, occasion: occasion, fallback: fallback)
        return { taker.take($0) }
    }

    private final class Taker: Sendable {
        private let answers: HandshakeAnswers
        private let question: Question
        private let occasion: UUID
        private let fallback: ChallengeAnswer

        init(answers: HandshakeAnswers, question: Question, occasion: UUID, fallback: ChallengeAnswer) {
            self.answers = answers
            self.question = question
            self.occasion = occasion
            self.fallback = fallback
        }

        func take(_ answer: ChallengeAnswer) { answers.take(answer, to: question, occasion) }

        deinit { take(fallback) }
    }

    /// Takes the first answer to a question.
    private func take(_ answer: ChallengeAnswer, to question: Question, _ occasion: UUID) {
        let waiters = entries.withLock { entries -> [AsyncStream<Never>.Continuation] in
            guard var entry = entries[question], entry.occasion == occasion, entry.answer == nil else { return [] }
            defer { entries[question] = entry }
            entry.answer = answer
            entry.isImmediate = entry.askingThread == pthread_self()
            defer { entry.waiters = [] }
            return entry.waiters
        }
        for waiter in waiters { waiter.finish() }
    }

    /// Forgets the answers that only a task has needed which is over.
    func forget(_ task: Int) {
        let waiters = entries.withLock { entries in
            var waiters: [AsyncStream<Never>.Continuation] = []
            for (question, entry) in entries where entry.tasks.contains(task) {
                entries[question]?.tasks.remove(task)
                guard entry.tasks.count == 1 else { continue }
                waiters += entry.waiters
                entries[question] = nil
            }
            return waiters
        }
        for waiter in waiters { waiter.finish() }
    }

    /// Waits for the answer about what a server has shown, or about identities if it has shown nothing. Returns at once if
    /// there is one or nobody was asked, and early when the calling task is cancelled.
    func wait(for trust: ServerTrust?, task: Int) async {
        let (ends, end) = AsyncStream.makeStream(of: Never.self)
        let isWaiting = entries.withLock { entries in
            var isWaiting = false
            for (question, entry) in entries where question.isAbout(trust) {
                entries[question]?.tasks.insert(task)
                guard entry.answer == nil else { continue }
                entries[question]?.waiters.append(end)
                isWaiting = true
            }
            return isWaiting
        }
        guard isWaiting else { return }
        for await _ in ends {}
    }
}

/// Performs an exchange of a task, and again when the answer has come for want of which its handshake was refused.
struct HandshakeRetries: Interceptor {
    let answers: HandshakeAnswers
    /// The number of the task.
    let task: Int

    func intercept(
        _ interception: Interception, respond: (ResponseHead, ResponseBody) async throws -> Void
    ) async throws {
        var request = interception.request
        request.body = RereadableBody.of(request.body)
        while true {
            do {
                return try await interception.proceed(with: request, respond)
            } catch TransportError.tls(.rejected(HandshakeAnswers.pending), let facts) {
                await answers.wait(for: facts.serverTrust, task: task)
                try Task.checkCancellation()
            }
        }
    }
}

extension HandshakeAnswers.Question {
    /// Whether a server is trusted that has shown this.
    init(_ trust: ServerTrust) {
        self = .trust(host: trust.host, trust.presented.map(\.der))
    }

    /// Whether it is about what a server has shown, or about identities if it has shown nothing.
    fileprivate func isAbout(_ trust: ServerTrust?) -> Bool {
        switch self {
        case .trust: trust.map { self == .init($0) } ?? false
        case .identity: trust == nil
        }
    }
}

/// What a handler says to a challenge.
struct ChallengeAnswer: Sendable {
    let disposition: URLSession.AuthChallengeDisposition
    let credential: URLCredential?

    init(_ disposition: URLSession.AuthChallengeDisposition, _ credential: URLCredential?) {
        self.disposition = disposition
        self.credential = credential
    }
}
