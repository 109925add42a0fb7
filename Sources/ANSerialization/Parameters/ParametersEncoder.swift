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
