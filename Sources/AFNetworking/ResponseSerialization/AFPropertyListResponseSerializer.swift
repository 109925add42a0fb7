// SPDX-License-Identifier: MIT

import ANSystem
import AsyncNetworking

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
