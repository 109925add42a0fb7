// SPDX-License-Identifier: MIT

import Glibc

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
                of its session wait for it. Code that blocks must not run with the session's event loop executor.
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
