// SPDX-License-Identifier: MIT

import ANSystem
import AsyncNetworking
import HTTPTypes

/// Puts parameters into the query of GET, HEAD and DELETE, and into a form body for other methods.
///
/// What is set here reaches requests only where it was set: a request otherwise keeps what its session says. All members
/// may be used from any thread.
open class AFHTTPRequestSerializer: NSObject, AFURLRequestSerialization, NSSecureCoding, NSCopying, @unchecked Sendable
{
    let state: Lock<RequestSerializerState>

    /// Writes the query or form body of a request itself.
    public typealias QueryBlock = (URLRequest, Any, NSErrorPointer) -> String?

    /// Creates a serializer with the default fields `User-Agent` and, where there is a locale, `Accept-Language`.
    public override init() {
        state = Lock(RequestSerializerState(headers: Self.defaultHeaders))
        super.init()
    }

    private static let defaultHeaders: [String: String] = {
        let fields = DefaultHeaders(process: .current(), libraryVersion: SessionManager.libraryVersion).fields
        return Dictionary(fields.map { ($0.name.rawName, $0.value) }) { first, _ in first }
    }()

    // MARK: What reaches requests where it is set

    /// The encoding of form bodies and of the values in multipart forms; UTF-8 by default.
    open var stringEncoding: UInt {
        get { state.withLock { $0.stringEncoding.rawValue } }
        set { state.withLock { $0.stringEncoding = String.Encoding(rawValue: newValue) } }
    }

    /// Whether mobile networks may be used; kept, and without effect here. False until it is set.
    open var allowsCellularAccess: Bool {
        get { state.withLock { $0.wishes.allowsCellularAccess ?? false } }
        set { state.withLock { $0.wishes.allowsCellularAccess = newValue } }
    }

    /// What requests want of caches.
    open var cachePolicy: NSURLRequest.CachePolicy {
        get { state.withLock { $0.wishes.cachePolicy ?? .useProtocolCachePolicy } }
        set { state.withLock { $0.wishes.cachePolicy = newValue } }
    }

    /// Whether cookies are sent and kept. False until it is set.
    open var httpShouldHandleCookies: Bool {
        get { state.withLock { $0.wishes.handlesCookies ?? false } }
        set { state.withLock { $0.wishes.handlesCookies = newValue } }
    }

    /// Kept, and without effect: HTTP/2 has taken the place of pipelining.
    open var httpShouldUsePipelining: Bool {
        get { state.withLock { $0.wishes.usesPipelining ?? false } }
        set { state.withLock { $0.wishes.usesPipelining = newValue } }
    }

    /// Kept, and without effect here.
    open var networkServiceType: NSURLRequest.NetworkServiceType {
        get { state.withLock { $0.wishes.serviceType ?? .default } }
        set { state.withLock { $0.wishes.serviceType = newValue } }
    }

    /// How long nothing may move before a request fails, in seconds. 0 until it is set.
    open var timeoutInterval: TimeInterval {
        get { state.withLock { $0.wishes.timeoutInterval ?? 0 } }
        set { state.withLock { $0.wishes.timeoutInterval = newValue } }
    }

    // MARK: Header fields

    /// Fields for every request that has none of the same name.
    open var httpRequestHeaders: [String: String] {
        state.withLock { $0.headers }
    }

    /// Sets a field for every request; nil removes it. Names are compared without regard to case.
    open func setValue(_ value: String?, forHTTPHeaderField field: String) {
        state.withLock { $0.setHeader(field, value) }
    }

    /// The field that every request gets; nil when there is none of this name.
    open func value(forHTTPHeaderField field: String) -> String? {
        state.withLock { state in
            state.headers.first { $0.key.caseInsensitiveCompare(field) == .orderedSame }?.value
        }
    }

    /// Sets `Authorization` for HTTP Basic (RFC 7617). A server reads the name up to its first colon.
    ///
    /// Control characters cannot be sent: with one of them the field is removed.
    open func setAuthorizationHeaderFieldWithUsername(_ username: String, password: String) {
        // A name with a colon makes the same bytes as its start with the rest in the password.
        let parts = "\(username):\(password)".split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        var fields = HTTPFields()
        try? fields.setBasicAuthorization(Credential(user: String(parts[0]), password: String(parts[1])))
        setValue(fields[.authorization], forHTTPHeaderField: "Authorization")
    }

