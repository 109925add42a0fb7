// SPDX-License-Identifier: MIT

import ANSystem
import AsyncNetworking
import Dispatch

/// A manager with a method for each HTTP verb, a base URL, and serializers for parameters and responses.
///
/// A verb returns its task, already running, and calls either `success` or `failure` exactly once, on
/// ``AFURLSessionManager/completionQueue`` or, if that is `nil`, on the main queue. If the request cannot be created,
/// the verb returns `nil` and calls `failure` without a task. By default, parameters are encoded as a query or a form,
/// and responses are decoded as JSON.
open class AFHTTPSessionManager: AFHTTPSessionVerbs, @unchecked Sendable {
    private let serializer = Lock(AFHTTPRequestSerializer())

    /// Creates a manager with a configuration, `nil` for the default one, and the default serializers and security
    /// policy. It has no base URL: URLs must be absolute. See ``AFURLSessionManager/init(sessionConfiguration:)`` for
    /// the settings that are used.
    public convenience override init(sessionConfiguration configuration: URLSessionConfiguration?) {
        self.init(baseURL: nil, sessionConfiguration: configuration)
    }

    /// Creates a manager with a base URL, the default configuration, and the default serializers and security policy.
    ///
    /// - Parameter url: The base of relative URLs (RFC 3986 §5), with a slash added after its path if that is not empty
    ///   and has none at its end; `nil` for none.
    public convenience init(baseURL url: URL?) {
        self.init(baseURL: url, sessionConfiguration: nil)
    }

    /// Creates a manager with a base URL, a configuration, and the default serializers and security policy.
    ///
    /// - Parameters:
    ///   - url: The base of relative URLs (RFC 3986 §5), with a slash added after its path if that is not empty and has
    ///     none at its end; `nil` for none.
    ///   - configuration: The configuration, which is copied; `nil` for the default one. See
    ///     ``AFURLSessionManager/init(sessionConfiguration:)`` for the settings that are used.
    public init(baseURL url: URL?, sessionConfiguration configuration: URLSessionConfiguration?) {
        super.init(sessionConfiguration: configuration)
        if let url { state.set(\.resolver, to: URLResolver(base: url)) }
    }

    /// The base of relative URLs (RFC 3986 §5), as passed to the initializer or taken from a shared session, with a
    /// slash added after its path if that is not empty and has none at its end; `nil` if URLs must be absolute.
    open var baseURL: URL? { state.withLock { $0.resolver.base } }

    /// The resolver of URLs, for which a subclass may override ``baseURL``.
    var resolver: URLResolver { isSubclassed ? URLResolver(base: baseURL) : state.withLock { $0.resolver } }

    /// The serializer that encodes parameters into requests. Default: an ``AFHTTPRequestSerializer`` (queries and form
    /// bodies). A change applies to later calls.
    open var requestSerializer: AFHTTPRequestSerializer {
        get { serializer.withLock { $0 } }
        set { serializer.set(\.self, to: newValue) }
    }

    /// The serializer that converts responses to objects. Default: an ``AFJSONResponseSerializer``. It is read when a
    /// response is complete, so a change also applies to running tasks. If `anyResponseSerializer` is of another class,
    /// this reads as a new ``AFHTTPResponseSerializer``.
    open var responseSerializer: AFHTTPResponseSerializer {
        get { anyResponseSerializer as? AFHTTPResponseSerializer ?? AFHTTPResponseSerializer() }
        set { anyResponseSerializer = newValue }
    }

    /// The rules for trusting servers, read when a task starts. Default: a valid certificate chain for the host name,
    /// without pinning. A refused server fails the task with -1202.
    ///
    /// A pinning policy requires an `https` base URL. If the base URL has another scheme or is `nil`, tasks that start
    /// while the policy is set fail with an error of the domain `Invalid Security Policy`; ``setSecurityPolicy(_:)``
    /// throws the error instead. The policy of a shared session applies until this is set or a subclass overrides it,
    /// its `hostPolicies` also afterwards. A block for challenges takes precedence; if it leaves the decision to the
    /// policy, an override is also read during the TLS handshake.
    open override var securityPolicy: AFSecurityPolicy {
        get { super.securityPolicy }
        set { setPolicy(newValue, failure: failure(of: newValue)) }
    }

    /// Sets the rules for trusting servers, unless it throws an error.
    ///
    /// - Throws: An error of the domain `Invalid Security Policy` with code 0 if the policy pins and the base URL is
    ///   not `https`. AFNetworking raised an exception of this name.
    public func setSecurityPolicy(_ policy: AFSecurityPolicy) throws {
        if let failure = failure(of: policy) { throw failure }
        securityPolicy = policy
    }

