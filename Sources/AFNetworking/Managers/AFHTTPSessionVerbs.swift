// SPDX-License-Identifier: MIT

/// The verbs of ``AFHTTPSessionManager`` without header fields, which programs for AFNetworking 2 and 3 call and override.
/// Programs create objects of that class.
open class AFHTTPSessionVerbs: AFURLSessionManager, @unchecked Sendable {
    private var manager: AFHTTPSessionManager? { self as? AFHTTPSessionManager }

    /// Starts a GET request, with the signature of AFNetworking 3. Calls
    /// ``AFHTTPSessionManager/get(_:parameters:headers:progress:success:failure:)``, which describes the parameters.
    #if MigrationHints
        @available(*, deprecated, message: "Use try await manager.get(…), or session.get(…) of AsyncNetworking.")
    #endif
    @preconcurrency
    @discardableResult
    open func get(
        _ urlString: String, parameters: Any?, progress downloadProgress: (@Sendable (Progress) -> Void)?,
        success: (@Sendable (URLSessionDataTask, Any?) -> Void)?,
        failure: (@Sendable (URLSessionDataTask?, any Error) -> Void)? = nil
    ) -> URLSessionDataTask? {
        manager?.get(
            urlString, parameters: parameters, headers: nil, progress: downloadProgress, success: success,
            failure: failure)
    }

    /// Starts a GET request, with the signature of AFNetworking 2. Calls
    /// ``get(_:parameters:progress:success:failure:)``, which describes the parameters.
    #if MigrationHints
        @available(*, deprecated, message: "Use try await manager.get(…), or session.get(…) of AsyncNetworking.")
    #endif
    @preconcurrency
    @discardableResult
    open func get(
        _ urlString: String, parameters: Any?,
        success: (@Sendable (URLSessionDataTask, Any?) -> Void)?,
        failure: (@Sendable (URLSessionDataTask?, any Error) -> Void)? = nil
    ) -> URLSessionDataTask? {
        get(urlString, parameters: parameters, progress: nil, success: success, failure: failure)
    }

    /// Starts a POST request, with the signature of AFNetworking 3. Calls
    /// ``AFHTTPSessionManager/post(_:parameters:headers:progress:success:failure:)``, which describes the parameters.
    #if MigrationHints
        @available(*, deprecated, message: "Use try await manager.post(…), or session.post(…) of AsyncNetworking.")
    #endif
    @preconcurrency
    @discardableResult
    open func post(
        _ urlString: String, parameters: Any?, progress uploadProgress: (@Sendable (Progress) -> Void)?,
        success: (@Sendable (URLSessionDataTask, Any?) -> Void)?,
        failure: (@Sendable (URLSessionDataTask?, any Error) -> Void)? = nil
    ) -> URLSessionDataTask? {
        manager?.post(
            urlString, parameters: parameters, headers: nil, progress: uploadProgress, success: success,
            failure: failure)
    }

    /// Starts a POST request, with the signature of AFNetworking 2. Calls
    /// ``post(_:parameters:progress:success:failure:)``, which describes the parameters.
    #if MigrationHints
        @available(*, deprecated, message: "Use try await manager.post(…), or session.post(…) of AsyncNetworking.")
    #endif
    @preconcurrency
    @discardableResult
    open func post(
        _ urlString: String, parameters: Any?,
        success: (@Sendable (URLSessionDataTask, Any?) -> Void)?,
        failure: (@Sendable (URLSessionDataTask?, any Error) -> Void)? = nil
    ) -> URLSessionDataTask? {
        post(urlString, parameters: parameters, progress: nil, success: success, failure: failure)
    }

    /// Starts a POST request with a multipart form, with the signature of AFNetworking 3. Calls
    /// ``AFHTTPSessionManager/post(_:parameters:headers:constructingBodyWith:progress:success:failure:)``, which
    /// describes the parameters.
    #if MigrationHints
        @available(*, deprecated, message: "Use try await manager.post(…), or session.post(…) of AsyncNetworking.")
    #endif
    @preconcurrency
    @discardableResult
    open func post(
        _ urlString: String, parameters: Any?,
        constructingBodyWith block: ((any AFMultipartFormData) -> Void)?,
        progress uploadProgress: (@Sendable (Progress) -> Void)?,
        success: (@Sendable (URLSessionDataTask, Any?) -> Void)?,
        failure: (@Sendable (URLSessionDataTask?, any Error) -> Void)? = nil
    ) -> URLSessionDataTask? {
        manager?.post(
            urlString, parameters: parameters, headers: nil, constructingBodyWith: block, progress: uploadProgress,
            success: success, failure: failure)
    }

