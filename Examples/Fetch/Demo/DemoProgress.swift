// SPDX-License-Identifier: MIT

import AsyncNetworking

/// A display of a transfer's progress: a bar on a terminal, otherwise a line for each quarter.
struct DemoProgress {
    private let console = Console()
    private let clock = ContinuousClock()

    /// Displays the progress of a transfer until it ends.
    func follow(_ progress: BroadcastStream<TransferProgress>, label: String) async {
        let start = clock.now
        var rate = RateEstimate()
        var drawn = start
        var quarters = 0
        for await value in progress {
            rate.update(bytes: value.completedBytes, at: clock.now - start)
            let line = ProgressLine(
                label: label, completedBytes: value.completedBytes, totalBytes: value.totalBytes,
                elapsed: clock.now - start, rate: rate)
            if console.isTerminal {
                guard clock.now - drawn >= .milliseconds(50) else { continue }
                drawn = clock.now
                console.draw { columns, _ in [line.bar(columns: columns)] }
            } else if let fraction = value.fraction, Int(fraction * 4) > quarters {
                quarters = Int(fraction * 4)
                StandardStream.output.print("   \(line.plain)\n")
            }
        }
        if console.isTerminal { console.eraseBars() }
    }
}
