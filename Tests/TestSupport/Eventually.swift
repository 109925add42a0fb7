// SPDX-License-Identifier: MIT

/// Polls a condition until it holds.
///
/// - Parameter limit: the time after which the condition is checked for the last time.
/// - Throws: ``ConditionNeverHeld``, and the errors of the condition.
package func eventually(
    within limit: Duration = .seconds(120), file: StaticString = #fileID, line: UInt = #line,
    _ condition: () async throws -> Bool
) async throws {
    let end = ContinuousClock.now + limit
    while try await !condition() {
        guard ContinuousClock.now < end else { throw ConditionNeverHeld(limit: limit, file: file, line: line) }
        // Long enough to leave the processor to the awaited work.
        try await Task.sleep(for: .milliseconds(1))
    }
}

/// The error of ``eventually(within:file:line:_:)``.
package struct ConditionNeverHeld: Error, CustomStringConvertible {
    let limit: Duration
    let file: StaticString
    let line: UInt

    package var description: String { "\(file):\(line): the condition did not hold within \(limit)" }
}
