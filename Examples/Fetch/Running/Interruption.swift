// SPDX-License-Identifier: MIT

import Dispatch
import Glibc
import Synchronization

/// The handling of Ctrl-C and SIGTERM: the first signal cancels the work; another one, more than a second later,
/// terminates the program.
///
/// Another one within a second is ignored: timeout(1) and others signal the program and its process group, so the same
/// request to terminate arrives twice.
enum Interruption {
    /// Runs `work` and returns its status, or that of the signal that cancelled it, when the work has ended.
    static func guarding(_ work: @escaping @Sendable () async -> ExitStatus) async -> ExitStatus {
        let signals = signals
        return await withTaskGroup(of: ExitStatus?.self) { group in
            group.addTask {
                for await status in signals { return status }
                return nil
            }
            group.addTask { await work() }
            let first = await group.next() ?? nil
            group.cancelAll()
            await group.waitForAll()
            return first ?? .internalError
        }
    }

    private static let firstSignal = Mutex<ContinuousClock.Instant?>(nil)
    /// The signal sources, retained to receive a second signal.
    nonisolated(unsafe) private static var sources: [any DispatchSourceSignal] = []

    private static var signals: AsyncStream<ExitStatus> {
        let (stream, continuation) = AsyncStream.makeStream(of: ExitStatus.self)
        unsafe sources = [(SIGINT, ExitStatus.interrupted), (SIGTERM, .terminated)].map { number, status in
            StandardStream.ignore(number)
            let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
            source.setEventHandler {
                let now = ContinuousClock.now
                let first = firstSignal.withLock { first in
                    first = first ?? now
                    return first ?? now
                }
                if now - first > .seconds(1) { _exit(status.rawValue) }
                continuation.yield(status)
            }
            source.resume()
            return source
        }
        return stream
    }
}
