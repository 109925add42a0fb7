// SPDX-License-Identifier: MIT

import ANSystem
import AsyncNetworking
import Foundation

/// The answers of a manager's challenge blocks to questions asked during TLS handshakes.
///
/// A handshake cannot wait for an answer: OpenSSL's callbacks must return a decision. If an answer is pending, the
/// handshake is refused before any byte of the request has been sent; the request waits for the answer and then opens
/// another connection. An answer is kept until the tasks that need it have ended.
final class HandshakeAnswers: Sendable {
    /// A question asked during a handshake.
    enum Question: Hashable {
        /// Whether to trust a server with these certificates, in DER.
        case trust(host: String, [Data])
        /// Which client certificate to send to a server.
        case identity(host: String)
    }

    /// The reason for refusing a handshake whose answer is pending.
    static let pending = "the manager's handler has not answered yet"

    private let entries = Lock<[Question: Entry]>([:])

    private struct Entry: Sendable {
        /// Identifies one asking of the question. Answers to an earlier asking are ignored.
        let occasion: UUID
        /// The thread that is calling the block; `nil` when the block has returned.
        var askingThread: pthread_t?
        /// The answer; `nil` while it is pending.
        var answer: ChallengeAnswer?
        /// Whether the block answered on the calling thread, before it returned.
        var isImmediate = false
        /// The tasks that need the answer: the one passed to the block, and those that wait.
        var tasks: Set<Int>
        /// Streams to finish when the answer arrives.
        var waiters: [AsyncStream<Never>.Continuation] = []
    }

    /// Returns the answer to a question; `nil` if it is pending.
    ///
    /// - Parameters:
    ///   - question: The question. `ask` is not called while an answer to it is kept or pending.
    ///   - task: The identifier of the task that is passed to the block.
    ///   - fallback: The answer if `ask` releases the function that takes the answer without calling it.
    ///   - ask: Asks the question. It may call its argument at once or later.
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
        // An answer given before `ask` returned applies to this handshake only.
        return entries.withLock { entries in
            guard var entry = entries[question], entry.occasion == occasion else { return nil }
            entry.askingThread = nil
            entries[question] = entry.isImmediate ? nil : entry
            return entry.answer
        }
    }

    /// Returns a function that takes the answer to a question. When the function is released uncalled, the fallback is
    /// the answer.
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

    /// Stores the first answer to a question and resumes the tasks that wait for it.
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

    /// Removes the answers that only this task needed, when it has ended.
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

    /// Waits for the answer about the given certificates, or about client certificates if `trust` is `nil`. Returns at
    /// once if the answer is known or the question was not asked, and early if the calling task is cancelled.
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

/// An interceptor that repeats an exchange whose handshake was refused because an answer was pending.
struct HandshakeRetries: Interceptor {
    let answers: HandshakeAnswers
    /// The identifier of the task.
    let task: Int

    func intercept(
        _ interception: Interception, respond: (ResponseHead, ResponseBody) async throws -> Void
    ) async throws {
        var request = interception.request
        request.body = RereadableBody.of(request.body)
        while true {
            do {
                return try await interception.proceed(with: request, respond)
            } catch TransportError.tls(.rejected(HandshakeAnswers.pending), let context) {
                await answers.wait(for: context.serverTrust, task: task)
                try Task.checkCancellation()
            }
        }
    }
}

extension HandshakeAnswers.Question {
    /// The question whether to trust a server that presented these certificates.
    init(_ trust: ServerTrust) {
        self = .trust(host: trust.host, trust.presented.map(\.der))
    }

    /// Whether the question is about these certificates, or about client certificates if `trust` is `nil`.
    fileprivate func isAbout(_ trust: ServerTrust?) -> Bool {
        switch self {
        case .trust: trust.map { self == .init($0) } ?? false
        case .identity: trust == nil
        }
    }
}

/// The answer of a challenge block: a disposition and an optional credential.
struct ChallengeAnswer: Sendable {
    let disposition: URLSession.AuthChallengeDisposition
    let credential: URLCredential?

    init(_ disposition: URLSession.AuthChallengeDisposition, _ credential: URLCredential?) {
        self.disposition = disposition
        self.credential = credential
    }
}
