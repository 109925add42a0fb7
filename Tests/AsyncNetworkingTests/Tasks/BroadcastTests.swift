// SPDX-License-Identifier: MIT

import AsyncNetworking
import AsyncNetworkingTesting
import Testing

@Suite(.timeLimit(.minutes(5))) struct BroadcastStreamTests {
    private let broadcast = Broadcast<Int>()
    private var stream: BroadcastStream<Int> { broadcast.stream }

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
