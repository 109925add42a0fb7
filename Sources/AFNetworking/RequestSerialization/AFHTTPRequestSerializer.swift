// SPDX-License-Identifier: MIT

import ANSystem
import AsyncNetworking
import Dispatch

/// Puts parameters into the query of GET, HEAD and DELETE, and into a form body for other methods.
///
/// What is set here reaches requests only where it was set: a request otherwise keeps what its session says. All members
/// may be used from any thread.
open class AFHTTPRequestSerializer: NSObject, AFURLRequestSerialization, NSSecureCoding, NSCopying, @unchecked Sendable
{
    private let state: Lock<RequestSerializerState>

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
        get { state.withLock { $0.allowsCellularAccess ?? false } }
        set { state.withLock { $0.allowsCellularAccess = newValue } }
    }

    /// What requests want of caches.
    open var cachePolicy: NSURLRequest.CachePolicy {
        get { state.withLock { $0.cachePolicy ?? .useProtocolCachePolicy } }
        set { state.withLock { $0.cachePolicy = newValue } }
    }

    /// Whether cookies are sent and kept. False until it is set.
    open var httpShouldHandleCookies: Bool {
        get { state.withLock { $0.handlesCookies ?? false } }
        set { state.withLock { $0.handlesCookies = newValue } }
    }

    /// Kept, and without effect: HTTP/2 has taken the place of pipelining.
    open var httpShouldUsePipelining: Bool {
        get { state.withLock { $0.usesPipelining ?? false } }
        set { state.withLock { $0.usesPipelining = newValue } }
    }

    /// Kept, and without effect here.
    open var networkServiceType: NSURLRequest.NetworkServiceType {
        get { state.withLock { $0.serviceType ?? .default } }
        set { state.withLock { $0.serviceType = newValue } }
    }

    /// How long nothing may move before a request fails, in seconds. 0 until it is set.
    open var timeoutInterval: TimeInterval {
        get { state.withLock { $0.timeoutInterval ?? 0 } }
        set { state.withLock { $0.timeoutInterval = newValue } }
    }

    // MARK: Header fields

    /// Fields for every request that has none of the same name.
    open var httpRequestHeaders: [String: String] {
        state.withLock { $0.headers }
    }

    /// Sets a field for every request; nil removes it. Names are compared without regard to case.
    open func setValue(_ value: String?, forHTTPHeaderField field: String) {
        state.withLock { state in
            for name in state.headers.keys where name.caseInsensitiveCompare(field) == .orderedSame {
                state.headers[name] = nil
            }
            state.headers[field] = value
        }
    }

    /// The field that every request gets; nil when there is none of this name.
    open func value(forHTTPHeaderField field: String) -> String? {
        state.withLock { state in
            state.headers.first { $0.key.caseInsensitiveCompare(field) == .orderedSame }?.value
        }
    }

    /// Sets `Authorization` for HTTP Basic (RFC 7617).
    open func setAuthorizationHeaderFieldWithUsername(_ username: String, password: String) {
        let credentials = Data("\(username):\(password)".utf8).base64EncodedString()
        setValue("Basic \(credentials)", forHTTPHeaderField: "Authorization")
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
        state.withLock { state in
            state.style = style
            state.makeQuery = nil
        }
    }

    /// Has queries and form bodies written by a block, whose text is sent as it is; nil removes it.
    ///
    /// The block gets the request, the parameters, and a place for an error, which ends the request.
    open func setQueryStringSerializationWith(_ block: QueryBlock?) {
        state.withLock { $0.makeQuery = block.map(Handover.init) }
    }

    // MARK: Requests

    /// Makes a request with parameters.
    ///
    /// - Returns: The request; where `error` says why it cannot be made, one without the parameters.
    open func request(
        withMethod method: String, urlString: String, parameters: Any?, error: NSErrorPointer
    ) -> NSMutableURLRequest {
        let request = makeRequest(method, urlString, error)
        guard error?.pointee == nil else { return request }
        let serialized = self.request(
            bySerializingRequest: request as URLRequest, withParameters: parameters, error: error)
        return serialized.map(Self.mutableRequest) ?? request
    }

    /// Returns a request like this one with the default fields and the parameters in it.
    open func request(
        bySerializingRequest request: URLRequest, withParameters parameters: Any?, error: NSErrorPointer
    ) -> URLRequest? {
        var result = fillingHeaders(of: request)
        guard let query = queryString(for: request, parameters, error) else { return nil }
        guard !encodesParametersInURI(request) else {
            guard !query.isEmpty, let url = request.url else { return result }
            guard let complete = url.appendingQueryText(query) else {
                error?.pointee = .requestSerialization(.badURL, reason: "The query cannot stand in a URL.")
                return nil
            }
            result.url = complete
            return result
        }
        if result.value(forHTTPHeaderField: "Content-Type") == nil {
            result.setValue("application/x-www-form-urlencoded", forHTTPHeaderField: "Content-Type")
        }
        result.httpBody = query.data(using: String.Encoding(rawValue: stringEncoding)) ?? Data()
        return result
    }

    // MARK: Multipart forms

    /// Makes a request with a multipart form (RFC 7578): a field for each parameter, then what the block appends.
    ///
    /// Without any part it is the request as it would be without parameters. GET and HEAD have no forms.
    open func multipartFormRequest(
        withMethod method: String, urlString: String, parameters: [String: Any]?,
        constructingBodyWith block: ((any AFMultipartFormData) -> Void)?, error: NSErrorPointer
    ) -> NSMutableURLRequest {
        let base = request(withMethod: method, urlString: urlString, parameters: nil, error: error)
        guard error?.pointee == nil else { return base }
        guard method != "GET", method != "HEAD" else {
            error?.pointee = .requestSerialization(.unsupportedURL, reason: "\(method) has no multipart form.")
            return base
        }
        let form = MultipartForm()
        form.append(parameters ?? [:], encoding: String.Encoding(rawValue: stringEncoding))
        block?(form)
        do {
            try form.finish(base)
        } catch let failure {
            error?.pointee = failure as NSError
        }
        return base
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
            DispatchQueue.main.async {
                if case .failure(let error) = outcome { handler.value?(error) } else { handler.value?(nil) }
            }
        }
        return result
    }

    // MARK: For serializers of other bodies

    /// Whether the parameters of a request go to its query.
    func encodesParametersInURI(_ request: URLRequest) -> Bool {
        httpMethodsEncodingParametersInURI.contains(request.httpMethod?.uppercased() ?? "GET")
    }

    /// The request with the default fields that it lacks.
    func fillingHeaders(of request: URLRequest) -> URLRequest {
        var result = request
        for (name, value) in httpRequestHeaders where request.value(forHTTPHeaderField: name) == nil {
            result.setValue(value, forHTTPHeaderField: name)
        }
        return result
    }

    /// A request with what was set here, and no parameters; `error` says why it has no URL.
    func makeRequest(_ method: String, _ urlString: String, _ error: NSErrorPointer) -> NSMutableURLRequest {
        let url = URL(string: urlString)
        if url == nil {
            error?.pointee = .requestSerialization(.badURL, reason: "“\(urlString)” is not a URL.")
        }
        let request = NSMutableURLRequest(url: url ?? URL(filePath: "/"))
        if url == nil { request.url = nil }
        request.httpMethod = method
        let state = state.withLock { $0 }
        if let value = state.allowsCellularAccess { request.allowsCellularAccess = value }
        if let value = state.cachePolicy { request.cachePolicy = value }
        if let value = state.handlesCookies { request.httpShouldHandleCookies = value }
        if let value = state.serviceType { request.networkServiceType = value }
        if let value = state.timeoutInterval { request.timeoutInterval = value }
        return request
    }

    static func mutableRequest(_ request: URLRequest) -> NSMutableURLRequest {
        (request as NSURLRequest).mutableCopy() as? NSMutableURLRequest ?? NSMutableURLRequest(url: URL(filePath: "/"))
    }

    private func queryString(for request: URLRequest, _ parameters: Any?, _ error: NSErrorPointer) -> String? {
        guard let parameters else { return "" }
        guard let makeQuery = state.withLock({ $0.makeQuery }) else { return AFQueryStringFromValue(parameters) }
        let pointer = AutoreleasingUnsafeMutablePointer<NSError?>(nil)
        let query = makeQuery.value(request, parameters, pointer)
        guard let failure = pointer.pointee else { return query ?? "" }
        error?.pointee = failure
        return nil
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
        state.withLock { state in
            state.headers = kept.headers
            state.style = kept.style
            state.makeQuery = kept.makeQuery
        }
    }
}

extension URL {
    /// The URL with this text at the end of its query, which is before the fragment.
    fileprivate func appendingQueryText(_ query: String) -> URL? {
        let text = absoluteString
        let head = text.prefix { $0 != "#" }
        let separator = !head.contains("?") ? "?" : head.hasSuffix("?") || head.hasSuffix("&") ? "" : "&"
        return URL(string: "\(head)\(separator)\(query)\(text[head.endIndex...])")
    }
}
