// SPDX-License-Identifier: MIT

/// Takes a value that stands for another one.
struct ParametersSingleValueContainer: SingleValueEncodingContainer {
    let encoder: ParametersEncoder

    var codingPath: [any CodingKey] { encoder.path }

    mutating func encodeNil() {
        encoder.node.become(.null)
    }

    mutating func encode(_ value: some Encodable) throws {
        encoder.node.become(try encoder.box(value))
    }
}
