// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
import AsyncNetworkingTesting
import FoundationEssentials
import HTTPTypes
import Testing

@Suite struct SimulationTests {
    private actor Counter {
        var value = 0
        var log: [Int] = []

        /// A lost update, if another task runs between the two steps.
        func incrementSlowly() async {
            let old = value
            await Task.yield()
            value = old + 1
        }

        func note(_ number: Int) { log.append(number) }
    }

    private struct Wrong: Error {}

    @Test func `a seed that finds a race finds it again`() async throws {
        let simulation = Simulation { _ in
            let counter = Counter()
            await withTaskGroup { group in
                for _ in 0..<2 { group.addTask { await counter.incrementSlowly() } }
            }
            if await counter.value != 2 { throw Wrong() }
        }
        let failure = await #expect(throws: SimulationFailure.self) { try await simulation.explore() }
        let seed = try #require(failure?.seed)
        await #expect(throws: SimulationFailure.self) { try await simulation.explore(seeds: seed...seed) }
    }

    @Test func `the same seed gives the same trace, and others give others`() async throws {
        let simulation = Simulation { world in
            let counter = Counter()
            await withTaskGroup { group in
                for number in 0..<6 {
                    group.addTask {
                        for _ in 0..<3 {
                            await counter.note(number)
                            await Task.yield()
                        }
                    }
                }
            }
            await Task { await counter.note(7) }.value
            await Task.detached { await counter.note(8) }.value
            try await world.pause()
            world.note("\(await counter.log)")
        }
        var traces: Set<String> = []
        for seed in UInt64(1)...20 {
            let run = try await simulation.run(seed: seed)
            let again = try await simulation.run(seed: seed)
            #expect(run.failure == nil)
            #expect(run.trace == again.trace)
            traces.insert(run.trace)
        }
        #expect(traces.count == 20)
    }

    @Test func `time passes only when all tasks wait`() async throws {
        try await Simulation { world in
            let start = world.clock.now
            let date = world.date
            async let short: Void = world.clock.sleep(for: .seconds(1))
            async let long: Void = world.clock.sleep(for: .seconds(3_600))
            try await Task.sleep(for: .seconds(5))
            _ = try await (short, long)
            guard start.duration(to: world.clock.now) == .seconds(3_600), world.date == date + 3_600 else {
                throw Wrong()
            }
        }.explore(seeds: 1...20)
    }

    @Test(arguments: [Duration.seconds(10_000_000_000), .seconds(Int64.max), .nanoseconds(Int64.max)])
    func `a sleep of centuries does not end`(duration: Duration) async throws {
        try await Simulation { world in
            let sleeper = Task { try await Task.sleep(for: duration) }
            try await Task.sleep(for: .seconds(86_400))
            sleeper.cancel()
            guard case .failure(is CancellationError) = await sleeper.result else { throw Wrong() }
            guard world.clock.now.offset < .seconds(100_000) else { throw Wrong() }
        }.explore(seeds: 1...5)
    }

    @Test func `a failure shows what has happened until then, not how the world is cleaned up`() async throws {
        let simulation = Simulation { world in
            let transport = world.transport { _ in .hang }
            try await transport.withResponse(
                for: Request(url: #require(URL(string: "https://a.test/1"))), delivery: .streamed
            ) {
                _, _ in
            }
        }
        let run = try await simulation.run(seed: 1)
        let failure = try #require(run.failure)
        #expect(failure.diagram.hasPrefix("x1 ●\n") && !failure.diagram.contains("✕"))
        #expect(!run.trace.contains("✕"))
    }

    @Test func `a lost connection has received the chunks before its loss`() async throws {
        let simulation = Simulation { world in
            var network = SimulatedNetwork()
            network.lossRate = 1
            let transport = world.transport(network) { _ in
                MockResponse(
                    headers: [.contentLength: "6"], chunks: [Data("ab".utf8), Data("cd".utf8), Data("ef".utf8)])
            }
            let received = Lock(Int64(0))
            do {
                try await transport.withResponse(
                    for: Request(url: #require(URL(string: "https://a.test/1"))), delivery: .streamed
                ) {
                    _, body in
                    for try await chunk in body { received.withLock { $0 += Int64(chunk.count) } }
                }
                throw Wrong()
            } catch let error as TransportError {
                let count = received.withLock(\.self)
                switch error.reason {
                case .connectionLost(.beforeResponse) where count == 0: break
                case .connectionLost(.inBody(received: count, expected: 6)): break
                default: throw error
                }
            }
        }
        try await simulation.explore(seeds: 1...50)
    }

    @Test func `random durations are from the whole of their range`() async throws {
        try await Simulation { world in
            var durations: Set<Duration> = []
            for _ in 0..<20 {
                let start = world.clock.now
                try await world.pause(.microseconds(100) ... .microseconds(900))
                durations.insert(start.duration(to: world.clock.now))
            }
            guard durations.count > 10,
                durations.allSatisfy({ (.microseconds(100) ... .microseconds(900)).contains($0) })
            else { throw Wrong() }
            let long = Task { try await world.pause(.zero ... .seconds(Int64.max)) }
            try await world.pause()
            long.cancel()
            _ = await long.result
            world.moveDate(by: .seconds(Int64.max))
        }.explore(seeds: 1...5)
    }

    @Test func `a wait that never ends is a hang that names open exchanges`() async throws {
        let simulation = Simulation { world in
            let transport = world.transport { _ in .hang }
            try await transport.withResponse(
                for: Request(url: #require(URL(string: "https://a.test/1"))), delivery: .streamed
            ) {
                _, _ in
            }
        }
        let failure = try #require(
            await #expect(throws: SimulationFailure.self) { try await simulation.explore() })
        guard case .hang(let waiting) = failure.reason else { throw failure }
        #expect(waiting == ["x1 GET https://a.test/1"])
    }

    @Test func `tasks that sleep when the test has ended are reported`() async throws {
        let simulation = Simulation { world in
            Task { try await world.clock.sleep(for: .seconds(1)) }
        }
        let failure = try #require(
            await #expect(throws: SimulationFailure.self) { try await simulation.explore() })
        guard case .leftOver(sleepers: 1, _) = failure.reason else { throw failure }
    }

    @Test func `a cancelled sleep ends at once and does not move the time`() async throws {
        try await Simulation { world in
            let task = Task { try await world.clock.sleep(for: .seconds(60)) }
            try await world.pause()
            task.cancel()
            guard case .failure(is CancellationError) = await task.result else { throw Wrong() }
            guard world.clock.now.offset < .seconds(1) else { throw Wrong() }
        }.explore()
    }

    @Test func `a diagram has a line for each lane and a column for each event`() async throws {
        let simulation = Simulation { world in
            let transport = world.transport { _ in .text("hello") }
            world.note("begin")
            try await transport.withResponse(
                for: Request(url: #require(URL(string: "https://a.test/1"))), delivery: .streamed
            ) {
                _, body in
                _ = try await body.collect(upTo: 100)
            }
            throw Wrong()
        }
        let failure = try #require(
            await #expect(throws: SimulationFailure.self) { try await simulation.explore() })
        #expect(failure.diagram.hasPrefix("test •\nx1    ●○|\n"))
        #expect("\(failure)".contains("seed 1"))
    }
}
