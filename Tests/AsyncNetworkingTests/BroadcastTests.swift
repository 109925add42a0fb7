// SPDX-License-Identifier: MIT

import AsyncNetworking
import AsyncNetworkingTesting
import Testing

/// The state without tasks: strings take the place of continuations.
@Suite struct BroadcastStateTests {
    private var state = BroadcastState<Int, String>(BroadcastValues())

    private func describe(_ next: BroadcastState<Int, String>.NextValue) -> String {
        switch next {
        case .value(let value, let number): "value \(value) number \(number)"
        case .wait: "wait"
        case .end: "end"
        }
    }

    @Test func `before the first value, the latest value is nil`() {
        #expect(describe(state.next(after: 0)) == "wait")
        #expect(state.latest == nil)
    }

    @Test mutating func `a reader receives the newest unseen value once`() {
        #expect(state.send(10).isEmpty)
        #expect(state.send(20).isEmpty)
        #expect(describe(state.next(after: 0)) == "value 20 number 2")
        #expect(describe(state.next(after: 1)) == "value 20 number 2")
        #expect(describe(state.next(after: 2)) == "wait")
        #expect(state.latest == 20)
    }

    @Test mutating func `the end follows the last value`() {
        _ = state.send(10)
        #expect(state.finish().isEmpty)
        #expect(describe(state.next(after: 0)) == "value 10 number 1")
        #expect(describe(state.next(after: 1)) == "end")
    }

    @Test mutating func `no value follows the end`() {
        _ = state.finish()
        #expect(state.send(10).isEmpty)
        #expect(describe(state.next(after: 0)) == "end")
        #expect(state.latest == nil)
    }

    @Test mutating func `a value resumes each waiter once`() {
        let tickets = [state.makeTicket(), state.makeTicket()]
        #expect(Set(tickets).count == 2)
        #expect(state.wait("a", ticket: tickets[0], after: 0) == nil)
        #expect(state.wait("b", ticket: tickets[1], after: 0) == nil)
        #expect(state.send(1).sorted() == ["a", "b"])
        #expect(state.send(2).isEmpty)
    }

    @Test mutating func `the end resumes waiters`() {
        #expect(state.wait("a", ticket: state.makeTicket(), after: 0) == nil)
        #expect(state.finish() == ["a"])
        #expect(state.finish().isEmpty)
    }

    @Test mutating func `a waiter that arrives after a new value is returned`() {
        _ = state.send(1)
        #expect(state.wait("a", ticket: state.makeTicket(), after: 0) == "a")
        #expect(state.wait("b", ticket: state.makeTicket(), after: 1) == nil)
        _ = state.finish()
        #expect(state.wait("c", ticket: state.makeTicket(), after: 1) == "c")
    }

    @Test mutating func `a removed waiter is not resumed`() {
        let tickets = [state.makeTicket(), state.makeTicket()]
        _ = state.wait("a", ticket: tickets[0], after: 0)
        _ = state.wait("b", ticket: tickets[1], after: 0)
        #expect(state.removeWaiter(tickets[0]) == "a")
        #expect(state.removeWaiter(tickets[0]) == nil)
        #expect(state.send(1) == ["b"])
    }
}

@Suite(.timeLimit(.minutes(1))) struct DeferredBroadcastTests {
    /// Returns what a reader receives if the broadcast is created after `steps` of four steps: three values and the
    /// end.
    private func heard(askingAfter steps: Int, _ history: BroadcastHistory) async -> [Int] {
        var deferred = DeferredBroadcast<Int>(keeping: history)
        var reader: BroadcastStream<Int>?
        for step in 0...4 {
            if step == steps { reader = BroadcastStream(broadcast: deferred.broadcast) }
            if step < 3 { deferred.send(step) } else { deferred.finish() }
        }
        return await reader?.reduce(into: []) { $0.append($1) } ?? []
    }

    @Test(arguments: 0...4) func `with full history, a reader receives all values, whenever the broadcast is created`(
        _ steps: Int
    ) async {
        #expect(await heard(askingAfter: steps, .all) == [0, 1, 2])
    }

    @Test(arguments: 0...4)
    func `with the newest value only, a reader receives the latest, whenever the broadcast is created`(_ steps: Int)
        async
    {
        #expect(await heard(askingAfter: steps, .newest) == [2])
    }

    @Test func `its latest value is available before and after the broadcast is created`() {
        var deferred = DeferredBroadcast<Int>()
        deferred.send(1)
        deferred.send(nil)
        #expect(deferred.latest == 1)
        #expect(deferred.broadcast.latest == 1)
        deferred.send(2)
        #expect(deferred.latest == 2)
        #expect(deferred.broadcast === deferred.broadcast)
    }

    @Test func `no value is sent after the end`() async {
        var deferred = DeferredBroadcast<Int>(keeping: .all)
        deferred.finish()
        deferred.send(1)
        let stream = BroadcastStream(broadcast: deferred.broadcast)
        #expect(await stream.reduce(into: []) { $0.append($1) } == [])
    }
}

@Suite(.timeLimit(.minutes(1))) struct BroadcastStreamTests {
    private let broadcast = Broadcast<Int>()
    private var stream: BroadcastStream<Int> { BroadcastStream(broadcast: broadcast) }

    @Test func `a late reader first receives the latest value, then the end`() async {
        broadcast.send(1)
        broadcast.send(2)
        broadcast.finish()
        #expect(await stream.reduce(into: []) { $0.append($1) } == [2])
        #expect(await stream.reduce(into: []) { $0.append($1) } == [2])
    }

    @Test func `a reader that is fast enough receives every value`() async {
        var reader = stream.makeAsyncIterator()
        for value in 1...5 {
            broadcast.send(value)
            #expect(await reader.next() == value)
        }
        broadcast.finish()
        #expect(await reader.next() == nil)
        #expect(await reader.next() == nil)
    }

    @Test func `a slow reader skips values`() async {
        var reader = stream.makeAsyncIterator()
        broadcast.send(1)
        #expect(await reader.next() == 1)
        broadcast.send(2)
        broadcast.send(3)
        #expect(await reader.next() == 3)
    }

    @Test func `a stream without a value ends`() async {
        broadcast.finish()
        #expect(await stream.first { _ in true } == nil)
    }

    @Test func `many readers receive newer and newer values, and all of them the last`() async {
        await withTaskGroup(of: [Int].self) { [stream] group in
            for _ in 0..<50 {
                group.addTask { await stream.reduce(into: []) { $0.append($1) } }
            }
            for value in 1...2000 {
                broadcast.send(value)
                if value % 100 == 0 { await Task.yield() }
            }
            broadcast.finish()
            for await values in group {
                #expect(values.last == 2000)
                #expect(zip(values, values.dropFirst()).allSatisfy { $0 < $1 })
            }
        }
    }

    @Test func `a cancelled reader stops, and the others do not`() async throws {
        let cancelled = Task { [stream] in await stream.reduce(into: []) { $0.append($1) } }
        let other = Task { [stream] in await stream.reduce(into: []) { $0.append($1) } }
        broadcast.send(1)
        cancelled.cancel()
        _ = await cancelled.value
        broadcast.send(2)
        broadcast.finish()
        #expect(await other.value.last == 2)
    }

    @Test func `readers cancelled at any moment all return`() async {
        for round in 0..<500 {
            let reader = Task { [stream] in await stream.reduce(into: 0) { $0 = $1 } }
            for _ in 0..<(round % 7) { await Task.yield() }
            if round % 3 == 0 { broadcast.send(round) }
            reader.cancel()
            _ = await reader.value
        }
    }
}