    /// Starts a POST request with a multipart form, with the signature of AFNetworking 2. Calls
    /// ``post(_:parameters:constructingBodyWith:progress:success:failure:)``, which describes the parameters.
    #if MigrationHints
        @available(*, deprecated, message: "Use try await manager.post(…), or session.post(…) of AsyncNetworking.")
    #endif
    @preconcurrency
    @discardableResult
    open func post(
        _ urlString: String, parameters: Any?,
        constructingBodyWith block: ((any AFMultipartFormData) -> Void)?,
        success: (@Sendable (URLSessionDataTask, Any?) -> Void)?,
        failure: (@Sendable (URLSessionDataTask?, any Error) -> Void)? = nil
    ) -> URLSessionDataTask? {
        post(
            urlString, parameters: parameters, constructingBodyWith: block, progress: nil, success: success,
            failure: failure)
    }

    /// Starts a HEAD request, with the signature of AFNetworking 3. Calls
    /// ``AFHTTPSessionManager/head(_:parameters:headers:success:failure:)``, which describes the parameters.
    #if MigrationHints
        @available(*, deprecated, message: "Use try await manager.head(…), or session.head(…) of AsyncNetworking.")
    #endif
    @preconcurrency
    @discardableResult
    open func head(
        _ urlString: String, parameters: Any?,
        success: (@Sendable (URLSessionDataTask) -> Void)?,
        failure: (@Sendable (URLSessionDataTask?, any Error) -> Void)? = nil
    ) -> URLSessionDataTask? {
        manager?.head(urlString, parameters: parameters, headers: nil, success: success, failure: failure)
    }

    /// Starts a PUT request, with the signature of AFNetworking 3. Calls
    /// ``AFHTTPSessionManager/put(_:parameters:headers:success:failure:)``, which describes the parameters.
    #if MigrationHints
        @available(*, deprecated, message: "Use try await manager.put(…), or session.put(…) of AsyncNetworking.")
    #endif
    @preconcurrency
    @discardableResult
    open func put(
        _ urlString: String, parameters: Any?,
        success: (@Sendable (URLSessionDataTask, Any?) -> Void)?,
        failure: (@Sendable (URLSessionDataTask?, any Error) -> Void)? = nil
    ) -> URLSessionDataTask? {
        manager?.put(urlString, parameters: parameters, headers: nil, success: success, failure: failure)
    }

    /// Starts a PATCH request, with the signature of AFNetworking 3. Calls
    /// ``AFHTTPSessionManager/patch(_:parameters:headers:success:failure:)``, which describes the parameters.
    #if MigrationHints
        @available(*, deprecated, message: "Use try await manager.patch(…), or session.patch(…) of AsyncNetworking.")
    #endif
    @preconcurrency
    @discardableResult
    open func patch(
        _ urlString: String, parameters: Any?,
        success: (@Sendable (URLSessionDataTask, Any?) -> Void)?,
        failure: (@Sendable (URLSessionDataTask?, any Error) -> Void)? = nil
    ) -> URLSessionDataTask? {
        manager?.patch(urlString, parameters: parameters, headers: nil, success: success, failure: failure)
    }

    /// Starts a DELETE request, with the signature of AFNetworking 3. Calls
    /// ``AFHTTPSessionManager/delete(_:parameters:headers:success:failure:)``, which describes the parameters.
    #if MigrationHints
        @available(*, deprecated, message: "Use try await manager.delete(…), or session.delete(…) of AsyncNetworking.")
    #endif
    @preconcurrency
    @discardableResult
    open func delete(
        _ urlString: String, parameters: Any?,
        success: (@Sendable (URLSessionDataTask, Any?) -> Void)?,
        failure: (@Sendable (URLSessionDataTask?, any Error) -> Void)? = nil
    ) -> URLSessionDataTask? {
        manager?.delete(urlString, parameters: parameters, headers: nil, success: success, failure: failure)
    }
}
