// SPDX-License-Identifier: MIT

import ANSystem
import Dispatch
import Glibc
import Synchronization
import TestSupport
import Testing

@Suite struct EventLoopExecutorTests {
    @Test func `a task and its children run on the loop's thread, also after a suspension`() async throws {
        let (_, executor, _) = try makeLoop("runs")
        let threads = await withTaskExecutorPreference(executor) {
            await withTaskGroup(of: [UInt].self, returning: Set<UInt>.self) { group in
                for _ in 0..<20 {
                    group.addTask {
                        let before = thread()
                        try? await Task.sleep(for: .microseconds(1))
                        return [before, thread()]
                    }
                }
                return await group.reduce(into: [thread()]) { $0.formUnion($1) }
            }
        }
        #expect(threads.count == 1)
        #expect(!threads.contains(thread()))
    }

    @Test func `a task that is always ready does not keep the loop from its turns`() async throws {
        let (_, executor, source) = try makeLoop("turns")
        let task = Task(executorPreference: executor) {
            while !Task.isCancelled { await Task.yield() }
        }
        let turns = source.turns
        try await eventually { source.turns > turns + 100 }
        task.cancel()
        await task.value
    }

    @Test func `jobs run in the order in which they were queued, and one that yields goes to the end`() async throws {
        let (_, executor, _) = try makeLoop("order")
        let steps = Lock<[String]>([])
        await withTaskExecutorPreference(executor) {
            await withTaskGroup { group in
                for name in ["a", "b", "c"] {
                    group.addTask {
                        for number in 1...3 {
                            steps.withLock { $0.append("\(name)\(number)") }
                            await Task.yield()
                        }
                    }
                }
            }
        }
        #expect(steps.withLock { $0 } == ["a1", "b1", "c1", "a2", "b2", "c2", "a3", "b3", "c3"])
    }

    @Test func `a turn follows at most 16 jobs`() async throws {
        let (_, executor, source) = try makeLoop("batch")
        // The turn before each job, of jobs that are all queued while another one runs.
        let turns = await withTaskExecutorPreference(executor) {
            await withTaskGroup(of: Int.self, returning: [Int].self) { group in
                for _ in 0..<100 { group.addTask { source.turns } }
                return await group.reduce(into: []) { $0.append($1) }
            }
        }
        let sizes = Dictionary(grouping: turns, by: \.self).values.map(\.count)
        #expect(sizes.allSatisfy { $0 <= EventLoop.maximumTaskJobs })
        #expect(turns.count == 100)
    }

    @Test func `the thread ends when the last task that prefers it has ended`() async throws {
        let gate = AsyncStream<Void>.makeStream()
        let task: Task<[UInt], Never>
        do {
            let (_, executor, _) = try makeLoop("outlives")
            task = Task(executorPreference: executor) {
                let before = thread()
                for await _ in gate.stream {}
                return [before, thread()]
            }
        }
        try await eventually { Process.threadStates(named: "outlives") == ["S"] }
        gate.continuation.finish()
        #expect(Set(await task.value).count == 1)
        try await eventually { Process.threadStates(named: "outlives").isEmpty }
    }

    @Test func `an executor without tasks ends its thread when it is released`() async throws {
        do {
            let (_, executor, _) = try makeLoop("unused")
            try await eventually { Process.threadStates(named: "unused") == ["S"] }
            withExtendedLifetime(executor) {}
        }
        try await eventually { Process.threadStates(named: "unused").isEmpty }
    }

    @Test func `the watchdog reports a job that blocks the thread, once and while it blocks`() async throws {
        let reports = Lock<[String]>([])
        let isReported = DispatchSemaphore(value: 0)
        let watchdog = EventLoopWatchdog(limit: .milliseconds(20)) { report in
            reports.withLock { $0.append(report) }
            isReported.signal()
        }
        let (_, executor, _) = try makeLoop("blocks", watchdog: watchdog)
        await withTaskExecutorPreference(executor) {
            for _ in 0..<100 { await Task.yield() }
            #expect(reports.withLock { $0 }.isEmpty)
            block(on: isReported)
        }
        #expect(reports.withLock(\.count) == 1)
        #expect(reports.withLock(\.first)?.contains("has blocked the event loop for more than 0.02 seconds") == true)
    }

    /// Starts a loop whose thread ends with the executor.
    private func makeLoop(
        _ name: String, watchdog: EventLoopWatchdog? = nil
    ) throws -> (EventLoop, EventLoopExecutor, TurnCounter) {
        let loop = try EventLoop()
        let executor = EventLoopExecutor(loop, watchdog: watchdog)
        let source = TurnCounter()
        try loop.start(name: name, source: source)
        return (loop, executor, source)
    }
}

/// A source without descriptors that counts its turns.
private final class TurnCounter: EventLoopSource {
    private let count = Atomic(0)

    var turns: Int { count.load(ordering: .relaxed) }

    func turn(_ ready: [ReadyDescriptor]) -> Int32 {
        count.add(1, ordering: .relaxed)
        return -1
    }
}

private func thread() -> UInt {
    UInt(pthread_self())
}

/// Blocks the calling thread, which `DispatchSemaphore.wait()` may not do directly in an async function.
private func block(on semaphore: DispatchSemaphore) {
    semaphore.wait()
}
