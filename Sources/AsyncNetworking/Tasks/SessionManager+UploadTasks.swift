// SPDX-License-Identifier: MIT

public import ANHTTP
public import ANSerialization
public import HTTPTypes

// Tasks that send a body.

extension SessionManager {
    /// Creates a suspended task that sends a request with its body, and validates and converts the response.
    ///
    /// The task starts when it is resumed. If the manager was invalidated or shut down, the task fails with
    /// ``SessionError/invalidated``.
    ///
    /// - Parameters:
    ///   - request: The request to send.
    ///   - serializer: Validates and converts the response; returns its body by default.
    public nonisolated func makeUploadTask<Serializer: ResponseSerializer>(
        for request: Request, as serializer: Serializer = DataResponseSerializer()
    ) -> TransferTask<Response<Serializer.Output>> {
        makeUploadTask(for: .success(request), as: serializer)
    }

    /// Starts sending a form or another body.
    ///
    /// ```swift
    /// let upload = api.upload("photos", form: form)
    /// for await progress in upload.progress { print(progress.fraction ?? 0) }
    /// let response = try await upload.value
    /// ```
    ///
    /// The task fails with ``SessionError``, which wraps ``ANSerialization/SerializationError/rejected(_:)``, if the
    /// serializer does not accept the response's status or media type.
    ///
    /// - Parameters:
    ///   - target: A path or URL, resolved against the base URL.
    ///   - form: A multipart form for the body; `nil`, the default, for none.
    ///   - body: Any other body; ``ANHTTP/RequestBody/none`` by default.
    ///   - method: The method; POST by default.
    ///   - headers: Header fields that replace all others of the same name.
    ///   - serializer: Validates and converts the response; returns its body by default.
    public nonisolated func upload<Serializer: ResponseSerializer>(
        _ target: some RequestTarget, form: MultipartFormData? = nil, body: RequestBody = .none,
        method: HTTPRequest.Method = .post, headers: HTTPFields = [:],
        as serializer: Serializer = DataResponseSerializer()
    ) -> TransferTask<Response<Serializer.Output>> {
        let wanted = Result { try request(method, target, form: form, body: body, headers: headers) }
        return makeUploadTask(for: wanted, as: serializer).started()
    }

    /// Starts sending a request with its body; see ``upload(_:form:body:method:headers:as:)``.
    public nonisolated func upload<Serializer: ResponseSerializer>(
        _ request: Request, as serializer: Serializer = DataResponseSerializer()
    ) -> TransferTask<Response<Serializer.Output>> {
        makeUploadTask(for: request, as: serializer).started()
    }

    /// Starts sending a request with its body and runs a closure with the task; the task ends with the closure.
    ///
    /// If the task is still running when `scope` returns or throws, it is cancelled. It has ended when this function
    /// returns.
    public nonisolated func withUpload<Serializer: ResponseSerializer, Value>(
        _ request: Request, as serializer: Serializer = DataResponseSerializer(),
        _ scope: (TransferTask<Response<Serializer.Output>>) async throws -> Value
    ) async rethrows -> Value {
        try await upload(request, as: serializer).endingWithScope(scope)
    }

    private nonisolated func makeUploadTask<Serializer: ResponseSerializer>(
        for request: Result<Request, any Error>, as serializer: Serializer
    ) -> TransferTask<Response<Serializer.Output>> {
        makeTask(.upload, request) { task in try await self.collect(task).serialized(by: serializer) }
    }
}
