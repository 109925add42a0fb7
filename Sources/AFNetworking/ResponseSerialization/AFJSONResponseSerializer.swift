// SPDX-License-Identifier: MIT

import ANSystem

/// A serializer that returns the Foundation objects for JSON: dictionaries, arrays, strings, numbers and `NSNull`.
///
/// It accepts `application/json`, `text/json` and `text/javascript`, and by default the status codes 200 to 299. For a
/// body that is empty or a single space the object is `nil`, without an error; for one that is not JSON the error is
/// 3840 of `NSCocoaErrorDomain`. If only the status code is unacceptable, there are both an object and an error.
open class AFJSONResponseSerializer: AFHTTPResponseSerializer, BodyConverter, @unchecked Sendable {
    private static let contentTypes: Set = ["application/json", "text/json", "text/javascript"]

    /// Creates a serializer without options, which accepts JSON media types and the status codes 200 to 299, requires
    /// an array or a dictionary as the outermost value, and keeps nulls.
    public override init() {
        super.init(Settings(contentTypes: Self.contentTypes))
    }

    /// Creates a serializer with options for reading JSON, which accepts JSON media types and the status codes 200 to
    /// 299.
    ///
    /// - Parameter readingOptions: The options; `.fragmentsAllowed` accepts any outermost value instead of an array or
    ///   a dictionary.
    public init(readingOptions: JSONSerialization.ReadingOptions) {
        super.init(Settings(contentTypes: Self.contentTypes, options: readingOptions.rawValue))
    }

    /// The options for reading JSON; `.fragmentsAllowed` accepts any outermost value. Default: none, which accepts an
    /// array or a dictionary.
    open var readingOptions: JSONSerialization.ReadingOptions {
        get { .init(rawValue: settings.withLock { $0.options }) }
        set { settings.withLock { $0.options = newValue.rawValue } }
    }

    /// Whether null values of dictionaries and null elements of arrays are removed from the object, at any depth.
    /// Default: `false`, which keeps them as `NSNull`. An outermost null is kept.
    open var removesKeysWithNullValues: Bool {
        get { settings.withLock { $0.removesNulls } }
        set { settings.withLock { $0.removesNulls = newValue } }
    }

    func convert(_ data: Data?) throws -> Any? {
        // Some servers send a space for an empty response.
        guard let data, !data.isEmpty, data.count > 1 || data.first != UInt8(ascii: " ") else { return nil }
        let options = readingOptions
        let object = try JSONSerialization.jsonObject(with: data, options: options)
        return removesKeysWithNullValues ? AFJSONObjectByRemovingKeysWithNullValues(object, options) : object
    }

    /// Creates a serializer from an archive of its acceptable responses and options; `nil` if these are missing or
    /// cannot be decoded, as in an archive of AFNetworking itself.
    public required init?(coder: NSCoder) {
        super.init(coder: coder)
    }

    override func makeEmptyCopy() -> AFHTTPResponseSerializer { AFJSONResponseSerializer() }
}
