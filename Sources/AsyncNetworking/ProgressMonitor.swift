// SPDX-License-Identifier: MIT

package import ANHTTP
import ANSystem

/// Passes the progress of one direction of a request on to its readers.
///
/// What a redirect or an error page brings is no progress of a download. An exchange does not know yet which of them it
/// is, so its progress is held until ``accept(exchange:)``.
package final class ProgressMonitor: TransferEventSink {
    package let broadcast = Broadcast<TransferProgress>()
    private let direction: Direction
    private let state = Lock(State())

    /// The direction that is watched.
    package enum Direction {
        case upload, download
    }

    private struct State {
        /// How many exchanges are over.
        var finished = 0
        /// The number of the exchange that brings the file; nil while that is unknown.
        var accepted: Int?
        /// The latest progress that was not passed on, and of which exchange it is.
        var held: (progress: TransferProgress, exchange: Int)?
    }

    package init(_ direction: Direction) {
        self.direction = direction
    }

    package func receive(_ event: TransferEvent) {
        switch (event, direction) {
        case (.uploadProgress(let progress), .upload): broadcast.send(progress)
        case (.downloadProgress(let progress), .download): receive(progress)
        case (.finished, .download): state.withLock { $0.finished += 1 }
        default: break
        }
    }

    /// Lets the progress of one exchange of the request through, the first being number 0.
    package func accept(exchange: Int) {
        state.withLock { state in
            state.accepted = exchange
            if let held = state.held, held.exchange == exchange { broadcast.send(held.progress) }
            state.held = nil
        }
    }

    /// The request is over.
    func finish() {
        broadcast.finish()
    }

    /// Values leave under the lock: an older one cannot overtake a newer one.
    private func receive(_ progress: TransferProgress) {
        state.withLock { state in
            if state.accepted == state.finished {
                broadcast.send(progress)
            } else {
                state.held = (progress, state.finished)
            }
        }
    }
}
