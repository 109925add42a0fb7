// SPDX-License-Identifier: MIT

import ANSystem
import AsyncNetworking
import HTTPTypes

/// A serializer that encodes parameters into the query of GET, HEAD and DELETE requests, and into a form body for other
/// methods.
///
/// The body has the media type `application/x-www-form-urlencoded` unless a `Content-Type` is set. It replaces an
/// existing body, and is empty without parameters. ``httpMethodsEncodingParametersInURI`` changes the methods.
/// ``AFQueryStringFromParameters(_:)`` describes the encoding. All members may be used from any thread.
open class AFHTTPRequestSerializer: NSObject, AFURLRequestSerialization, NSSecureCoding, NSCopying, @unchecked Sendable
{
    let state: Lock<RequestSerializerState>

    /// A block that returns parameters encoded as a query or form body; `nil` counts as empty.
    ///
    /// It takes the request without the parameters, the parameters, and an error pointer, which is never `nil`. If it
    /// sets the error, creating the request fails with that error. It is called on the thread that creates the request.
    public typealias QueryBlock = @Sendable (URLRequest, Any, NSErrorPointer) -> String?

    /// Creates a serializer with the header field `User-Agent` and, if the process has a locale other than C and POSIX,
    /// `Accept-Language`. All properties have their defaults.
    public override init() {
        state = Lock(RequestSerializerState(.init()))
        super.init()
    }

    /// Creates a serializer with the default fields and with options for its format.
    init(options: UInt, format: PropertyListSerialization.PropertyListFormat = .xml) {
        state = Lock(RequestSerializerState(.init(options: options, format: format.rawValue)))
        super.init()
    }

    // MARK: Settings of requests

    /// The text encoding of form bodies and of the values in multipart forms, as the raw value of a `String.Encoding`.
    /// Default: UTF-8.
    ///
    /// Names and values in form bodies are percent-encoded as UTF-8 in any case. Text that the encoding cannot
    /// represent fails with -1016 of ``AFURLRequestSerializationErrorDomain``. Copies and archives have the default.
    open var stringEncoding: UInt {
        get { state.withLock { $0.stringEncoding.rawValue } }
        set { state.withLock { $0.stringEncoding = String.Encoding(rawValue: newValue) } }
    }

    /// Whether requests may use cellular networks; has no effect on Linux. Until it is set, it reads as `false`, and
    /// requests have Foundation's default, `true`.
    open var allowsCellularAccess: Bool {
        get { state.withLock { $0.settings.allowsCellularAccess ?? false } }
        set { state.withLock { $0.settings.allowsCellularAccess = newValue } }
    }

    /// The cache policy of requests. Default: `.useProtocolCachePolicy`, with which the policy of the session applies.
    ///
    /// Another policy has an effect even without a cache: it adds a `Cache-Control` field if there is no such field,
    /// or, with `.returnCacheDataDontLoad`, fails requests with -1008.
    open var cachePolicy: NSURLRequest.CachePolicy {
        get { state.withLock { $0.settings.cachePolicy ?? .useProtocolCachePolicy } }
        set { state.withLock { $0.settings.cachePolicy = newValue } }
    }

    /// Whether cookies are sent and stored, provided that the session handles them. Until it is set, it reads as
    /// `false` but counts as `true`.
    open var httpShouldHandleCookies: Bool {
        get { state.withLock { $0.settings.handlesCookies ?? false } }
        set { state.withLock { $0.settings.handlesCookies = newValue } }
    }

    /// Whether requests may be pipelined; has no effect, because libcurl does not pipeline requests. Reads as `false`
    /// until it is set.
    open var httpShouldUsePipelining: Bool {
        get { state.withLock { $0.settings.usesPipelining ?? false } }
        set { state.withLock { $0.settings.usesPipelining = newValue } }
    }

    /// The network service type of requests; has no effect on Linux. Reads as `.default` until it is set.
    open var networkServiceType: NSURLRequest.NetworkServiceType {
        get { state.withLock { $0.settings.serviceType ?? .default } }
        set { state.withLock { $0.settings.serviceType = newValue } }
    }

