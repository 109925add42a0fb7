// SPDX-License-Identifier: MIT

import Foundation

/// An `NSCoder` that passes the values of a manager to a copy, unchanged.
final class CopyCoder: NSCoder {
    /// The configuration of the copy, which may carry a core session.
    let configuration: URLSessionConfiguration
    private var values: [String: Any] = [:]

    init(_ configuration: URLSessionConfiguration) {
        self.configuration = configuration
        super.init()
    }

    override var allowsKeyedCoding: Bool { true }
    override var requiresSecureCoding: Bool { true }
    override func containsValue(forKey key: String) -> Bool { values[key] != nil }

    override func encode(_ object: Any?, forKey key: String) { values[key] = object }
    override func encodeConditionalObject(_ object: Any?, forKey key: String) { values[key] = object }
    override func encode(_ value: Bool, forKey key: String) { values[key] = value }
    override func encode(_ value: Int, forKey key: String) { values[key] = Int64(value) }
    override func encode(_ value: Int32, forKey key: String) { values[key] = Int64(value) }
    override func encode(_ value: Int64, forKey key: String) { values[key] = value }
    override func encode(_ value: Float, forKey key: String) { values[key] = Double(value) }
    override func encode(_ value: Double, forKey key: String) { values[key] = value }

    override func decodeBool(forKey key: String) -> Bool { values[key] as? Bool ?? false }
    override func decodeInteger(forKey key: String) -> Int { Int(decodeInt64(forKey: key)) }
    override func decodeInt32(forKey key: String) -> Int32 { Int32(clamping: decodeInt64(forKey: key)) }
    override func decodeInt64(forKey key: String) -> Int64 { values[key] as? Int64 ?? 0 }
    override func decodeFloat(forKey key: String) -> Float { Float(decodeDouble(forKey: key)) }
    override func decodeDouble(forKey key: String) -> Double { values[key] as? Double ?? 0 }
    override func decodeObject(forKey key: String) -> Any? { values[key] }

    override func decodeObject<Object: NSObject & NSCoding>(of type: Object.Type, forKey key: String) -> Object? {
        values[key] as? Object
    }

    override func decodeObject(of classes: [AnyClass]?, forKey key: String) -> Any? { values[key] }
}

extension NSCopying {
    /// Returns a copy of the object, or the object itself if the copy would lack the overrides of its class.
    func copyOfSameClass(_ zone: NSZone?) -> Self {
        let copy = self.copy(with: zone)
        return type(of: copy) == type(of: self as Any) ? copy as? Self ?? self : self
    }
}
