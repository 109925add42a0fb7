// SPDX-License-Identifier: MIT

import ANSystem
import AsyncNetworking
import Dispatch

/// Makes and starts requests by their verbs, relative to a base URL, with serializers for parameters and responses.
///
/// A verb returns its task, which runs already; it calls `success` or `failure`, and that once, on the main queue or the
/// ``AFURLSessionManager/completionQueue``. Where a request cannot be made, it returns nil and calls `failure` without a task.
open class AFHTTPSessionManager: AFURLSessionManager, @unchecked Sendable {
    let base: URLResolver
    private let serializer: Lock<Handover<AFHTTPRequestSerializer>>

    /// Creates a manager without a base URL.
    ///
    /// - Parameter configuration: See ``AFURLSessionManager/init(sessionConfiguration:)``.
    public convenience override init(sessionConfiguration configuration: URLSessionConfiguration?) {
        self.init(baseURL: nil, sessionConfiguration: configuration)
    }

    /// Creates a manager with the default configuration.
    public convenience init(baseURL url: URL?) {
        self.init(baseURL: url, sessionConfiguration: nil)
    }

    /// Creates a manager.
    ///
    /// - Parameters:
    ///   - url: What relative URLs are resolved against, as RFC 3986 says; a missing slash at the end of its path is added.
    ///   - configuration: See ``AFURLSessionManager/init(sessionConfiguration:)``.
    public init(baseURL url: URL?, sessionConfiguration configuration: URLSessionConfiguration?) {
        base = URLResolver(base: url ?? configuration?.sharedSession?.configuration.baseURL)
        serializer = Lock(Handover(AFHTTPRequestSerializer()))
        super.init(sessionConfiguration: configuration)
    }

    /// What relative URLs are resolved against, with a slash at the end of its path.
    open var baseURL: URL? { base.base }

    /// What puts parameters into requests: queries and forms unless set.
    open var requestSerializer: AFHTTPRequestSerializer {
        get { serializer.withLock { $0.value } }
        set { serializer.set(\.self, to: Handover(newValue)) }
    }

    /// What makes objects of responses: JSON unless set. It is looked at when a response is complete.
    open var responseSerializer: AFHTTPResponseSerializer {
        get { anyResponseSerializer as? AFHTTPResponseSerializer ?? AFHTTPResponseSerializer() }
        set { anyResponseSerializer = newValue }
    }

    /// What servers must show. One that pins makes sense for https only: where the base URL has another scheme, or where there
    /// is none, tasks fail as long as it is set; ``setSecurityPolicy(_:)`` says so at once.
    open override var securityPolicy: AFSecurityPolicy {
        get { super.securityPolicy }
        set {
            super.securityPolicy = newValue
            let problem = problem(of: newValue)
            state.withLock { $0.policyProblem = problem }
        }
    }

    /// Sets what servers must show.
    ///
    /// - Throws: An error of the domain `Invalid Security Policy` for a policy that pins where the base URL is not https.
    public func setSecurityPolicy(_ policy: AFSecurityPolicy) throws {
        if let problem = problem(of: policy) { throw problem }
        securityPolicy = policy
    }

    private func problem(of policy: AFSecurityPolicy) -> NSError? {
        let mode: String
        switch policy.sslPinningMode {
        case .none: return nil
        case .publicKey: mode = "AFSSLPinningModePublicKey"
        case .certificate: mode = "AFSSLPinningModeCertificate"
        }
        guard baseURL?.scheme != "https" else { return nil }
        let reason = """
            A security policy configured with `\(mode)` can only be applied on a manager with a secure base URL (i.e. https)
            """
        return NSError(
            domain: "Invalid Security Policy", code: 0,
            userInfo: [NSLocalizedDescriptionKey: reason, NSLocalizedFailureReasonErrorKey: reason])
    }

    // MARK: Verbs

