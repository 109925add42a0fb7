// SPDX-License-Identifier: MIT

import ANSystem
import AsyncNetworking

/// Makes objects of property lists, XML or binary; it takes `application/x-plist`.
///
/// An empty body is an error, unlike no body at all; so is a list that is nested too deeply, that holds itself, or in the
/// format of OpenStep.
open class AFPropertyListResponseSerializer: AFHTTPResponseSerializer, @unchecked Sendable {
    private let settings: Lock<Settings>

    private struct Settings: Codable, Sendable {
        var format = PropertyListSerialization.PropertyListFormat.xml.rawValue
        var readOptions: UInt = 0
    }

    /// Creates a serializer.
    public override init() {
        settings = Lock(Settings())
        super.init(contentTypes: ["application/x-plist"])
    }

    /// Creates a serializer with options for reading; any format is read.
    public init(
        format: PropertyListSerialization.PropertyListFormat, readOptions: PropertyListSerialization.ReadOptions
    ) {
        settings = Lock(Settings(format: format.rawValue, readOptions: readOptions.rawValue))
        super.init(contentTypes: ["application/x-plist"])
    }

    /// A format; any is read.
    open var format: PropertyListSerialization.PropertyListFormat {
        get { .init(rawValue: settings.withLock { $0.format }) ?? .xml }
        set { settings.withLock { $0.format = newValue.rawValue } }
    }

    /// How property lists are read.
    open var readOptions: PropertyListSerialization.ReadOptions {
        get { .init(rawValue: settings.withLock { $0.readOptions }) }
        set { settings.withLock { $0.readOptions = newValue.rawValue } }
    }

    override func object(of data: Data?, _ verdict: ResponseVerdict, _ error: NSErrorPointer) -> Any? {
        guard !verdict.stops(error), let data else { return nil }
        do {
            let list = try PropertyListGuard.checked(data)
            return try PropertyListSerialization.propertyList(from: list, options: readOptions)
        } catch let failure as SerializationError {
            let refusal = NSError(
                domain: NSCocoaErrorDomain, code: CocoaError.Code.propertyListReadCorrupt.rawValue,
                userInfo: [NSLocalizedDescriptionKey: "\(failure)"])
            verdict.fail(refusal, data, error)
            return nil
        } catch let failure {
            verdict.fail(failure, data, error)
            return nil
        }
    }

    /// Restores what is acceptable and the options.
    public required init?(coder: NSCoder) {
        settings = Lock(coder.decodeValue(Settings.self, forKey: "propertyList") ?? Settings())
        super.init(coder: coder)
    }

    /// Archives what is acceptable and the options.
    open override func encode(with coder: NSCoder) {
        super.encode(with: coder)
        coder.encodeValue(settings.withLock { $0 }, forKey: "propertyList")
    }

    /// A serializer that takes the same responses with the same options.
    open override func copy(with zone: NSZone? = nil) -> Any {
        AFPropertyListResponseSerializer(format: format, readOptions: readOptions).accepting(as: self)
    }
}
