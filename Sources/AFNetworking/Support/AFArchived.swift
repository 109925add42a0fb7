// SPDX-License-Identifier: MIT

/// A serializer, a policy or a manager of this module's, or of a subclass, as part of a `Codable` value.
///
/// It keeps what `NSSecureCoding` keeps. The classes are not `Codable` themselves: each subclass would have to bring an
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
    /// - Throws: What the encoder throws.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(ArchivedObject(object))
    }
}

/// An object as its class archives it.
private struct ArchivedObject: Codable {
    var name: String
    var entries: [String: ArchivedValue]

    init(_ object: any NSCoding & NSObject) {
        name = NSStringFromClass(type(of: object))
        let coder = ValueCoder()
        object.encode(with: coder)
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
    case object(ArchivedObject)
    case objects([ArchivedObject])
}

/// Archives objects as `Codable` values. Foundation's archiver makes bytes, and traps where they are of another class.
private final class ValueCoder: NSCoder {
    private(set) var entries: [String: ArchivedValue]

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
        case let array as [any NSCoding & NSObject]: entries[key] = .objects(array.map(ArchivedObject.init))
        case let object as any NSCoding & NSObject: entries[key] = .object(ArchivedObject(object))
        default: break
        }
    }

    override func decodeObject<Object: NSObject & NSCoding>(of type: Object.Type, forKey key: String) -> Object? {
        decodeObject(of: [type], forKey: key) as? Object
    }

    override func decodeObject(of classes: [AnyClass]?, forKey key: String) -> Any? {
        switch entries[key] {
        case .data(let data): data as NSData
        case .object(let object): object.restored(as: classes ?? [])
        case .objects(let objects): objects.compactMap { $0.restored(as: classes ?? []) } as NSArray
        case nil: nil
        }
    }
}
