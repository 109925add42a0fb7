// SPDX-License-Identifier: MIT

/// Shows the progress of a run: a bar ten times a second on a terminal, otherwise a line every few seconds.
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
        var rate = RateEstimate()
        let interval: Duration = console.isTerminal ? .milliseconds(100) : .seconds(5)
        // What is over in a moment needs no bar.
        var pause: Duration = console.isTerminal ? .milliseconds(300) : interval
        while (try? await clock.sleep(for: pause)) != nil {
            pause = interval
            let summary = board.summary
            guard summary.isActive else { continue }
            let elapsed = clock.now - start
            rate.update(bytes: summary.completedBytes, at: elapsed)
            let line = ProgressLine(
                label: summary.label, completedBytes: summary.completedBytes, totalBytes: summary.totalBytes,
                elapsed: elapsed, rate: rate)
            if console.isTerminal {
                console.draw { line.bar(columns: $0) }
            } else {
                console.print(line.plain + "\n")
            }
        }
        console.eraseBar()
    }
}
