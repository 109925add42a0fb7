// SPDX-License-Identifier: MIT

/// A keyed container that adds its values to the encoder's node.
struct ParametersKeyedContainer<Key: CodingKey>: KeyedEncodingContainerProtocol {
    let encoder: ParametersEncoder

    init(encoder: ParametersEncoder) {
        self.encoder = encoder
        encoder.node.becomeDictionary()
    }

    var codingPath: [any CodingKey] { encoder.path }

    mutating func encodeNil(forKey key: Key) throws {
        try added(key).encodeNil()
    }

    mutating func encode(_ value: some Encodable, forKey key: Key) throws {
        try added(key).encode(value)
    }

    // Synthesized code calls these functions for optional properties. The protocol has a default implementation for
    // each of these types that omits nil and would be preferred over a generic function.

    mutating func encodeIfPresent(_ value: Bool?, forKey key: Key) throws { try add(value, forKey: key) }
    mutating func encodeIfPresent(_ value: String?, forKey key: Key) throws { try add(value, forKey: key) }
    mutating func encodeIfPresent(_ value: Double?, forKey key: Key) throws { try add(value, forKey: key) }
    mutating func encodeIfPresent(_ value: Float?, forKey key: Key) throws { try add(value, forKey: key) }
    mutating func encodeIfPresent(_ value: Int?, forKey key: Key) throws { try add(value, forKey: key) }
    mutating func encodeIfPresent(_ value: Int8?, forKey key: Key) throws { try add(value, forKey: key) }
    mutating func encodeIfPresent(_ value: Int16?, forKey key: Key) throws { try add(value, forKey: key) }
    mutating func encodeIfPresent(_ value: Int32?, forKey key: Key) throws { try add(value, forKey: key) }
    mutating func encodeIfPresent(_ value: Int64?, forKey key: Key) throws { try add(value, forKey: key) }
    mutating func encodeIfPresent(_ value: Int128?, forKey key: Key) throws { try add(value, forKey: key) }
    mutating func encodeIfPresent(_ value: UInt?, forKey key: Key) throws { try add(value, forKey: key) }
    mutating func encodeIfPresent(_ value: UInt8?, forKey key: Key) throws { try add(value, forKey: key) }
    mutating func encodeIfPresent(_ value: UInt16?, forKey key: Key) throws { try add(value, forKey: key) }
    mutating func encodeIfPresent(_ value: UInt32?, forKey key: Key) throws { try add(value, forKey: key) }
    mutating func encodeIfPresent(_ value: UInt64?, forKey key: Key) throws { try add(value, forKey: key) }
    mutating func encodeIfPresent(_ value: UInt128?, forKey key: Key) throws { try add(value, forKey: key) }

    mutating func encodeIfPresent(_ value: (some Encodable)?, forKey key: Key) throws {
        try add(value, forKey: key)
    }

    mutating func nestedContainer<NestedKey: CodingKey>(
        keyedBy keyType: NestedKey.Type, forKey key: Key
    ) -> KeyedEncodingContainer<NestedKey> {
        existing(key).container(keyedBy: keyType)
    }

    mutating func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer {
        existing(key).unkeyedContainer()
    }

    mutating func superEncoder() -> any Encoder {
        added(SuperKey())
    }

    mutating func superEncoder(forKey key: Key) -> any Encoder {
        added(key)
    }

    private func add(_ value: (some Encodable)?, forKey key: Key) throws {
        if let value { try added(key).encode(value) } else { try added(key).encodeNil(as: .absent) }
    }

    /// Returns the encoder for the container at a key, which is continued if there is one.
    private func existing(_ key: some CodingKey) -> ParametersEncoder {
        guard !encoder.isTooDeep, let node = encoder.node.member(named: key.stringValue) else { return added(key) }
        return encoder.child(key, node: node)
    }

    /// Returns the encoder for a new value at a key.
    private func added(_ key: some CodingKey) -> ParametersEncoder {
        guard !encoder.isTooDeep else { return encoder }
        let child = encoder.child(key)
        encoder.node.add(child.node, named: key.stringValue)
        return child
    }
}

/// The default key of a superclass, as in `JSONEncoder`.
private struct SuperKey: CodingKey {
    init() {}
    init?(stringValue: String) { nil }
    init?(intValue: Int) { nil }
    var stringValue: String { "super" }
    var intValue: Int? { nil }
}
