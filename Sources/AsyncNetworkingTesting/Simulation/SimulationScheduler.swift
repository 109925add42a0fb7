// SPDX-License-Identifier: MIT

import ANSystem
import Glibc
@_spi(ExperimentalScheduling) import _Concurrency

/// Runs the jobs of tasks on one thread, in an order that a seed determines, and in virtual time.
///
/// A job comes from a task that prefers this executor, or, through the runtime's hooks, from any other task that is
/// enqueued by code on this thread. When no job is left, the time moves to the next timer. Another thread may enqueue
/// jobs, too, but then the order is not determined by the seed.
final class SimulationScheduler: TaskExecutor, SimulatedSystem {
    private let state: Lock<State>

    init(seed: UInt64, startingAt milliseconds: Int64, stepLimit: Int) {
        state = Lock(State(seed, milliseconds, stepLimit))
    }

    // MARK: Running

    enum Ending {
        /// No job and no timer is left.
        case idle
        /// The limit of the number of jobs was reached.
        case tooManySteps
    }

    /// Runs jobs until none is left that could run, on a thread that has ``SystemSimulation/current``.
    ///
    /// - Parameter mayAdvance: Whether the time moves to the next timer when no job is left.
    func run(mayAdvance: () -> Bool) -> Ending {
        while true {
            switch state.withLock({ $0.next(mayAdvance: mayAdvance) }) {
            case .run(let job):
                unsafe job.runSynchronously(on: asUnownedTaskExecutor())
            case .wake(let sleeper):
                sleeper.resume()
            case .end(let ending):
                return ending
            }
        }
    }

    func enqueue(_ job: consuming ExecutorJob) {
        add(UnownedJob(job))
    }

    func add(_ job: UnownedJob) {
        state.withLock { $0.jobs.append(job) }
    }

    func add(_ job: UnownedJob, after delay: Int64) {
        state.withLock { state in
            state.addTimer(after: max(0, delay), .job(job))
        }
    }

    // MARK: Time

    /// The nanoseconds since the beginning.
    var now: Int64 { state.withLock { $0.now } }

    /// The number of jobs that have run, and a value that depends on their order.
    var schedule: (steps: Int, digest: UInt64) { state.withLock { ($0.steps, $0.digest) } }

    /// The times at which sleeping tasks will wake, in ascending order.
    var sleepers: [Int64] { state.withLock { $0.sleepers.values.map(\.deadline).sorted() } }

    /// Suspends the task until a time is reached.
    func sleep(until deadline: Int64) async throws {
        let number: Int? = state.withLock { state in
            guard deadline > state.now else { return nil }
            return state.takeNumber()
        }
        try Task.checkCancellation()
        guard let number else { return }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
                let isCancelled = state.withLock { state in
                    guard state.cancelled.remove(number) == nil else { return true }
                    state.sleepers[number] = Sleeper(deadline: deadline, continuation: continuation)
                    state.addTimer(after: deadline - state.now, .sleeper(number))
                    return false
                }
                if isCancelled { continuation.resume(throwing: CancellationError()) }
            }
        } onCancel: {
            let sleeper = state.withLock { state in
                let sleeper = state.sleepers.removeValue(forKey: number)
                if sleeper == nil { state.cancelled.insert(number) }
                return sleeper
            }
            sleeper?.continuation.resume(throwing: CancellationError())
        }
        state.withLock { _ = $0.cancelled.remove(number) }
    }

    /// Changes the distance of the date from the time, as when someone sets the system's clock.
    func moveDate(by milliseconds: Int64) {
        state.withLock { $0.dateOffset += milliseconds }
    }

    // MARK: SimulatedSystem

    var millisecondsSince1970: Int64 { state.withLock { $0.dateOffset + $0.now / 1_000_000 } }

    func randomBits() -> UInt64 { state.withLock { $0.random.next() } }

    func willUseFile(_ call: String, _ path: String?) throws(SystemError) {
        guard let code = state.withLock({ $0.fileHandler })?(call, path) else { return }
        throw SystemError(call: call, code: code)
    }

    func writableBytes(of count: Int) -> Int {
        guard count > 0, let limit = state.withLock({ $0.writeHandler })?(count) else { return count }
        return min(count, max(1, limit))
    }

    /// Sets the functions that are called before a file changes, and for the number of bytes that a write accepts.
    func onFileChange(_ handler: SimulatedWorld.FileHandler?, writing: (@Sendable (Int) -> Int)?) {
        state.withLock { ($0.fileHandler, $0.writeHandler) = (handler, writing) }
    }

    // MARK: State

    private struct Sleeper {
        let deadline: Int64
        let continuation: CheckedContinuation<Void, any Error>

        func resume() { continuation.resume() }
    }

    private enum Alarm {
        case sleeper(Int)
        case job(UnownedJob)
    }

    private enum Step {
        case run(UnownedJob)
        case wake(Sleeper)
        case end(Ending)
    }

    private struct State {
        var jobs: [UnownedJob] = []
        var now: Int64 = 0
        var dateOffset: Int64
        var steps = 0
        var digest: UInt64 = 0
        var sleepers: [Int: Sleeper] = [:]
        /// The numbers of sleeps that were cancelled before their continuation was stored.
        var cancelled: Set<Int> = []
        var random: SplitMix64
        var fileHandler: SimulatedWorld.FileHandler?
        var writeHandler: (@Sendable (Int) -> Int)?
        private var order: SplitMix64
        private let policy: Policy
        private let stepLimit: Int
        private var lastNumber = 0
        private var timers = TimerQueue<Alarm>()

        /// How the next job is chosen. Races that need many steps in the order of queueing are found by the second one.
        private enum Policy {
            case random
            /// The oldest job, except for one of eight.
            case mostlyInOrder
        }

        init(_ seed: UInt64, _ milliseconds: Int64, _ stepLimit: Int) {
            random = SplitMix64(seed: seed)
            order = SplitMix64(seed: seed ^ 0x5EED_0F0D)
            policy = order.next() % 4 == 0 ? .mostlyInOrder : .random
            dateOffset = milliseconds
            self.stepLimit = stepLimit
        }

        mutating func takeNumber() -> Int {
            lastNumber += 1
            return lastNumber
        }

        mutating func addTimer(after delay: Int64, _ alarm: Alarm) {
            timers.insert(alarm, at: now.addingReportingOverflow(delay).overflow ? .max : now + delay)
        }

        mutating func next(mayAdvance: () -> Bool) -> Step {
            while true {
                if !jobs.isEmpty {
                    guard steps < stepLimit else { return .end(.tooManySteps) }
                    return .run(takeJob())
                }
                guard mayAdvance(), let (time, alarm) = timers.popFirst() else { return .end(.idle) }
                switch alarm {
                case .job(let job):
                    now = time
                    jobs.append(job)
                case .sleeper(let number):
                    // A cancelled sleep does not move the time.
                    guard let sleeper = sleepers.removeValue(forKey: number) else { continue }
                    now = time
                    return .wake(sleeper)
                }
            }
        }

        private mutating func takeJob() -> UnownedJob {
            steps += 1
            let number = order.next()
            let isRandom =
                switch policy {
                case .random: true
                case .mostlyInOrder: number >> 61 == 0
                }
            let index = isRandom ? Int(number % UInt64(jobs.count)) : 0
            digest = (digest ^ UInt64(index) &+ UInt64(jobs.count) << 16) &* 0x100_0000_01B3
            guard isRandom else { return jobs.removeFirst() }
            jobs.swapAt(index, jobs.count - 1)
            return jobs.removeLast()
        }
    }
}

