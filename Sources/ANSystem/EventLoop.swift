// SPDX-License-Identifier: MIT

import CLinux
import Glibc
import Synchronization

/// The work that an ``EventLoop`` drives: descriptors, timers and messages of one owner, usually an actor on that loop.
public protocol EventLoopSource: AnyObject, Sendable {
    /// Takes one turn on the loop's thread, which it must not block.
    ///
    /// A turn handles ready descriptors, timers that are due, and messages that were queued before
    /// ``EventLoop/wake()``. It follows the jobs of the loop's actors and tasks whenever the loop wakes, also if
    /// nothing is ready; the first turn is taken after ``EventLoop/start(name:source:)``, the last one after
    /// ``EventLoop/stop()``.
    ///
    /// - Parameter ready: The descriptors that are ready, without the loop's own.
    /// - Returns: The number of milliseconds until the next turn at the latest: 0 if the loop must not sleep, -1 if it
    ///   may sleep until a descriptor is ready or it is woken.
    func turn(_ ready: [ReadyDescriptor]) -> Int32
}

/// A thread that waits on an epoll set and runs the jobs of the actors whose executor it is.
///
/// State on the loop needs no lock: only the loop's thread accesses it.
///
/// The thread also runs the jobs of tasks whose executor is an `EventLoopExecutor` of the loop: between turns, in the
/// order in which they were queued, and at most 16 before each turn.
///
/// The loop references its source weakly. Once it is started, its creator must end it with ``stop()``, because the
/// thread retains it; its descriptors are closed when the last reference to it is released.
public final class EventLoop: SerialExecutor {
    /// The maximum number of tasks' jobs before a turn, so that tasks that are always ready do not keep the loop from
    /// its descriptors.
    package static let maximumTaskJobs = 16

    /// The set of descriptors that the loop waits on; the loop's source adds and removes them.
    public let epoll: Epoll
    private let wakeup: FileDescriptor
    private let inbox = Lock(Inbox())
    private let threadID = Atomic<UInt>(0)

    /// Creates the loop's descriptors, but not its thread; see ``start(name:source:)``. Throws the error of eventfd(2)
    /// or epoll_create1(2), such as `EMFILE`.
    public init() throws(SystemError) {
        let number = eventfd(0, CLINUX_EFD_FLAGS)
        guard number >= 0 else { throw SystemError.last("eventfd") }
        wakeup = FileDescriptor(takingOwnershipOf: number)
        epoll = try Epoll()
        try epoll.add(number, for: [.readable, .edgeTriggered])
    }

    /// Starts the loop's thread, which retains the loop until it ends after ``stop()``. Must be called once only. The
    /// thread blocks all signals but those of its own faults, such as SIGSEGV.
    ///
    /// - Parameters:
    ///   - name: The thread's name in debuggers and `top -H`, cut to 15 bytes.
    ///   - source: The source that takes turns on the thread, referenced weakly.
    /// - Throws: The error of pthread_create(3), such as `EAGAIN`.
    public func start(name: String, source: some EventLoopSource) throws(SystemError) {
        setSource(source)
        try start(name: name)
    }

    /// Starts the loop's thread, as ``start(name:source:)`` does, before there is a source.
    package func start(name: String) throws(SystemError) {
        try SystemThread(name: name) { [self] in run() }.detach()
    }

    /// Sets the source of a loop that has none. It takes turns from the next wake-up on.
    package func setSource(_ source: some EventLoopSource) {
        inbox.withLock { $0.source = source }
    }

    /// Makes the source take a turn soon; one turn may follow several calls.
    ///
    /// Callable from any thread; never blocks. A system call is made only if the loop is asleep. Has no effect after
    /// ``stop()``.
    public func wake() {
        signal { $0.isWoken = true }
    }

    /// Ends the thread, without waiting for it, after the actors' jobs that are already queued, at most 16 of the
    /// tasks' jobs, and a last turn of the source. Jobs that are queued later may never run. Callable from any thread,
    /// and more than once.
    public func stop() {
        signal { $0.isStopping = true }
    }

    // MARK: Executor