    /// Performs a GET; parameters go to the query.
    #if MigrationHints
        @available(*, deprecated, message: "Await it: try await manager.get(…), or the core's session.get(…).")
    #endif
    @discardableResult
    open func get(
        _ urlString: String, parameters: Any?, headers: [String: String]?,
        progress downloadProgress: ((Progress) -> Void)?,
        success: ((URLSessionDataTask, Any?) -> Void)?, failure: ((URLSessionDataTask?, any Error) -> Void)?
    ) -> URLSessionDataTask? {
        perform(
            "GET", urlString, parameters, headers, downloadProgress: downloadProgress, success,
            failure)
    }

    /// Performs a HEAD; parameters go to the query.
    #if MigrationHints
        @available(*, deprecated, message: "Await it: try await manager.head(…), or the core's session.head(…).")
    #endif
    @discardableResult
    open func head(
        _ urlString: String, parameters: Any?, headers: [String: String]?, success: ((URLSessionDataTask) -> Void)?,
        failure: ((URLSessionDataTask?, any Error) -> Void)?
    ) -> URLSessionDataTask? {
        perform(
            "HEAD", urlString, parameters, headers,
            success.map { success in { task, _ in success(task) } }, failure)
    }

    /// Performs a POST; parameters become the body.
    #if MigrationHints
        @available(*, deprecated, message: "Await it: try await manager.post(…), or the core's session.post(…).")
    #endif
    @discardableResult
    open func post(
        _ urlString: String, parameters: Any?, headers: [String: String]?,
        progress uploadProgress: ((Progress) -> Void)?,
        success: ((URLSessionDataTask, Any?) -> Void)?, failure: ((URLSessionDataTask?, any Error) -> Void)?
    ) -> URLSessionDataTask? {
        perform(
            "POST", urlString, parameters, headers, uploadProgress: uploadProgress, success,
            failure)
    }

    /// Performs a POST of a multipart form: a field for each parameter, then what the block appends.
    #if MigrationHints
        @available(*, deprecated, message: "Await it: try await manager.post(…), or the core's session.post(…).")
    #endif
    @discardableResult
    open func post(
        _ urlString: String, parameters: Any?, headers: [String: String]?,
        constructingBodyWith block: ((any AFMultipartFormData) -> Void)?,
        progress uploadProgress: ((Progress) -> Void)?, success: ((URLSessionDataTask, Any?) -> Void)?,
        failure: ((URLSessionDataTask?, any Error) -> Void)?
    ) -> URLSessionDataTask? {
        let request = orTelling(failure) {
            let fields = try parameters.map(Self.fields)
            return try makeRequest(urlString, headers) { url, error in
                requestSerializer.multipartFormRequest(
                    withMethod: "POST", urlString: url.absoluteString, parameters: fields,
                    constructingBodyWith: block, error: error)
            }
        }
        guard let request else { return nil }
        guard isSubclassed else {
            return AFUploadTask(
                makeDriver(
                    .given(request), .upload(nil),
                    TaskCallbacks(
                        uploadProgress: uploadProgress, completion: .blocks(success: success, failure: failure))),
                isResumed: true)
        }
        return started(
            making(success, failure) {
                uploadTask(withStreamedRequest: request, progress: uploadProgress, completionHandler: $0)
            })
    }

    /// Performs a PUT; parameters become the body.
    #if MigrationHints
        @available(*, deprecated, message: "Await it: try await manager.put(…), or the core's session.put(…).")
    #endif
    @discardableResult
    open func put(
        _ urlString: String, parameters: Any?, headers: [String: String]?,
        success: ((URLSessionDataTask, Any?) -> Void)?, failure: ((URLSessionDataTask?, any Error) -> Void)?
    ) -> URLSessionDataTask? {
        perform("PUT", urlString, parameters, headers, success, failure)
    }

    /// Performs a PATCH; parameters become the body.
    #if MigrationHints
        @available(*, deprecated, message: "Await it: try await manager.patch(…), or the core's session.patch(…).")
    #endif
    @discardableResult
    open func patch(
        _ urlString: String, parameters: Any?, headers: [String: String]?,
        success: ((URLSessionDataTask, Any?) -> Void)?, failure: ((URLSessionDataTask?, any Error) -> Void)?
    ) -> URLSessionDataTask? {
        perform("PATCH", urlString, parameters, headers, success, failure)
    }

