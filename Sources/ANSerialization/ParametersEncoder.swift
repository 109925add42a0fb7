// SPDX-License-Identifier: MIT

import FoundationEssentials

/// Collects what an `Encodable` value says about itself.
struct ParametersEncoder: Encoder {
    let node = ParametersNode()
    let path: [any CodingKey]
    /// How many values are encoding themselves; more than the path has steps where a value encodes as another one.
    private let depth: Int

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

    /// An encoder for a value below this one.
    func child(_ key: some CodingKey) -> ParametersEncoder {
        ParametersEncoder(path: path + [key], depth: depth + 1)
    }

    /// The value as parameters: directly where it is a scalar, else by letting it encode itself.
    func box(_ value: some Encodable) throws -> Parameters {
        guard depth <= Parameters.maximumDepth else {
            throw SerializationError.parameters(.tooDeep(limit: Parameters.maximumDepth))
        }
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
            return encoder.node.parameters
        }
    }
}
