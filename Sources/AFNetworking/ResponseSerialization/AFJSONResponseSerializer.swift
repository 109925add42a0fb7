// SPDX-License-Identifier: MIT

import ANSystem

/// A serializer that returns the Foundation objects for JSON: dictionaries, arrays, strings, numbers and `NSNull`.
///
/// It accepts `application/json`, `text/json` and `text/javascript`. For a body that is empty or a single space the
/// object is `nil`. If only the status code is unacceptable, there are both an object and an error.
open class AFJSONResponseSerializer: AFHTTPResponseSerializer, @unchecked Sendable {
    private let settings: Lock<Settings>

    private struct Settings: Codable, Sendable {
        var readingOptions: UInt = 0
        var removesNulls = false
    }

    private static let contentTypes: Set = ["application/json", "text/json", "text/javascript"]

    /// Creates a serializer that accepts an array or a dictionary as the outermost value.
    public override init() {
        settings = Lock(Settings())
        super.init(contentTypes: Self.contentTypes)
    }

    /// Creates a serializer with options for reading JSON.
    public init(readingOptions: JSONSerialization.ReadingOptions) {
        settings = Lock(Settings(readingOptions: readingOptions.rawValue))
        super.init(contentTypes: Self.contentTypes)
    }

    /// The options for reading JSON; `fragmentsAllowed` accepts any outermost value. Default: none.
    open var readingOptions: JSONSerialization.ReadingOptions {
        get { .init(rawValue: settings.withLock { $0.readingOptions }) }
        set { settings.withLock { $0.readingOptions = newValue.rawValue } }
    }

    /// Whether nulls are removed from arrays and dictionaries. Default: `false`.
    open var removesKeysWithNullValues: Bool {
        get { settings.withLock { $0.removesNulls } }
        set { settings.withLock { $0.removesNulls = newValue } }
    }

    override func object(of data: Data?, _ validity: ResponseValidity, _ error: NSErrorPointer) -> Any? {
        guard !validity.stops(error) else { return nil }
        guard let data, !data.isEmpty, data != Self.oneSpace else { return nil }
        do {
            let options = readingOptions
            let object = try JSONSerialization.jsonObject(with: data, options: options)
            return removesKeysWithNullValues ? AFJSONObjectByRemovingKeysWithNullValues(object, options) : object
        } catch let failure {
            validity.fail(failure, data, error)
            return nil
        }
    }

    /// The body that some servers send for an empty response.
    private static let oneSpace = Data(" ".utf8)

    /// Creates a serializer from an archive of its acceptable responses and options.
    public required init?(coder: NSCoder) {
        settings = Lock(coder.decodeValue(Settings.self, forKey: "JSON") ?? Settings())
        super.init(coder: coder)
    }

    /// Archives the acceptable responses and the options.
    open override func encode(with coder: NSCoder) {
        super.encode(with: coder)
        coder.encodeValue(settings.withLock { $0 }, forKey: "JSON")
    }

    /// Returns a serializer with the same acceptable responses and options.
    open override func copy(with zone: NSZone? = nil) -> Any {
        let copy = AFJSONResponseSerializer(readingOptions: readingOptions).accepting(as: self)
        copy.removesKeysWithNullValues = removesKeysWithNullValues
        return copy
    }
}
