// SPDX-License-Identifier: MIT

public import ANSerialization
public import HTTPTypes

// The verbs of AFNetworking's session manager: `get("users/7", as: .json)`.
//
// They share these rules: a path is resolved against the base URL, the session's request serializer encodes the
// parameters, `headers` replace all other fields of the same name, and the errors are those of
// ``SessionManager/response(for:as:)``.

extension SessionManager {
    /// Performs a GET request. Parameters go into the query.
    ///
    /// - Parameters:
    ///   - path: A path or URL, resolved against the base URL.
    ///   - parameters: Parameters for the query; `nil`, the default, for none.
    ///   - headers: Header fields that replace all others of the same name.
    ///   - serializer: Validates and converts the response; returns its body by default.
    /// - Throws: ``SessionError`` or `CancellationError`; see ``response(for:as:)``.
    public nonisolated func get<Serializer: ResponseSerializer>(
        _ path: String, parameters: Parameters? = nil, headers: HTTPFields = [:],
        as serializer: Serializer = DataResponseSerializer()
    ) async throws -> Response<Serializer.Output> {
        try await response(for: request(.get, path, parameters: parameters, headers: headers), as: serializer)
    }

    /// Performs a POST request. Parameters are encoded into the body.
    ///
    /// - Parameters:
    ///   - path: A path or URL, resolved against the base URL.
    ///   - parameters: Parameters for the body; `nil`, the default, for none.
    ///   - headers: Header fields that replace all others of the same name.
    ///   - serializer: Validates and converts the response; returns its body by default.
    /// - Throws: ``SessionError`` or `CancellationError`; see ``response(for:as:)``.
    @discardableResult
    public nonisolated func post<Serializer: ResponseSerializer>(
        _ path: String, parameters: Parameters? = nil, headers: HTTPFields = [:],
        as serializer: Serializer = DataResponseSerializer()
    ) async throws -> Response<Serializer.Output> {
        try await response(for: request(.post, path, parameters: parameters, headers: headers), as: serializer)
    }

    /// Performs a PUT request. Parameters are encoded into the body; see ``post(_:parameters:headers:as:)``.
    @discardableResult
    public nonisolated func put<Serializer: ResponseSerializer>(
        _ path: String, parameters: Parameters? = nil, headers: HTTPFields = [:],
        as serializer: Serializer = DataResponseSerializer()
    ) async throws -> Response<Serializer.Output> {
        try await response(for: request(.put, path, parameters: parameters, headers: headers), as: serializer)
    }

    /// Performs a PATCH request. Parameters are encoded into the body; see ``post(_:parameters:headers:as:)``.
    @discardableResult
    public nonisolated func patch<Serializer: ResponseSerializer>(
        _ path: String, parameters: Parameters? = nil, headers: HTTPFields = [:],
        as serializer: Serializer = DataResponseSerializer()
    ) async throws -> Response<Serializer.Output> {
        try await response(for: request(.patch, path, parameters: parameters, headers: headers), as: serializer)
    }

    /// Performs a DELETE request. Parameters go into the query; see ``get(_:parameters:headers:as:)``.
    @discardableResult
    public nonisolated func delete<Serializer: ResponseSerializer>(
        _ path: String, parameters: Parameters? = nil, headers: HTTPFields = [:],
        as serializer: Serializer = DataResponseSerializer()
    ) async throws -> Response<Serializer.Output> {
        try await response(for: request(.delete, path, parameters: parameters, headers: headers), as: serializer)
    }

    /// Performs a HEAD request. Parameters go into the query, and the response has no body; see
    /// ``get(_:parameters:headers:as:)``.
    public nonisolated func head(
        _ path: String, parameters: Parameters? = nil, headers: HTTPFields = [:]
    ) async throws -> Response<EmptyResponse> {
        try await response(for: request(.head, path, parameters: parameters, headers: headers), as: .empty)
    }
}
