// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
import AsyncNetworking
import FoundationEssentials
import Testing

/// Decisions during TLS handshakes, and bodies whose beginning is read again after a refused handshake.
@Suite(.timeLimit(.minutes(1))) struct HandshakeDecisionsTests {
    private let decisions = HandshakeDecisions<Int>()
    private let subject = HandshakeSubject.identity(host: "a")
    private let callback = Lock<(@Sendable (Int) -> Void)?>(nil)

    /// Returns the decision, and keeps the function that takes it if it is asked for.
    private func ask(for task: Int, about subject: HandshakeSubject? = nil) -> Int? {
        decisions.decision(on: subject ?? self.subject, task: task, fallback: 0) { answer in
            callback.withLock { $0 = answer }
        }
    }

    @Test func `a decision made before the callback returns applies to one handshake`() {
        for answer in [7, 8] {
            #expect(decisions.decision(on: subject, task: 1, fallback: 0) { $0(answer) } == answer)
        }
    }

    @Test func `only the first decision counts`() {
        let first = decisions.decision(on: subject, task: 1, fallback: 0) { store in
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

    @Test func `a decision of an earlier call is ignored`() {
        #expect(ask(for: 1) == nil)
        let store = callback.set(\.self, to: nil)
        decisions.remove(forTask: 1)
        #expect(ask(for: 2) == nil)
        store?(6)
        #expect(ask(for: 2) == nil)
    }

    @Test func `the fallback is the decision if the function is released uncalled`() {
        #expect(decisions.decision(on: subject, task: 1, fallback: 9) { _ in } == 9)
        #expect(ask(for: 1) == nil)
        callback.set(\.self, to: nil)
        #expect(ask(for: 1) == 0)
    }

    @Test func `decisions on different subjects are independent`() {
        #expect(ask(for: 1) == nil)
        #expect(decisions.decision(on: .identity(host: "b"), task: 1, fallback: 0) { $0(2) } == 2)
        #expect(decisions.decision(on: .trust(host: "a", []), task: 1, fallback: 0) { $0(3) } == 3)
    }

    @Test func `waiting returns at once if there is nothing to wait for, and when the calling task is cancelled`() async
    {
        await decisions.wait(for: nil, task: 1)
        #expect(ask(for: 1) == nil)
        let waiting = Task { await decisions.wait(for: nil, task: 1) }
        waiting.cancel()
        await waiting.value
    }

    @Test func `waiting returns when the tasks that need a pending decision have ended`() async {
        #expect(ask(for: 1) == nil)
        // The decision may be removed before the wait begins.
        async let waiting: Void = decisions.wait(for: nil, task: 1)
        decisions.remove(forTask: 1)
        await waiting
        #expect(ask(for: 2) == nil)
    }

    /// Reads up to `count` chunks of a body.
    private func chunks(_ count: Int, of body: RequestBody) async throws -> [Int] {
        guard case .stream(_, _, let makeReader) = body.content else { return [] }
        let reader = try makeReader()
        var sizes: [Int] = []
        while sizes.count < count, let chunk = try await reader.next() { sizes.append(chunk.count) }
        return sizes
    }

    /// A body of chunks with the given sizes, which counts how often it is opened.
    private func body(_ sizes: [Int], _ opened: Lock<Int>) -> RequestBody {
        .stream(length: nil, isReplayable: false) {
            opened.withLock { $0 += 1 }
            var rest = sizes[...]
            return BodyReader { rest.popFirst().map { Data(count: $0) } }
        }
    }

    @Test(arguments: [0, 1, 2, 4])
    func `the beginning of a streamed body can be read again`(count: Int) async throws {
        let opened = Lock(0)
        let replayable = ReplayableBody.of(body([1, 2, 3], opened))
        #expect(try await chunks(count, of: replayable) == Array([1, 2, 3].prefix(count)))
        #expect(try await chunks(9, of: replayable) == [1, 2, 3])
        #expect(try await chunks(9, of: replayable) == [1, 2, 3])
        #expect(opened.withLock { $0 } == 1)
    }

    @Test(arguments: [(1 << 20, 1), ((1 << 20) + 1, 2)])
    func `a body is opened again after more than 1 MiB was read`(size: Int, count: Int) async throws {
        let opened = Lock(0)
        let replayable = ReplayableBody.of(body([size - 1, 1, 5], opened))
        #expect(try await chunks(2, of: replayable) == [size - 1, 1])
        #expect(try await chunks(9, of: replayable) == [size - 1, 1, 5])
        #expect(opened.withLock { $0 } == count)
    }

    @Test func `bodies that are not streams are unchanged`() {
        guard case .bytes(let data) = ReplayableBody.of(.string("a")).content else {
            Issue.record("The body became a stream.")
            return
        }
        #expect(data == Data("a".utf8))
    }
}