    /// Performs a DELETE; parameters go to the query.
    #if MigrationHints
        @available(*, deprecated, message: "Await it: try await manager.delete(…), or the core's session.delete(…).")
    #endif
    @discardableResult
    open func delete(
        _ urlString: String, parameters: Any?, headers: [String: String]?,
        success: ((URLSessionDataTask, Any?) -> Void)?, failure: ((URLSessionDataTask?, any Error) -> Void)?
    ) -> URLSessionDataTask? {
        perform("DELETE", urlString, parameters, headers, success, failure)
    }

    /// Makes a task for any method, which waits to be resumed.
    ///
    /// - Parameters:
    ///   - method: The method, sent as it is.
    ///   - urlString: Resolved against the base URL.
    ///   - parameters: Put into the request by the ``requestSerializer``.
    ///   - headers: Fields that replace all others of the same names.
    ///   - uploadProgress: Told on the manager's queue how much of the body was sent.
    ///   - downloadProgress: Told on the manager's queue how much of the response was received.
    ///   - success: Given the task and what the ``responseSerializer`` made.
    ///   - failure: Given the task, where there is one, and what went wrong.
    open func dataTask(
        withHTTPMethod method: String, urlString: String, parameters: Any?, headers: [String: String]?,
        uploadProgress: ((Progress) -> Void)?, downloadProgress: ((Progress) -> Void)?,
        success: ((URLSessionDataTask, Any?) -> Void)?, failure: ((URLSessionDataTask?, any Error) -> Void)?
    ) -> URLSessionDataTask? {
        guard isSubclassed else {
            return makeTask(
                method, urlString, parameters, headers, uploadProgress: uploadProgress,
                downloadProgress: downloadProgress, success, failure, isResumed: false)
        }
        guard let request = orTelling(failure, { try makeRequest(method, urlString, parameters, headers) }) else {
            return nil
        }
        return making(success, failure) {
            dataTask(
                with: request.urlRequest, uploadProgress: uploadProgress, downloadProgress: downloadProgress,
                completionHandler: $0)
        }
    }

    // MARK: Copies and archives

    /// Restores a manager with the archived base URL, configuration, serializers and security policy.
    public required init?(coder: NSCoder) {
        base = URLResolver(base: coder.decodeValue(URL.self, forKey: "baseURL"))
        serializer = Lock(Handover(AFHTTPRequestSerializer()))
        super.init(coder: coder)
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

    /// Archives the base URL, the configuration, the serializers and the security policy.
    open override func encode(with coder: NSCoder) {
        super.encode(with: coder)
        if let baseURL { coder.encodeValue(baseURL, forKey: "baseURL") }
        coder.encode(requestSerializer, forKey: "requestSerializer")
        coder.encode(responseSerializer, forKey: "responseSerializer")
        coder.encode(securityPolicy, forKey: "securityPolicy")
    }

    /// A manager with the same base URL and configuration, and copies of the serializers and the security policy.
    open override func copy(with zone: NSZone? = nil) -> Any {
        let copy = AFHTTPSessionManager(baseURL: baseURL, sessionConfiguration: copiedConfiguration)
        if let serializer = requestSerializer.copy(with: zone) as? AFHTTPRequestSerializer {
            copy.requestSerializer = serializer
        }
        if let serializer = responseSerializer.copy(with: zone) as? AFHTTPResponseSerializer {
            copy.responseSerializer = serializer
        }
        if let policy = securityPolicy.copy(with: zone) as? AFSecurityPolicy { copy.securityPolicy = policy }
        return copy
    }

    /// The manager's class, address, base URL, session and tasks.
    open override var description: String {
        "<\(type(of: self)): \(ObjectIdentifier(self)), baseURL: \(baseURL?.absoluteString ?? "nil"), "
            + "session: \(coreSession), tasks: \(tasks.count)>"
    }
}
