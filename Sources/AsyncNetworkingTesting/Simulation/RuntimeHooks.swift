// SPDX-License-Identifier: MIT

import ANSystem
import Glibc
@_spi(ExperimentalScheduling) import _Concurrency

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
            add(UnownedJob(job), after: milliseconds.multipliedReportingOverflow(by: 1_000_000).partialValue)
        }
    }
#endif
