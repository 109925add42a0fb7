// SPDX-License-Identifier: MIT

/// An unkeyed container that adds its values to the encoder's node.
struct ParametersUnkeyedContainer: UnkeyedEncodingContainer {
    let encoder: ParametersEncoder

    var codingPath: [any CodingKey] { encoder.path }
    var count: Int { encoder.node.count }

    mutating func encodeNil() throws {
        try added().encodeNil()
    }

    mutating func encode(_ value: some Encodable) throws {
        try added().encode(value)
    }

    mutating func nestedContainer<NestedKey: CodingKey>(
        keyedBy keyType: NestedKey.Type
    ) -> KeyedEncodingContainer<NestedKey> {
        added().container(keyedBy: keyType)
    }

    mutating func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer {
        added().unkeyedContainer()
    }

    mutating func superEncoder() -> any Encoder {
        added()
    }

    private func added() -> ParametersEncoder {
        guard !encoder.isTooDeep else { return encoder }
        let child = encoder.child(IndexKey(index: count))
        encoder.node.add(child.node)
        return child
    }
}

private struct IndexKey: CodingKey {
    let index: Int

    init(index: Int) { self.index = index }
    init?(stringValue: String) { nil }
    init?(intValue: Int) { index = intValue }
    var stringValue: String { "Index \(index)" }
    var intValue: Int? { index }
}
