// SPDX-License-Identifier: MIT

import FoundationEssentials

/// Collects what an `Encodable` value says about itself.
struct ParametersEncoder: Encoder {
    let node = ParametersNode()
    let path: [any CodingKey]
    /// How many values are encoding themselves; more than the path has steps where a value encodes as another one, as an
    /// optional does.
    private let depth: Int
    /// How many values may: two for each level that parameters may have.
    private static let maximumDepth = 2 * Parameters.maximumDepth

    init(path: [any CodingKey], depth: Int) {
        self.path = path
        self.depth = depth
    }

    var codingPath: [any CodingKey] { path }
    var userInfo: [CodingUserInfoKey: Any] { [:] }

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

    /// Whether parameters do not reach down to here.
    ///
    /// Containers are made without throwing, so there may be such an encoder. It refuses every value, and stands for all that
    /// is nested still deeper.
    var isTooDeep: Bool { path.count > Parameters.maximumDepth }

    /// An encoder for a value below this one.
    func child(_ key: some CodingKey) -> ParametersEncoder {
        ParametersEncoder(path: path + [key], depth: depth)
    }

    /// Takes a value.
    func encode(_ value: some Encodable) throws {
        node.become(try box(value))
    }

    /// Takes the absence of a value, which is null or, for an optional property, absent.
    func encodeNil(as nothing: Parameters = .null) throws {
        try checkDepth()
        node.become(nothing)
    }

    private func checkDepth() throws(SerializationError) {
        guard !isTooDeep, depth <= Self.maximumDepth else {
            throw .parameters(.tooDeep(limit: Parameters.maximumDepth))
        }
    }

    /// The value as parameters: directly where it is a scalar, else by letting it encode itself.
    func box(_ value: some Encodable) throws -> Parameters {
        try checkDepth()
        switch value {
        case let value as Parameters: return value
        case let value as String: return .string(value)
        case let value as Bool: return .bool(value)
        case let value as any BinaryInteger:
            if let integer = Int64(exactly: value) { return .integer(integer) }
            if let integer = UInt64(exactly: value) { return .unsigned(integer) }
            let context = EncodingError.Context(codingPath: path, debugDescription: "The integer has over 64 bits.")
            throw EncodingError.invalidValue(value, context)
        case let value as Double: return .double(value)
        // By way of text, so that 0.1 stays 0.1.
        case let value as Float: return .double(Double(value.description) ?? Double(value))
        case let value as Decimal: return .double(Double(value.description) ?? .nan)
        case let value as Date: return .date(value)
        case let value as Data: return .data(value)
        case let value as URL: return .string(value.absoluteString)
        default:
            let encoder = ParametersEncoder(path: path, depth: depth + 1)
            try value.encode(to: encoder)
            return try encoder.node.parameters(depth: path.count)
        }
    }
}
