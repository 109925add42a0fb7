// SPDX-License-Identifier: MIT

import AsyncNetworking

/// A `Codable` wrapper of an `NSSecureCoding` object, such as a serializer, security policy or manager of this module
/// or a subclass of one.
///
/// It archives what `encode(with:)` of the object encodes, including the objects, numbers and Booleans that a subclass
/// encodes under its own keys. A class that is nested in another type cannot be found by name and cannot be archived.
/// The classes are not `Codable` themselves because every subclass would have to implement `init(from:)`.
///
/// ```swift
/// struct Settings: Codable {
///     var serializer: AFArchived<AFJSONRequestSerializer>
/// }
/// ```
public struct AFArchived<Object: NSObject & NSSecureCoding>: Codable {
    /// The wrapped object, which the copies of this value share.
    public var object: Object

    /// Creates a wrapper of an object. Whether it can be archived is determined when it is encoded.
    public init(_ object: Object) {
        self.object = object
    }

    /// Decodes an object of the class that was encoded, which must be `Object` or a subclass of it.
    ///
    /// - Throws: `DecodingError` if the data is not an archive of an `Object`.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        let archived = try container.decode(ArchivedObject.self)
        guard let object = try? archived.restored(as: [Object.self]) as? Object else {
            throw DecodingError.dataCorruptedError(
                in: container, debugDescription: "The data is not an archive of \(Object.self).")
        }
        self.object = object
    }

    /// Encodes the name of the object's class and the values that its `encode(with:)` archives.
    ///
    /// - Throws: `EncodingError` if the class of the object, or of an object in it, is nested in another type or not
    ///   `NSCoding`; any error of the encoder.
    public func encode(to encoder: any Encoder) throws {
        guard let archived = ArchivedObject(object) else {
            throw EncodingError.invalidValue(
                object,
                .init(codingPath: encoder.codingPath, debugDescription: "\(type(of: object)) is a nested type."))
        }
        var container = encoder.singleValueContainer()
        try container.encode(archived)
    }
}

/// The class name of an object and the values that it encoded.
private struct ArchivedObject: Codable {
    var name: String
    var entries: [String: ArchivedValue]

    /// Returns `nil` if the class of the object, or of an object in it, cannot be found by name.
    init?(_ object: any NSCoding & NSObject) {
        name = String(reflecting: type(of: object))
        guard let found = NSClassFromString(name), found == type(of: object) else { return nil }
        let coder = ValueCoder()
        object.encode(with: coder)
        guard !coder.hasFailed else { return nil }
        entries = coder.entries
    }

    /// Returns the object if its class is one of `classes` or a subclass of one; otherwise `nil`.
    ///
    /// - Throws: `CocoaError` if the object, or an object in it, cannot be decoded safely.
    func restored(as classes: [AnyClass]) throws -> Any? {
        guard let found = NSClassFromString(name) as? NSObject.Type,
            classes.contains(where: { found.isSubclass(of: $0) })
        else {
            return nil
        }
        guard !mayTrap else { throw CocoaError(.coderReadCorrupt) }
        let coder = ValueCoder(entries)
        let object = (found as? any NSCoding.Type)?.init(coder: coder)
        guard !coder.hasFailed else { throw CocoaError(.coderReadCorrupt) }
        return object
    }

    /// Whether the object is of a class of Foundation whose decoder may trap: on Linux most of them do if a value is
    /// missing or of another type, and all of them for the keys that only `NSKeyedUnarchiver` supports.
    private var mayTrap: Bool {
        let path = name.split(at: ".")
        guard path.count == 2, path[0] == "Foundation" || path[0] == "FoundationNetworking" else { return false }
        let isSafe = Self.safeClasses.contains(String(path[1]))
        return !isSafe || entries["NS.objects"] != nil || entries["NS.number"] != nil
    }

    private static let safeClasses: Set = [
        "NSDate", "NSDateComponents", "NSDictionary", "NSLocale", "NSMutableDictionary", "NSNull", "NSNumber",
        "NSTimeZone", "NSURL",
    ]
}

/// A value archived under a key.
private enum ArchivedValue: Codable {
    case data(Data)
    case text(String)
    case object(ArchivedObject)
    case objects([ArchivedObject])
    case number(Double)
    case integer(Int64)
}

/// An `NSCoder` that archives objects as `Codable` values. Foundation's archiver produces bytes and traps on decoding
/// an object of another class.
private final class ValueCoder: NSCoder {
    private(set) var entries: [String: ArchivedValue]
    /// Whether a value could not be archived or decoded.
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
        case .object(let object): restored(object, as: classes)
        case .objects(let objects): objects.compactMap { restored($0, as: classes) } as NSArray
        case .number, .integer, nil: nil
        }
    }

    private func restored(_ object: ArchivedObject, as classes: [AnyClass]?) -> Any? {
        do {
            return try object.restored(as: classes ?? [])
        } catch {
            hasFailed = true
            return nil
        }
    }
}

extension NSCoder {
    /// Archives a value as JSON, in which numbers that are not finite are strings.
    func encodeValue(_ value: some Encodable, forKey key: String) {
        let encoder = JSONEncoder()
        encoder.nonConformingFloatEncodingStrategy = .convertToString(
            positiveInfinity: "inf", negativeInfinity: "-inf", nan: "nan")
        guard let data = try? encoder.encode(value) else { return }
        encode(data as NSData, forKey: key)
    }

    /// Decodes a value that was archived as JSON; `nil` if the key is absent or the value cannot be decoded.
    func decodeValue<Value: Decodable>(_ type: Value.Type, forKey key: String) -> Value? {
        guard containsValue(forKey: key), let data = decodeObject(of: NSData.self, forKey: key) else { return nil }
        let decoder = JSONDecoder()
        decoder.nonConformingFloatDecodingStrategy = .convertFromString(
            positiveInfinity: "inf", negativeInfinity: "-inf", nan: "nan")
        return try? decoder.decodeUntrusted(type, from: data as Data)
    }
}
