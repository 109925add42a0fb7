// SPDX-License-Identifier: MIT

import AsyncNetworking

/// A reporter of the progress of all jobs: on a terminal, ten times a second, a bar for each transfer and one for all;
/// otherwise a line every few seconds.
struct ProgressReporter {
    let board: TransferBoard
    let console: Console
    private let clock = ContinuousClock()

    init(board: TransferBoard, console: Console) {
        self.board = board
        self.console = console
    }

    /// Runs until the task is cancelled.
    func run() async {
        let start = clock.now
        var rates: [Int: RateEstimate] = [:]
        var total = RateEstimate()
        let interval: Duration = console.isTerminal ? .milliseconds(100) : .seconds(5)
        // Short transfers need no bar.
        var pause: Duration = console.isTerminal ? .milliseconds(300) : interval
        while (try? await clock.sleep(for: pause)) != nil {
            pause = interval
            let summary = board.summary
            guard summary.isActive else { continue }
            let elapsed = clock.now - start
            total.update(bytes: summary.completedBytes, at: elapsed)
            let sum = ProgressLine(
                label: summary.label, completedBytes: summary.completedBytes, totalBytes: summary.totalBytes,
                elapsed: elapsed, rate: total)
            guard console.isTerminal else {
                console.print(sum.plain + "\n")
                continue
            }
            let lines = summary.isSingle ? [] : lines(&rates, at: elapsed)
            console.draw { ProgressLines(transfers: lines, total: sum).bars(columns: $0, rows: $1) }
        }
        console.eraseBars()
    }

    private func lines(_ rates: inout [Int: RateEstimate], at elapsed: Duration) -> [ProgressLine] {
        board.active.map { transfer in
            rates[transfer.id, default: RateEstimate()].update(bytes: transfer.progress.completedBytes, at: elapsed)
            return ProgressLine(
                label: transfer.label, completedBytes: transfer.progress.completedBytes,
                totalBytes: transfer.progress.totalBytes, elapsed: elapsed,
                rate: rates[transfer.id] ?? RateEstimate())
        }
    }
}
