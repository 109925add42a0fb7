// SPDX-License-Identifier: MIT

import ANSystem
import Glibc
import Synchronization
import TestSupport
import Testing

/// How often a signal had the effect that a test gave it.
private let earlierEffects = Atomic(0)

/// The action that a test has replaced.
nonisolated(unsafe) private var replaced = sigaction()

/// The action that a test has replaced after that.
nonisolated(unsafe) private var other = sigaction()

@Suite(.timeLimit(.minutes(5))) struct SignalWatchTests {
    @Test(.exitTest) func `each waiting task receives a signal once, and others wait on`() async {
        await #expect(processExitsWith: .success) {
            let watch = SignalWatch.shared
            async let first = watch.first(of: [SIGUSR1, SIGTERM])
            async let second = watch.first(of: [SIGUSR1])
            async let other = watch.first(of: [SIGUSR2])
            try await eventually { watch.waitingTasks == 3 }
            kill(getpid(), SIGUSR1)
            #expect(try await [first, second] == [SIGUSR1, SIGUSR1])
            #expect(watch.waitingTasks == 1)
            kill(getpid(), SIGUSR2)
            #expect(try await other == SIGUSR2)
        }
    }

    @Test(.exitTest) func `a second signal has its earlier effect`() async {
        await #expect(processExitsWith: .signal(SIGTERM)) {
            let watch = SignalWatch.shared
            async let signal = watch.first(of: [SIGINT, SIGTERM])
            try await eventually { watch.waitingTasks == 1 }
            kill(getpid(), SIGTERM)
            #expect(try await signal == SIGTERM)
            kill(getpid(), SIGTERM)
            try await Task.sleep(for: .seconds(60))
        }
    }

    /// Both arrive before the first one has resumed the waiter, in an order that the system chooses.
    @Test(.exitTest) func `a signal that nobody waits for any more has its earlier effect`() async {
        await #expect(processExitsWith: .failure) {
            let watch = SignalWatch.shared
            async let signal = watch.first(of: [SIGUSR1, SIGUSR2])
            try await eventually { watch.waitingTasks == 1 }
            kill(getpid(), SIGUSR1)
            kill(getpid(), SIGUSR2)
            _ = try? await signal
            try await Task.sleep(for: .seconds(5))
        }
    }

    /// The task is cancelled before or after the signal is received, as the system chooses.
    @Test(.exitTest, arguments: [false, true])
    func `a signal has its earlier effect if the task that waited for it was cancelled`(isReplacedBefore: Bool) async {
        await #expect(processExitsWith: .success) { [isReplacedBefore] in
            let watch = SignalWatch.shared
            if isReplacedBefore { try await cancelWait { signal(SIGUSR1, SIG_IGN) } }
            signal(SIGUSR1) { _ in earlierEffects.add(1, ordering: .relaxed) }
            for round in 0..<rounds(20_000, few: 2_000) {
                let before = earlierEffects.load(ordering: .relaxed)
                let task = Task { try await watch.first(of: [SIGUSR1]) }
                while watch.waitingTasks == 0 { await Task.yield() }
                kill(getpid(), SIGUSR1)
                for _ in 0..<round % 500 { _ = getpid() }
                task.cancel()
                guard (try? await task.value) == nil else { continue }
                try await eventually { earlierEffects.load(ordering: .relaxed) == before + 1 }
            }
        }
    }

    @Test(.exitTest) func `a cancelled wait leaves the signal as it was`() async {
        await #expect(processExitsWith: .success) {
            let watch = SignalWatch.shared
            signal(SIGUSR1, SIG_IGN)
            let task = Task { try await watch.first(of: [SIGUSR1]) }
            try await eventually { watch.waitingTasks == 1 }
            task.cancel()
            await #expect(throws: CancellationError.self) { try await task.value }
            kill(getpid(), SIGUSR1)
            #expect(watch.waitingTasks == 0)
        }
    }

    @Test(.exitTest) func `a handler that the program has installed meanwhile stays`() async {
        await #expect(processExitsWith: .success) {
            let watch = SignalWatch.shared
            let task = Task { try await watch.first(of: [SIGUSR1]) }
            try await eventually { watch.waitingTasks == 1 }
            signal(SIGUSR1) { _ in earlierEffects.add(1, ordering: .relaxed) }
            task.cancel()
            await #expect(throws: CancellationError.self) { try await task.value }
            kill(getpid(), SIGUSR1)
            try await eventually { earlierEffects.load(ordering: .relaxed) == 1 }
        }
    }

    @Test(.exitTest) func `a handler that the program has installed meanwhile may call the one before`() async {
        await #expect(processExitsWith: .success) {
            try await cancelWait {
                var action = sigaction()
                unsafe action.__sigaction_handler.sa_handler = { number in
                    earlierEffects.add(1, ordering: .relaxed)
                    unsafe replaced.__sigaction_handler.sa_handler?(number)
                }
                unsafe sigaction(SIGUSR1, &action, &replaced)
            }
            try await requireEffects(1)
            try await cancelWait {}
            try await requireEffects(2)
            // One that calls it is not known.
            var action = sigaction()
            unsafe action.__sigaction_handler.sa_handler = { unsafe other.__sigaction_handler.sa_handler?($0) }
            unsafe sigaction(SIGUSR1, &action, &other)
            try await requireEffects(3)
        }
    }

    @Test(.exitTest) func `a handler that the program puts back later has the earlier effect`() async {
        await #expect(processExitsWith: .signal(SIGUSR1)) {
            for _ in 0..<2 {
                signal(SIGUSR1) { _ in earlierEffects.add(1, ordering: .relaxed) }
                try await cancelWait {
                    var other = sigaction()
                    unsafe sigaction(SIGUSR1, &other, &replaced)
                }
                unsafe sigaction(SIGUSR1, &replaced, nil)
                try await requireEffects(1)
                unsafe sigaction(SIGUSR1, &replaced, nil)
                try await cancelWait {}
                try await requireEffects(2)
                earlierEffects.store(0, ordering: .relaxed)
            }
            signal(SIGUSR1, SIG_DFL)
            try await cancelWait { signal(SIGUSR1, SIG_IGN) }
            unsafe sigaction(SIGUSR1, &replaced, nil)
            kill(getpid(), SIGUSR1)
            try await Task.sleep(for: .seconds(60))
        }
    }

    @Test(.exitTest) func `a handler that the program has uninstalled after another wait does not come back`() async {
        await #expect(processExitsWith: .success) {
            signal(SIGUSR1) { _ in earlierEffects.add(1, ordering: .relaxed) }
            try await cancelWait {
                var other = sigaction()
                unsafe other.__sigaction_handler.sa_handler = { _ in exit(1) }
                unsafe sigaction(SIGUSR1, &other, &replaced)
            }
            try await cancelWait {}
            unsafe sigaction(SIGUSR1, &replaced, nil)
            try await requireEffects(1)
            try await cancelWait {}
            try await requireEffects(2)
        }
    }

    @Test(.exitTest) func `a signal that cannot be caught is an error, and no other is caught`() async {
        await #expect(processExitsWith: .signal(SIGUSR1)) {
            for number in [SIGKILL, 0, -1, 1000] {
                await #expect(throws: SystemError.self) {
                    try await SignalWatch.shared.first(of: [SIGUSR1, SIGUSR2, number])
                }
            }
            kill(getpid(), SIGUSR1)
            try await Task.sleep(for: .seconds(60))
        }
    }
}

/// Waits for SIGUSR1, calls a function, and cancels the wait.
private func cancelWait(_ body: () -> Void) async throws {
    let watch = SignalWatch.shared
    let task = Task { try await watch.first(of: [SIGUSR1]) }
    try await eventually { watch.waitingTasks == 1 }
    body()
    task.cancel()
    await #expect(throws: CancellationError.self) { try await task.value }
}

/// Sends SIGUSR1, after which the signals of the process must have had this number of effects.
private func requireEffects(_ count: Int) async throws {
    kill(getpid(), SIGUSR1)
    try await eventually { earlierEffects.load(ordering: .relaxed) >= count }
    // What is received after it tells that it has no further effect.
    let watch = SignalWatch.shared
    let next = Task { try await watch.first(of: [SIGUSR2]) }
    try await eventually { watch.waitingTasks == 1 }
    kill(getpid(), SIGUSR2)
    _ = try await next.value
    try #require(earlierEffects.load(ordering: .relaxed) == count)
}
