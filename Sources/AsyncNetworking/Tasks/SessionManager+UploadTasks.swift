// SPDX-License-Identifier: MIT

public import ANHTTP
public import HTTPTypes

// Tasks that send a body.

extension SessionManager {
    // MARK: Suspended tasks

    /// Creates a suspended task that sends a request with a body, which replaces the request's own; see
    /// ``makeDataTask(for:)``.
    public nonisolated func makeUploadTask(for request: Request, from body: RequestBody) -> UploadTask {
        var request = request
        request.body = body
        return makeUploadTask(for: .success(request))
    }

    // MARK: Started tasks

    /// Starts sending a body to a path.
    ///
    /// The task's value is the response, regardless of its status.
    ///
    /// - Parameters:
    ///   - path: A path or URL, resolved against the base URL.
    ///   - body: The request's body.
    ///   - method: The method; POST by default.
    ///   - headers: Header fields that replace all others of the same name.
    public nonisolated func upload(
        _ path: String, from body: RequestBody, method: HTTPRequest.Method = .post, headers: HTTPFields = [:]
    ) -> UploadTask {
        makeUploadTask(for: Result { try request(method, path, headers: headers, body: body) }).started()
    }

    /// Starts sending a request with a body, which replaces the request's own; see ``upload(_:from:method:headers:)``.
    public nonisolated func upload(_ request: Request, from body: RequestBody) -> UploadTask {
        makeUploadTask(for: request, from: body).started()
    }

    // MARK: Scoped tasks

    /// Starts an upload task and runs a closure with it; the task ends with the closure.
    ///
    /// If the task is still running when `scope` returns or throws, it is cancelled. It has ended when this function
    /// returns.
    public nonisolated func withUpload<Value>(
        _ request: Request, from body: RequestBody, _ scope: (UploadTask) async throws -> Value
    ) async rethrows -> Value {
        try await makeUploadTask(for: request, from: body).started().endingWithScope(scope)
    }

    private nonisolated func makeUploadTask(for request: Result<Request, any Error>) -> UploadTask {
        makeTask(.upload, request) { try await self.collect($0) }
    }
}
