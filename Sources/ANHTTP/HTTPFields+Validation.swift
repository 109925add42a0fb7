// SPDX-License-Identifier: MIT

public import HTTPTypes

extension HTTPFields {
    /// Creates fields from untrusted names and values, in their order.
    ///
    /// - Parameter pairs: The names and values; names may be repeated, and values may be empty.
    /// - Throws: ``TransportError/Reason/invalidRequest(_:)`` if a name is empty or not a token, or a value contains a
    ///   control character other than a tab, such as CR, LF or NUL, or begins or ends with a space or tab (RFC 9110
    ///   §5.1, §5.5).
    public init(validating pairs: some Sequence<(String, String)>) throws(TransportError) {
        self.init()
        for (name, value) in pairs {
            guard let fieldName = HTTPField.Name(name) else {
                throw TransportError(.invalidRequest(.headerName(name)))
            }
            guard HTTPField.isValidValue(value) else {
                throw TransportError(.invalidRequest(.headerValue(name: name)))
            }
            append(HTTPField(name: fieldName, value: value))
        }
    }

    /// Returns the value of the first field with a name, without building an index; `nil` if there is no such field.
    package func first(_ name: HTTPField.Name) -> String? {
        first { $0.name == name }?.value
    }
}
