// SPDX-License-Identifier: MIT

import FoundationEssentials

/// An encoder that collects what an `Encodable` value encodes.
struct ParametersEncoder: Encoder {
    let node: ParametersNode
    let path: [any CodingKey]
    /// The number of nested calls of `encode(to:)`. It exceeds the length of the path if values encode themselves as
    /// another value, as optionals do.
    private let depth: Int
    /// The maximum number of nested calls: two for each permitted level of parameters.
    private static let maximumDepth = 2 * Parameters.maximumDepth

    let userInfo: [CodingUserInfoKey: Any]

    init(
        path: [any CodingKey], depth: Int, node: ParametersNode = ParametersNode(),
        userInfo: [CodingUserInfoKey: Any] = [:]
    ) {
        self.path = path
        self.depth = depth
        self.node = node
        self.userInfo = userInfo
    }

    var codingPath: [any CodingKey] { path }

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
        KeyedEncodingContainer(ParametersKeyedContainer(encoder: self))
    }

    func unkeyedContainer() -> any UnkeyedEncodingContainer {
        node.becomeArray()
        return ParametersUnkeyedContainer(encoder: self)
    }

    func singleValueContainer() -> any SingleValueEncodingContainer {
        ParametersSingleValueContainer(encoder: self)
    }

    /// Whether the encoder is below the permitted depth.
    ///
    /// Containers are created without throwing, so such an encoder may exist. It rejects every value and represents
    /// everything nested more deeply.
    var isTooDeep: Bool { path.count > Parameters.maximumDepth }

    /// Returns an encoder for a value below this one.
    func child(_ key: some CodingKey, node: ParametersNode = ParametersNode()) -> ParametersEncoder {
        ParametersEncoder(path: path + [key], depth: depth, node: node, userInfo: userInfo)
    }

    /// Stores an encoded value.
    func encode(_ value: some Encodable) throws {
        node.become(try box(value))
    }

    /// Stores the absence of a value: null or, for an optional property, absent.
    func encodeNil(as nothing: Parameters = .null) throws {
        try checkDepth()
        node.become(nothing)
    }

    private func checkDepth() throws(SerializationError) {
        guard !isTooDeep, depth <= Self.maximumDepth else {
            throw .parameters(.tooDeep(limit: Parameters.maximumDepth))
        }
    }

    /// Returns a value as parameters: scalars directly, other values by encoding them.
    func box(_ value: some Encodable) throws -> Parameters {
        try checkDepth()
        switch value {
        case let value as Parameters: return value
        case let value as String: return .string(value)
        case let value as Bool: return .bool(value)
        case let value as any BinaryInteger:
            if let integer = Int64(exactly: value) { return .integer(integer) }
            if let integer = UInt64(exactly: value) { return .unsigned(integer) }
            let context = EncodingError.Context(codingPath: path, debugDescription: "The integer exceeds 64 bits.")
            throw EncodingError.invalidValue(value, context)
        case let value as Double: return .double(value)
        // Converted through text, so that 0.1 remains 0.1.
        case let value as Float: return .double(Double(value.description) ?? Double(value))
        case let value as Decimal: return .double(Double(value.description) ?? .nan)
        case let value as Date: return .date(value)
        case let value as Data: return .data(value)
        case let value as URL: return .string(value.absoluteString)
        default:
            let encoder = ParametersEncoder(path: path, depth: depth + 1, userInfo: userInfo)
            try value.encode(to: encoder)
            return try encoder.node.parameters(depth: path.count, hasDataNames: value is any NamedByData)
        }
    }
}

/// A dictionary whose names are data, to which strategies for coding keys do not apply, as in `JSONEncoder`.
private protocol NamedByData {}

extension Dictionary: NamedByData where Key == String, Value: Encodable {}

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

    // The protocol has default implementations, which would be preferred over generic functions: for 128 bits, one that
    // throws, and for optional properties ones that omit nil.

    mutating func encode(_ value: Int128, forKey key: Key) throws { try added(key).encode(value) }
    mutating func encode(_ value: UInt128, forKey key: Key) throws { try added(key).encode(value) }
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

    mutating func encode(_ value: Int128) throws { try encoder.encode(value) }
    mutating func encode(_ value: UInt128) throws { try encoder.encode(value) }
}

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

    mutating func encode(_ value: Int128) throws { try added().encode(value) }
    mutating func encode(_ value: UInt128) throws { try added().encode(value) }

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
