// SPDX-License-Identifier: MIT

import AsyncNetworking
import Dispatch
import Glibc

/// The signal SIGUSR1, after which the connections and transfers of the session are printed.
struct SnapshotSignal: Sendable {
    private let signals: AsyncStream<Void>

    /// Catches the signal, which would otherwise end the program.
    init() {
        let (signals, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        self.signals = signals
        StandardStream.ignore(SIGUSR1)
        let source = DispatchSource.makeSignalSource(signal: SIGUSR1, queue: .global())
        source.setEventHandler { continuation.yield() }
        source.resume()
        nonisolated(unsafe) let retained = source
        continuation.onTermination = { _ in unsafe retained.cancel() }
    }

    /// Prints a snapshot after each signal, until the task is cancelled.
    func print(_ session: SessionManager, on console: Console) async {
        for await _ in signals { console.print("\(await session.snapshot())\n") }
    }
}
