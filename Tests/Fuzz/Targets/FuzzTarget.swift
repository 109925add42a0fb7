// SPDX-License-Identifier: MIT

/// A parser with what must hold for any input: that it does not crash, and a property such as a round trip.
///
/// `make fuzz` calls the targets with inputs of libFuzzer; FuzzTests calls them with the inputs in `Corpus`.
package struct FuzzTarget: Sendable, CustomStringConvertible {
    /// The name, which is also that of its directory in `Corpus` and of its file in `Dictionaries`.
    package let name: String
    /// The size of inputs in bytes beyond which nothing new is expected.
    package let maximumSize: Int
    /// The function that checks an input.
    package let check: Check

    /// A function that throws ``Violation`` if a property does not hold for an input.
    package enum Check: Sendable {
        /// A function that calls parsers.
        case parser(@Sendable ([UInt8]) throws -> Void)
        /// A function that sends requests.
        case client(@Sendable ([UInt8]) async throws -> Void)
    }

    init(_ name: String, maximumSize: Int = 512, _ check: @escaping @Sendable ([UInt8]) throws -> Void) {
        self.init(name: name, maximumSize: maximumSize, check: .parser(check))
    }

    init(name: String, maximumSize: Int, check: Check) {
        self.name = name
        self.maximumSize = maximumSize
        self.check = check
    }

    /// Checks the target with an input.
    ///
    /// - Throws: ``Violation`` if a property does not hold.
    package func check(_ input: [UInt8]) async throws {
        switch check {
        case .parser(let check): try check(input)
        case .client(let check): try await check(input)
        }
    }

    /// The name.
    package var description: String { name }

    /// All targets.
    package static let all: [FuzzTarget] = fields + streams + frames + documents + files + responses
}

/// A property of a parser that does not hold for an input.
package struct Violation: Error, CustomStringConvertible {
    /// The values that contradict each other.
    package let description: String

    package init(description: String) {
        self.description = description
    }
}

/// Throws unless two values are equal.
func requireEqual<Value: Equatable>(_ first: Value, _ second: Value, _ property: String) throws(Violation) {
    guard first == second else { throw Violation(description: "\(property): \(first) is not \(second)") }
}

/// Throws unless a condition is met.
func require(_ condition: Bool, _ property: @autoclosure () -> String) throws(Violation) {
    guard condition else { throw Violation(description: property()) }
}
