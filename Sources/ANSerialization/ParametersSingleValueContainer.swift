// SPDX-License-Identifier: MIT

/// Takes a value that stands for another one.
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
