// SPDX-License-Identifier: MIT

import ANSystem
import AsyncNetworking

/// A serializer that validates the status code and the media type of a response and returns its body as `Data`.
///
/// By default the status codes 200 to 299 and all media types are acceptable. This class also returns the body of an
/// unacceptable response, together with an error. All members may be used from any thread.
open class AFHTTPResponseSerializer: NSObject, AFURLResponseSerialization, NSSecureCoding, NSCopying,
    @unchecked Sendable
{
    let settings: Lock<Settings>

    /// The acceptable responses, and the settings of the serializers of this module. Archives and copies contain them.
    struct Settings: Codable, Sendable {
        var statusCodes: StatusCodes? = StatusCodes(set: IndexSet(integersIn: 200...299))
        var contentTypes: Set<String>?
        /// The raw value of the options for reading the body.
        var options: UInt = 0
        var format = PropertyListSerialization.PropertyListFormat.xml.rawValue
        var removesNulls = false
        /// The number of pixels per point of images; `nil` for 1.
        var imageScale: Double?
        /// Whether images are decoded at once; `nil` for `true`.
        var inflatesImages: Bool?
    }

    /// A set of status codes, archived like an `IndexSet`, whose decoder in Foundation traps on invalid ranges.
    struct StatusCodes: Codable, Sendable {
        let set: IndexSet

        private struct Archive: Decodable {
            let indexes: [Span]
        }

        private struct Span: Decodable {
            let location: Int
            let length: Int
        }

        init(set: IndexSet) {
            self.set = set
        }

        init(from decoder: any Decoder) throws {
            let spans = try Archive(from: decoder).indexes
            set = try spans.reduce(into: IndexSet()) { set, span in
                guard span.location >= 0, span.length > 0, span.length <= Int.max - span.location else {
                    throw CocoaError(.coderReadCorrupt)
                }
                set.insert(integersIn: span.location..<span.location + span.length)
            }
        }

        func encode(to encoder: any Encoder) throws {
            try set.encode(to: encoder)
        }
    }

    /// Creates a serializer that accepts the status codes 200 to 299 and any media type.
    public override init() {
        settings = Lock(Settings())
        super.init()
    }

    init(_ settings: Settings) {
        self.settings = Lock(settings)
        super.init()
    }

    /// The acceptable status codes; `nil` accepts all. Default: 200 to 299. Another one fails with -1011 of
    /// ``AFURLResponseSerializationErrorDomain``.
    open var acceptableStatusCodes: IndexSet? {
        get { settings.withLock { $0.statusCodes?.set } }
        set { settings.withLock { $0.statusCodes = newValue.map(StatusCodes.init) } }
    }

    /// The acceptable media types, without parameters and compared without regard to case; `nil` accepts all, which is
    /// the default of this class. Another type, or none, fails with -1016 of ``AFURLResponseSerializationErrorDomain``,
    /// unless the body is empty.
    open var acceptableContentTypes: Set<String>? {
        get { settings.withLock { $0.contentTypes } }
        set { settings.withLock { $0.contentTypes = newValue } }
    }

    // MARK: Validation

    /// Validates the status code and the media type of a response.
    ///
    /// - Parameters:
    ///   - response: The response; `nil` is acceptable.
    ///   - data: The body, which becomes part of the error; its content is not validated.
    /// - Throws: An error of ``AFURLResponseSerializationErrorDomain``: -1011 for the status code, -1016 for the media
    ///   type. If both are unacceptable, the second is the underlying error of the first. An unacceptable media type
    ///   without a body causes no -1016, but ``AFUnnamedError`` if the status code is acceptable.
    open func validate(_ response: HTTPURLResponse?, data: Data?) throws {
        if let response, let failure = failure(of: ResponseDescription(response), data) { throw failure }
    }

    /// Validates a response and returns the object for its body.
    ///
    /// This class and ``AFCompoundResponseSerializer`` return the body in any case. The other subclasses in this module
    /// return `nil` for an unacceptable media type, unless the body is empty, and an object together with the error if
    /// only the status code is unacceptable. If validation throws ``AFUnnamedError``, no error is set for it, and the
    /// body is still converted.
    ///
    /// - Parameters:
    ///   - response: The response; one that is not an `HTTPURLResponse` is acceptable.
    ///   - data: The body, if any.
    ///   - error: Takes the error if the response is unacceptable or its body cannot be converted; `nil` if the caller
    ///     ignores it. With `nil`, these subclasses return no object for an unacceptable response.
    /// - Returns: The object, if any.
    open func responseObject(for response: URLResponse?, data: Data?, error: NSErrorPointer) -> Any? {
        let response = response as? HTTPURLResponse
        var failure: (any Error)?
        do { try validate(response, data: data) } catch { failure = error }
        return object(of: data, response.map(ResponseDescription.init), failure, error)
    }

    /// Returns the object for a body, and stores the error of validation and that of the conversion.
    ///
    /// The body is not converted if its media type is unacceptable, or if the response is invalid and the caller passed
    /// no error pointer.
    ///
    /// - Parameters:
    ///   - response: The response; `nil` if it is not an HTTP response.
    ///   - failure: The error of validation, if any.
    func object(
        of data: Data?, _ response: ResponseDescription?, _ failure: (any Error)?, _ pointer: NSErrorPointer
    ) -> Any? {
        let rejection = failure is AFUnnamedError ? nil : failure as NSError?
        if let rejection { pointer?.pointee = rejection }
        guard let converter = self as? any BodyConverter else { return data }
        if failure != nil {
            let rejectsMediaType = rejection?.contains(AFURLResponseSerializationErrorDomain, .cannotDecodeContentData)
            guard pointer != nil, rejectsMediaType != true else { return nil }
        }
        do {
            return try converter.convert(data)
        } catch {
            let failure = (error as? SerializationError).map(NSError.init(parsing:)) ?? error as NSError
            let described = failure.adding(response?.userInfo(data) ?? [:])
            pointer?.pointee = .combined(described, underlying: pointer?.pointee)
            return nil
        }
    }

    /// Whether ``failure(of:_:)`` and ``object(of:_:_:_:)`` determine the object. A subclass may have overridden a
    /// method that takes a Foundation response, and so may the children of a compound serializer.
    var needsNoResponse: Bool {
        let type = type(of: self)
        return type == AFJSONResponseSerializer.self || type == AFHTTPResponseSerializer.self
            || type == AFPropertyListResponseSerializer.self || type == AFXMLParserResponseSerializer.self
            || type == AFXMLDocumentResponseSerializer.self || type == AFImageResponseSerializer.self
    }

    /// Returns the error for a response whose status code or media type is unacceptable.
    func failure(of response: ResponseDescription, _ data: Data?) -> (any Error)? {
        let isEmpty = data?.isEmpty ?? true
        var failure: (any Error)?
        var rejection: NSError?
        if let types = acceptableContentTypes, !response.hasMediaType(among: types),
            !(response.mediaType == nil && isEmpty)
        {
            failure = AFUnnamedError()
            if !isEmpty, response.url != nil {
                let type = response.mediaType ?? "(null)"
                rejection = response.error(
                    .cannotDecodeContentData, "Request failed: unacceptable content-type: \(type)", data)
                failure = rejection
            }
        }
        if let codes = acceptableStatusCodes, !codes.contains(response.status), response.url != nil {
            let text = "Request failed: \(response.phrase) (\(response.status))"
            failure = NSError.combined(response.error(.badServerResponse, text, data), underlying: rejection)
        }
        return failure
    }

    // MARK: Copies and archives

    /// Creates a serializer from an archive written by ``encode(with:)``; `nil` if its settings are missing or cannot
    /// be decoded, as in an archive of AFNetworking itself.
    public required init?(coder: NSCoder) {
        guard let archived = coder.decodeValue(Settings.self, forKey: "responseSerializer") else { return nil }
        settings = Lock(archived)
        super.init()
    }

    /// Archives the acceptable responses, and the options of a subclass of this module.
    open func encode(with coder: NSCoder) {
        coder.encodeValue(settings.withLock { $0 }, forKey: "responseSerializer")
    }

    /// Always `true`: archives can be decoded with `requiresSecureCoding`.
    open class var supportsSecureCoding: Bool { true }

    /// Returns a copy with the same acceptable responses and options. It is always an instance of a class of this
    /// module: the copy of a subclass of the program is one of its superclass, without its overrides and properties,
    /// unless it overrides this method.
    open func copy(with zone: NSZone? = nil) -> Any {
        let copy = makeEmptyCopy()
        let own = settings.withLock { $0 }
        copy.settings.withLock { $0 = own }
        return copy
    }

    /// Returns a serializer of the same class of this module, without this serializer's settings.
    func makeEmptyCopy() -> AFHTTPResponseSerializer { AFHTTPResponseSerializer() }
}
