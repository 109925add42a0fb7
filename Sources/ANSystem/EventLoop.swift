// SPDX-License-Identifier: MIT

import CLinux
import Glibc
import Synchronization

/// What an ``EventLoop`` drives: descriptors, timers and messages that belong to one owner, usually an actor on that loop.
public protocol EventLoopSource: AnyObject, Sendable {
    /// Takes one turn on the loop's thread: handles descriptors that are ready, timers that are due, and messages that
    /// others left before they called ``EventLoop/wake()``.
    ///
    /// - Returns: How long the loop may sleep then: milliseconds until the next timer, 0 for not at all, -1 for ever.
    func turn(_ ready: [ReadyDescriptor]) -> Int32
}

/// One thread that waits on an epoll set and runs the jobs of the actors that have it as their executor.
///
/// The executor is the lock: what lives on the loop is touched by its thread only.
///
/// The loop holds its source weakly. Whoever starts a loop ends it with ``stop()``; the thread and its descriptors are
/// freed after the jobs that were queued before.
public final class EventLoop: SerialExecutor {
    /// The descriptors that the loop waits on; its source adds and removes them.
    public let epoll: Epoll
    private let wakeup: FileDescriptor
    private let inbox = Lock(Inbox())
    private let threadID = Atomic<UInt>(0)

    /// Makes the loop's descriptors; ``start(name:source:)`` makes its thread.
    public init() throws(SystemError) {
        let number = eventfd(0, CLINUX_EFD_FLAGS)
        guard number >= 0 else { throw SystemError.last("eventfd") }
        wakeup = FileDescriptor(takingOwnershipOf: number)
        epoll = try Epoll()
        try epoll.add(number, for: [.readable, .edgeTriggered])
    }

    /// Starts the thread; `name` (at most 15 bytes) is what debuggers and `top -H` show.
    public func start(name: String, source: some EventLoopSource) throws(SystemError) {
        inbox.withLock { $0.source = source }
        try SystemThread(name: name) { [self] in run() }.detach()
    }

    /// Makes the source take a turn soon; from any thread, never blocking. A loop that is not asleep needs no system call.
    public func wake() {
        signal { $0.isWoken = true }
    }

    /// Ends the thread after the jobs that are queued already.
    public func stop() {
        signal { $0.isStopping = true }
    }

    // MARK: Executor

    /// Queues an actor's job for the loop's thread; the Swift runtime calls this.
    public func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        signal { $0.jobs.append(job) }
    }

    /// Whether the caller is on the loop's thread; the Swift runtime asks before `assumeIsolated`.
    public func isIsolatingCurrentContext() -> Bool? {
        isOnThread
    }

    /// Ends the program when the caller is not on the loop's thread: its data would race.
    public func checkIsolated() {
        precondition(isOnThread, "The caller is not on the loop's thread.")
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
        var timeout: Int32 = 0
        var isRunning = true
        while isRunning {
            wait(milliseconds: timeout, into: &ready)
            // The source is held for this turn only: a loop that sleeps must not keep it alive.
            let source = inbox.withLock { inbox in
                inbox.isAsleep = false
                inbox.isWoken = false
                isRunning = !inbox.isStopping
                swap(&inbox.jobs, &jobs)
                return inbox.source
            }
            for job in jobs { unsafe job.runSynchronously(on: asUnownedSerialExecutor()) }
            jobs.removeAll(keepingCapacity: true)
            timeout = source?.turn(ready) ?? -1
            ready.removeAll(keepingCapacity: true)
        }
    }

    /// Sleeps until a descriptor is ready, the time has passed, or somebody signals.
    ///
    /// Whoever signals after `isAsleep` is set writes to the eventfd; what was signalled before is seen here, and the loop
    /// polls instead of sleeping. So no order of the two loses a wake-up. Nobody reads the eventfd: it is edge-triggered.
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
        var isWoken = false
        var isStopping = false
        var isAsleep = false
        weak var source: (any EventLoopSource)?

        var hasSignal: Bool { isWoken || isStopping || !jobs.isEmpty }
    }
}
