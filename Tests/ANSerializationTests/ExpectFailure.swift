// SPDX-License-Identifier: MIT

import ANSerialization
import Testing

/// Expects that the work throws a `SerializationError` that satisfies a condition.
func expectFailure(
    _ work: () throws -> Any, where condition: (SerializationError) -> Bool,
    sourceLocation: SourceLocation = #_sourceLocation
) {
    do {
        let value = try work()
        Issue.record("no error was thrown; returned \(value)", sourceLocation: sourceLocation)
    } catch let error as SerializationError {
        #expect(condition(error), "\(error)", sourceLocation: sourceLocation)
    } catch {
        Issue.record("another error: \(error)", sourceLocation: sourceLocation)
    }
}
