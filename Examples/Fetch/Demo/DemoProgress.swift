// SPDX-License-Identifier: MIT

import AsyncNetworking

/// Shows the progress of a transfer of a tour: a bar on a terminal, a line for each quarter otherwise.
struct DemoProgress {
    private let console = Console()
    private let clock = ContinuousClock()

    /// Follows a transfer's progress to its end.
    func follow(_ progress: ProgressStream<TransferProgress>, label: String) async {
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