    private func failure(of policy: AFSecurityPolicy) -> NSError? {
        let mode = policy.sslPinningMode
        guard mode != .none, baseURL?.scheme?.lowercased() != "https" else { return nil }
        let name = mode == .publicKey ? "AFSSLPinningModePublicKey" : "AFSSLPinningModeCertificate"
        let reason = """
            A security policy configured with `\(name)` can only be applied on a manager with a secure base URL (i.e. https)
            """
        return NSError(
            domain: "Invalid Security Policy", code: 0,
            userInfo: [NSLocalizedDescriptionKey: reason, NSLocalizedFailureReasonErrorKey: reason])
    }

    // MARK: Verbs

    /// Starts a GET request with the encoded parameters, by default in its query.
    ///
    /// - Parameters:
    ///   - urlString: The URL, resolved against ``baseURL`` (RFC 3986 §5): a leading slash replaces the base's path. An
    ///     invalid one fails with -1000 of ``AFURLRequestSerializationErrorDomain``.
    ///   - parameters: The values to encode with ``requestSerializer``; `nil` for none.
    ///   - headers: Header fields that replace those of the request serializer with the same name; `nil` for none.
    ///   - downloadProgress: Called with the progress of the response body after decompression, on the manager's own
    ///     serial queue; `nil`, the default, for none.
    ///   - success: Called on `completionQueue` with the task and the object that ``responseSerializer`` returned, if
    ///     any. The block may be `nil`.
    ///   - failure: Called on `completionQueue` with the task, or `nil` if the request cannot be created, and the error
    ///     of the request, the transfer or the serializer; `nil`, the default, for none.
    /// - Returns: The running task; `nil` if the request cannot be created.
    #if MigrationHints
        @available(*, deprecated, message: "Use try await manager.get(…), or session.get(…) of AsyncNetworking.")
    #endif
    @preconcurrency
    @discardableResult
    open func get(
        _ urlString: String, parameters: Any?, headers: [String: String]?,
        progress downloadProgress: (@Sendable (Progress) -> Void)? = nil,
        success: (@Sendable (URLSessionDataTask, Any?) -> Void)?,
        failure: (@Sendable (URLSessionDataTask?, any Error) -> Void)? = nil
    ) -> URLSessionDataTask? {
        perform("GET", urlString, parameters, headers, downloadProgress: downloadProgress, success, failure)
    }

    /// Starts a HEAD request with the encoded parameters, by default in its query.
    ///
    /// - Parameters:
    ///   - urlString: The URL, resolved against ``baseURL`` (RFC 3986 §5): a leading slash replaces the base's path. An
    ///     invalid one fails with -1000 of ``AFURLRequestSerializationErrorDomain``.
    ///   - parameters: The values to encode with ``requestSerializer``; `nil` for none.
    ///   - headers: Header fields that replace those of the request serializer with the same name; `nil` for none.
    ///   - success: Called on `completionQueue` with the task, which has the response. The block may be `nil`.
    ///   - failure: Called on `completionQueue` with the task, or `nil` if the request cannot be created, and the error
    ///     of the request, the transfer or the serializer; `nil`, the default, for none.
    /// - Returns: The running task; `nil` if the request cannot be created.
    #if MigrationHints
        @available(*, deprecated, message: "Use try await manager.head(…), or session.head(…) of AsyncNetworking.")
    #endif
    @preconcurrency
    @discardableResult
    open func head(
        _ urlString: String, parameters: Any?, headers: [String: String]?,
        success: (@Sendable (URLSessionDataTask) -> Void)?,
        failure: (@Sendable (URLSessionDataTask?, any Error) -> Void)? = nil
    ) -> URLSessionDataTask? {
        perform(
            "HEAD", urlString, parameters, headers, success.map { success in { @Sendable task, _ in success(task) } },
            failure)
    }

