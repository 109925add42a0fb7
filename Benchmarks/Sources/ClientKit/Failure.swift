// SPDX-License-Identifier: MIT

/// Why a benchmark cannot go on, in a sentence.
package struct Failure: Error, CustomStringConvertible {
    package let description: String

    package init(_ description: String) {
        self.description = description
    }
}