    /// Queues an actor's job, which the loop's thread runs in the order of the calls; called by the Swift runtime.
    public func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        signal { $0.jobs.append(job) }
    }

    /// Returns whether the caller is on the loop's thread, never `nil`; called by the Swift runtime before
    /// `assumeIsolated`.
    public func isIsolatingCurrentContext() -> Bool? {
        isOnThread
    }

    /// Traps if the caller is not on the loop's thread, where access to isolated state would be a data race.
    public func checkIsolated() {
        precondition(isOnThread, "The caller is not on the loop's thread.")
    }

    /// Queues a task's job.
    func enqueue(_ job: TaskJob) {
        signal { $0.taskJobs.append(job) }
    }

    private var isOnThread: Bool {
        threadID.load(ordering: .relaxed) == UInt(pthread_self())
    }

    private func signal(_ change: (inout Inbox) -> Void) {
        let mustWake = inbox.withLock { inbox in
            change(&inbox)
            defer { inbox.isAsleep = false }
            return inbox.isAsleep
        }
        if mustWake { _ = eventfd_write(wakeup.number, 1) }
    }

    // MARK: Thread

    private func run() {
        threadID.store(UInt(pthread_self()), ordering: .relaxed)
        var ready: [ReadyDescriptor] = []
        var jobs: [UnownedJob] = []
        var taskJobs = TaskJobQueue()
        var timeout: Int32 = 0
        var isRunning = true
        while isRunning {
            wait(milliseconds: taskJobs.isEmpty ? timeout : 0, into: &ready)
            // The source is retained for this turn only: a sleeping loop must not keep it alive.
            let source = inbox.withLock { inbox in
                inbox.isAsleep = false
                inbox.isWoken = false
                isRunning = !inbox.isStopping
                swap(&inbox.jobs, &jobs)
                taskJobs.refill(from: &inbox.taskJobs)
                return inbox.source
            }
            for job in jobs { unsafe job.runSynchronously(on: asUnownedSerialExecutor()) }
            jobs.removeAll(keepingCapacity: true)
            if taskJobs.run(atMost: Self.maximumTaskJobs) {
                // This turn handles the messages that the jobs have queued; another one would find none.
                inbox.withLock { $0.isWoken = false }
            }
            timeout = source?.turn(ready) ?? -1
            ready.removeAll(keepingCapacity: true)
        }
    }

    /// Sleeps until a descriptor is ready, the timeout has passed, or another thread signals.
    ///
    /// No wake-up is lost: a signal sent after `isAsleep` is set writes to the eventfd, and one sent before is found in
    /// the inbox, so that the loop polls instead of sleeping. The eventfd needs no read(2) because it is
    /// edge-triggered.
    private func wait(milliseconds: Int32, into ready: inout [ReadyDescriptor]) {
        let mustPoll = inbox.withLock { inbox in
            inbox.isAsleep = milliseconds != 0 && !inbox.hasSignal
            return !inbox.isAsleep
        }
        do throws(SystemError) {
            try epoll.wait(milliseconds: mustPoll ? 0 : milliseconds, into: &ready)
        } catch {
            ready.removeAll(keepingCapacity: true)
        }
        if let index = ready.firstIndex(where: { $0.number == wakeup.number }) { ready.remove(at: index) }
    }

    private struct Inbox {
        var jobs: [UnownedJob] = []
        var taskJobs: [TaskJob] = []
        var isWoken = false
        var isStopping = false
        var isAsleep = false
        weak var source: (any EventLoopSource)?

        var hasSignal: Bool { isWoken || isStopping || !jobs.isEmpty || !taskJobs.isEmpty }
    }
}

/// Reports tasks that block an event loop's thread, and with it all transfers.
///
/// Its own loop compares the start of the current job with the limit. That thread is started by the first job, and
/// ends when the last reference to the watchdog is released.
package final class EventLoopWatchdog: EventLoopSource {
    /// The watchdog of debug builds, which writes to standard error; `nil` in others.
    package static var ofDebugBuilds: EventLoopWatchdog? {
        #if DEBUG
            EventLoopWatchdog(report: writeToStandardError)
        #else
            nil
        #endif
    }

    private let limit: Duration
    private let report: @Sendable (String) -> Void
    private let loop: EventLoop?
    private let state = Lock(State())

    private struct State {
        var isStarted = false
        /// The current job and when it started; `nil` between jobs and after a report.
        var current: (job: String, start: MonotonicInstant)?
    }

    /// Creates a watchdog.
    ///
    /// - Parameters:
    ///   - limit: The time that a job may take; 1 s by default.
    ///   - report: Receives a description of each job that takes longer, while it still runs, on another thread.
    package init(limit: Duration = .seconds(1), report: @escaping @Sendable (String) -> Void) {
        self.limit = limit
        self.report = report
        loop = try? EventLoop()
    }

    deinit {
        loop?.stop()
    }

    /// Runs a job under observation.
    func watch(_ job: UnownedJob, _ run: () -> Void) {
        let mustStart = state.withLock { state in
            state.current = (job.description, .now)
            defer { state.isStarted = true }
            return !state.isStarted
        }
        if mustStart { try? loop?.start(name: "ANWatchdog", source: self) }
        run()
        state.withLock { $0.current = nil }
    }

    package func turn(_ ready: [ReadyDescriptor]) -> Int32 {
        let late = state.withLock { state -> String? in
            guard let current = state.current, current.start.duration(to: .now) > limit else { return nil }
            state.current = nil
            return current.job
        }
        if let late {
            report(
                """
                AsyncNetworking: a task (\(late)) has blocked the event loop for more than \(limit). All transfers \
                of that loop wait for it. Code that blocks must not run with the session's event loop executor.
                """)
        }
        return Int32(clamping: Int(limit / .milliseconds(2)) + 1)
    }
}

@Sendable private func writeToStandardError(_ message: String) {
    var line = message + "\n"
    line.withUTF8 { bytes in
        _ = unsafe write(STDERR_FILENO, bytes.baseAddress, bytes.count)
    }
}