    /// Starts a POST request with the encoded parameters, by default as its body.
    ///
    /// - Parameters:
    ///   - urlString: The URL, resolved against ``baseURL`` (RFC 3986 §5): a leading slash replaces the base's path. An
    ///     invalid one fails with -1000 of ``AFURLRequestSerializationErrorDomain``.
    ///   - parameters: The values to encode with ``requestSerializer``; `nil` for none.
    ///   - headers: Header fields that replace those of the request serializer with the same name; `nil` for none.
    ///   - uploadProgress: Called with the progress of the request body, on the manager's own serial queue; `nil`, the
    ///     default, for none.
    ///   - success: Called on `completionQueue` with the task and the object that ``responseSerializer`` returned, if
    ///     any. The block may be `nil`.
    ///   - failure: Called on `completionQueue` with the task, or `nil` if the request cannot be created, and the error
    ///     of the request, the transfer or the serializer; `nil`, the default, for none.
    /// - Returns: The running task; `nil` if the request cannot be created.
    #if MigrationHints
        @available(*, deprecated, message: "Use try await manager.post(…), or session.post(…) of AsyncNetworking.")
    #endif
    @preconcurrency
    @discardableResult
    open func post(
        _ urlString: String, parameters: Any?, headers: [String: String]?,
        progress uploadProgress: (@Sendable (Progress) -> Void)? = nil,
        success: (@Sendable (URLSessionDataTask, Any?) -> Void)?,
        failure: (@Sendable (URLSessionDataTask?, any Error) -> Void)? = nil
    ) -> URLSessionDataTask? {
        perform("POST", urlString, parameters, headers, uploadProgress: uploadProgress, success, failure)
    }

    /// Starts a POST request with a multipart form (RFC 7578): a field per parameter, then the parts of `block`.
    ///
    /// - Parameters:
    ///   - urlString: The URL, resolved against ``baseURL`` (RFC 3986 §5): a leading slash replaces the base's path. An
    ///     invalid one fails with -1000 of ``AFURLRequestSerializationErrorDomain``.
    ///   - parameters: A dictionary with the form's fields, sorted by name; `nil` for none. Other values fail with
    ///     -1016 of ``AFURLRequestSerializationErrorDomain``.
    ///   - headers: Header fields that replace those of the request serializer with the same name; `nil` for none.
    ///   - block: Appends the parts, before this method returns; `nil` for none. If the form is empty, the request is
    ///     the one without parameters. A part that cannot be encoded fails it with -1016 of that domain.
    ///   - uploadProgress: Called with the progress of the request body, on the manager's own serial queue; `nil`, the
    ///     default, for none.
    ///   - success: Called on `completionQueue` with the task and the object that ``responseSerializer`` returned, if
    ///     any. The block may be `nil`.
    ///   - failure: Called on `completionQueue` with the task, or `nil` if the request cannot be created, and the error
    ///     of the request, the transfer or the serializer; `nil`, the default, for none.
    /// - Returns: The running task; `nil` if the request cannot be created.
    #if MigrationHints
        @available(*, deprecated, message: "Use try await manager.post(…), or session.post(…) of AsyncNetworking.")
    #endif
    @preconcurrency
    @discardableResult
    open func post(
        _ urlString: String, parameters: Any?, headers: [String: String]?,
        constructingBodyWith block: ((any AFMultipartFormData) -> Void)?,
        progress uploadProgress: (@Sendable (Progress) -> Void)? = nil,
        success: (@Sendable (URLSessionDataTask, Any?) -> Void)?,
        failure: (@Sendable (URLSessionDataTask?, any Error) -> Void)? = nil
    ) -> URLSessionDataTask? {
        performForm(urlString, parameters, headers, block, uploadProgress: uploadProgress, success, failure)
    }

    /// Starts a PUT request with the encoded parameters, by default as its body.
    ///
    /// - Parameters:
    ///   - urlString: The URL, resolved against ``baseURL`` (RFC 3986 §5): a leading slash replaces the base's path. An
    ///     invalid one fails with -1000 of ``AFURLRequestSerializationErrorDomain``.
    ///   - parameters: The values to encode with ``requestSerializer``; `nil` for none.
    ///   - headers: Header fields that replace those of the request serializer with the same name; `nil` for none.
    ///   - success: Called on `completionQueue` with the task and the object that ``responseSerializer`` returned, if
    ///     any. The block may be `nil`.
    ///   - failure: Called on `completionQueue` with the task, or `nil` if the request cannot be created, and the error
    ///     of the request, the transfer or the serializer; `nil`, the default, for none.
    /// - Returns: The running task; `nil` if the request cannot be created.
    #if MigrationHints
        @available(*, deprecated, message: "Use try await manager.put(…), or session.put(…) of AsyncNetworking.")
    #endif
    @preconcurrency
    @discardableResult
    open func put(
        _ urlString: String, parameters: Any?, headers: [String: String]?,
        success: (@Sendable (URLSessionDataTask, Any?) -> Void)?,
        failure: (@Sendable (URLSessionDataTask?, any Error) -> Void)? = nil
    ) -> URLSessionDataTask? {
        perform("PUT", urlString, parameters, headers, success, failure)
    }