    /// Removes `Authorization`.
    open func clearAuthorizationHeader() {
        setValue(nil, forHTTPHeaderField: "Authorization")
    }

    // MARK: Queries

    /// The methods, in upper case, whose parameters go to the query: GET, HEAD and DELETE by default.
    open var httpMethodsEncodingParametersInURI: Set<String> {
        get { state.withLock { $0.methodsInURI } }
        set { state.withLock { $0.methodsInURI = newValue } }
    }

    /// Has queries written in a style, and no more by a block.
    open func setQueryStringSerializationWith(_ style: AFHTTPRequestQueryStringSerializationStyle) {
        state.withLock { $0.style = style }
        state.set(\.makeQuery, to: nil)
    }

    /// Has queries and form bodies written by a block, whose text is sent as it is; nil removes it.
    ///
    /// The block gets the request, the parameters, and a place for an error, which ends the request.
    open func setQueryStringSerializationWith(_ block: QueryBlock?) {
        state.set(\.makeQuery, to: block.map(Handover.init))
    }

    // MARK: Requests

    /// Makes a request with parameters.
    ///
    /// - Returns: The request; where `error` says why it cannot be made, one without a server, which cannot be sent.
    open func request(
        withMethod method: String, urlString: String, parameters: Any?, error: NSErrorPointer
    ) -> NSMutableURLRequest {
        Self.orUnsendable(error) {
            guard let request = makeRequest(method, urlString) else {
                throw NSError.requestSerialization(.badURL, reason: "“\(urlString)” is not a URL.")
            }
            let serialized = try self.request(bySerializingRequest: request, withParameters: parameters)
            return Self.mutableRequest(serialized)
        }
    }

    /// Returns a request like this one with the default fields and the parameters in it.
    open func request(
        bySerializingRequest request: URLRequest, withParameters parameters: Any?, error: NSErrorPointer
    ) -> URLRequest? {
        do {
            let encoded = try encode(parameters, for: request.httpMethod ?? "GET") { request }
            var result = request
            for (name, value) in httpRequestHeaders where request.value(forHTTPHeaderField: name) == nil {
                result.setField(name, value)
            }
            switch encoded {
            case .nothing: break
            case .query(let query): result.url = try request.url?.appendingQueryText(query)
            case .body(let body, let contentType):
                if result.value(forHTTPHeaderField: "Content-Type") == nil {
                    result.setField("Content-Type", contentType)
                }
                result.httpBody = body
            }
            return result
        } catch let failure {
            error?.pointee = (failure as NSError).about(request, inDomain: AFURLRequestSerializationErrorDomain)
            return nil
        }
    }

    // MARK: Multipart forms

    /// Makes a request with a multipart form (RFC 7578): a field for each parameter, then what the block appends.
    ///
    /// Without any part it is the request as it would be without parameters. GET and HEAD have no forms.
    open func multipartFormRequest(
        withMethod method: String, urlString: String, parameters: [String: Any]?,
        constructingBodyWith block: ((any AFMultipartFormData) -> Void)?, error: NSErrorPointer
    ) -> NSMutableURLRequest {
        Self.orUnsendable(error) {
            let base = try request(withMethod: method, urlString: urlString, parameters: nil)
            do {
                guard method != "GET", method != "HEAD" else {
                    throw NSError.requestSerialization(.unsupportedURL, reason: "\(method) has no multipart form.")
                }
                let form = MultipartForm()
                form.append(parameters ?? [:], encoding: String.Encoding(rawValue: stringEncoding))
                block?(form)
                try form.finish(base)
                return base
            } catch {
                throw (error as NSError).about(
                    base as URLRequest, inDomain: AFURLRequestSerializationErrorDomain)
            }
        }
    }

