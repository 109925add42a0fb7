// SPDX-License-Identifier: MIT

import ANHTTP
public import FoundationEssentials

/// A violation of the requirements for transports, found by a ``TransportConformanceCase``.
public struct ConformanceError: LocalizedError, Hashable, Sendable, CustomStringConvertible {
    /// A sentence with the expected and the actual behaviour, which test libraries report.
    public let description: String

    /// The ``description``, which Foundation returns as `localizedDescription`.
    public var errorDescription: String? { description }

    /// Creates an error with a description, for a program's own checks of a transport.
    ///
    /// - Parameter description: A sentence with the expected and the actual behaviour.
    public init(_ description: String) {
        self.description = description
    }
}

/// Throws unless `actual` equals `expected`.
func require<Value: Equatable>(_ what: String, _ actual: Value, is expected: Value) throws(ConformanceError) {
    guard actual == expected else {
        throw ConformanceError("\(what): expected \(expected), got \(actual).")
    }
}

/// Throws unless `work` throws an error that satisfies `isExpected`.
func requireFailure(
    _ what: String, where isExpected: (any Error) -> Bool, of work: () async throws -> Void
) async throws(ConformanceError) {
    do {
        try await work()
    } catch {
        guard isExpected(error) else { throw ConformanceError("\(what) threw an unexpected error: \(error).") }
        return
    }
    throw ConformanceError("\(what) succeeded instead of throwing an error.")
}

/// Throws unless `work` throws a transport error with the given reason.
func requireFailure(
    _ what: String, _ reason: TransportError.Reason, of work: () async throws -> Void
) async throws(ConformanceError) {
    try await requireFailure(what, where: { ($0 as? TransportError)?.reason == reason }, of: work)
}
