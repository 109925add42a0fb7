// SPDX-License-Identifier: MIT

import ANSystem

// Async variants of the verbs. Each calls the variant with callbacks and so uses the same serializers and blocks.

/// The result of a request that was made with an async verb of ``AFHTTPSessionManager``.
public struct AFResponse {
    /// The completed task.
    public let task: URLSessionDataTask
    /// The object that the response serializer returned; `nil` for a HEAD request or if the serializer returned none.
    public let object: Any?
}

extension AFHTTPSessionManager {
    /// Performs a GET request with the encoded parameters in its query.
    ///
    /// Cancelling the calling task cancels the request.
    ///
    /// - Parameters:
    ///   - urlString: The URL, resolved against the manager's base URL.
    ///   - parameters: The values to encode with the manager's request serializer; `nil` for none.
    ///   - headers: Header fields that replace those of the request serializer with the same name.
    /// - Returns: The task and the object that the response serializer returned.
    /// - Throws: The error that `failure` receives in the variant with callbacks, or `CancellationError` if the calling
    ///   task is cancelled.
    public func get(
        _ urlString: String, parameters: Any? = nil, headers: [String: String]? = nil
    ) async throws -> AFResponse {
        try await awaiting { success, failure in
            get(urlString, parameters: parameters, headers: headers, progress: nil, success: success, failure: failure)
        }
    }

    /// Performs a HEAD request with the encoded parameters in its query. The `object` of the result is `nil`.
    /// Parameters and errors are those of ``get(_:parameters:headers:)``.
    public func head(
        _ urlString: String, parameters: Any? = nil, headers: [String: String]? = nil
    ) async throws -> AFResponse {
        try await awaiting { success, failure in
            head(urlString, parameters: parameters, headers: headers, success: { success($0, nil) }, failure: failure)
        }
    }

    /// Performs a POST request with the encoded parameters as its body. Parameters and errors are those of
    /// ``get(_:parameters:headers:)``.
    @discardableResult
    public func post(
        _ urlString: String, parameters: Any? = nil, headers: [String: String]? = nil
    ) async throws -> AFResponse {
        try await awaiting { success, failure in
            post(urlString, parameters: parameters, headers: headers, progress: nil, success: success, failure: failure)
        }
    }

    /// Performs a POST request with a multipart form (RFC 7578): one field per parameter, followed by the parts that
    /// `block` appends. The other parameters and the errors are those of ``get(_:parameters:headers:)``.
    @discardableResult
    public func post(
        _ urlString: String, parameters: Any? = nil, headers: [String: String]? = nil,
        constructingBodyWith block: ((any AFMultipartFormData) -> Void)?
    ) async throws -> AFResponse {
        try await awaiting { success, failure in
            post(
                urlString, parameters: parameters, headers: headers, constructingBodyWith: block, progress: nil,
                success: success, failure: failure)
        }
    }

    /// Performs a PUT request with the encoded parameters as its body. Parameters and errors are those of
    /// ``get(_:parameters:headers:)``.
    @discardableResult
    public func put(
        _ urlString: String, parameters: Any? = nil, headers: [String: String]? = nil
    ) async throws -> AFResponse {
        try await awaiting { success, failure in
            put(urlString, parameters: parameters, headers: headers, success: success, failure: failure)
        }
    }

    /// Performs a PATCH request with the encoded parameters as its body. Parameters and errors are those of
    /// ``get(_:parameters:headers:)``.
    @discardableResult
    public func patch(
        _ urlString: String, parameters: Any? = nil, headers: [String: String]? = nil
    ) async throws -> AFResponse {
        try await awaiting { success, failure in
            patch(urlString, parameters: parameters, headers: headers, success: success, failure: failure)
        }
    }

    /// Performs a DELETE request with the encoded parameters in its query. Parameters and errors are those of
    /// ``get(_:parameters:headers:)``.
    @discardableResult
    public func delete(
        _ urlString: String, parameters: Any? = nil, headers: [String: String]? = nil
    ) async throws -> AFResponse {
        try await awaiting { success, failure in
            delete(urlString, parameters: parameters, headers: headers, success: success, failure: failure)
        }
    }

    /// Starts a task and suspends until one of its callbacks is called.
    private func awaiting(
        _ start: (
            _ success: @escaping (URLSessionDataTask, Any?) -> Void,
            _ failure: @escaping (URLSessionDataTask?, any Error) -> Void
        ) -> URLSessionDataTask?
    ) async throws -> AFResponse {
        let state = Lock(AwaitedTask())
        let response = try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation {
                (waiter: CheckedContinuation<UncheckedSendable<AFResponse>, any Error>) in
                let task = start(
                    { task, object in
                        waiter.resume(returning: UncheckedSendable(AFResponse(task: task, object: object)))
                    },
                    { _, error in
                        let isCancelled = state.withLock { $0.isCancelled }
                        waiter.resume(throwing: isCancelled ? CancellationError() : error)
                    })
                let isCancelled = state.withLock { state in
                    state.task = task
                    return state.isCancelled
                }
                if isCancelled { task?.cancel() }
            }
        } onCancel: {
            state.withLock { state in
                state.isCancelled = true
                return state.task
            }?.cancel()
        }
        return response.value
    }

    /// The task that an async verb awaits, and whether the calling task was cancelled.
    private struct AwaitedTask: Sendable {
        var task: URLSessionDataTask?
        var isCancelled = false
    }
}