    /// Starts a PATCH request with the encoded parameters, by default as its body.
    ///
    /// - Parameters:
    ///   - urlString: The URL, resolved against ``baseURL`` (RFC 3986 §5): a leading slash replaces the base's path. An
    ///     invalid one fails with -1000 of ``AFURLRequestSerializationErrorDomain``.
    ///   - parameters: The values to encode with ``requestSerializer``; `nil` for none.
    ///   - headers: Header fields that replace those of the request serializer with the same name; `nil` for none.
    ///   - success: Called on `completionQueue` with the task and the object that ``responseSerializer`` returned, if
    ///     any. The block may be `nil`.
    ///   - failure: Called on `completionQueue` with the task, or `nil` if the request cannot be created, and the error
    ///     of the request, the transfer or the serializer; `nil`, the default, for none.
    /// - Returns: The running task; `nil` if the request cannot be created.
    #if MigrationHints
        @available(*, deprecated, message: "Use try await manager.patch(…), or session.patch(…) of AsyncNetworking.")
    #endif
    @preconcurrency
    @discardableResult
    open func patch(
        _ urlString: String, parameters: Any?, headers: [String: String]?,
        success: (@Sendable (URLSessionDataTask, Any?) -> Void)?,
        failure: (@Sendable (URLSessionDataTask?, any Error) -> Void)? = nil
    ) -> URLSessionDataTask? {
        perform("PATCH", urlString, parameters, headers, success, failure)
    }

    /// Starts a DELETE request with the encoded parameters, by default in its query.
    ///
    /// - Parameters:
    ///   - urlString: The URL, resolved against ``baseURL`` (RFC 3986 §5): a leading slash replaces the base's path. An
    ///     invalid one fails with -1000 of ``AFURLRequestSerializationErrorDomain``.
    ///   - parameters: The values to encode with ``requestSerializer``; `nil` for none.
    ///   - headers: Header fields that replace those of the request serializer with the same name; `nil` for none.
    ///   - success: Called on `completionQueue` with the task and the object that ``responseSerializer`` returned, if
    ///     any. The block may be `nil`.
    ///   - failure: Called on `completionQueue` with the task, or `nil` if the request cannot be created, and the error
    ///     of the request, the transfer or the serializer; `nil`, the default, for none.
    /// - Returns: The running task; `nil` if the request cannot be created.
    #if MigrationHints
        @available(*, deprecated, message: "Use try await manager.delete(…), or session.delete(…) of AsyncNetworking.")
    #endif
    @preconcurrency
    @discardableResult
    open func delete(
        _ urlString: String, parameters: Any?, headers: [String: String]?,
        success: (@Sendable (URLSessionDataTask, Any?) -> Void)?,
        failure: (@Sendable (URLSessionDataTask?, any Error) -> Void)? = nil
    ) -> URLSessionDataTask? {
        perform("DELETE", urlString, parameters, headers, success, failure)
    }

    /// Creates a suspended task for any HTTP method. Call `resume()` to start it.
    ///
    /// All verbs except those with a multipart form call this method; an override therefore applies to them. An
    /// override applies to the async verbs as well, by way of the verbs with callbacks.
    ///
    /// - Parameters:
    ///   - method: The HTTP method, in which Foundation writes common ones, such as `get`, in upper case. One that is
    ///     not a token (RFC 9110 §9.1) fails the task with -1000.
    ///   - urlString: The URL, resolved against ``baseURL`` (RFC 3986 §5): a leading slash replaces the base's path. An
    ///     invalid one fails with -1000 of ``AFURLRequestSerializationErrorDomain``.
    ///   - parameters: The values to encode with ``requestSerializer``; `nil` for none.
    ///   - headers: Header fields that replace those of the request serializer with the same name; `nil` for none.
    ///   - uploadProgress: Called on the manager's own serial queue for the request body; `nil` for none.
    ///   - downloadProgress: Called on the manager's own serial queue for the decompressed response; `nil` for none.
    ///   - success: Called on `completionQueue` with the task and the object that ``responseSerializer`` returned, if
    ///     any. The block may be `nil`.
    ///   - failure: Called on `completionQueue` with the task, or `nil` if the request cannot be created, and the error
    ///     of the request, the transfer or the serializer. The block may be `nil`.
    /// - Returns: The task, or `nil` if the request cannot be created.
    #if MigrationHints
        @available(*, deprecated, message: "Use session.request(…) and session.data(for: …) of AsyncNetworking.")
    #endif
    @preconcurrency
    open func dataTask(
        withHTTPMethod method: String, urlString: String, parameters: Any?, headers: [String: String]?,
        uploadProgress: (@Sendable (Progress) -> Void)?, downloadProgress: (@Sendable (Progress) -> Void)?,
        success: (@Sendable (URLSessionDataTask, Any?) -> Void)?,
        failure: (@Sendable (URLSessionDataTask?, any Error) -> Void)? = nil
    ) -> URLSessionDataTask? {
        let serialized = attempt(orCall: failure) { try makeRequest(method, urlString, parameters, headers) }
        guard let request = serialized else { return nil }
        guard isSubclassed else {
            return makeDataTask(request, uploadProgress, downloadProgress, completion(success, failure))
        }
        return task(success, failure) {
            dataTask(
                with: request.urlRequest, uploadProgress: uploadProgress, downloadProgress: downloadProgress,
                completionHandler: $0)
        }
    }

