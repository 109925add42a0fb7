// SPDX-License-Identifier: MIT

import FoundationEssentials

extension Parameters {
    /// Parameters from any encodable value, in the order in which it encodes itself.
    ///
    /// A `Date` stays a date, a `Data` becomes Base64, a `URL` its text, a `Decimal` a double.
    ///
    /// - Throws: ``SerializationError/parameters(_:)`` when the value is nested too deeply or fails to encode itself.
    public init(encoding value: some Encodable) throws(SerializationError) {
        do {
            self = try ParametersEncoder(path: [], depth: 0).box(value)
        } catch let error as SerializationError {
            throw error
        } catch EncodingError.invalidValue(_, let context) {
            let path = context.codingPath.map { PathStep($0) }.pathDescription
            throw .parameters(
                .encodable(
                    path: path, reason: context.debugDescription,
                    underlying: context.underlyingError ?? EncodingError.invalidValue(value, context)))
        } catch {
            throw .parameters(.encodable(path: "", reason: String(describing: error), underlying: error))
        }
    }
}

/// Collects what an `Encodable` value says about itself.
struct ParametersEncoder: Encoder {
    fileprivate let node = ParametersNode()
    fileprivate let path: [any CodingKey]
    /// How many values are encoding themselves; more than the path has steps where a value encodes as another one.
    private let depth: Int

    fileprivate init(path: [any CodingKey], depth: Int) {
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
    fileprivate func child(_ key: some CodingKey) -> ParametersEncoder {
        ParametersEncoder(path: path + [key], depth: depth + 1)
    }

    /// The value as parameters: directly where it is a scalar, else by letting it encode itself.
    fileprivate func box(_ value: some Encodable) throws -> Parameters {
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
        case let value as Data: return .string(value.base64EncodedString())
        case let value as URL: return .string(value.absoluteString)
        default:
            let encoder = ParametersEncoder(path: path, depth: depth + 1)
            try value.encode(to: encoder)
            return encoder.node.parameters
        }
    }
}

/// A place in the tree that is filled while values encode themselves.
private final class ParametersNode {
    private var content = Content.empty

    private enum Content {
        case empty
        case value(Parameters)
        case dictionary([(String, ParametersNode)])
        case array([ParametersNode])
    }

    func become(_ value: Parameters) {
        content = .value(value)
    }

    func becomeDictionary() {
        if case .empty = content { content = .dictionary([]) }
    }

    func becomeArray() {
        if case .empty = content { content = .array([]) }
    }

    func add(_ node: ParametersNode, named name: String) {
        guard case .dictionary(var entries) = content else { return }
        content = .empty
        entries.append((name, node))
        content = .dictionary(entries)
    }

    func add(_ node: ParametersNode) {
        guard case .array(var elements) = content else { return }
        content = .empty
        elements.append(node)
        content = .array(elements)
    }

    var count: Int {
        if case .array(let elements) = content { elements.count } else { 0 }
    }

    /// The tree below this place.
    ///
    /// A value that encoded nothing is an empty dictionary, as in `JSONEncoder`.
    var parameters: Parameters {
        switch content {
        case .empty: [:]
        case .value(let value): value
        case .dictionary(let entries): .dictionary(entries.map { Parameters.Entry($0.0, $0.1.parameters) })
        case .array(let elements): .array(elements.map(\.parameters))
        }
    }
}

private struct ParametersKeyedContainer<Key: CodingKey>: KeyedEncodingContainerProtocol {
    let encoder: ParametersEncoder

    init(encoder: ParametersEncoder) {
        self.encoder = encoder
        encoder.node.becomeDictionary()
    }

    var codingPath: [any CodingKey] { encoder.path }

    mutating func encodeNil(forKey key: Key) {
        added(key).node.become(.null)
    }

    mutating func encode(_ value: some Encodable, forKey key: Key) throws {
        let child = added(key)
        child.node.become(try child.box(value))
    }

    mutating func nestedContainer<NestedKey: CodingKey>(
        keyedBy keyType: NestedKey.Type, forKey key: Key
    ) -> KeyedEncodingContainer<NestedKey> {
        added(key).container(keyedBy: keyType)
    }

    mutating func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer {
        added(key).unkeyedContainer()
    }

    mutating func superEncoder() -> any Encoder {
        added(SuperKey())
    }

    mutating func superEncoder(forKey key: Key) -> any Encoder {
        added(key)
    }

    private func added(_ key: some CodingKey) -> ParametersEncoder {
        let child = encoder.child(key)
        encoder.node.add(child.node, named: key.stringValue)
        return child
    }
}

private struct ParametersUnkeyedContainer: UnkeyedEncodingContainer {
    let encoder: ParametersEncoder

    var codingPath: [any CodingKey] { encoder.path }
    var count: Int { encoder.node.count }

    mutating func encodeNil() {
        added().node.become(.null)
    }

    mutating func encode(_ value: some Encodable) throws {
        let child = added()
        child.node.become(try child.box(value))
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
        let child = encoder.child(IndexKey(index: count))
        encoder.node.add(child.node)
        return child
    }
}

private struct ParametersSingleValueContainer: SingleValueEncodingContainer {
    let encoder: ParametersEncoder

    var codingPath: [any CodingKey] { encoder.path }

    mutating func encodeNil() {
        encoder.node.become(.null)
    }

    mutating func encode(_ value: some Encodable) throws {
        encoder.node.become(try encoder.box(value))
    }
}

private struct SuperKey: CodingKey {
    init() {}
    init?(stringValue: String) { nil }
    init?(intValue: Int) { nil }
    var stringValue: String { "super" }
    var intValue: Int? { nil }
}

private struct IndexKey: CodingKey {
    let index: Int

    init(index: Int) { self.index = index }
    init?(stringValue: String) { nil }
    init?(intValue: Int) { index = intValue }
    var stringValue: String { "Index \(index)" }
    var intValue: Int? { index }
}
