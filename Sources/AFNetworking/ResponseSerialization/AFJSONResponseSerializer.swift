// SPDX-License-Identifier: MIT

import ANSystem
import AsyncNetworking

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
        let object = try JSONSerialization.jsonObject(with: Self.checked(data), options: options)
        return removesKeysWithNullValues ? AFJSONObjectByRemovingKeysWithNullValues(object, options) : object
    }

    /// Returns a document in UTF-8, so that the parser reads what was checked.
    ///
    /// - Throws: Error 3840 if it is not valid in its encoding, or the names of its members would take minutes to compare.
    private static func checked(_ data: Data) throws -> Data {
        var document = data
        if let encoding = TextEncoding(byteOrderMarkOf: data) ?? TextEncoding(zerosOf: data) {
            // With a NUL, the parser would take the text for one in another encoding.
            guard let text = encoding.decode(data), !text.utf8.contains(0) else {
                throw CocoaError(.propertyListReadCorrupt)
            }
            document = Data(text.utf8)
        }
        if CombiningRun.isTooLong(inJSON: document) { throw CocoaError(.propertyListReadCorrupt) }
        return document
    }

    /// Creates a serializer from an archive of its acceptable responses and options; `nil` if these are missing or
    /// cannot be decoded, as in an archive of AFNetworking itself.
    public required init?(coder: NSCoder) {
        super.init(coder: coder)
    }

    override func makeEmptyCopy() -> AFHTTPResponseSerializer { AFJSONResponseSerializer() }
}

/// A serializer that returns the objects of XML and binary property lists. It accepts `application/x-plist`.
///
/// The error is 3840 of `NSCocoaErrorDomain` for an empty body, which is that of every download, for a list that is
/// malformed, nested more than 64 levels deep, contains itself, or would expand to more than 64 times its size and 1
/// MiB through shared objects, and for the OpenStep format. If the body is `nil`, the object is `nil` without an error.
open class AFPropertyListResponseSerializer: AFHTTPResponseSerializer, BodyConverter, @unchecked Sendable {
    /// Creates a serializer without options, which accepts `application/x-plist` and the status codes 200 to 299, and
    /// reads XML and binary lists.
    public override init() {
        super.init(Settings(contentTypes: ["application/x-plist"]))
    }

    /// Creates a serializer with options for reading, which accepts `application/x-plist` and the status codes 200 to
    /// 299.
    ///
    /// - Parameters:
    ///   - format: A format, which has no effect: XML and binary lists are read.
    ///   - readOptions: The options for reading, such as `.mutableContainers`; none by default.
    public init(
        format: PropertyListSerialization.PropertyListFormat, readOptions: PropertyListSerialization.ReadOptions = []
    ) {
        super.init(
            Settings(contentTypes: ["application/x-plist"], options: readOptions.rawValue, format: format.rawValue))
    }

    /// A property list format; has no effect, as XML and binary lists are read in any case. Default: XML.
    open var format: PropertyListSerialization.PropertyListFormat {
        get { .init(rawValue: settings.withLock { $0.format }) ?? .xml }
        set { settings.withLock { $0.format = newValue.rawValue } }
    }

    /// The options for reading property lists. Default: none.
    open var readOptions: PropertyListSerialization.ReadOptions {
        get { .init(rawValue: settings.withLock { $0.options }) }
        set { settings.withLock { $0.options = newValue.rawValue } }
    }

    func convert(_ data: Data?) throws -> Any? {
        guard let data else { return nil }
        return try PropertyListSerialization.propertyList(
            from: PropertyListGuard.checked(data), options: readOptions)
    }

    /// Creates a serializer from an archive of its acceptable responses, format and options; `nil` if these are missing
    /// or cannot be decoded, as in an archive of AFNetworking itself.
    public required init?(coder: NSCoder) {
        super.init(coder: coder)
    }

    override func makeEmptyCopy() -> AFHTTPResponseSerializer { AFPropertyListResponseSerializer() }
}