    /// The idle timeout of requests in seconds, the time without a transferred byte after which a task fails with
    /// -1001.
    ///
    /// Until it is set, it reads as 0, and the session's timeout applies; if set to 0 or less, or to 10⁹ or more, there
    /// is no timeout. Establishing a connection has a limit of its own, by default 30 s, which this does not change.
    ///
    /// In some cases 60, Foundation's default, also means the session's timeout: in managers with a shared session, in
    /// requests that the program creates with the serializer, for multipart forms, methods with lowercase letters and
    /// header fields that cannot be sent, with a query block, and in subclasses of the serializer or the manager.
    open var timeoutInterval: TimeInterval {
        get { state.withLock { $0.settings.timeoutInterval ?? 0 } }
        set { state.withLock { $0.settings.timeoutInterval = newValue } }
    }

    // MARK: Header fields

    /// The header fields added to requests without a field of the same name: at first `User-Agent` and, if the process
    /// has a locale, `Accept-Language`. Change them by ``setValue(_:forHTTPHeaderField:)``.
    open var httpRequestHeaders: [String: String] {
        state.withLock { $0.kept.headers }
    }

    /// Sets a header field for all later requests that have no field of that name, in place of an earlier value; `nil`
    /// removes it.
    ///
    /// Names are case-insensitive, unlike in AFNetworking. A name that is not a token (RFC 9110 §5.6.2) fails tasks
    /// with -1000; line breaks in a value are sent as spaces.
    open func setValue(_ value: String?, forHTTPHeaderField field: String) {
        state.withLock { $0.setHeader(field, value) }
    }

    /// Returns the value of a header field that is added to requests without a field of that name; `nil` if there is
    /// none. Names are case-insensitive.
    open func value(forHTTPHeaderField field: String) -> String? {
        state.withLock { state in
            state.kept.headers.first { $0.key.caseInsensitiveCompare(field) == .orderedSame }?.value
        }
    }

    /// Sets the `Authorization` field for HTTP Basic authentication (RFC 7617) with the credentials in UTF-8, in place
    /// of an earlier value.
    ///
    /// If the name or the password contains control characters, which cannot be sent, the field is removed. Servers
    /// take the text before the first colon for the name.
    open func setAuthorizationHeaderFieldWithUsername(_ username: String, password: String) {
        // A name with a colon encodes to the same bytes as its first part with the rest moved to the password.
        let parts = "\(username):\(password)".split(at: ":", maxSplits: 1, omittingEmptySubsequences: false)
        var fields = HTTPFields()
        try? fields.setBasicAuthorization(Credential(user: String(parts[0]), password: String(parts[1])))
        setValue(fields[.authorization], forHTTPHeaderField: "Authorization")
    }

    /// Removes the `Authorization` field, regardless of how it was set.
    open func clearAuthorizationHeader() {
        setValue(nil, forHTTPHeaderField: "Authorization")
    }

    // MARK: Queries

    /// The methods whose parameters are encoded into the query instead of a body. Default: `GET`, `HEAD` and `DELETE`.
    ///
    /// They must be in upper case: the method of a request is converted to upper case for the comparison. Copies and
    /// archives have the default.
    open var httpMethodsEncodingParametersInURI: Set<String> {
        get { state.withLock { $0.methodsInURI } }
        set { state.withLock { $0.methodsInURI = newValue } }
    }

    /// Sets the style of queries and form bodies, and removes a block that was set for them. There is only one style,
    /// so that a call restores the default encoding, which ``AFQueryStringFromParameters(_:)`` describes.
    open func setQueryStringSerializationWith(_ style: AFHTTPRequestQueryStringSerializationStyle) {
        state.withLock { $0.kept.style = style }
        state.set(\.makeQuery, to: nil)
    }

