// SPDX-License-Identifier: MIT

import AsyncNetworking
import Synchronization

/// How far all transfers of a run have come.
final class TransferBoard: Sendable {
    private let entries = Mutex([Int: Entry]())

    private struct Entry {
        var label: String
        var progress = TransferProgress(completedBytes: 0, totalBytes: nil)
        var isDone = false
    }

    /// All transfers together.
    struct Summary {
        var label: String
        var completedBytes: Int64
        var totalBytes: Int64?
        /// Whether a transfer runs.
        var isActive: Bool
        /// Whether there is only one.
        var isSingle: Bool
    }

    /// Notes that a transfer begins that is worth showing.
    func begin(_ id: Int, label: String) {
        entries.withLock { $0[id] = Entry(label: label) }
    }

    /// Notes how far a transfer has come.
    func report(_ progress: TransferProgress, of id: Int) {
        entries.withLock { $0[id]?.progress = progress }
    }

    /// Notes that a transfer has ended.
    func end(_ id: Int) {
        entries.withLock { $0[id]?.isDone = true }
    }

    /// A transfer that runs.
    struct Transfer {
        var id: Int
        var label: String
        var progress: TransferProgress
    }

    /// The transfers that run, in their order.
    var active: [Transfer] {
        entries.withLock { entries in
            entries.filter { !$0.value.isDone }.sorted { $0.key < $1.key }
                .map { Transfer(id: $0, label: $1.label, progress: $1.progress) }
        }
    }

    /// All transfers together; a single one keeps its label.
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
