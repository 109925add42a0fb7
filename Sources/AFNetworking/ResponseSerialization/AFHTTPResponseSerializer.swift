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
        let verdict = judge(ResponseFacts(response), data)
        if let error = verdict.error { throw error }
        if !verdict.isValid { throw AFUnnamedError() }
    }

    /// Validates a response and returns the object for its body; sets `error` if the response is unacceptable. This
    /// class returns the body in any case; its subclasses in this module return `nil` for an unacceptable media type.
    open func responseObject(for response: URLResponse?, data: Data?, error: NSErrorPointer) -> Any? {
        var verdict = verdict(on: response, data)
        verdict.facts = (response as? HTTPURLResponse).map(ResponseFacts.init)
        return object(of: data, verdict, error)
    }

    /// Returns the object for a body that has been validated; overridden by the serializers of this module.
    func object(of data: Data?, _ verdict: ResponseVerdict, _ error: NSErrorPointer) -> Any? {
        if let failure = verdict.error { error?.pointee = failure }
        return data
    }

    /// Returns the result of ``validate(_:data:)``, which a subclass may have overridden.
    private func verdict(on response: URLResponse?, _ data: Data?) -> ResponseVerdict {
        do {
            try validate(response as? HTTPURLResponse, data: data)
            return ResponseVerdict()
        } catch is AFUnnamedError {
            return ResponseVerdict(isValid: false)
        } catch {
            return ResponseVerdict(isValid: false, error: error as NSError)
        }
    }

    /// Whether ``judge(_:_:)`` and ``object(of:_:_:)`` determine the object. A subclass may have overridden a method
    /// that takes a Foundation response, and so may the children of a compound serializer.
    var needsNoResponse: Bool {
        let type = type(of: self)
        return type == AFJSONResponseSerializer.self || type == AFHTTPResponseSerializer.self
            || type == AFPropertyListResponseSerializer.self || type == AFXMLParserResponseSerializer.self
            || type == AFXMLDocumentResponseSerializer.self
    }

    /// Validates a response by status code and media type.
    func judge(_ response: ResponseFacts, _ data: Data?) -> ResponseVerdict {
        let isEmpty = data?.isEmpty ?? true
        var verdict = ResponseVerdict(facts: response)
        if let types = acceptableContentTypes, !response.hasMediaType(among: types),
            !(response.mediaType == nil && isEmpty)
        {
            verdict.isValid = false
            if !isEmpty, response.url != nil {
                let type = response.mediaType ?? "(null)"
                verdict.error = response.error(
                    .cannotDecodeContentData, "Request failed: unacceptable content-type: \(type)", data)
            }
        }
        if let codes = acceptableStatusCodes, !codes.contains(response.status), response.url != nil {
            verdict.isValid = false
            let text = "Request failed: \(response.phrase) (\(response.status))"
            verdict.error = .combined(response.error(.badServerResponse, text, data), underlying: verdict.error)
        }
        return verdict
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
