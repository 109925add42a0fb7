// SPDX-License-Identifier: MIT

public import ANHTTP
public import ANSerialization
public import HTTPTypes

// The verbs: `get("users/7", as: .json)`. Their arguments are those of
// ``SessionManager/request(_:_:parameters:body:headers:timeout:options:)``, and their errors those of
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

    /// Performs a HEAD request, whose response has no body, and accepts the statuses 200–299.
    ///
    /// Arguments and errors are those of ``get(_:parameters:headers:timeout:options:as:)``.
    ///
    /// - Returns: The response, whose ``Response/headers`` are those of the response to a GET request, possibly without
    ///   some that the server determines only with the content (RFC 9110 §9.3.2).
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
    /// the body; alternatively there is a body of another kind.
    ///
    /// ```swift
    /// let created = try await api.post("users", body: .json(user), as: .decodable(User.self)).value
    /// ```
    ///
    /// The response's body is collected in memory, as by ``get(_:parameters:headers:timeout:options:as:)``.
    ///
    /// - Parameters:
    ///   - target: A path or URL as a string, resolved against the base URL, or a `URL`.
    ///   - parameters: Parameters for the body; `nil`, the default, for none. Without any body, the default serializer
    ///     adds an empty form body. The call throws if they would replace a `body`.
    ///   - body: The body, such as `.json(user)`, `.form(form)` or `.file(path)`; ``ANHTTP/RequestBody/none`` by
    ///     default. JSON is encoded by ``SessionConfiguration/json``.
    ///   - headers: Header fields that replace all others of the same name; none by default.
    ///   - timeout: The time limit of the whole call; `nil`, the default, for none. See `Request.timeout`.
    ///   - options: Modifies the session's transfer options for this request; `nil`, the default, changes none.
    ///   - serializer: Validates and converts the response; by default it accepts the statuses 200–299 and returns the
    ///     body.
    /// - Returns: The response with the value that the serializer returned.
    /// - Throws: The errors of ``get(_:parameters:headers:timeout:options:as:)``.
    @discardableResult
    public nonisolated func post<Serializer: ResponseSerializer>(
        _ target: some RequestTarget, parameters: Parameters? = nil, body: RequestBody = .none,
        headers: HTTPFields = [:], timeout: Duration? = nil, options: ((inout TransferOptions) -> Void)? = nil,
        as serializer: Serializer = DataResponseSerializer()
    ) async throws -> Response<Serializer.Output> {
        try await response(
            for: request(
                .post, target, parameters: parameters, body: body, headers: headers, timeout: timeout,
                options: options),
            as: serializer)
    }

    /// Performs a PUT request. Parameters are encoded into the body by default.
    ///
    /// Arguments and errors are those of ``post(_:parameters:body:headers:timeout:options:as:)``.
    @discardableResult
    public nonisolated func put<Serializer: ResponseSerializer>(
        _ target: some RequestTarget, parameters: Parameters? = nil, body: RequestBody = .none,
        headers: HTTPFields = [:], timeout: Duration? = nil, options: ((inout TransferOptions) -> Void)? = nil,
        as serializer: Serializer = DataResponseSerializer()
    ) async throws -> Response<Serializer.Output> {
        try await response(
            for: request(
                .put, target, parameters: parameters, body: body, headers: headers, timeout: timeout,
                options: options),
            as: serializer)
    }

    /// Performs a PATCH request. Parameters are encoded into the body by default.
    ///
    /// Arguments and errors are those of ``post(_:parameters:body:headers:timeout:options:as:)``.
    @discardableResult
    public nonisolated func patch<Serializer: ResponseSerializer>(
        _ target: some RequestTarget, parameters: Parameters? = nil, body: RequestBody = .none,
        headers: HTTPFields = [:], timeout: Duration? = nil, options: ((inout TransferOptions) -> Void)? = nil,
        as serializer: Serializer = DataResponseSerializer()
    ) async throws -> Response<Serializer.Output> {
        try await response(
            for: request(
                .patch, target, parameters: parameters, body: body, headers: headers, timeout: timeout,
                options: options),
            as: serializer)
    }

    /// Performs a DELETE request. Parameters are encoded into the query by default; a body is possible.
    ///
    /// Arguments and errors are those of ``post(_:parameters:body:headers:timeout:options:as:)``.
    @discardableResult
    public nonisolated func delete<Serializer: ResponseSerializer>(
        _ target: some RequestTarget, parameters: Parameters? = nil, body: RequestBody = .none,
        headers: HTTPFields = [:], timeout: Duration? = nil, options: ((inout TransferOptions) -> Void)? = nil,
        as serializer: Serializer = DataResponseSerializer()
    ) async throws -> Response<Serializer.Output> {
        try await response(
            for: request(
                .delete, target, parameters: parameters, body: body, headers: headers, timeout: timeout,
                options: options),
            as: serializer)
    }
}
