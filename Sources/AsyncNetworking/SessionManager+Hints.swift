// SPDX-License-Identifier: MIT

public import ANHTTP
public import ANSerialization
public import HTTPTypes

// What the compiler says about common first attempts: calls that do not compile in any case, with the text of an error
// that names the right form.

extension SessionManager {
    /// Unavailable: a serializer is written as `.decodable(User.self)`.
    @available(*, unavailable, message: "Write as: .decodable(User.self), with the type in place of User.")
    @_documentation(visibility: internal)
    public nonisolated func get<Value: Decodable>(
        _ target: some RequestTarget, parameters: Parameters? = nil, headers: HTTPFields = [:],
        timeout: Duration? = nil, options: ((inout TransferOptions) -> Void)? = nil, as type: Value.Type
    ) async throws -> Response<Value> { throw CancellationError() }

    /// Unavailable: the names of header fields are declared once, or checked at run time.
    @available(
        *, unavailable,
        message: """
            Write [.accept: "text/plain"] for a name that is declared. Declare others once: extension HTTPField.Name { \
            static let key = HTTPField.Name(constant: "X-Key") }. Text from outside becomes HTTPFields(validating:).
            """
    )
    @_documentation(visibility: internal)
    public nonisolated func get<Serializer: ResponseSerializer>(
        _ target: some RequestTarget, parameters: Parameters? = nil, headers: [String: String],
        timeout: Duration? = nil, options: ((inout TransferOptions) -> Void)? = nil,
        as serializer: Serializer = DataResponseSerializer()
    ) async throws -> Response<Serializer.Output> { throw CancellationError() }

    /// Unavailable: a serializer is written as `.decodable(User.self)`.
    @available(*, unavailable, message: "Write as: .decodable(User.self), with the type in place of User.")
    @_documentation(visibility: internal)
    public nonisolated func post<Value: Decodable>(
        _ target: some RequestTarget, parameters: Parameters? = nil, body: RequestBody = .none,
        headers: HTTPFields = [:],
        timeout: Duration? = nil, options: ((inout TransferOptions) -> Void)? = nil, as type: Value.Type
    ) async throws -> Response<Value> { throw CancellationError() }

    /// Unavailable: the names of header fields are declared once, or checked at run time.
    @available(
        *, unavailable,
        message: """
            Write [.accept: "text/plain"] for a name that is declared. Declare others once: extension HTTPField.Name { \
            static let key = HTTPField.Name(constant: "X-Key") }. Text from outside becomes HTTPFields(validating:).
            """
    )
    @_documentation(visibility: internal)
    public nonisolated func post<Serializer: ResponseSerializer>(
        _ target: some RequestTarget, parameters: Parameters? = nil, body: RequestBody = .none,
        headers: [String: String],
        timeout: Duration? = nil, options: ((inout TransferOptions) -> Void)? = nil,
        as serializer: Serializer = DataResponseSerializer()
    ) async throws -> Response<Serializer.Output> { throw CancellationError() }

    /// Unavailable: a serializer is written as `.decodable(User.self)`.
    @available(*, unavailable, message: "Write as: .decodable(User.self), with the type in place of User.")
    @_documentation(visibility: internal)
    public nonisolated func put<Value: Decodable>(
        _ target: some RequestTarget, parameters: Parameters? = nil, body: RequestBody = .none,
        headers: HTTPFields = [:],
        timeout: Duration? = nil, options: ((inout TransferOptions) -> Void)? = nil, as type: Value.Type
    ) async throws -> Response<Value> { throw CancellationError() }

    /// Unavailable: the names of header fields are declared once, or checked at run time.
    @available(
        *, unavailable,
        message: """
            Write [.accept: "text/plain"] for a name that is declared. Declare others once: extension HTTPField.Name { \
            static let key = HTTPField.Name(constant: "X-Key") }. Text from outside becomes HTTPFields(validating:).
            """
    )
    @_documentation(visibility: internal)
    public nonisolated func put<Serializer: ResponseSerializer>(
        _ target: some RequestTarget, parameters: Parameters? = nil, body: RequestBody = .none,
        headers: [String: String],
        timeout: Duration? = nil, options: ((inout TransferOptions) -> Void)? = nil,
        as serializer: Serializer = DataResponseSerializer()
    ) async throws -> Response<Serializer.Output> { throw CancellationError() }

    /// Unavailable: a serializer is written as `.decodable(User.self)`.
    @available(*, unavailable, message: "Write as: .decodable(User.self), with the type in place of User.")
    @_documentation(visibility: internal)
    public nonisolated func patch<Value: Decodable>(
        _ target: some RequestTarget, parameters: Parameters? = nil, body: RequestBody = .none,
        headers: HTTPFields = [:],
        timeout: Duration? = nil, options: ((inout TransferOptions) -> Void)? = nil, as type: Value.Type
    ) async throws -> Response<Value> { throw CancellationError() }

    /// Unavailable: the names of header fields are declared once, or checked at run time.
    @available(
        *, unavailable,
        message: """
            Write [.accept: "text/plain"] for a name that is declared. Declare others once: extension HTTPField.Name { \
            static let key = HTTPField.Name(constant: "X-Key") }. Text from outside becomes HTTPFields(validating:).
            """
    )
    @_documentation(visibility: internal)
    public nonisolated func patch<Serializer: ResponseSerializer>(
        _ target: some RequestTarget, parameters: Parameters? = nil, body: RequestBody = .none,
        headers: [String: String],
        timeout: Duration? = nil, options: ((inout TransferOptions) -> Void)? = nil,
        as serializer: Serializer = DataResponseSerializer()
    ) async throws -> Response<Serializer.Output> { throw CancellationError() }

    /// Unavailable: a serializer is written as `.decodable(User.self)`.
    @available(*, unavailable, message: "Write as: .decodable(User.self), with the type in place of User.")
    @_documentation(visibility: internal)
    public nonisolated func delete<Value: Decodable>(
        _ target: some RequestTarget, parameters: Parameters? = nil, body: RequestBody = .none,
        headers: HTTPFields = [:],
        timeout: Duration? = nil, options: ((inout TransferOptions) -> Void)? = nil, as type: Value.Type
    ) async throws -> Response<Value> { throw CancellationError() }

    /// Unavailable: the names of header fields are declared once, or checked at run time.
    @available(
        *, unavailable,
        message: """
            Write [.accept: "text/plain"] for a name that is declared. Declare others once: extension HTTPField.Name { \
            static let key = HTTPField.Name(constant: "X-Key") }. Text from outside becomes HTTPFields(validating:).
            """
    )
    @_documentation(visibility: internal)
    public nonisolated func delete<Serializer: ResponseSerializer>(
        _ target: some RequestTarget, parameters: Parameters? = nil, body: RequestBody = .none,
        headers: [String: String],
        timeout: Duration? = nil, options: ((inout TransferOptions) -> Void)? = nil,
        as serializer: Serializer = DataResponseSerializer()
    ) async throws -> Response<Serializer.Output> { throw CancellationError() }
}
