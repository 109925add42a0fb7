// SPDX-License-Identifier: MIT

/// A violation of the requirements for transports.
public struct ConformanceFailure: Error, Hashable, Sendable, CustomStringConvertible {
    /// The expected and the actual behaviour.
    public let description: String

    /// Creates a failure with a description.
    public init(_ description: String) {
        self.description = description
    }
}

/// Throws unless `actual` equals `expected`.
func require<Value: Equatable>(_ what: String, _ actual: Value, is expected: Value) throws(ConformanceFailure) {
    guard actual == expected else {
        throw ConformanceFailure("\(what): expected \(expected), got \(actual).")
    }
}

/// Throws unless `work` throws an error that satisfies `isExpected`.
func requireFailure(
    _ what: String, where isExpected: (any Error) -> Bool, of work: () async throws -> Void
) async throws(ConformanceFailure) {
    do {
        try await work()
    } catch {
        guard isExpected(error) else { throw ConformanceFailure("\(what) threw an unexpected error: \(error).") }
        return
    }
    throw ConformanceFailure("\(what) succeeded instead of throwing an error.")
}
