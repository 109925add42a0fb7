// SPDX-License-Identifier: MIT

// The verbs of AFNetworking 3: without header fields, with optional progress.

extension AFHTTPSessionManager {
    /// Starts a GET request with the encoded parameters in its query. Variant of AFNetworking 3, without header fields.
    #if MigrationHints
        @available(*, deprecated, message: "Use try await manager.get(…), or session.get(…) of AsyncNetworking.")
    #endif
    @discardableResult
    public func get(
        _ urlString: String, parameters: Any?, progress downloadProgress: ((Progress) -> Void)? = nil,
        success: ((URLSessionDataTask, Any?) -> Void)?, failure: ((URLSessionDataTask?, any Error) -> Void)?
    ) -> URLSessionDataTask? {
        get(
            urlString, parameters: parameters, headers: nil, progress: downloadProgress, success: success,
            failure: failure)
    }

    /// Starts a HEAD request with the encoded parameters in its query. Variant of AFNetworking 3, without header
    /// fields.
    #if MigrationHints
        @available(*, deprecated, message: "Use try await manager.head(…), or session.head(…) of AsyncNetworking.")
    #endif
    @discardableResult
    public func head(
        _ urlString: String, parameters: Any?, success: ((URLSessionDataTask) -> Void)?,
        failure: ((URLSessionDataTask?, any Error) -> Void)?
    ) -> URLSessionDataTask? {
        head(urlString, parameters: parameters, headers: nil, success: success, failure: failure)
    }

    /// Starts a POST request with the encoded parameters as its body. Variant of AFNetworking 3, without header fields.
    #if MigrationHints
        @available(*, deprecated, message: "Use try await manager.post(…), or session.post(…) of AsyncNetworking.")
    #endif
    @discardableResult
    public func post(
        _ urlString: String, parameters: Any?, progress uploadProgress: ((Progress) -> Void)? = nil,
        success: ((URLSessionDataTask, Any?) -> Void)?, failure: ((URLSessionDataTask?, any Error) -> Void)?
    ) -> URLSessionDataTask? {
        post(
            urlString, parameters: parameters, headers: nil, progress: uploadProgress, success: success,
            failure: failure)
    }

    /// Starts a POST request with a multipart form (RFC 7578): one field per parameter, followed by the parts that
    /// `block` appends. Variant of AFNetworking 3, without header fields.
    #if MigrationHints
        @available(*, deprecated, message: "Use try await manager.post(…), or session.post(…) of AsyncNetworking.")
    #endif
    @discardableResult
    public func post(
        _ urlString: String, parameters: Any?, constructingBodyWith block: ((any AFMultipartFormData) -> Void)?,
        progress uploadProgress: ((Progress) -> Void)? = nil, success: ((URLSessionDataTask, Any?) -> Void)?,
        failure: ((URLSessionDataTask?, any Error) -> Void)?
    ) -> URLSessionDataTask? {
        post(
            urlString, parameters: parameters, headers: nil, constructingBodyWith: block, progress: uploadProgress,
            success: success, failure: failure)
    }

    /// Starts a PUT request with the encoded parameters as its body. Variant of AFNetworking 3, without header fields.
    #if MigrationHints
        @available(*, deprecated, message: "Use try await manager.put(…), or session.put(…) of AsyncNetworking.")
    #endif
    @discardableResult
    public func put(
        _ urlString: String, parameters: Any?, success: ((URLSessionDataTask, Any?) -> Void)?,
        failure: ((URLSessionDataTask?, any Error) -> Void)?
    ) -> URLSessionDataTask? {
        put(urlString, parameters: parameters, headers: nil, success: success, failure: failure)
    }

    /// Starts a PATCH request with the encoded parameters as its body. Variant of AFNetworking 3, without header
    /// fields.
    #if MigrationHints
        @available(*, deprecated, message: "Use try await manager.patch(…), or session.patch(…) of AsyncNetworking.")
    #endif
    @discardableResult
    public func patch(
        _ urlString: String, parameters: Any?, success: ((URLSessionDataTask, Any?) -> Void)?,
        failure: ((URLSessionDataTask?, any Error) -> Void)?
    ) -> URLSessionDataTask? {
        patch(urlString, parameters: parameters, headers: nil, success: success, failure: failure)
    }

    /// Starts a DELETE request with the encoded parameters in its query. Variant of AFNetworking 3, without header
    /// fields.
    #if MigrationHints
        @available(*, deprecated, message: "Use try await manager.delete(…), or session.delete(…) of AsyncNetworking.")
    #endif
    @discardableResult
    public func delete(
        _ urlString: String, parameters: Any?, success: ((URLSessionDataTask, Any?) -> Void)?,
        failure: ((URLSessionDataTask?, any Error) -> Void)?
    ) -> URLSessionDataTask? {
        delete(urlString, parameters: parameters, headers: nil, success: success, failure: failure)
    }
}

extension AFURLSessionManager {
    /// Creates a suspended task that collects the response in memory, without progress callbacks.
    public func dataTask(
        with request: URLRequest, completionHandler: ((URLResponse, Any?, (any Error)?) -> Void)?
    ) -> URLSessionDataTask {
        dataTask(with: request, uploadProgress: nil, downloadProgress: nil, completionHandler: completionHandler)
    }
}