    /// Sets the block that encodes parameters into queries and form bodies, in place of the default style; `nil`
    /// removes it.
    ///
    /// It is called for parameters that are not `nil`, even if they are empty, but not for JSON, property lists and
    /// multipart forms. Its result is not encoded further, except for characters in a query that are invalid in a URL.
    /// If it sets the error, creating the request fails with that error. Copies keep the block, archives do not.
    @preconcurrency
    open func setQueryStringSerializationWith(_ block: QueryBlock?) {
        state.set(\.makeQuery, to: block)
    }

    // MARK: Requests

    /// Creates a request with encoded parameters, and with the header fields and settings of this serializer.
    ///
    /// - Parameters:
    ///   - method: The HTTP method, in which Foundation writes common ones, such as `get`, in upper case.
    ///   - urlString: The absolute URL.
    ///   - parameters: The values to encode: into the query for the methods in
    ///     ``httpMethodsEncodingParametersInURI``, otherwise into the body; `nil` for none. By default they must be a
    ///     dictionary, see ``AFQueryStringFromParameters(_:)``; a query block and subclasses accept other values.
    ///   - error: Takes the error on failure; `nil` if the caller ignores it. It is one of
    ///     ``AFURLRequestSerializationErrorDomain``, such as -1000 for a string that is not a URL and -1016 for
    ///     parameters that cannot be encoded, or that of a query block or of Foundation's encoder.
    /// - Returns: The request; after a failure one whose URL has no host, which cannot be sent.
    open func request(
        withMethod method: String, urlString: String, parameters: Any?, error: NSErrorPointer
    ) -> NSMutableURLRequest {
        Self.orUnsendable(error) {
            guard let url = URL(string: urlString) else {
                throw NSError.requestSerialization(.badURL, reason: "“\(urlString)” is not a URL.")
            }
            var request = URLRequest(url: url)
            request.httpMethod = method
            state.withLock { $0.settings }.apply(to: &request)
            return Self.mutableRequest(
                try self.request(bySerializingRequest: request, withParameters: parameters))
        }
    }

    /// Returns a copy of a request with encoded parameters, and with the header fields of this serializer that the
    /// request lacks. Other settings, such as the timeout, are not applied.
    ///
    /// - Parameters:
    ///   - request: The request, which is not changed.
    ///   - parameters: The values to encode; `nil` for none.
    ///   - error: Takes the error on failure; `nil` if the caller ignores it. It is one of
    ///     ``AFURLRequestSerializationErrorDomain``, such as -1016 for parameters that cannot be encoded, or that of a
    ///     query block or of Foundation's encoder.
    /// - Returns: The request; `nil` on failure.
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

    /// Creates a request with a multipart form (RFC 7578): one field per parameter, followed by the parts that `block`
    /// appends. If the form is empty, the request is the one without parameters.
    ///
    /// - Parameters:
    ///   - method: The HTTP method. GET and HEAD, which cannot have a form, fail with -1002 of
    ///     ``AFURLRequestSerializationErrorDomain``.
    ///   - urlString: The absolute URL.
    ///   - parameters: The fields, which are sorted by name; `nil` for none. Data is sent as bytes, null as an empty
    ///     field, and other values as text in ``stringEncoding``.
    ///   - block: Appends the other parts, before this method returns; `nil` for none.
    ///   - error: Takes the first error of the serializer or a part, such as -1000 of
    ///     ``AFURLRequestSerializationErrorDomain`` for a string that is not a URL and -1016 for values that cannot be
    ///     encoded; `nil` if the caller ignores it. An error that `appendPart` throws to `block` is not included.
    /// - Returns: The request, with a body stream, `Content-Type` and `Content-Length`; after a failure one whose URL
    ///   has no host, which cannot be sent.
    open func multipartFormRequest(
        withMethod method: String, urlString: String, parameters: [String: Any]?,
        constructingBodyWith block: ((any AFMultipartFormData) -> Void)?, error: NSErrorPointer
    ) -> NSMutableURLRequest {
        Self.orUnsendable(error) {
            let base = try request(withMethod: method, urlString: urlString, parameters: nil)
            do {
                // Foundation writes the common methods in upper case.
                guard base.httpMethod != "GET", base.httpMethod != "HEAD" else {
                    throw NSError.requestSerialization(.unsupportedURL, reason: "\(method) cannot have a form.")
                }
                let form = MultipartForm()
                form.append(parameters ?? [:], encoding: String.Encoding(rawValue: stringEncoding))
                block?(form)
                try form.finish(base)
                return base
            } catch {
                let failure = (error as? SerializationError).map(NSError.requestSerialization) ?? error as NSError
                throw failure.about(base as URLRequest, inDomain: AFURLRequestSerializationErrorDomain)
            }
        }
    }

