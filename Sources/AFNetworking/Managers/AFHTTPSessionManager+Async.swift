// SPDX-License-Identifier: MIT

import ANSystem

/// The result of a request that was made with an async verb of ``AFHTTPSessionManager``.
public struct AFResponse {
    /// The completed task.
    public let task: URLSessionDataTask
    /// The object that the response serializer returned; `nil` for a HEAD request or if the serializer returned none.
    public let object: Any?
}

// Each async verb calls the verb with callbacks, and so uses the same serializers, blocks and overrides.

extension AFHTTPSessionManager {
    /// Performs a GET request with the encoded parameters in its query. The arguments are those of the variant with
    /// callbacks. Cancelling the calling task cancels the request.
    ///
    /// - Throws: The error that `failure` receives in the variant with callbacks, or `CancellationError` if the calling
    ///   task is cancelled.
    public func get(
        _ urlString: String, parameters: Any? = nil, headers: [String: String]? = nil
    ) async throws -> AFResponse {
        try await awaiting { get(urlString, parameters: parameters, headers: headers, success: $0, failure: $1) }
    }

    /// Performs a HEAD request, as ``get(_:parameters:headers:)`` does a GET request. The object of the result is `nil`.
    public func head(
        _ urlString: String, parameters: Any? = nil, headers: [String: String]? = nil
    ) async throws -> AFResponse {
        try await awaiting { success, failure in
            head(urlString, parameters: parameters, headers: headers, success: { success($0, nil) }, failure: failure)
        }
    }

    /// Performs a POST request with the encoded parameters as its body. See ``get(_:parameters:headers:)``.
    @discardableResult
    public func post(
        _ urlString: String, parameters: Any? = nil, headers: [String: String]? = nil
    ) async throws -> AFResponse {
        try await awaiting { post(urlString, parameters: parameters, headers: headers, success: $0, failure: $1) }
    }

    /// Performs a POST request with a multipart form (RFC 7578): one field per parameter, followed by the parts that
    /// `block` appends. See ``get(_:parameters:headers:)``.
    @discardableResult
    public func post(
        _ urlString: String, parameters: Any? = nil, headers: [String: String]? = nil,
        constructingBodyWith block: ((any AFMultipartFormData) -> Void)?
    ) async throws -> AFResponse {
        try await awaiting {
            post(
                urlString, parameters: parameters, headers: headers, constructingBodyWith: block, success: $0,
                failure: $1)
        }
    }

    /// Performs a PUT request with the encoded parameters as its body. See ``get(_:parameters:headers:)``.
    @discardableResult
    public func put(
        _ urlString: String, parameters: Any? = nil, headers: [String: String]? = nil
    ) async throws -> AFResponse {
        try await awaiting { put(urlString, parameters: parameters, headers: headers, success: $0, failure: $1) }
    }

    /// Performs a PATCH request with the encoded parameters as its body. See ``get(_:parameters:headers:)``.
    @discardableResult
    public func patch(
        _ urlString: String, parameters: Any? = nil, headers: [String: String]? = nil
    ) async throws -> AFResponse {
        try await awaiting { patch(urlString, parameters: parameters, headers: headers, success: $0, failure: $1) }
    }

    /// Performs a DELETE request with the encoded parameters in its query. See ``get(_:parameters:headers:)``.
    @discardableResult
    public func delete(
        _ urlString: String, parameters: Any? = nil, headers: [String: String]? = nil
    ) async throws -> AFResponse {
        try await awaiting { delete(urlString, parameters: parameters, headers: headers, success: $0, failure: $1) }
    }

    /// Starts a task and suspends until one of its callbacks is called.
    private func awaiting(
        _ start: (@escaping Success, @escaping Failure) -> URLSessionDataTask?
    ) async throws -> AFResponse {
        let started = Lock<URLSessionDataTask?>(nil)
        return try await withTaskCancellationHandler {
            do {
                return try await withCheckedThrowingContinuation {
                    (waiter: CheckedContinuation<UncheckedSendable<AFResponse>, any Error>) in
                    let task = start(
                        { waiter.resume(returning: UncheckedSendable(AFResponse(task: $0, object: $1))) },
                        { waiter.resume(throwing: $1) })
                    started.set(\.self, to: task)
                    // The handler may have run before the task was stored.
                    if Task.isCancelled { task?.cancel() }
                }
            } catch {
                throw Task.isCancelled ? CancellationError() : error
            }
        } onCancel: {
            started.withLock { $0 }?.cancel()
        }.value
    }
}
