// SPDX-License-Identifier: MIT

/// An error in the command line, with a description.
package struct UsageError: Error, CustomStringConvertible {
    package let description: String

    package init(_ description: String) {
        self.description = description
    }
}
