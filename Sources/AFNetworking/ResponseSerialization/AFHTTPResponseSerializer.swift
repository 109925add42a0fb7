// SPDX-License-Identifier: MIT

import ANSystem

/// Judges responses by status and media type, and returns their bodies as they are.
///
/// All members may be used from any thread.
open class AFHTTPResponseSerializer: NSObject, AFURLResponseSerialization, NSSecureCoding, NSCopying,
    @unchecked Sendable
{
    private let acceptance: Lock<Acceptance>

    /// What is acceptable.
    struct Acceptance: Codable, Sendable {
        var statusCodes: IndexSet? = IndexSet(integersIn: 200...299)
        var contentTypes: Set<String>?
    }

    /// Creates a serializer that takes the statuses 200 to 299 with any media type.
    public override init() {
        acceptance = Lock(Acceptance())
        super.init()
    }

    /// Creates a serializer that takes these media types.
    init(contentTypes: Set<String>) {
        acceptance = Lock(Acceptance(contentTypes: contentTypes))
        super.init()
    }

    /// The statuses that are taken: 200 to 299 by default; nil takes all.
    open var acceptableStatusCodes: IndexSet? {
        get { acceptance.withLock { $0.statusCodes } }
        set { acceptance.withLock { $0.statusCodes = newValue } }
    }

    /// The media types that are taken, without parameters; nil takes all.
    open var acceptableContentTypes: Set<String>? {
        get { acceptance.withLock { $0.contentTypes } }
        set { acceptance.withLock { $0.contentTypes = newValue } }
    }

    // MARK: Validation

    /// Judges a response.
    ///
    /// - Throws: An error of ``AFURLResponseSerializationErrorDomain``: -1011 for the status, -1016 for the media type,
    ///   which stands under the first one where both are wrong; ``AFUnnamedError`` for a media type that is wrong where
    ///   there is no body.
    open func validate(_ response: HTTPURLResponse?, data: Data?) throws {
        guard let response else { return }
        let verdict = judge(ResponseFacts(response), data)
        if let error = verdict.error { throw error }
        if !verdict.isValid { throw AFUnnamedError() }
    }

    /// Makes the object of a response's body, as far as its status and media type allow; here that is the body, whatever
    /// they are.
    open func responseObject(for response: URLResponse?, data: Data?, error: NSErrorPointer) -> Any? {
        var verdict = verdict(on: response, data)
        verdict.facts = (response as? HTTPURLResponse).map(ResponseFacts.init)
        return object(of: data, verdict, error)
    }

    /// Makes the object of a body that has been judged; serializers of this module override it.
    func object(of data: Data?, _ verdict: ResponseVerdict, _ error: NSErrorPointer) -> Any? {
        if let failure = verdict.error { error?.pointee = failure }
        return data
    }

    /// What validation says, as a subclass may have it.
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

    /// Whether the object follows from what ``judge(_:_:)`` and ``object(of:_:_:)`` say: a subclass may have overridden what
    /// takes Foundation's response, and a compound serializer asks others, which may have.
    var needsNoResponse: Bool {
        let type = type(of: self)
        return type == AFJSONResponseSerializer.self || type == AFHTTPResponseSerializer.self
            || type == AFPropertyListResponseSerializer.self || type == AFXMLParserResponseSerializer.self
            || type == AFXMLDocumentResponseSerializer.self
    }

    /// Judges a response by status and media type.
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

    /// Restores what is acceptable.
    public required init?(coder: NSCoder) {
        guard let archive = coder.decodeValue(Acceptance.self, forKey: "HTTPResponseSerializer") else { return nil }
        acceptance = Lock(archive)
        super.init()
    }

    /// Archives what is acceptable.
    open func encode(with coder: NSCoder) {
        coder.encodeValue(acceptance.withLock { $0 }, forKey: "HTTPResponseSerializer")
    }

    /// True.
    open class var supportsSecureCoding: Bool { true }

    /// A serializer that takes the same responses.
    open func copy(with zone: NSZone? = nil) -> Any {
        AFHTTPResponseSerializer().accepting(as: self)
    }

    /// This serializer, which takes what the other one does.
    func accepting(as other: AFHTTPResponseSerializer) -> Self {
        let taken = other.acceptance.withLock { $0 }
        acceptance.withLock { $0 = taken }
        return self
    }
}