    /// Writes the body stream of a multipart request to a file, and returns the request without the stream at once,
    /// before the file is complete. Its header fields, such as `Content-Length`, are kept, so that a manager can upload
    /// the file with it.
    ///
    /// An existing file is replaced when the body is complete, and unchanged after an error.
    ///
    /// - Parameters:
    ///   - request: The request. If it has no body stream, the file is empty. A stream that is not a form of this
    ///     module is read to its end and cannot be sent afterwards; neither can a part that is a stream.
    ///   - fileURL: The URL of the file, whose directory must exist.
    ///   - handler: Called on the main queue with `nil` when the file is complete, or with the error; `nil` for none.
    /// - Returns: The request without a body.
    #if MigrationHints
        @available(*, deprecated, message: "Use try await body.write(to: …) of AsyncNetworking.")
    #endif
    @preconcurrency
    @discardableResult
    open func request(
        withMultipartForm request: URLRequest, writingStreamContentsToFile fileURL: URL,
        completionHandler handler: (@Sendable ((any Error)?) -> Void)? = nil
    ) -> NSMutableURLRequest {
        let result = Self.mutableRequest(request)
        result.httpBodyStream = nil
        let body = request.httpBodyStream.map { RequestBody.inputStream($0, length: nil, replace: nil) } ?? .none
        // Ends when the body has been read.
        Task {
            var failure: (any Error)?
            do { try await body.write(toFile: fileURL.path) } catch { failure = error }
            CompletionQueue(queue: nil).call { [failure] in handler?(failure) }
        }
        return result
    }

    // MARK: Parts

    /// Returns the encoded parameters of a request.
    ///
    /// - Parameter request: Returns the request for the query block or an error.
    func encode(
        _ parameters: Any?, for method: String, _ request: () -> URLRequest
    ) throws -> EncodedParameters {
        let isInURI = httpMethodsEncodingParametersInURI.contains(method.uppercased())
        if !isInURI, let encoder = self as? any BodyEncoder {
            guard let parameters else { return .nothing }
            do {
                return .body(try encoder.encodeBody(parameters), contentType: encoder.contentType)
            } catch {
                throw (error as NSError).about(request())
            }
        }
        let query = try queryString(of: parameters, request)
        guard !isInURI else { return .query(query) }
        guard let content = query.data(using: String.Encoding(rawValue: stringEncoding)) else {
            throw NSError.requestSerialization(
                .cannotDecodeContentData,
                reason: "The parameters cannot be represented in the serializer's `stringEncoding`."
            ).about(request())
        }
        return .body(content, contentType: "application/x-www-form-urlencoded")
    }

    private static func mutableRequest(_ request: URLRequest) -> NSMutableURLRequest {
        (request as NSURLRequest).mutableCopy() as? NSMutableURLRequest ?? NSMutableURLRequest(url: URL(filePath: "/"))
    }

