// SPDX-License-Identifier: MIT

public import ANHTTP
public import ANSerialization
public import FoundationEssentials
public import HTTPTypes

extension SessionManager {
    /// Performs a request and collects the body, whatever the status is.
    ///
    /// - Throws: ``SessionError``, among it ``ANHTTP/TransportError/responseTooLarge(_:_:)`` above
    ///   ``ANHTTP/TransferOptions/maximumBodySize``; or `CancellationError`.
    public nonisolated func data(for request: Request) async throws -> Response<Data> {
        let limit = request.maximumBodySize(inheritingFrom: pipeline.template)
        return try await perform(
            registry.begin(.data, request), delivery: .collected(upTo: limit)
        ) { head, body in
            let data = try await body.collect(upTo: limit)
            return Response(data, head: head, ending: body.ending ?? ResponseEnding())
        }
    }

    /// Performs a request and makes a value of the response, if the serializer takes it.
    ///
    /// The value is made in the calling task.
    ///
    /// - Throws: ``SessionError``, among it ``ANSerialization/SerializationError/rejected(_:)`` with the body of a response
    ///   that the serializer does not take; or `CancellationError`.
    public nonisolated func response<Serializer: ResponseSerializer>(
        for request: Request, as serializer: Serializer
    ) async throws -> Response<Serializer.Output> {
        try await data(for: request).serialized(by: serializer)
    }

    /// Performs a request and returns the value alone; see ``response(for:as:)``.
    public nonisolated func value<Serializer: ResponseSerializer>(
        for request: Request, as serializer: Serializer
    ) async throws -> Serializer.Output {
        try await response(for: request, as: serializer).value
    }

    /// Performs a request and runs `body` as soon as the head has arrived; the response's body can be streamed.
    ///
    /// What `body` does not read is given up when it ends. A reader that takes its time slows the server down.
    ///
    /// - Parameters:
    ///   - request: What is sent.
    ///   - events: Told what happens in each exchange, of which every redirect is one, on the network's thread.
    ///   - body: Lent the response's body while it runs; ``ANHTTP/ResponseHead/redirects`` says how it was reached.
    /// - Throws: ``SessionError``, `CancellationError`, or what `body` throws.
    public nonisolated func withResponse<Value: Sendable>(
        for request: Request, reporting events: (any TransferEventSink)? = nil,
        _ body: (ResponseHead, ResponseBody) async throws -> Value
    ) async throws -> Value {
        try await perform(
            registry.begin(.stream, request), delivery: .streamed, reporting: events, body: body)
    }

    /// Makes the request that a verb would perform.
    ///
    /// - Parameters:
    ///   - method: The method.
    ///   - path: Resolved against the base URL; see ``ANSerialization/URLResolver``.
    ///   - parameters: Put into the query or the body by the session's request serializer.
    ///   - headers: Fields that replace all others of the same name: those that the serializer adds, those of the
    ///     session's configuration, and the default ones.
    ///   - body: A body that is not made of parameters.
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
    /// Makes a request whose body is a multipart form: a field for each of the parameters, then the form's own parts.
    ///
    /// Without either it is what the session's request serializer makes of no parameters.
    ///
    /// - Parameters:
    ///   - method: The method; any may have a form.
    ///   - path: Resolved against the base URL; see ``ANSerialization/URLResolver``.
    ///   - parameters: Fields before the form's own.
    ///   - form: The parts.
    ///   - headers: Fields that replace all others of the same name, but not the `Content-Type`, which has the boundary.
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
    /// The same response with the value that a serializer makes of it.
    func serialized<Serializer: ResponseSerializer>(by serializer: Serializer) throws -> Response<Serializer.Output> {
        do {
            return try map { data in try serializer.value(of: head, data) }
        } catch {
            throw SessionError.lifting(error)
        }
    }
}

extension HTTPFields {
    /// Takes over fields, in place of those of the same names.
    mutating func replace(with fields: HTTPFields) {
        guard !fields.isEmpty else { return }
        removeAll { old in fields.contains(old.name) }
        append(contentsOf: fields)
    }
}
