// SPDX-License-Identifier: MIT

import AsyncNetworking
import Synchronization

/// The progress of all transfers.
final class TransferBoard: Sendable {
    private let entries = Mutex([Int: Entry]())

    private struct Entry {
        var label: String
        var progress = TransferProgress(completedBytes: 0, totalBytes: nil)
        var isDone = false
    }

    /// The sum of all transfers.
    struct Summary {
        var label: String
        var completedBytes: Int64
        var totalBytes: Int64?
        /// Whether a transfer is running.
        var isActive: Bool
        /// Whether there is only one transfer.
        var isSingle: Bool
    }

    /// Adds a transfer whose progress is shown.
    func begin(_ id: Int, label: String) {
        entries.withLock { $0[id] = Entry(label: label) }
    }

    /// Updates the progress of a transfer.
    func report(_ progress: TransferProgress, of id: Int) {
        entries.withLock { $0[id]?.progress = progress }
    }

    /// Marks a transfer as ended.
    func end(_ id: Int) {
        entries.withLock { $0[id]?.isDone = true }
    }

    /// A running transfer.
    struct Transfer {
        var id: Int
        var label: String
        var progress: TransferProgress
    }

    /// The running transfers in order.
    var active: [Transfer] {
        entries.withLock { entries in
            entries.filter { !$0.value.isDone }.sorted { $0.key < $1.key }
                .map { Transfer(id: $0, label: $1.label, progress: $1.progress) }
        }
    }

    /// The sum of all transfers. A single transfer keeps its label.
    var summary: Summary {
        let entries = entries.withLock { Array($0.values) }
        let done = entries.count { $0.isDone }
        var summary = Summary(
            label: entries.count == 1 ? entries[0].label : "\(done) of \(entries.count)", completedBytes: 0,
            totalBytes: 0, isActive: done < entries.count, isSingle: entries.count == 1)
        for entry in entries {
            summary.completedBytes &+= entry.progress.completedBytes
            let total = entry.isDone ? entry.progress.completedBytes : entry.progress.totalBytes
            summary.totalBytes = summary.totalBytes.flatMap { sum in total.map { sum &+ $0 } }
        }
        return summary
    }
}
