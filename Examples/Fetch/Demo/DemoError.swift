// SPDX-License-Identifier: MIT

/// The failure of a demo step.
struct DemoError: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) {
        self.description = description
    }
}

/// Throws a failure unless a condition holds.
func expect(_ condition: Bool, _ failure: @autoclosure () -> String) throws {
    guard condition else { throw DemoError(failure()) }
}
