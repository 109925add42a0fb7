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
