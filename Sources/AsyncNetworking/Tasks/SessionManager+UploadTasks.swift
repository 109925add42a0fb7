// SPDX-License-Identifier: MIT

public import ANHTTP
public import ANSerialization
public import HTTPTypes

// Tasks that send a body.

extension SessionManager {
    /// Creates a suspended task that sends a request with its body, and validates and converts the response.
    ///
    /// The task starts when it is resumed. If the manager was invalidated or shut down, the task fails with
    /// ``SessionError/invalidated``. Releasing a task that was never resumed cancels it.
    ///
    /// - Parameters:
    ///   - request: The request to send, with its body. A response body above its
    ///     ``ANHTTP/TransferOptions/maximumBodySize``, 128 MiB by default, fails the task with
    ///     ``ANHTTP/TransportError/Reason/responseTooLarge(_:)``.
    ///   - serializer: Validates and converts the response; by default it accepts the statuses 200–299 and returns the
    ///     body. If it does not accept the response, the task fails with
    ///     ``ANSerialization/SerializationError/rejected(_:)``, in a ``SessionError``; if it cannot convert the body,
    ///     with its error, wrapped in a ``SessionError`` if it is a ``ANSerialization/SerializationError``.
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
    /// If the request cannot be created, the task fails with ``SessionError/serialization(_:)``. It fails with
    /// ``ANSerialization/SerializationError/rejected(_:)``, in a ``SessionError``, if the serializer does not accept
    /// the response's status or media type; with the serializer's error, also wrapped if it is a
    /// ``ANSerialization/SerializationError``, if it cannot convert the body; and with ``SessionError/invalidated`` if
    /// the manager was invalidated or shut down. The response's body is collected in memory; one of more than
    /// ``ANHTTP/TransferOptions/maximumBodySize`` bytes, 128 MiB by default, fails the task with
    /// ``ANHTTP/TransportError/Reason/responseTooLarge(_:)``, in a ``SessionError``.
    ///
    /// - Parameters:
    ///   - target: A path or URL as a string, resolved against the base URL, or a `URL`.
    ///   - form: A multipart form for the body; `nil`, the default, for none. One without parts counts as `nil`. With
    ///     any form, `Content-Type` in `headers` is an error.
    ///   - body: Any other body; ``ANHTTP/RequestBody/none`` by default. If both `form` and `body` are given, the task
    ///     fails with ``SessionError/serialization(_:)``. With neither, the default serializer adds an empty form body,
    ///     unless the method is GET, HEAD or DELETE.
    ///   - method: The method; POST by default.
    ///   - headers: Header fields that replace all others of the same name; none by default.
    ///   - timeout: The time limit of the whole call; `nil`, the default, for none. See `Request.timeout`.
    ///   - serializer: Validates and converts the response; by default it accepts the statuses 200–299 and returns the
    ///     body.
    /// - Returns: The task, which is running or, with ``SessionConfiguration/maximumConcurrentTransfers``, waits for
    ///   its turn.
    public nonisolated func upload<Serializer: ResponseSerializer>(
        _ target: some RequestTarget, form: MultipartFormData? = nil, body: RequestBody = .none,
        method: HTTPRequest.Method = .post, headers: HTTPFields = [:], timeout: Duration? = nil,
        as serializer: Serializer = DataResponseSerializer()
    ) -> TransferTask<Response<Serializer.Output>> {
        let wanted = Result {
            try request(method, target, form: form, body: body, headers: headers, timeout: timeout)
        }
        return makeUploadTask(for: wanted, as: serializer).started()
    }

    /// Starts sending a request with its body, and validates and converts the response.
    ///
    /// The response's body is collected in memory; one of more than ``ANHTTP/TransferOptions/maximumBodySize`` bytes,
    /// 128 MiB by default, fails the task with ``ANHTTP/TransportError/Reason/responseTooLarge(_:)``, in a
    /// ``SessionError``. If the serializer cannot convert the body, the task fails with its error, wrapped in a
    /// ``SessionError`` if it is a ``ANSerialization/SerializationError``. If the manager was invalidated or shut down,
    /// the task fails with ``SessionError/invalidated``.
    ///
    /// - Parameters:
    ///   - request: The request to send, with its body.
    ///   - serializer: Validates and converts the response; by default it accepts the statuses 200–299 and returns the
    ///     body. If it does not accept the response, the task fails with
    ///     ``ANSerialization/SerializationError/rejected(_:)``, in a ``SessionError``.
    /// - Returns: The task, which is running or, with ``SessionConfiguration/maximumConcurrentTransfers``, waits for
    ///   its turn.
    public nonisolated func upload<Serializer: ResponseSerializer>(
        _ request: Request, as serializer: Serializer = DataResponseSerializer()
    ) -> TransferTask<Response<Serializer.Output>> {
        makeUploadTask(for: request, as: serializer).started()
    }

    /// Starts sending a request with its body and runs a closure with the task; the task ends with the closure.
    ///
    /// If the task has not ended when `scope` returns or throws, it is cancelled. It has ended when this function
    /// returns. To wait for the response, await the task's ``TransferTask/value`` in `scope`. The task fails like one
    /// of ``upload(_:as:)``, which limits the size of the response's body.
    ///
    /// - Parameters:
    ///   - request: The request to send, with its body.
    ///   - serializer: Validates and converts the response; by default it accepts the statuses 200–299 and returns the
    ///     body. If it does not accept the response, the task fails with
    ///     ``ANSerialization/SerializationError/rejected(_:)``, in a ``SessionError``.
    ///   - scope: Receives the task, which is running or, with ``SessionConfiguration/maximumConcurrentTransfers``,
    ///     waits for its turn.
    /// - Returns: The value that `scope` returns.
    /// - Throws: The error that `scope` throws; an error of the task only if `scope` awaits its value.
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
