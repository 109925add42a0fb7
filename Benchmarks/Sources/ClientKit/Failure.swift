// SPDX-License-Identifier: MIT

/// Why a benchmark cannot go on, in a sentence.
public struct Failure: Error, CustomStringConvertible {
    public let description: String

    public init(_ description: String) {
        self.description = description
    }
}