/// Values in the order of their times, and of insertion for the same time.
struct TimerQueue<Value: Sendable> {
    private var heap: [(time: Int64, number: Int, value: Value)] = []
    private var lastNumber = 0

    mutating func insert(_ value: Value, at time: Int64) {
        lastNumber += 1
        heap.append((time, lastNumber, value))
        var child = heap.count - 1
        while child > 0, precedes(child, (child - 1) / 2) {
            heap.swapAt(child, (child - 1) / 2)
            child = (child - 1) / 2
        }
    }

    mutating func popFirst() -> (time: Int64, value: Value)? {
        guard !heap.isEmpty else { return nil }
        heap.swapAt(0, heap.count - 1)
        let first = heap.removeLast()
        var parent = 0
        while true {
            var least = parent
            for child in [2 * parent + 1, 2 * parent + 2] where child < heap.count && precedes(child, least) {
                least = child
            }
            guard least != parent else { return (first.time, first.value) }
            heap.swapAt(parent, least)
            parent = least
        }
    }

    private func precedes(_ left: Int, _ right: Int) -> Bool {
        (heap[left].time, heap[left].number) < (heap[right].time, heap[right].number)
    }
}

/// The hook of the Swift runtime through which jobs reach the global executor.
///
/// Once set, it passes the jobs that are enqueued on the thread of a simulation to its scheduler, and all others to the
/// runtime, as before.
enum RuntimeHooks {
    /// Whether the hook was found and is set. It is not if the Swift runtime is linked statically and stripped.
    static let areSet: Bool = {
        guard let hook = unsafe dlsym(dlopen(nil, RTLD_NOW), "swift_task_enqueueGlobal_hook") else { return false }
        unsafe hook.assumingMemoryBound(to: Hook?.self).pointee = { job, original in
            guard let scheduler = SimulationScheduler.ofThread else { return original(job) }
            scheduler.add(job)
        }
        return true
    }()

    private typealias Original = @convention(thin) (UnownedJob) -> Void
    private typealias Hook = @convention(thin) (UnownedJob, Original) -> Void
}

extension SimulationScheduler {
    /// The scheduler of the simulation whose thread this is; `nil` on other threads.
    static var ofThread: SimulationScheduler? {
        SystemSimulation.current as? SimulationScheduler
    }
}

// `Task.sleep` asks the executor of its task for this conformance, which Swift 6.3 does not offer publicly.
#if compiler(<6.4)
    extension SimulationScheduler: SchedulingExecutor {
        func enqueue<SomeClock: Clock>(
            _ job: consuming ExecutorJob, after delay: SomeClock.Duration, tolerance: SomeClock.Duration?,
            clock: SomeClock
        ) {
            // Rounded, because the real time since the deadline was computed is not determined by the seed.
            let nanoseconds = (delay as? Duration)?.clampedNanoseconds ?? 0
            let milliseconds = nanoseconds / 1_000_000 + (nanoseconds % 1_000_000 > 0 ? 1 : 0)
            let (rounded, isTooLong) = milliseconds.multipliedReportingOverflow(by: 1_000_000)
            add(UnownedJob(job), after: isTooLong ? .max : rounded)
        }
    }
#endif

/// A reproducible pseudorandom number generator: SplitMix64 (Steele, Lea, Flood 2014).
package struct SplitMix64: RandomNumberGenerator {
    private var state: UInt64

    /// Creates a generator whose numbers are determined by a seed.
    package init(seed: UInt64) {
        state = seed
    }

    /// Returns the next number.
    package mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}
