// SPDX-License-Identifier: MIT

/// What a transport does that no transport may do.
public struct ConformanceFailure: Error, Hashable, Sendable, CustomStringConvertible {
    /// What was expected, and what happened.
    public let description: String

    /// Creates a failure.
    public init(_ description: String) {
        self.description = description
    }
}

/// Fails unless `actual` is what was `expected`.
func require<Value: Equatable>(_ what: String, _ actual: Value, is expected: Value) throws(ConformanceFailure) {
    guard actual == expected else {
        throw ConformanceFailure("\(what): expected \(expected), got \(actual).")
    }
}

/// Fails unless `work` fails with an error that `isExpected`.
func requireFailure(
    _ what: String, where isExpected: (any Error) -> Bool, of work: () async throws -> Void
) async throws(ConformanceFailure) {
    do {
        try await work()
    } catch {
        guard isExpected(error) else { throw ConformanceFailure("\(what) fails with another error: \(error).") }
        return
    }
    throw ConformanceFailure("\(what) should fail, and succeeds.")
}
