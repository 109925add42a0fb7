// SPDX-License-Identifier: MIT

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
