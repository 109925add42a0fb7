// SPDX-License-Identifier: MIT

import ANSystem

/// A serializer that encodes parameters into the query of GET, HEAD and DELETE requests and into a JSON body for other
/// methods.
///
/// For other methods, an existing body and `Content-Type` are kept if the parameters are `nil`; otherwise the media
/// type is `application/json` unless a `Content-Type` is set. Parameters that are not a valid JSON object, such as a
/// number alone, a date or NaN, fail with -1016 of ``AFURLRequestSerializationErrorDomain``.
open class AFJSONRequestSerializer: AFHTTPRequestSerializer, BodyEncoder, @unchecked Sendable {
    /// Creates a serializer that writes compact JSON, without options, and has the default header fields.
    public override init() {
        super.init()
    }

    /// Creates a serializer with options for writing JSON and with the default header fields.
    ///
    /// - Parameter writingOptions: The options, such as `.sortedKeys` for a reproducible body.
    public init(writingOptions: JSONSerialization.WritingOptions) {
        super.init(options: writingOptions.rawValue)
    }

    /// The options for writing JSON. Default: none, which gives compact JSON.
    open var writingOptions: JSONSerialization.WritingOptions {
        get { .init(rawValue: state.withLock { $0.kept.options }) }
        set { state.withLock { $0.kept.options = newValue.rawValue } }
    }

    var contentType: String { "application/json" }

    func encodeBody(_ parameters: Any) throws -> Data {
        var parameters = parameters
        if !JSONSerialization.isValidJSONObject(parameters) { parameters = replacingCGFloats(in: parameters) }
        guard JSONSerialization.isValidJSONObject(parameters) else {
            throw NSError.requestSerialization(
                .cannotDecodeContentData, reason: "The `parameters` argument is not valid JSON.")
        }
        return try JSONSerialization.data(withJSONObject: parameters, options: writingOptions)
    }

    /// Creates a serializer from an archive of its header fields, query style and writing options; `nil` if these are
    /// missing or cannot be decoded, as in an archive of AFNetworking itself. Other settings have their defaults.
    public required init?(coder: NSCoder) {
        super.init(coder: coder)
    }

    override func makeEmptyCopy() -> AFHTTPRequestSerializer { AFJSONRequestSerializer() }
}

/// A serializer that encodes parameters into the query of GET, HEAD and DELETE requests and into a property list for
/// other methods.
///
/// For other methods, an existing body and `Content-Type` are kept if the parameters are `nil`; otherwise the media
/// type is `application/x-plist` unless a `Content-Type` is set. Parameters that are not a property list fail with the
/// error of `PropertyListSerialization`.
open class AFPropertyListRequestSerializer: AFHTTPRequestSerializer, BodyEncoder, @unchecked Sendable {
    /// Creates a serializer that writes XML property lists, without options, and has the default header fields.
    public override init() {
        super.init()
    }

    /// Creates a serializer that writes property lists of a format and has the default header fields.
    ///
    /// - Parameters:
    ///   - format: `.xml` or `.binary`, the formats that Foundation writes. With another one, encoding a body fails with
    ///     `CocoaError.propertyListWriteInvalid`.
    ///   - writeOptions: The options of `PropertyListSerialization`, which defines none: pass 0.
    public init(
        format: PropertyListSerialization.PropertyListFormat, writeOptions: PropertyListSerialization.WriteOptions
    ) {
        super.init(options: UInt(bitPattern: writeOptions), format: format)
    }

    /// The format of the property lists, `.xml` or `.binary`; with another one, encoding a body fails with
    /// `CocoaError.propertyListWriteInvalid`. Default: `.xml`.
    open var format: PropertyListSerialization.PropertyListFormat {
        get { .init(rawValue: state.withLock { $0.kept.format }) ?? .xml }
        set { state.withLock { $0.kept.format = newValue.rawValue } }
    }

    /// The options for writing property lists. Default: 0, as Foundation defines none.
    open var writeOptions: PropertyListSerialization.WriteOptions {
        get { Int(bitPattern: state.withLock { $0.kept.options }) }
        set { state.withLock { $0.kept.options = UInt(bitPattern: newValue) } }
    }

    var contentType: String { "application/x-plist" }

    func encodeBody(_ parameters: Any) throws -> Data {
        // Foundation on Linux traps on other formats.
        guard format == .xml || format == .binary else { throw CocoaError(.propertyListWriteInvalid) }
        return try PropertyListSerialization.data(
            fromPropertyList: replacingCGFloats(in: parameters), format: format, options: writeOptions)
    }

    /// Creates a serializer from an archive of its header fields, query style, format and options; `nil` if these are
    /// missing or cannot be decoded, as in an archive of AFNetworking itself. Other settings have their defaults.
    public required init?(coder: NSCoder) {
        super.init(coder: coder)
    }

    override func makeEmptyCopy() -> AFHTTPRequestSerializer { AFPropertyListRequestSerializer() }
}
