// SPDX-License-Identifier: MIT

public import ANSerialization
public import HTTPTypes

// The verbs of AFNetworking's session manager, each a sentence: `get("users/7", as: .json)`.
//
// Paths are resolved against the base URL, parameters are placed by the session's request serializer, and `headers`
// replace all others. They throw as ``SessionManager/response(for:as:)`` does.

extension SessionManager {
    /// Performs a GET. Parameters go to the query.
    public nonisolated func get<Serializer: ResponseSerializer>(
        _ path: String, parameters: Parameters? = nil, headers: HTTPFields = [:],
        as serializer: Serializer = DataResponseSerializer()
    ) async throws -> Response<Serializer.Output> {
        try await response(for: request(.get, path, parameters: parameters, headers: headers), as: serializer)
    }

    /// Performs a POST. Parameters become the body.
    @discardableResult
    public nonisolated func post<Serializer: ResponseSerializer>(
        _ path: String, parameters: Parameters? = nil, headers: HTTPFields = [:],
        as serializer: Serializer = DataResponseSerializer()
    ) async throws -> Response<Serializer.Output> {
        try await response(for: request(.post, path, parameters: parameters, headers: headers), as: serializer)
    }

    /// Performs a PUT. Parameters become the body.
    @discardableResult
    public nonisolated func put<Serializer: ResponseSerializer>(
        _ path: String, parameters: Parameters? = nil, headers: HTTPFields = [:],
        as serializer: Serializer = DataResponseSerializer()
    ) async throws -> Response<Serializer.Output> {
        try await response(for: request(.put, path, parameters: parameters, headers: headers), as: serializer)
    }

    /// Performs a PATCH. Parameters become the body.
    @discardableResult
    public nonisolated func patch<Serializer: ResponseSerializer>(
        _ path: String, parameters: Parameters? = nil, headers: HTTPFields = [:],
        as serializer: Serializer = DataResponseSerializer()
    ) async throws -> Response<Serializer.Output> {
        try await response(for: request(.patch, path, parameters: parameters, headers: headers), as: serializer)
    }

    /// Performs a DELETE. Parameters go to the query.
    @discardableResult
    public nonisolated func delete<Serializer: ResponseSerializer>(
        _ path: String, parameters: Parameters? = nil, headers: HTTPFields = [:],
        as serializer: Serializer = DataResponseSerializer()
    ) async throws -> Response<Serializer.Output> {
        try await response(for: request(.delete, path, parameters: parameters, headers: headers), as: serializer)
    }

    /// Performs a HEAD. Parameters go to the query, and the response has no body.
    public nonisolated func head(
        _ path: String, parameters: Parameters? = nil, headers: HTTPFields = [:]
    ) async throws -> Response<EmptyResponse> {
        try await response(for: request(.head, path, parameters: parameters, headers: headers), as: .empty)
    }
}
