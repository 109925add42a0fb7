// SPDX-License-Identifier: MIT

import ANSystem

/// A serializer that validates the status code and the media type of a response and returns its body as `Data`.
///
/// All members may be used from any thread.
open class AFHTTPResponseSerializer: NSObject, AFURLResponseSerialization, NSSecureCoding, NSCopying,
    @unchecked Sendable
{
    private let acceptance: Lock<Acceptance>

    /// The acceptable status codes and media types.
    struct Acceptance: Codable, Sendable {
        var statusCodes: IndexSet? = IndexSet(integersIn: 200...299)
        var contentTypes: Set<String>?
    }

    /// Creates a serializer that accepts the status codes 200 to 299 and any media type.
    public override init() {
        acceptance = Lock(Acceptance())
        super.init()
    }

    /// Creates a serializer that accepts the status codes 200 to 299 and the given media types.
    init(contentTypes: Set<String>) {
        acceptance = Lock(Acceptance(contentTypes: contentTypes))
        super.init()
    }

    /// The acceptable status codes; `nil` accepts all. Default: 200 to 299.
    open var acceptableStatusCodes: IndexSet? {
        get { acceptance.withLock { $0.statusCodes } }
        set { acceptance.withLock { $0.statusCodes = newValue } }
    }

    /// The acceptable media types, without parameters; `nil` accepts all, which is the default of this class.
    open var acceptableContentTypes: Set<String>? {
        get { acceptance.withLock { $0.contentTypes } }
        set { acceptance.withLock { $0.contentTypes = newValue } }
    }

    // MARK: Validation

    /// Validates the status code and the media type of a response.
    ///
    /// - Throws: An error of ``AFURLResponseSerializationErrorDomain``: -1011 for the status code, -1016 for the media
    ///   type. If both are unacceptable, the second is the underlying error of the first. ``AFUnnamedError`` for an
    ///   unacceptable media type without a body.
    open func validate(_ response: HTTPURLResponse?, data: Data?) throws {
        guard let response else { return }
        let validity = validate(ResponseDescription(response), data)
        if let error = validity.error { throw error }
        if !validity.isValid { throw AFUnnamedError() }
    }

    /// Validates a response and returns the object for its body; sets `error` if the response is unacceptable. This
    /// class returns the body in any case; its subclasses in this module return `nil` for an unacceptable media type.
    open func responseObject(for response: URLResponse?, data: Data?, error: NSErrorPointer) -> Any? {
        var validity = validity(on: response, data)
        validity.description = (response as? HTTPURLResponse).map(ResponseDescription.init)
        return object(of: data, validity, error)
    }

    /// Returns the object for a body that has been validated; overridden by the serializers of this module.
    func object(of data: Data?, _ validity: ResponseValidity, _ error: NSErrorPointer) -> Any? {
        if let failure = validity.error { error?.pointee = failure }
        return data
    }

    /// Returns the result of ``validate(_:data:)``, which a subclass may have overridden.
    private func validity(on response: URLResponse?, _ data: Data?) -> ResponseValidity {
        do {
            try validate(response as? HTTPURLResponse, data: data)
            return ResponseValidity()
        } catch is AFUnnamedError {
            return ResponseValidity(isValid: false)
        } catch {
            return ResponseValidity(isValid: false, error: error as NSError)
        }
    }

    /// Whether ``validate(_:_:)`` and ``object(of:_:_:)`` determine the object. A subclass may have overridden a method
    /// that takes a Foundation response, and so may the children of a compound serializer.
    var needsNoResponse: Bool {
        let type = type(of: self)
        return type == AFJSONResponseSerializer.self || type == AFHTTPResponseSerializer.self
            || type == AFPropertyListResponseSerializer.self || type == AFXMLParserResponseSerializer.self
            || type == AFXMLDocumentResponseSerializer.self
    }

    /// Validates a response by status code and media type.
    func validate(_ response: ResponseDescription, _ data: Data?) -> ResponseValidity {
        let isEmpty = data?.isEmpty ?? true
        var validity = ResponseValidity(description: response)
        if let types = acceptableContentTypes, !response.hasMediaType(among: types),
            !(response.mediaType == nil && isEmpty)
        {
            validity.isValid = false
            if !isEmpty, response.url != nil {
                let type = response.mediaType ?? "(null)"
                validity.error = response.error(
                    .cannotDecodeContentData, "Request failed: unacceptable content-type: \(type)", data)
            }
        }
        if let codes = acceptableStatusCodes, !codes.contains(response.status), response.url != nil {
            validity.isValid = false
            let text = "Request failed: \(response.phrase) (\(response.status))"
            validity.error = .combined(response.error(.badServerResponse, text, data), underlying: validity.error)
        }
        return validity
    }

    // MARK: Copies and archives

    /// Creates a serializer from an archive of its acceptable responses.
    public required init?(coder: NSCoder) {
        guard let archive = coder.decodeValue(Acceptance.self, forKey: "HTTPResponseSerializer") else { return nil }
        acceptance = Lock(archive)
        super.init()
    }

    /// Archives the acceptable responses.
    open func encode(with coder: NSCoder) {
        coder.encodeValue(acceptance.withLock { $0 }, forKey: "HTTPResponseSerializer")
    }

    /// Always `true`.
    open class var supportsSecureCoding: Bool { true }

    /// Returns a serializer with the same acceptable responses.
    open func copy(with zone: NSZone? = nil) -> Any {
        AFHTTPResponseSerializer().accepting(as: self)
    }

    /// Copies the acceptable responses from another serializer and returns this one.
    func accepting(as other: AFHTTPResponseSerializer) -> Self {
        let taken = other.acceptance.withLock { $0 }
        acceptance.withLock { $0 = taken }
        return self
    }
}
