// SPDX-License-Identifier: MIT

import AsyncNetworking

/// Prints a tour: numbered steps, the code of each, what came of it, and whether that is as it should be.
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

    /// Prints lines that belong to no step.
    func say(_ text: String) {
        StandardStream.output.print(text + "\n")
    }

    /// Performs a step; `body` returns what came of it, or throws when that is not as it should be.
    ///
    /// - Throws: `CancellationError` when the tour was cancelled.
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

    /// Prints the sum and returns the status of the tour.
    func finish() -> ExitStatus {
        let time = Quantity.time(clock.now - start)
        say(firstFailure == nil ? "\nAll \(count) steps went as they should, in \(time)." : "\nSome steps failed.")
        return firstFailure ?? .success
    }
}
