// SPDX-License-Identifier: MIT

/// An error that ends a benchmark, with a description.
package struct Failure: Error, CustomStringConvertible {
    package let description: String

    package init(_ description: String) {
        self.description = description
    }
}