    // MARK: Copies and archives

    /// Creates a manager from an archive written by ``encode(with:)``. Parts that the archive lacks have their
    /// defaults; the result is never `nil`.
    public required init?(coder: NSCoder) {
        super.init(coder: coder)
        state.set(\.resolver, to: URLResolver(base: coder.decodeValue(URL.self, forKey: "baseURL")))
        guard !(coder is CopyCoder) else { return }
        if let archived = coder.decodeObject(of: AFHTTPRequestSerializer.self, forKey: "requestSerializer") {
            requestSerializer = archived
        }
        if let archived = coder.decodeObject(of: AFHTTPResponseSerializer.self, forKey: "responseSerializer") {
            responseSerializer = archived
        }
        if let archived = coder.decodeObject(of: AFSecurityPolicy.self, forKey: "securityPolicy") {
            securityPolicy = archived
        }
    }

    /// Archives the base URL, the serializers, the security policy, and the settings that the manager uses from its
    /// configuration, except its `URLCache` and its cookies, as does ``AFURLSessionManager/encode(with:)``. Header fields
    /// are archived in clear text. Blocks, queues and a shared AsyncNetworking session are not archived. For a response
    /// serializer that is not an ``AFHTTPResponseSerializer``, a new ``AFHTTPResponseSerializer`` is archived.
    open override func encode(with coder: NSCoder) {
        super.encode(with: coder)
        if let baseURL { coder.encodeValue(baseURL, forKey: "baseURL") }
        coder.encode(requestSerializer, forKey: "requestSerializer")
        coder.encode(responseSerializer, forKey: "responseSerializer")
        coder.encode(securityPolicy, forKey: "securityPolicy")
    }

    /// Returns a manager of the same class with the same base URL and configuration or shared session, and copies of
    /// the serializers and the security policy. Blocks, completion queue, group and reachability manager are not
    /// copied.
    ///
    /// A copy of a subclass is created by its `init(coder:)` from what its `encode(with:)` encodes, without an archive;
    /// if that returns `nil`, the copy is an ``AFHTTPSessionManager``.
    ///
    /// If the copy of a serializer or policy is of another class, because a subclass does not override `copy(with:)`,
    /// the object itself is shared. In place of a response serializer that is not an ``AFHTTPResponseSerializer``, the
    /// copy has a new ``AFHTTPResponseSerializer``.
    open override func copy(with zone: NSZone? = nil) -> Any {
        let copy =
            copyOfSubclass() as? AFHTTPSessionManager
            ?? AFHTTPSessionManager(baseURL: baseURL, sessionConfiguration: copiedConfiguration)
        copy.requestSerializer = requestSerializer.copyOfSameClass(zone)
        copy.responseSerializer = responseSerializer.copyOfSameClass(zone)
        // The policy of a shared session holds for the copy, too, unless another one was set.
        if let policy = ownPolicy { copy.securityPolicy = policy.copyOfSameClass(zone) }
        return copy
    }

    /// The manager's class, address, base URL, session and number of unfinished tasks, as text for logs.
    open override var description: String {
        "<\(type(of: self)): \(ObjectIdentifier(self)), baseURL: \(baseURL?.absoluteString ?? "nil"), "
            + "session: \(coreSession), tasks: \(tasks.count)>"
    }
}
