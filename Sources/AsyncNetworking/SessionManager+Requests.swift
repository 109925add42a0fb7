// SPDX-License-Identifier: MIT

public import ANHTTP
public import ANSerialization
public import FoundationEssentials
public import HTTPTypes

extension SessionManager {
    /// Performs a request and collects the response's body, regardless of its status.
    ///
    /// - Parameter request: The request to send.
    /// - Returns: The response with its body.
    /// - Throws: ``SessionError``, which wraps ``ANHTTP/TransportError/Reason/responseTooLarge(_:)`` if the body exceeds
    ///   ``ANHTTP/TransferOptions/maximumBodySize``; or `CancellationError`.
    public nonisolated func data(for request: Request) async throws -> Response<Data> {
        let limit = request.maximumBodySize(inheritingFrom: pipeline.template)
        return try await perform(
            registry.begin(.data, request), request, delivery: .collected(upTo: limit)
        ) { head, body in
            let data = try await body.collect(upTo: limit)
            return Response(data, head: head, ending: body.ending ?? ResponseEnding())
        }
    }

    /// Performs a request and deserializes the response.
    ///
    /// The serializer validates the response and runs in the calling task.
    ///
    /// - Parameters:
    ///   - request: The request to send.
    ///   - serializer: The serializer that validates the response and converts its body.
    /// - Throws: ``SessionError``, which wraps ``ANSerialization/SerializationError/rejected(_:)``, including the body,
    ///   if the serializer does not accept the response's status or media type; or `CancellationError`.
    public nonisolated func response<Serializer: ResponseSerializer>(
        for request: Request, as serializer: Serializer
    ) async throws -> Response<Serializer.Output> {
        try await data(for: request).serialized(by: serializer)
    }

    /// Performs a request and returns only the deserialized value; see ``response(for:as:)``.
    public nonisolated func value<Serializer: ResponseSerializer>(
        for request: Request, as serializer: Serializer
    ) async throws -> Serializer.Output {
        try await response(for: request, as: serializer).value
    }

    /// Performs a request and runs a closure as soon as the response's head has arrived, with the body as a stream.
    ///
    /// A slow reader slows the server down: at most ``ANHTTP/TransferOptions/streamBufferSize`` bytes are buffered.
    /// The part of the body that `body` has not read when it ends is discarded.
    ///
    /// - Parameters:
    ///   - request: The request to send.
    ///   - events: Receives the events of every exchange, including those answered by redirects. Called on the network
    ///     thread, so it must return immediately.
    ///   - body: Receives the response's head and its body, which is valid only while the closure runs;
    ///     ``ANHTTP/ResponseHead/redirectHistory`` lists the redirects that were followed.
    /// - Returns: The value that `body` returns.
    /// - Throws: ``SessionError``, `CancellationError`, or the error that `body` throws.
    public nonisolated func withResponse<Value: Sendable>(
        for request: Request, reporting events: (any TransferEventSink)? = nil,
        _ body: (ResponseHead, ResponseBody) async throws -> Value
    ) async throws -> Value {
        try await perform(
            registry.begin(.stream, request), request, delivery: .streamed, reporting: events, body: body)
    }

    /// Creates the request that a verb such as ``get(_:parameters:headers:as:)`` would send, without sending it.
    ///
    /// - Parameters:
    ///   - method: The method.
    ///   - path: A path or URL, resolved against the base URL; see ``ANSerialization/URLResolver``.
    ///   - parameters: The parameters, which the session's request serializer encodes into the query or the body.
    ///   - headers: Header fields that replace all others of the same name: those of the serializer, of the session's
    ///     configuration, and the default ones.
    ///   - body: A body that is not encoded from parameters; passing both is an error.
    /// - Throws: ``SessionError/serialization(_:)``.
    public nonisolated func request(
        _ method: HTTPRequest.Method, _ path: String, parameters: Parameters? = nil, headers: HTTPFields = [:],
        body: RequestBody = .none
    ) throws -> Request {
        do throws(SerializationError) {
            let url = try resolver.resolve(path)
            var request = try configuration.requestSerializer.serialize(
                Request(method: method, url: url, body: body), parameters: parameters)
            request.headers.replace(with: headers)
            return request
        } catch {
            throw SessionError.serialization(error)
        }
    }
}

extension SessionManager {
    /// Creates a request whose body is a multipart form: a field for each parameter, followed by the form's parts.
    ///
    /// If there are neither parameters nor parts, the request is the one that the session's request serializer creates
    /// without parameters.
    ///
    /// - Parameters:
    ///   - method: The method; any method may have a form.
    ///   - path: A path or URL, resolved against the base URL; see ``ANSerialization/URLResolver``.
    ///   - parameters: Fields that precede the form's parts.
    ///   - form: The form.
    ///   - headers: Header fields that replace all others of the same name. `Content-Type` is an error here, because it
    ///     contains the form's boundary.
    /// - Throws: ``SessionError/serialization(_:)``.
    public nonisolated func request(
        _ method: HTTPRequest.Method, _ path: String, parameters: Parameters? = nil, form: MultipartFormData,
        headers: HTTPFields = [:]
    ) throws -> Request {
        do throws(SerializationError) {
            guard !headers.contains(.contentType) else { throw .multipart(.contentTypeReplaced) }
            let url = try resolver.resolve(path)
            var request = try configuration.requestSerializer.serialize(
                Request(method: method, url: url), parameters: parameters, form: form)
            request.headers.replace(with: headers)
            return request
        } catch {
            throw SessionError.serialization(error)
        }
    }
}

extension Response<Data> {
    /// Returns the response with its body deserialized.
    func serialized<Serializer: ResponseSerializer>(by serializer: Serializer) throws -> Response<Serializer.Output> {
        do {
            return try map { data in try serializer.value(of: head, data) }
        } catch {
            throw SessionError.lifting(error)
        }
    }
}

extension HTTPFields {
    /// Removes all fields that share a name with one of `fields`, then appends `fields`.
    mutating func replace(with fields: HTTPFields) {
        guard !fields.isEmpty else { return }
        removeAll { old in fields.contains(old.name) }
        append(contentsOf: fields)
    }
}
