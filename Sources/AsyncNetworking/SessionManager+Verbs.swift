// SPDX-License-Identifier: MIT

public import ANHTTP
public import ANSerialization
public import HTTPTypes

// The verbs: `get("users/7", as: .json)`. Their arguments are those of
// ``SessionManager/request(_:_:parameters:json:form:body:headers:timeout:options:)``, and their errors those of
// ``SessionManager/response(for:as:)``.

extension SessionManager {
    /// Performs a GET request. Parameters are encoded by ``SessionConfiguration/requestSerializer``, by default into
    /// the query.
    ///
    /// The response's body is collected in memory; one of more than ``ANHTTP/TransferOptions/maximumBodySize`` bytes,
    /// 128 MiB by default, fails with ``ANHTTP/TransportError/Reason/responseTooLarge(_:)``, in a ``SessionError``.
    ///
    /// ```swift
    /// let user = try await api.get("users/7", as: .decodable(User.self)).value
    /// ```
    ///
    /// - Parameters:
    ///   - target: A path or URL as a string, resolved against the base URL, or a `URL`.
    ///   - parameters: Parameters for the query; `nil`, the default, for none.
    ///   - headers: Header fields that replace all others of the same name; none by default.
    ///   - timeout: The time limit of the whole call; `nil`, the default, for none. See `Request.timeout`.
    ///   - options: Modifies the session's transfer options for this request; `nil`, the default, changes none.
    ///   - serializer: Validates and converts the response; by default it accepts the statuses 200–299 and returns the
    ///     body.
    /// - Returns: The response with the value that the serializer returned.
    /// - Throws: ``SessionError/serialization(_:)`` if the request cannot be created, if the serializer does not accept
    ///   the response's status or media type (see ``SessionError/rejection``), or if it cannot convert the body;
    ///   another ``SessionError`` if the request fails; `CancellationError` if the calling task is cancelled or the
    ///   manager cancels its requests; or the error of an interceptor or serializer of the program's own.
    public nonisolated func get<Serializer: ResponseSerializer>(
        _ target: some RequestTarget, parameters: Parameters? = nil, headers: HTTPFields = [:],
        timeout: Duration? = nil, options: ((inout TransferOptions) -> Void)? = nil,
        as serializer: Serializer = DataResponseSerializer()
    ) async throws -> Response<Serializer.Output> {
        try await response(
            for: request(
                .get, target, parameters: parameters, headers: headers, timeout: timeout, options: options),
            as: serializer)
    }

    /// Performs a HEAD request, whose response has no body. Parameters are encoded by
    /// ``SessionConfiguration/requestSerializer``, by default into the query.
    ///
    /// - Parameters:
    ///   - target: A path or URL as a string, resolved against the base URL, or a `URL`.
    ///   - parameters: Parameters for the query; `nil`, the default, for none.
    ///   - headers: Header fields that replace all others of the same name; none by default.
    ///   - timeout: The time limit of the whole call; `nil`, the default, for none. See `Request.timeout`.
    ///   - options: Modifies the session's transfer options for this request; `nil`, the default, changes none.
    /// - Returns: The response, whose ``Response/headers`` are those of the response to a GET request, possibly without
    ///   some that the server determines only with the content (RFC 9110 §9.3.2).
    /// - Throws: ``SessionError/serialization(_:)`` if the request cannot be created, or for a status outside of
    ///   200–299 (see ``SessionError/rejection``); another ``SessionError`` if the request fails; `CancellationError`
    ///   if the calling task is cancelled or the manager cancels its requests; or the error of an interceptor of the
    ///   program's own.
    @discardableResult
    public nonisolated func head(
        _ target: some RequestTarget, parameters: Parameters? = nil, headers: HTTPFields = [:],
        timeout: Duration? = nil, options: ((inout TransferOptions) -> Void)? = nil
    ) async throws -> Response<EmptyResponse> {
        try await response(
            for: request(
                .head, target, parameters: parameters, headers: headers, timeout: timeout, options: options),
            as: .empty)
    }