    /// Returns the result of `make`. If it throws, stores the error and returns a request without a host: a caller that
    /// ignores the error cannot send a request without its parameters. Foundation traps on a request without a URL.
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
        if let makeQuery = state.withLock({ $0.makeQuery }) {
            return try throwingError { makeQuery(request(), parameters, $0) } ?? ""
        }
        do throws(SerializationError) {
            return try URLEncodedFormEncoder().encode(Parameters(foundation: parameters))
        } catch {
            throw NSError.requestSerialization(error).about(request())
        }
    }

    // MARK: Copies and archives

    /// Creates a serializer from an archive written by ``encode(with:)``; `nil` if its settings are missing or cannot
    /// be decoded, as in an archive of AFNetworking itself. Settings that are not archived have their defaults.
    public required init?(coder: NSCoder) {
        guard let kept = coder.decodeValue(RequestSerializerState.Kept.self, forKey: "requestSerializer") else {
            return nil
        }
        state = Lock(RequestSerializerState(kept))
        super.init()
    }

    /// Archives the header fields, the query style, and the options and format of a subclass of this module. All other
    /// settings are lost, such as ``stringEncoding``, ``timeoutInterval`` and a query block.
    open func encode(with coder: NSCoder) {
        coder.encodeValue(state.withLock { $0.kept }, forKey: "requestSerializer")
    }

    /// Always `true`: archives can be decoded with `requiresSecureCoding`.
    open class var supportsSecureCoding: Bool { true }

    /// Returns a serializer with the same header fields, query style and query block, and the options and format of a
    /// subclass of this module. Other settings have their defaults, and a subclass that does not override this method
    /// loses its overrides.
    open func copy(with zone: NSZone? = nil) -> Any {
        let copy = makeEmptyCopy()
        let kept = state.withLock { RequestSerializerState($0.kept, makeQuery: $0.makeQuery) }
        copy.state.withLock { $0 = kept }
        return copy
    }

    /// Returns a serializer of the same class of this module, without this serializer's settings.
    func makeEmptyCopy() -> AFHTTPRequestSerializer { AFHTTPRequestSerializer() }
}

/// A type that encodes parameters into requests. ``AFHTTPRequestSerializer`` and its subclasses conform; a manager
/// accepts these only.
public protocol AFURLRequestSerialization: NSObjectProtocol {
    /// Returns a copy of a request with encoded parameters. A verb of ``AFHTTPSessionManager`` calls an override in a
    /// subclass of this module's serializers on the thread that calls the verb.
    ///
    /// - Parameters:
    ///   - request: The request, which must not be changed.
    ///   - parameters: The values to encode, usually a dictionary; `nil` for none.
    ///   - error: Takes the error if the request cannot be created; `nil` if the caller ignores it.
    /// - Returns: The request; `nil` on failure.
    func request(
        bySerializingRequest request: URLRequest, withParameters parameters: Any?, error: NSErrorPointer
    ) -> URLRequest?
}

/// A style of encoding parameters into a query; there is only one. For another encoding, set a block by
/// `setQueryStringSerializationWith(_:)`.
public enum AFHTTPRequestQueryStringSerializationStyle: UInt, Codable, Sendable {
    /// The style of ``AFQueryStringFromParameters(_:)``: sorted names, `name[key]` for dictionaries, `name[]` for
    /// arrays, and the name alone for elements of sets.
    case httpRequestQueryStringDefaultStyle = 0
}

/// The domain of errors of request serializers. Their codes are those of `NSURLErrorDomain`: -1000 for a bad URL, and
/// for a part from a file that is unreadable or given an invalid media type; -1002 for a form with GET or HEAD; -1016
/// for parameters or other parts that cannot be encoded; and -1 for a serializer that returned no request.
public let AFURLRequestSerializationErrorDomain = "com.alamofire.error.serialization.request"

/// The user info key for the `URLRequest` of an error of a request or response serializer of this module.
///
/// It is absent from errors that precede the request, such as that of a bad URL or of an unreadable file. An error of a
/// response serializer has it only if a manager's task ended with it.
public let AFNetworkingOperationFailingURLRequestErrorKey = "com.alamofire.serialization.request.error.response"

/// The packet size that AFNetworking recommends for throttled uploads over 3G: 16 KiB.
public let kAFUploadStream3GSuggestedPacketSize: UInt = 16384

/// The pause between packets that AFNetworking recommends for throttled uploads over 3G: 0.2 seconds.
public let kAFUploadStream3GSuggestedDelay: TimeInterval = 0.2
