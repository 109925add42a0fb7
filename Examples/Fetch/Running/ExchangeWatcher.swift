// SPDX-License-Identifier: MIT

import AsyncNetworking
import Synchronization

/// An event sink for the exchanges of a job: reports progress to the board and collects the metrics.
final class ExchangeWatcher: ExchangeEventSink {
    private let id: Int
    private let board: TransferBoard
    private let narrator: Narrator
    private let finished = Mutex([TransferMetrics]())

    init(_ id: Int, board: TransferBoard, narrator: Narrator) {
        self.id = id
        self.board = board
        self.narrator = narrator
    }

    /// The metrics of the exchanges in order, including those of redirects.
    var metrics: [TransferMetrics] { finished.withLock { $0 } }

    func receive(_ event: ExchangeEvent) {
        switch event {
        case .started, .head: break
        case .informational(let head): narrator.say(head: head)
        case .uploadProgress(let progress): board.report(progress, of: id)
        case .downloadProgress(let progress): board.report(progress, of: id)
        case .finished(let metrics): finished.withLock { $0.append(metrics) }
        @unknown default: break
        }
    }
}
