// SPDX-License-Identifier: MIT

import ANSystem
import AsyncNetworking

/// A serializer that returns the objects of XML and binary property lists. It accepts `application/x-plist`.
///
/// `error` is set for an empty body, for a list that is nested too deeply or contains itself, and for the OpenStep
/// format. If there is no body, the object is `nil` without an error.
open class AFPropertyListResponseSerializer: AFHTTPResponseSerializer, @unchecked Sendable {
    private let settings: Lock<Settings>

    private struct Settings: Codable, Sendable {
        var format = PropertyListSerialization.PropertyListFormat.xml.rawValue
        var readOptions: UInt = 0
    }

    /// Creates a serializer with default options.
    public override init() {
        settings = Lock(Settings())
        super.init(contentTypes: ["application/x-plist"])
    }

    /// Creates a serializer with options for reading. Lists of any format are read, regardless of `format`.
    public init(
        format: PropertyListSerialization.PropertyListFormat, readOptions: PropertyListSerialization.ReadOptions
    ) {
        settings = Lock(Settings(format: format.rawValue, readOptions: readOptions.rawValue))
        super.init(contentTypes: ["application/x-plist"])
    }

    /// A property list format; has no effect, as all formats are read. Default: XML.
    open var format: PropertyListSerialization.PropertyListFormat {
        get { .init(rawValue: settings.withLock { $0.format }) ?? .xml }
        set { settings.withLock { $0.format = newValue.rawValue } }
    }

    /// The options for reading property lists. Default: none.
    open var readOptions: PropertyListSerialization.ReadOptions {
        get { .init(rawValue: settings.withLock { $0.readOptions }) }
        set { settings.withLock { $0.readOptions = newValue.rawValue } }
    }

    override func object(of data: Data?, _ validity: ResponseValidity, _ error: NSErrorPointer) -> Any? {
        guard !validity.stops(error), let data else { return nil }
        do {
            let list = try PropertyListGuard.checked(data)
            return try PropertyListSerialization.propertyList(from: list, options: readOptions)
        } catch let failure as SerializationError {
            let refusal = NSError(
                domain: NSCocoaErrorDomain, code: CocoaError.Code.propertyListReadCorrupt.rawValue,
                userInfo: [NSLocalizedDescriptionKey: "\(failure)"])
            validity.fail(refusal, data, error)
            return nil
        } catch let failure {
            validity.fail(failure, data, error)
            return nil
        }
    }

    /// Creates a serializer from an archive of its acceptable responses, format and options.
    public required init?(coder: NSCoder) {
        settings = Lock(coder.decodeValue(Settings.self, forKey: "propertyList") ?? Settings())
        super.init(coder: coder)
    }

    /// Archives the acceptable responses, the format and the options.
    open override func encode(with coder: NSCoder) {
        super.encode(with: coder)
        coder.encodeValue(settings.withLock { $0 }, forKey: "propertyList")
    }

    /// Returns a serializer with the same acceptable responses, format and options.
    open override func copy(with zone: NSZone? = nil) -> Any {
        AFPropertyListResponseSerializer(format: format, readOptions: readOptions).accepting(as: self)
    }
}
