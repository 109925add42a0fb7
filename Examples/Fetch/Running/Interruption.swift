// SPDX-License-Identifier: MIT

import Dispatch
import Glibc
import Synchronization

/// Ctrl-C and SIGTERM: the first cancels the work, one that follows after a second ends the program on the spot.
///
/// Not at once: timeout(1) and others signal the program and its process group, so that one request to end comes twice.
enum Interruption {
    /// Runs `work` and returns its status, or that of the signal that cancelled it; either way once it is really over.
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
    /// Kept, so that a second signal is heard.
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
