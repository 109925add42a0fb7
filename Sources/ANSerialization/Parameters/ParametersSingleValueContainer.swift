// SPDX-License-Identifier: MIT

/// A container for a value that represents the encoder's value.
struct ParametersSingleValueContainer: SingleValueEncodingContainer {
    let encoder: ParametersEncoder

    var codingPath: [any CodingKey] { encoder.path }

    mutating func encodeNil() throws {
        try encoder.encodeNil()
    }

    mutating func encode(_ value: some Encodable) throws {
        try encoder.encode(value)
    }
}
