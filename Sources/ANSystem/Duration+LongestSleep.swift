// SPDX-License-Identifier: MIT

extension Duration {
    /// A hundred years; longer durations would overflow the arithmetic of clocks, which ends the process.
    package static let longestSleep = Duration.seconds(100 * 365 * 86_400)
}