    /// Performs a POST request. Parameters are encoded by ``SessionConfiguration/requestSerializer``, by default into
    /// the body; alternatively there is a JSON, form or other body.
    ///
    /// ```swift
    /// let created = try await api.post("users", json: user, as: .decodable(User.self)).value
    /// ```
    ///
    /// At most one of `json`, `form` and `body` may be given; otherwise the call throws. With a `form`, `parameters`
    /// become its first fields. With `json` or `body`, the call throws if there are `parameters`, unless
    /// ``SessionConfiguration/requestSerializer`` encodes them into the query. The response's body is collected in
    /// memory; one of more than ``ANHTTP/TransferOptions/maximumBodySize`` bytes, 128 MiB by default, fails with
    /// ``ANHTTP/TransportError/Reason/responseTooLarge(_:)``, in a ``SessionError``.
    ///
    /// - Parameters:
    ///   - target: A path or URL as a string, resolved against the base URL, or a `URL`.
    ///   - parameters: Parameters for the body; `nil`, the default, for none. Without any body, the default serializer
    ///     adds an empty form body.
    ///   - json: A value for a JSON body, encoded by ``SessionConfiguration/json``; `nil`, the default, for none.
    ///     `Content-Type` is `application/json` unless `headers` contain another.
    ///   - form: A multipart form for the body; `nil`, the default, for none. The call throws if `headers` then contain
    ///     `Content-Type`.
    ///   - body: Any other body; ``ANHTTP/RequestBody/none`` by default.
    ///   - headers: Header fields that replace all others of the same name; none by default.
    ///   - timeout: The time limit of the whole call; `nil`, the default, for none. See `Request.timeout`.
    ///   - options: Modifies the session's transfer options for this request; `nil`, the default, changes none.
    ///   - serializer: Validates and converts the response; by default it accepts the statuses 200–299 and returns the
    ///     body.
    /// - Returns: The response with the value that the serializer returned.
    /// - Throws: ``SessionError/serialization(_:)`` if the request cannot be created, if the serializer does not accept
    ///   the response's status or media type (see ``SessionError/rejection``), or if it cannot convert the body;
    ///   another ``SessionError`` if the request fails; `CancellationError` if the calling task is cancelled or the
    ///   manager cancels its requests; or the error of an interceptor or serializer of the program's own.
    @discardableResult
    public nonisolated func post<Serializer: ResponseSerializer>(
        _ target: some RequestTarget, parameters: Parameters? = nil, json: (any Encodable)? = nil,
        form: MultipartFormData? = nil, body: RequestBody = .none, headers: HTTPFields = [:],
        timeout: Duration? = nil, options: ((inout TransferOptions) -> Void)? = nil,
        as serializer: Serializer = DataResponseSerializer()
    ) async throws -> Response<Serializer.Output> {
        try await response(
            for: request(
                .post, target, parameters: parameters, json: json, form: form, body: body, headers: headers,
                timeout: timeout, options: options),
            as: serializer)
    }

    /// Performs a PUT request. Parameters are encoded by ``SessionConfiguration/requestSerializer``, by default into
    /// the body; alternatively there is a JSON, form or other body.
    ///
    /// At most one of `json`, `form` and `body` may be given; otherwise the call throws. With a `form`, `parameters`
    /// become its first fields. With `json` or `body`, the call throws if there are `parameters`, unless
    /// ``SessionConfiguration/requestSerializer`` encodes them into the query. The response's body is collected in
    /// memory; one of more than ``ANHTTP/TransferOptions/maximumBodySize`` bytes, 128 MiB by default, fails with
    /// ``ANHTTP/TransportError/Reason/responseTooLarge(_:)``, in a ``SessionError``.
    ///
    /// - Parameters:
    ///   - target: A path or URL as a string, resolved against the base URL, or a `URL`.
    ///   - parameters: Parameters for the body; `nil`, the default, for none. Without any body, the default serializer
    ///     adds an empty form body.
    ///   - json: A value for a JSON body, encoded by ``SessionConfiguration/json``; `nil`, the default, for none.
    ///     `Content-Type` is `application/json` unless `headers` contain another.
    ///   - form: A multipart form for the body; `nil`, the default, for none. The call throws if `headers` then contain
    ///     `Content-Type`.
    ///   - body: Any other body; ``ANHTTP/RequestBody/none`` by default.
    ///   - headers: Header fields that replace all others of the same name; none by default.
    ///   - timeout: The time limit of the whole call; `nil`, the default, for none. See `Request.timeout`.
    ///   - options: Modifies the session's transfer options for this request; `nil`, the default, changes none.
    ///   - serializer: Validates and converts the response; by default it accepts the statuses 200–299 and returns the
    ///     body.
    /// - Returns: The response with the value that the serializer returned.
    /// - Throws: ``SessionError/serialization(_:)`` if the request cannot be created, if the serializer does not accept
    ///   the response's status or media type (see ``SessionError/rejection``), or if it cannot convert the body;
    ///   another ``SessionError`` if the request fails; `CancellationError` if the calling task is cancelled or the
    ///   manager cancels its requests; or the error of an interceptor or serializer of the program's own.
    @discardableResult
    public nonisolated func put<Serializer: ResponseSerializer>(
        _ target: some RequestTarget, parameters: Parameters? = nil, json: (any Encodable)? = nil,
        form: MultipartFormData? = nil, body: RequestBody = .none, headers: HTTPFields = [:],
        timeout: Duration? = nil, options: ((inout TransferOptions) -> Void)? = nil,
        as serializer: Serializer = DataResponseSerializer()
    ) async throws -> Response<Serializer.Output> {
        try await response(
            for: request(
                .put, target, parameters: parameters, json: json, form: form, body: body, headers: headers,
                timeout: timeout, options: options),
            as: serializer)
    }

