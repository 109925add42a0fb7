// SPDX-License-Identifier: MIT

extension RequestAttributes {
    /// Returns whether attributes other than the given one were set.
    package func hasAttributes(besides attribute: any RequestAttribute.Type) -> Bool {
        values.keys.contains { $0 != ObjectIdentifier(attribute) }
    }
}