    /// Writes the body of a multipart request to a file, and returns the request without its body at once.
    ///
    /// - Parameters:
    ///   - request: The request with the form.
    ///   - fileURL: Where the body goes; a file that is there is replaced once the body is complete.
    ///   - handler: Called on the main queue when the file is there, or with what went wrong.
    @discardableResult
    open func request(
        withMultipartForm request: URLRequest, writingStreamContentsToFile fileURL: URL,
        completionHandler handler: (((any Error)?) -> Void)?
    ) -> NSMutableURLRequest {
        let result = Self.mutableRequest(request)
        result.httpBodyStream = nil
        let body = request.httpBodyStream.map { RequestBody.inputStream($0, length: nil, replace: nil) } ?? .none
        let handler = Handover(handler)
        // It ends with the body.
        Task {
            let outcome = await Result { try await body.write(to: fileURL.path) }
            CompletionQueue(queue: nil).call {
                if case .failure(let error) = outcome { handler.value?(error) } else { handler.value?(nil) }
            }
        }
        return result
    }

    // MARK: Parts

    /// What parameters become in a request; serializers of other bodies override it.
    ///
    /// - Parameter request: The request that a block is shown which writes queries.
    func encode(
        _ parameters: Any?, for method: String, _ request: () -> URLRequest
    ) throws -> EncodedParameters {
        let query = try queryString(of: parameters, request)
        guard !encodesParametersInURI(method) else { return .query(query) }
        let content = try query.content(in: String.Encoding(rawValue: stringEncoding))
        return .body(content, contentType: "application/x-www-form-urlencoded")
    }

    /// Whether the parameters of requests with a method go to their query.
    func encodesParametersInURI(_ method: String) -> Bool {
        httpMethodsEncodingParametersInURI.contains(method.uppercased())
    }

    /// A request with what was set here, and no parameters; `nil` if the string is not a URL.
    private func makeRequest(_ method: String, _ urlString: String) -> URLRequest? {
        guard let url = URL(string: urlString) else { return nil }
        var request = URLRequest(url: url)
        request.httpMethod = method
        state.withLock { $0.wishes }.apply(to: &request)
        return request
    }

    private static func mutableRequest(_ request: URLRequest) -> NSMutableURLRequest {
        (request as NSURLRequest).mutableCopy() as? NSMutableURLRequest ?? NSMutableURLRequest(url: URL(filePath: "/"))
    }

    /// What `make` returns. Where it throws, the error goes to its place, and the request names no server: who has not looked
    /// at the error cannot send a request without its parameters. A request without any URL traps in Foundation.
    private static func orUnsendable(
        _ error: NSErrorPointer, _ make: () throws -> NSMutableURLRequest
    ) -> NSMutableURLRequest {
        do {
            return try make()
        } catch let failure {
            error?.pointee = failure as NSError
            return NSMutableURLRequest(url: URL(filePath: "/dev/null"))
        }
    }

    private func queryString(of parameters: Any?, _ request: () -> URLRequest) throws -> String {
        guard let parameters else { return "" }
        guard let makeQuery = state.withLock({ $0.makeQuery }) else { return AFQueryStringFromValue(parameters) }
        return try throwingError { makeQuery.value(request(), parameters, $0) } ?? ""
    }

    // MARK: Copies and archives

    /// What an archive keeps: the header fields and the style of queries.
    struct Archive: Codable {
        var headers: [String: String]
        var style: AFHTTPRequestQueryStringSerializationStyle
    }

    /// Restores the header fields and the style of queries; all else is as in a new serializer.
    public required init?(coder: NSCoder) {
        guard let archive = coder.decodeValue(Archive.self, forKey: "HTTPRequestSerializer") else { return nil }
        state = Lock(RequestSerializerState(headers: archive.headers, style: archive.style))
        super.init()
    }

    /// Archives the header fields and the style of queries.
    open func encode(with coder: NSCoder) {
        let archive = state.withLock { Archive(headers: $0.headers, style: $0.style) }
        coder.encodeValue(archive, forKey: "HTTPRequestSerializer")
    }

    /// True.
    open class var supportsSecureCoding: Bool { true }

    /// A serializer with the same header fields, style and block; all else is as in a new one.
    open func copy(with zone: NSZone? = nil) -> Any {
        let copy = AFHTTPRequestSerializer()
        copy.takeOver(from: self)
        return copy
    }

    /// Takes what copies keep.
    func takeOver(from other: AFHTTPRequestSerializer) {
        let kept = other.state.withLock {
            RequestSerializerState(headers: $0.headers, style: $0.style, makeQuery: $0.makeQuery)
        }
        state.withLock { $0 = kept }
    }
}