    /// Performs a PATCH request. Parameters are encoded by ``SessionConfiguration/requestSerializer``, by default into
    /// the body; alternatively there is a JSON, form or other body.
    ///
    /// At most one of `json`, `form` and `body` may be given; otherwise the call throws. With a `form`, `parameters`
    /// become its first fields. With `json` or `body`, the call throws if there are `parameters`, unless
    /// ``SessionConfiguration/requestSerializer`` encodes them into the query. The response's body is collected in
    /// memory; one of more than ``ANHTTP/TransferOptions/maximumBodySize`` bytes, 128 MiB by default, fails with
    /// ``ANHTTP/TransportError/Reason/responseTooLarge(_:)``, in a ``SessionError``.
    ///
    /// - Parameters:
    ///   - target: A path or URL as a string, resolved against the base URL, or a `URL`.
    ///   - parameters: Parameters for the body; `nil`, the default, for none. Without any body, the default serializer
    ///     adds an empty form body.
    ///   - json: A value for a JSON body, encoded by ``SessionConfiguration/json``; `nil`, the default, for none.
    ///     `Content-Type` is `application/json` unless `headers` contain another.
    ///   - form: A multipart form for the body; `nil`, the default, for none. The call throws if `headers` then contain
    ///     `Content-Type`.
    ///   - body: Any other body; ``ANHTTP/RequestBody/none`` by default.
    ///   - headers: Header fields that replace all others of the same name; none by default.
    ///   - timeout: The time limit of the whole call; `nil`, the default, for none. See `Request.timeout`.
    ///   - options: Modifies the session's transfer options for this request; `nil`, the default, changes none.
    ///   - serializer: Validates and converts the response; by default it accepts the statuses 200–299 and returns the
    ///     body.
    /// - Returns: The response with the value that the serializer returned.
    /// - Throws: ``SessionError/serialization(_:)`` if the request cannot be created, if the serializer does not accept
    ///   the response's status or media type (see ``SessionError/rejection``), or if it cannot convert the body;
    ///   another ``SessionError`` if the request fails; `CancellationError` if the calling task is cancelled or the
    ///   manager cancels its requests; or the error of an interceptor or serializer of the program's own.
    @discardableResult
    public nonisolated func patch<Serializer: ResponseSerializer>(
        _ target: some RequestTarget, parameters: Parameters? = nil, json: (any Encodable)? = nil,
        form: MultipartFormData? = nil, body: RequestBody = .none, headers: HTTPFields = [:],
        timeout: Duration? = nil, options: ((inout TransferOptions) -> Void)? = nil,
        as serializer: Serializer = DataResponseSerializer()
    ) async throws -> Response<Serializer.Output> {
        try await response(
            for: request(
                .patch, target, parameters: parameters, json: json, form: form, body: body, headers: headers,
                timeout: timeout, options: options),
            as: serializer)
    }

    /// Performs a DELETE request. Parameters are encoded by ``SessionConfiguration/requestSerializer``, by default into
    /// the query; a body is possible.
    ///
    /// At most one of `json`, `form` and `body` may be given; otherwise the call throws. With `json` or `body`, it also
    /// throws if there are `parameters` and ``SessionConfiguration/requestSerializer`` encodes them into the body. The
    /// response's body is collected in memory; one of more than ``ANHTTP/TransferOptions/maximumBodySize`` bytes, 128
    /// MiB by default, fails with ``ANHTTP/TransportError/Reason/responseTooLarge(_:)``, in a ``SessionError``.
    ///
    /// - Parameters:
    ///   - target: A path or URL as a string, resolved against the base URL, or a `URL`.
    ///   - parameters: Parameters for the query, or for the first fields of a form; `nil`, the default, for none.
    ///   - json: A value for a JSON body, encoded by ``SessionConfiguration/json``; `nil`, the default, for none.
    ///     `Content-Type` is `application/json` unless `headers` contain another.
    ///   - form: A multipart form for the body; `nil`, the default, for none. The call throws if `headers` then contain
    ///     `Content-Type`.
    ///   - body: Any other body; ``ANHTTP/RequestBody/none`` by default.
    ///   - headers: Header fields that replace all others of the same name; none by default.
    ///   - timeout: The time limit of the whole call; `nil`, the default, for none. See `Request.timeout`.
    ///   - options: Modifies the session's transfer options for this request; `nil`, the default, changes none.
    ///   - serializer: Validates and converts the response; by default it accepts the statuses 200–299 and returns the
    ///     body.
    /// - Returns: The response with the value that the serializer returned.
    /// - Throws: ``SessionError/serialization(_:)`` if the request cannot be created, if the serializer does not accept
    ///   the response's status or media type (see ``SessionError/rejection``), or if it cannot convert the body;
    ///   another ``SessionError`` if the request fails; `CancellationError` if the calling task is cancelled or the
    ///   manager cancels its requests; or the error of an interceptor or serializer of the program's own.
    @discardableResult
    public nonisolated func delete<Serializer: ResponseSerializer>(
        _ target: some RequestTarget, parameters: Parameters? = nil, json: (any Encodable)? = nil,
        form: MultipartFormData? = nil, body: RequestBody = .none, headers: HTTPFields = [:],
        timeout: Duration? = nil, options: ((inout TransferOptions) -> Void)? = nil,
        as serializer: Serializer = DataResponseSerializer()
    ) async throws -> Response<Serializer.Output> {
        try await response(
            for: request(
                .delete, target, parameters: parameters, json: json, form: form, body: body, headers: headers,
                timeout: timeout, options: options),
            as: serializer)
    }
}
