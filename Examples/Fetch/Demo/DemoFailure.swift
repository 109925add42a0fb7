// SPDX-License-Identifier: MIT

/// Something in a tour that is not as it should be.
struct DemoFailure: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) {
        self.description = description
    }
}

/// Fails a step unless a condition holds.
func expect(_ condition: Bool, _ failure: @autoclosure () -> String) throws {
    guard condition else { throw DemoFailure(failure()) }
}
