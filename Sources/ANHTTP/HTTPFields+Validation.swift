// SPDX-License-Identifier: MIT

public import HTTPTypes

extension HTTPFields {
    /// Creates fields from names and values that come from outside the program, in their order.
    ///
    /// - Throws: ``TransportError/invalidRequest(_:)`` when a name is not a token or a value has CR, LF, NUL or another
    ///   control character (RFC 9110 §5.1, §5.5).
    public init(validating pairs: some Sequence<(String, String)>) throws(TransportError) {
        self.init()
        for (name, value) in pairs {
            guard let fieldName = HTTPField.Name(name) else {
                throw .invalidRequest(.headerName(name))
            }
            guard HTTPField.isValidValue(value) else {
                throw .invalidRequest(.headerValue(name: name))
            }
            append(HTTPField(name: fieldName, value: value))
        }
    }

    /// The value of the first field with this name, found without building an index.
    package func first(_ name: HTTPField.Name) -> String? {
        first { $0.name == name }?.value
    }
}
