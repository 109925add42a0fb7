// SPDX-License-Identifier: MIT

import FoundationEssentials

/// The descriptors and threads of this process. See proc(5).
package struct ProcessResources: Sendable {
    /// The targets of the open descriptors, such as `socket:[123]`, except for timers, which the runtime creates when
    /// its clocks are first used.
    package let descriptors: [String]
    /// The names of the threads, at most 15 bytes each. A thread has its creator's name until it has started.
    package let threads: [String]

    package init() throws {
        let manager = FileManager.default
        descriptors = try manager.contentsOfDirectory(atPath: "/proc/self/fd").compactMap { number in
            // The descriptor that listed the directory is closed by now.
            let target = try? manager.destinationOfSymbolicLink(atPath: "/proc/self/fd/\(number)")
            return target == "anon_inode:[timerfd]" ? nil : target
        }
        threads = try manager.contentsOfDirectory(atPath: "/proc/self/task").compactMap { task in
            // The thread may have ended.
            guard let name = try? String(contentsOfFile: "/proc/self/task/\(task)/comm", encoding: .utf8) else {
                return nil
            }
            return String(name.dropLast())
        }
    }

    /// The number of threads that run event loops of transports.
    package var engineThreads: Int { threads.count { $0 == "ANCurl" } }

    /// Whether the process holds no more than in another state. It may hold less, because resources that were closed
    /// shortly before may have been counted in the other.
    package func isWithin(_ before: ProcessResources) -> Bool {
        descriptors.count <= before.descriptors.count && engineThreads <= before.engineThreads
    }
}
