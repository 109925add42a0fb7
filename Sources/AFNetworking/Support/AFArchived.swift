// SPDX-License-Identifier: MIT

/// A serializer, a policy or a manager of this module's, or of a subclass, as part of a `Codable` value.
///
/// It keeps what `NSSecureCoding` keeps: of a subclass too what it encodes under keys, objects, numbers and truth values. A
/// class that stands within another type cannot be found again, and cannot be archived. The classes are not `Codable` themselves: each subclass would have to bring an
/// initializer that none has.
///
/// ```swift
/// struct Settings: Codable {
///     var serializer: AFArchived<AFJSONRequestSerializer>
/// }
/// ```
public struct AFArchived<Object: NSObject & NSSecureCoding>: Codable {
    /// What is archived.
    public var object: Object

    /// Takes what is to be archived.
    public init(_ object: Object) {
        self.object = object
    }

    /// Restores an object.
    ///
    /// - Throws: `DecodingError` where there is no archive of such an object.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        guard let object = try container.decode(ArchivedObject.self).restored(as: [Object.self]) as? Object else {
            throw DecodingError.dataCorruptedError(
                in: container, debugDescription: "This is no archive of \(Object.self).")
        }
        self.object = object
    }

    /// Archives the object.
    ///
    /// - Throws: `EncodingError` for a class that stands within another type; what the encoder throws.
    public func encode(to encoder: any Encoder) throws {
        guard let archived = ArchivedObject(object) else {
            throw EncodingError.invalidValue(
                object,
                .init(codingPath: encoder.codingPath, debugDescription: "\(type(of: object)) is not at the top level."))
        }
        var container = encoder.singleValueContainer()
        try container.encode(archived)
    }
}

/// An object as its class archives it.
private struct ArchivedObject: Codable {
    var name: String
    var entries: [String: ArchivedValue]

    /// Nil where the object, or one in it, is of a class that cannot be found by its name.
    init?(_ object: any NSCoding & NSObject) {
        name = String(reflecting: type(of: object))
        guard let found = NSClassFromString(name), found == type(of: object) else { return nil }
        let coder = ValueCoder()
        object.encode(with: coder)
        guard !coder.hasFailed else { return nil }
        entries = coder.entries
    }

    /// The object, where its class is one of these or descends from one.
    func restored(as classes: [AnyClass]) -> Any? {
        guard let found = NSClassFromString(name) as? NSObject.Type,
            classes.contains(where: { found.isSubclass(of: $0) })
        else {
            return nil
        }
        return (found as? any NSCoding.Type)?.init(coder: ValueCoder(entries))
    }
}

/// What the classes of this module archive under a key.
private enum ArchivedValue: Codable {
    case data(Data)
    case text(String)
    case object(ArchivedObject)
    case objects([ArchivedObject])
    case number(Double)
    case integer(Int64)
}

/// Archives objects as `Codable` values. Foundation's archiver makes bytes, and traps where they are of another class.
private final class ValueCoder: NSCoder {
    private(set) var entries: [String: ArchivedValue]
    /// Whether something could not be archived.
    private(set) var hasFailed = false

    init(_ entries: [String: ArchivedValue] = [:]) {
        self.entries = entries
        super.init()
    }

    override var allowsKeyedCoding: Bool { true }
    override var requiresSecureCoding: Bool { true }
    override func containsValue(forKey key: String) -> Bool { entries[key] != nil }

    override func encode(_ object: Any?, forKey key: String) {
        switch object {
        case let data as Data: entries[key] = .data(data)
        case let string as String: entries[key] = .text(string)
        case let array as [any NSCoding & NSObject]:
            let archived = array.compactMap(ArchivedObject.init)
            hasFailed = hasFailed || archived.count < array.count
            entries[key] = .objects(archived)
        case let object as any NSCoding & NSObject:
            let archived = ArchivedObject(object)
            hasFailed = hasFailed || archived == nil
            entries[key] = archived.map(ArchivedValue.object)
        case nil: break
        default: hasFailed = true
        }
    }

    override func encode(_ value: Bool, forKey key: String) { entries[key] = .integer(value ? 1 : 0) }
    override func encode(_ value: Int, forKey key: String) { entries[key] = .integer(Int64(value)) }
    override func encode(_ value: Int32, forKey key: String) { entries[key] = .integer(Int64(value)) }
    override func encode(_ value: Int64, forKey key: String) { entries[key] = .integer(value) }
    override func encode(_ value: Float, forKey key: String) { entries[key] = .number(Double(value)) }
    override func encode(_ value: Double, forKey key: String) { entries[key] = .number(value) }

    private func integer(_ key: String) -> Int64 {
        if case .integer(let value)? = entries[key] { value } else { 0 }
    }

    override func decodeBool(forKey key: String) -> Bool { integer(key) != 0 }
    override func decodeInteger(forKey key: String) -> Int { Int(integer(key)) }
    override func decodeInt32(forKey key: String) -> Int32 { Int32(clamping: integer(key)) }
    override func decodeInt64(forKey key: String) -> Int64 { integer(key) }
    override func decodeFloat(forKey key: String) -> Float { Float(decodeDouble(forKey: key)) }
    override func decodeDouble(forKey key: String) -> Double {
        if case .number(let value)? = entries[key] { value } else { 0 }
    }

    override func decodeObject(forKey key: String) -> Any? {
        decodeObject(of: [NSObject.self], forKey: key)
    }

    override func decodeObject<Object: NSObject & NSCoding>(of type: Object.Type, forKey key: String) -> Object? {
        decodeObject(of: [type], forKey: key) as? Object
    }

    override func decodeObject(of classes: [AnyClass]?, forKey key: String) -> Any? {
        switch entries[key] {
        case .data(let data): data as NSData
        case .text(let text): text as NSString
        case .object(let object): object.restored(as: classes ?? [])
        case .objects(let objects): objects.compactMap { $0.restored(as: classes ?? []) } as NSArray
        case .number, .integer, nil: nil
        }
    }
}
