// SPDX-License-Identifier: MIT

import ANSystem

/// A serializer that encodes parameters into the query of GET, HEAD and DELETE requests and into a property list for
/// other methods.
///
/// If the parameters are `nil`, the request has neither a body nor a `Content-Type`.
open class AFPropertyListRequestSerializer: AFHTTPRequestSerializer, @unchecked Sendable {
    private let settings: Lock<Settings>

    private struct Settings: Codable, Sendable {
        var format = PropertyListSerialization.PropertyListFormat.xml.rawValue
        var writeOptions = 0
    }

    /// Creates a serializer that writes XML property lists.
    public override init() {
        settings = Lock(Settings())
        super.init()
    }

    /// Creates a serializer that writes XML or binary property lists.
    public init(
        format: PropertyListSerialization.PropertyListFormat, writeOptions: PropertyListSerialization.WriteOptions
    ) {
        settings = Lock(Settings(format: format.rawValue, writeOptions: writeOptions))
        super.init()
    }

    /// The format of the property list. Default: XML.
    open var format: PropertyListSerialization.PropertyListFormat {
        get { .init(rawValue: settings.withLock { $0.format }) ?? .xml }
        set { settings.withLock { $0.format = newValue.rawValue } }
    }

    /// The options for writing property lists. Foundation defines none.
    open var writeOptions: PropertyListSerialization.WriteOptions {
        get { settings.withLock { $0.writeOptions } }
        set { settings.withLock { $0.writeOptions = newValue } }
    }

    override func encode(
        _ parameters: Any?, for method: String, _ request: () -> URLRequest
    ) throws -> EncodedParameters {
        guard !encodesParametersInURI(method) else { return try super.encode(parameters, for: method, request) }
        guard let parameters else { return .nothing }
        do {
            return .body(
                try PropertyListSerialization.data(fromPropertyList: parameters, format: format, options: writeOptions),
                contentType: "application/x-plist")
        } catch {
            throw (error as NSError).about(request())
        }
    }

    /// Creates a serializer from an archive of its header fields, query style, format and options.
    public required init?(coder: NSCoder) {
        settings = Lock(coder.decodeValue(Settings.self, forKey: "propertyList") ?? Settings())
        super.init(coder: coder)
    }

    /// Archives the header fields, the query style, the format and the options.
    open override func encode(with coder: NSCoder) {
        super.encode(with: coder)
        coder.encodeValue(settings.withLock { $0 }, forKey: "propertyList")
    }

    /// Returns a serializer with the same header fields, query style, query block, format and options.
    open override func copy(with zone: NSZone? = nil) -> Any {
        let copy = AFPropertyListRequestSerializer(format: format, writeOptions: writeOptions)
        copy.takeOver(from: self)
        return copy
    }
}
