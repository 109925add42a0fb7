// SPDX-License-Identifier: MIT

import ANSystem

// The verbs for callers that await: each calls the one with callbacks, whose serializers and hooks it goes through.

/// What a request came to.
public struct AFResponse {
    /// The task.
    public let task: URLSessionDataTask
    /// What the response serializer made.
    public let object: Any?
}

extension AFHTTPSessionManager {
    /// Performs a GET; parameters go to the query. Cancelling the calling task cancels the request.
    ///
    /// - Throws: What `failure` would be given; `CancellationError` when the calling task is cancelled.
    public func get(
        _ urlString: String, parameters: Any? = nil, headers: [String: String]? = nil
    ) async throws -> AFResponse {
        try await awaiting { success, failure in
            get(urlString, parameters: parameters, headers: headers, progress: nil, success: success, failure: failure)
        }
    }

    /// Performs a HEAD; see ``get(_:parameters:headers:)``.
    public func head(
        _ urlString: String, parameters: Any? = nil, headers: [String: String]? = nil
    ) async throws -> AFResponse {
        try await awaiting { success, failure in
            head(urlString, parameters: parameters, headers: headers, success: { success($0, nil) }, failure: failure)
        }
    }

    /// Performs a POST; parameters become the body. See ``get(_:parameters:headers:)``.
    @discardableResult
    public func post(
        _ urlString: String, parameters: Any? = nil, headers: [String: String]? = nil
    ) async throws -> AFResponse {
        try await awaiting { success, failure in
            post(urlString, parameters: parameters, headers: headers, progress: nil, success: success, failure: failure)
        }
    }

    /// Performs a POST of a multipart form; see ``get(_:parameters:headers:)``.
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

    /// Performs a PUT; parameters become the body. See ``get(_:parameters:headers:)``.
    @discardableResult
    public func put(
        _ urlString: String, parameters: Any? = nil, headers: [String: String]? = nil
    ) async throws -> AFResponse {
        try await awaiting { success, failure in
            put(urlString, parameters: parameters, headers: headers, success: success, failure: failure)
        }
    }

    /// Performs a PATCH; parameters become the body. See ``get(_:parameters:headers:)``.
    @discardableResult
    public func patch(
        _ urlString: String, parameters: Any? = nil, headers: [String: String]? = nil
    ) async throws -> AFResponse {
        try await awaiting { success, failure in
            patch(urlString, parameters: parameters, headers: headers, success: success, failure: failure)
        }
    }

    /// Performs a DELETE; parameters go to the query. See ``get(_:parameters:headers:)``.
    @discardableResult
    public func delete(
        _ urlString: String, parameters: Any? = nil, headers: [String: String]? = nil
    ) async throws -> AFResponse {
        try await awaiting { success, failure in
            delete(urlString, parameters: parameters, headers: headers, success: success, failure: failure)
        }
    }

    /// Starts a task, and waits for one of its callbacks.
    private func awaiting(
        _ start: (
            _ success: @escaping (URLSessionDataTask, Any?) -> Void,
            _ failure: @escaping (URLSessionDataTask?, any Error) -> Void
        ) -> URLSessionDataTask?
    ) async throws -> AFResponse {
        let state = Lock(AwaitedTask())
        let response = try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation {
                (waiter: CheckedContinuation<Handover<AFResponse>, any Error>) in
                let task = start(
                    { task, object in waiter.resume(returning: Handover(AFResponse(task: task, object: object))) },
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

    /// A task that somebody waits for.
    private struct AwaitedTask: Sendable {
        var task: URLSessionDataTask?
        var isCancelled = false
    }
}
