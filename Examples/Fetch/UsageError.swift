// SPDX-License-Identifier: MIT

/// A command line that makes no sense, in words that say why.
package struct UsageError: Error, CustomStringConvertible {
    package let description: String

    package init(_ description: String) {
        self.description = description
    }
}
