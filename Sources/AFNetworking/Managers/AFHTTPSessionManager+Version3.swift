// SPDX-License-Identifier: MIT

// The verbs as AFNetworking 3 had them, without header fields, and with or without progress.

extension AFHTTPSessionManager {
    /// Performs a GET; parameters go to the query.
    #if MigrationHints
        @available(*, deprecated, message: "Await it: try await manager.get(…), or the core's session.get(…).")
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

    /// Performs a HEAD; parameters go to the query.
    #if MigrationHints
        @available(*, deprecated, message: "Await it: try await manager.head(…), or the core's session.head(…).")
    #endif
    @discardableResult
    public func head(
        _ urlString: String, parameters: Any?, success: ((URLSessionDataTask) -> Void)?,
        failure: ((URLSessionDataTask?, any Error) -> Void)?
    ) -> URLSessionDataTask? {
        head(urlString, parameters: parameters, headers: nil, success: success, failure: failure)
    }

    /// Performs a POST; parameters become the body.
    #if MigrationHints
        @available(*, deprecated, message: "Await it: try await manager.post(…), or the core's session.post(…).")
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

    /// Performs a POST of a multipart form: a field for each parameter, then what the block appends.
    #if MigrationHints
        @available(*, deprecated, message: "Await it: try await manager.post(…), or the core's session.post(…).")
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

    /// Performs a PUT; parameters become the body.
    #if MigrationHints
        @available(*, deprecated, message: "Await it: try await manager.put(…), or the core's session.put(…).")
    #endif
    @discardableResult
    public func put(
        _ urlString: String, parameters: Any?, success: ((URLSessionDataTask, Any?) -> Void)?,
        failure: ((URLSessionDataTask?, any Error) -> Void)?
    ) -> URLSessionDataTask? {
        put(urlString, parameters: parameters, headers: nil, success: success, failure: failure)
    }

    /// Performs a PATCH; parameters become the body.
    #if MigrationHints
        @available(*, deprecated, message: "Await it: try await manager.patch(…), or the core's session.patch(…).")
    #endif
    @discardableResult
    public func patch(
        _ urlString: String, parameters: Any?, success: ((URLSessionDataTask, Any?) -> Void)?,
        failure: ((URLSessionDataTask?, any Error) -> Void)?
    ) -> URLSessionDataTask? {
        patch(urlString, parameters: parameters, headers: nil, success: success, failure: failure)
    }

    /// Performs a DELETE; parameters go to the query.
    #if MigrationHints
        @available(*, deprecated, message: "Await it: try await manager.delete(…), or the core's session.delete(…).")
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
    /// Makes a task that collects the response, without progress; it waits to be resumed.
    public func dataTask(
        with request: URLRequest, completionHandler: ((URLResponse, Any?, (any Error)?) -> Void)?
    ) -> URLSessionDataTask {
        dataTask(with: request, uploadProgress: nil, downloadProgress: nil, completionHandler: completionHandler)
    }
}
