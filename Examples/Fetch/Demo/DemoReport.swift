// SPDX-License-Identifier: MIT

import AsyncNetworking

/// A printer of numbered demo steps: the code of each, its result, and whether it succeeded.
struct DemoReport {
    private var count = 0
    private var firstFailure: ExitStatus?
    private let clock = ContinuousClock()
    private let start: ContinuousClock.Instant

    init() {
        start = clock.now
    }

    /// Whether a step has failed.
    var hasFailure: Bool { firstFailure != nil }

    /// Prints text between steps.
    func say(_ text: String) {
        StandardStream.output.print(text + "\n")
    }

    /// Performs and prints a step. `body` returns the lines of the result, or throws if the step fails.
    ///
    /// - Throws: `CancellationError` if the demo is cancelled.
    mutating func step(_ title: String, _ code: String, _ body: () async throws -> [String]) async throws {
        count += 1
        say("\n\(count). \(title)")
        for line in code.split(separator: "\n") { say("      \(line)") }
        let begin = clock.now
        do {
            let lines = try await body()
            for line in lines { say("   \(line)") }
            say("   ok, \(Quantity.time(clock.now - begin))")
        } catch {
            try Task.checkCancellation()
            firstFailure = firstFailure ?? ExitStatus(for: error)
            say("   FAILED: \(error)")
        }
    }

    /// Prints the summary and returns the exit status of the demo.
    func finish() -> ExitStatus {
        let time = Quantity.time(clock.now - start)
        say(firstFailure == nil ? "\nAll \(count) steps succeeded in \(time)." : "\nSome steps failed.")
        return firstFailure ?? .success
    }
}
