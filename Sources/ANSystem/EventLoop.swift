// SPDX-License-Identifier: MIT

import CLinux
import Glibc
import Synchronization

/// What an ``EventLoop`` drives: descriptors and timers that belong to one owner, usually an actor on that loop.
///
/// Every requirement is called on the loop's thread.
public protocol EventLoopSource: AnyObject, Sendable {
    /// How long the loop may sleep: milliseconds until the next timer, 0 for not at all, -1 for ever.
    func millisecondsUntilNextTimer() -> Int32
    /// Handles watched descriptors that became ready, and timers that are due.
    func handle(_ ready: [ReadyDescriptor])
    /// Ends one turn of the loop, after its ready descriptors and its queued work.
    func finishTurn()
}

/// One thread that waits on an epoll set and runs the jobs of the actors that have it as their executor.
///
/// The executor is the lock: what lives on the loop is touched by its thread only. Work that is queued while the loop is
/// busy wakes nobody; the loop sees it before it sleeps. The thread blocks all signals, so that a program's handlers run
/// on the program's threads.
///
/// The loop holds its source weakly. Whoever starts a loop ends it with ``stop()``; the thread and its descriptors are
/// freed after the work that was queued before.
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
        try epoll.add(number, for: .readable)
    }

    /// Starts the thread; `name` (at most 15 bytes) is what debuggers and `top -H` show.
    public func start(name: String, source: some EventLoopSource) throws(SystemError) {
        inbox.withLock { $0.source = source }
        let context = unsafe Unmanaged.passRetained(ThreadContext(loop: self, name: name))
        var thread = pthread_t()
        let code = unsafe pthread_create(
            &thread, nil,
            { argument in
                guard let argument = unsafe argument else { return nil }
                let context = unsafe Unmanaged<ThreadContext>.fromOpaque(argument).takeRetainedValue()
                context.loop.run(name: context.name)
                return nil
            }, context.toOpaque())
        guard code == 0 else {
            unsafe context.release()
            throw SystemError(call: "pthread_create", code: code)
        }
        pthread_detach(thread)
    }

    /// Queues `work` for the loop's thread; from any thread, never blocking.
    public func post(_ work: @escaping @Sendable () -> Void) {
        queue(.closure(work))
    }

    /// Ends the thread after the work that is queued already.
    public func stop() {
        queue(.stop)
    }

    // MARK: Executor

    /// Queues an actor's job for the loop's thread; the Swift runtime calls this.
    public func enqueue(_ job: consuming ExecutorJob) {
        queue(.job(UnownedJob(job)))
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

    private func queue(_ work: Work) {
        let mustWake = inbox.withLock { inbox in
            inbox.work.append(work)
            defer { inbox.isAsleep = false }
            return inbox.isAsleep
        }
        if mustWake { _ = eventfd_write(wakeup.number, 1) }
    }

    // MARK: Thread

    private func run(name: String) {
        threadID.store(UInt(pthread_self()), ordering: .relaxed)
        unsafe clinux_set_thread_name(name)
        var signals = sigset_t()
        unsafe sigfillset(&signals)
        unsafe pthread_sigmask(SIG_BLOCK, &signals, nil)

        var ready: [ReadyDescriptor] = []
        var work: [Work] = []
        var isRunning = true
        while isRunning {
            wait(into: &ready)
            let source = inbox.withLock { inbox in
                inbox.isAsleep = false
                swap(&inbox.work, &work)
                return inbox.source
            }
            source?.handle(ready)
            ready.removeAll(keepingCapacity: true)
            for item in work {
                switch item {
                case .job(let job): unsafe job.runSynchronously(on: asUnownedSerialExecutor())
                case .closure(let body): body()
                case .stop: isRunning = false
                }
            }
            work.removeAll(keepingCapacity: true)
            source?.finishTurn()
        }
    }

    /// Sleeps until a descriptor is ready, a timer is due or work is queued.
    ///
    /// Whoever queues work after `isAsleep` is set writes to the eventfd; whoever queued before is seen here, and the loop
    /// polls instead of sleeping. So no order of the two loses a wake-up.
    private func wait(into ready: inout [ReadyDescriptor]) {
        let timeout = millisecondsUntilNextTimer()
        let mustPoll = inbox.withLock { inbox in
            inbox.isAsleep = inbox.work.isEmpty && timeout != 0
            return !inbox.isAsleep
        }
        do throws(SystemError) {
            try epoll.wait(milliseconds: mustPoll ? 0 : timeout, into: &ready)
        } catch {
            ready.removeAll(keepingCapacity: true)
        }
        if let index = ready.firstIndex(where: { $0.number == wakeup.number }) {
            ready.remove(at: index)
            var count: eventfd_t = 0
            unsafe _ = eventfd_read(wakeup.number, &count)
        }
    }

    /// The source is held for this call only: a loop that sleeps must not keep it alive.
    private func millisecondsUntilNextTimer() -> Int32 {
        inbox.withLock { $0.source }?.millisecondsUntilNextTimer() ?? -1
    }

    private enum Work {
        case job(UnownedJob)
        case closure(@Sendable () -> Void)
        case stop
    }

    private struct Inbox {
        var work: [Work] = []
        var isAsleep = false
        weak var source: (any EventLoopSource)?
    }

    private final class ThreadContext: Sendable {
        let loop: EventLoop
        let name: String

        init(loop: EventLoop, name: String) {
            self.loop = loop
            self.name = name
        }
    }
}
