// SPDX-License-Identifier: MIT

/// An executor that runs tasks on an event loop's thread, where a task that awaits the loop's work resumes without a
/// switch of threads.
///
/// It owns the thread: the loop is stopped when the last reference to the executor is released. A queued job retains
/// it, and so does a task for as long as it prefers the executor.
package final class EventLoopExecutor: TaskExecutor {
    private let loop: EventLoop
    private let watchdog: EventLoopWatchdog?

    /// Creates the executor of a loop, whose thread may be started later. A loop has at most one.
    ///
    /// - Parameters:
    ///   - loop: The loop.
    ///   - watchdog: Reports jobs that block the loop's thread; by default, only debug builds have one.
    package init(_ loop: EventLoop, watchdog: EventLoopWatchdog? = .ofDebugBuilds) {
        self.loop = loop
        self.watchdog = watchdog
    }

    deinit {
        loop.stop()
    }

    /// Queues a task's job; called by the Swift runtime.
    package func enqueue(_ job: consuming ExecutorJob) {
        loop.enqueue(TaskJob(job: UnownedJob(job), executor: self))
    }

    /// Runs a job on the loop's thread.
    func run(_ job: UnownedJob) {
        guard let watchdog else { return unsafe job.runSynchronously(on: asUnownedTaskExecutor()) }
        watchdog.watch(job) { unsafe job.runSynchronously(on: asUnownedTaskExecutor()) }
    }
}

/// A job of a task that prefers an ``EventLoopExecutor``.
struct TaskJob {
    let job: UnownedJob
    /// Retained until the job has run: the loop must not stop before.
    let executor: EventLoopExecutor

    func run() {
        executor.run(job)
    }
}

/// The jobs of tasks that an event loop has taken from its inbox, in the order in which they were queued.
struct TaskJobQueue {
    private var jobs: [TaskJob] = []
    private var next = 0

    var isEmpty: Bool { next == jobs.count }

    /// Takes the jobs of the inbox, unless there are still earlier ones.
    mutating func refill(from inbox: inout [TaskJob]) {
        if isEmpty { swap(&jobs, &inbox) }
    }

    /// Runs the next jobs, but not those that they queue. Returns whether there were any.
    mutating func run(atMost limit: Int) -> Bool {
        guard !isEmpty else { return false }
        let end = min(next + limit, jobs.count)
        while next < end {
            jobs[next].run()
            next += 1
        }
        if isEmpty {
            jobs.removeAll(keepingCapacity: true)
            next = 0
        }
        return true
    }
}

/// The task executor that the current task prefers; `nil` if it prefers none. Child tasks inherit it, while an
/// unstructured task must be given it, as by `Task(executorPreference:)`.
package var currentTaskExecutor: (any TaskExecutor)? {
    unsafe withUnsafeCurrentTask { task in unsafe task?.unownedTaskExecutor?.asTaskExecutor() }
}

/// Runs a function that reads or writes files on the global executor: neither on the actor of the caller nor on its
/// preferred task executor, on which a `@concurrent` function alone would run, and which may be an event loop.
package func onGlobalExecutor<Value: Sendable>(
    _ body: @concurrent @Sendable () async throws -> Value
) async rethrows -> Value {
    // A simulation runs everything on its own thread.
    if SystemSimulation.current != nil { return try await body() }
    // The executor is left when `body` is called, which only a `@concurrent` function requires.
    return try await withTaskExecutorPreference(globalConcurrentExecutor) { try await body() }
}
