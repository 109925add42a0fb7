// SPDX-License-Identifier: MIT

import AFNetworking
import ANHTTP
import ANSystem
import AsyncNetworking
import FoundationEssentials
import Testing

/// Decisions during TLS handshakes.
@Suite(.timeLimit(.minutes(5))) struct HandshakeDecisionsTests {
    private let decisions = HandshakeDecisions<Int>()
    private let subject = HandshakeSubject.identity(host: "a")

    @Test(.timeLimit(.minutes(1))) func `a client certificate for one host does not wait for that of another`() async {
        for host in ["a", "b"] {
            _ = decisions.decision(on: .identity(host: host), task: 1, isOver: { false }, fallback: 0) { call in
                calls.withLock { $0.append(call) }
            }
        }
        calls.withLock { $0[0](1) }
        await decisions.wait(for: nil, host: "A", task: 1)
        #expect(decisions.decision(on: .identity(host: "b"), task: 1, isOver: { false }, fallback: 0) { _ in } == nil)
    }

    private let calls = Lock<[@Sendable (Int) -> Void]>([])
    private let callback = Lock<(@Sendable (Int) -> Void)?>(nil)

    /// Returns the decision, and keeps the function that takes it if it is asked for.
    private func ask(for task: Int, about subject: HandshakeSubject? = nil) -> Int? {
        decisions.decision(on: subject ?? self.subject, task: task, isOver: { false }, fallback: 0) { answer in
            callback.withLock { $0 = answer }
        }
    }

    @Test func `a decision made before the callback returns applies to one handshake`() {
        for answer in [7, 8] {
            #expect(decisions.decision(on: subject, task: 1, isOver: { false }, fallback: 0) { $0(answer) } == answer)
        }
    }

    @Test func `only the first decision counts`() {
        let first = decisions.decision(on: subject, task: 1, isOver: { false }, fallback: 0) { store in
            store(1)
            store(2)
        }
        #expect(first == 1)
        #expect(ask(for: 1) == nil)
        callback.withLock { $0 }?(3)
        callback.withLock { $0 }?(4)
        #expect(ask(for: 1) == 3)
    }

    @Test func `a late decision is kept until the tasks that need it have ended`() async {
        #expect(ask(for: 1) == nil)
        let store = callback.set(\.self, to: nil)
        #expect(ask(for: 2) == nil)
        #expect(callback.withLock { $0 == nil }, "The callback was called again.")
        async let waiting: Void = decisions.wait(for: nil, task: 2)
        store?(5)
        await waiting
        await decisions.wait(for: nil, task: 2)
        #expect(ask(for: 3) == 5)
        decisions.remove(forTask: 3)
        decisions.remove(forTask: 1)
        #expect(ask(for: 2) == 5)
        decisions.remove(forTask: 2)
        #expect(ask(for: 4) == nil)
    }

    @Test func `a decision for a task that ended during the call is not kept`() {
        for isOver in [true, false] {
            let answer = decisions.decision(on: subject, task: 1, isOver: { isOver }, fallback: 0) { answer in
                callback.withLock { $0 = answer }
            }
            #expect(answer == nil)
            callback.set(\.self, to: nil)?(5)
            #expect(ask(for: 2) == (isOver ? nil : 5))
            decisions.remove(forTask: 2)
        }
    }

    @Test func `a decision of an earlier call is ignored`() {
        #expect(ask(for: 1) == nil)
        let store = callback.set(\.self, to: nil)
        decisions.remove(forTask: 1)
        #expect(ask(for: 2) == nil)
        store?(6)
        #expect(ask(for: 2) == nil)
    }

    @Test func `the fallback is the decision if the function is released uncalled`() {
        #expect(decisions.decision(on: subject, task: 1, isOver: { false }, fallback: 9) { _ in } == 9)
        #expect(ask(for: 1) == nil)
        callback.set(\.self, to: nil)
        #expect(ask(for: 1) == 0)
    }

    /// A decision that uses its store in `deinit`.
    private final class Owner: Sendable {
        let decisions: HandshakeDecisions<Owner?>

        init(_ decisions: HandshakeDecisions<Owner?>) {
            self.decisions = decisions
        }

        deinit { decisions.remove(forTask: 0) }
    }

    @Test func `a decision may be freed when its task has ended`() {
        let decisions = HandshakeDecisions<Owner?>()
        let kept = Lock<(@Sendable (Owner?) -> Void)?>(nil)
        _ = decisions.decision(on: subject, task: 1, isOver: { false }, fallback: nil) { answer in
            kept.withLock { $0 = answer }
        }
        kept.withLock { $0 }?(Owner(decisions))
        decisions.remove(forTask: 1)
        _ = decisions.decision(on: subject, task: 1, isOver: { false }, fallback: nil) { answer in
            answer(Owner(decisions))
        }
        let last: Owner?? = decisions.decision(on: subject, task: 1, isOver: { false }, fallback: nil) { _ in }
        #expect(last != nil)
    }

    @Test func `decisions on different subjects are independent`() {
        #expect(ask(for: 1) == nil)
        #expect(decisions.decision(on: .identity(host: "b"), task: 1, isOver: { false }, fallback: 0) { $0(2) } == 2)
        #expect(decisions.decision(on: .trust(host: "a", []), task: 1, isOver: { false }, fallback: 0) { $0(3) } == 3)
    }

    @Test func `waiting returns at once if there is nothing to wait for, and when the calling task is cancelled`() async
    {
        await decisions.wait(for: nil, task: 1)
        #expect(ask(for: 1) == nil)
        let waiting = Task.immediate { await decisions.wait(for: nil, task: 1) }
        waiting.cancel()
        await waiting.value
    }

    @Test func `a task that has ended does not keep the decision for which its request waits`() async {
        #expect(ask(for: 1) == nil)
        let waiting = Task.immediate { await decisions.wait(for: nil, task: 2, isOver: { true }) }
        decisions.remove(forTask: 1)
        await waiting.value
        // The block is called again.
        #expect(ask(for: 3) == nil)
    }

    @Test func `waiting returns when the tasks that need a pending decision have ended`() async {
        #expect(ask(for: 1) == nil)
        // The decision may be removed before the wait begins.
        async let waiting: Void = decisions.wait(for: nil, task: 1)
        decisions.remove(forTask: 1)
        await waiting
        #expect(ask(for: 2) == nil)
    }
}
