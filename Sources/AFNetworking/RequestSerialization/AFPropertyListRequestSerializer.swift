// SPDX-License-Identifier: MIT

import ANSystem

/// Puts parameters into the query of GET, HEAD and DELETE, and into a property list for other methods.
///
/// Nil parameters make no body and no `Content-Type`.
open class AFPropertyListRequestSerializer: AFHTTPRequestSerializer, @unchecked Sendable {
    private let settings: Lock<Settings>

    private struct Settings: Codable, Sendable {
        var format = PropertyListSerialization.PropertyListFormat.xml.rawValue
        var writeOptions = 0
    }

    /// Creates a serializer that writes XML.
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

    /// The format that is written.
    open var format: PropertyListSerialization.PropertyListFormat {
        get { .init(rawValue: settings.withLock { $0.format }) ?? .xml }
        set { settings.withLock { $0.format = newValue.rawValue } }
    }

    /// Options that Foundation has no meaning for.
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

    /// Restores what an archive keeps, the format and the options among it.
    public required init?(coder: NSCoder) {
        settings = Lock(coder.decodeValue(Settings.self, forKey: "propertyList") ?? Settings())
        super.init(coder: coder)
    }

    /// Archives what an archive keeps, the format and the options among it.
    open override func encode(with coder: NSCoder) {
        super.encode(with: coder)
        coder.encodeValue(settings.withLock { $0 }, forKey: "propertyList")
    }

    /// A serializer that keeps what copies keep, the format and the options among it.
    open override func copy(with zone: NSZone? = nil) -> Any {
        let copy = AFPropertyListRequestSerializer(format: format, writeOptions: writeOptions)
        copy.takeOver(from: self)
        return copy
    }
}
