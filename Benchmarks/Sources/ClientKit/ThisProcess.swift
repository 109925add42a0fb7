// SPDX-License-Identifier: MIT

import FoundationEssentials
import Glibc

/// The process of a benchmark.
package enum ThisProcess {
    /// Raises the limit of open files to the maximum.
    package static func raiseDescriptorLimit() {
        var limit = rlimit()
        let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        if getrlimit(resource, &limit) == 0 {
            limit.rlim_cur = limit.rlim_max
            _ = setrlimit(resource, &limit)
        }
    }

    /// Returns the resident memory in bytes. See proc_pid_statm(5).
    package static func residentMemory() throws -> Double {
        let fields = try String(contentsOfFile: "/proc/self/statm", encoding: .utf8).split(separator: " ")
        guard fields.count > 1, let pages = Double(fields[1]) else { throw Failure("statm cannot be read") }
        return pages * Double(sysconf(Int32(_SC_PAGESIZE)))
    }

    /// The processor time of the calling thread.
    package static var threadTime: Duration { time(of: CLOCK_THREAD_CPUTIME_ID) }

    /// The processor time of all threads.
    package static var time: Duration { time(of: CLOCK_PROCESS_CPUTIME_ID) }

    private static func time(of clock: clockid_t) -> Duration {
        var time = timespec()
        clock_gettime(clock, &time)
        return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
    }
}
