// SPDX-License-Identifier: MIT

public import ANHTTP
public import ANSerialization
public import FoundationEssentials
public import HTTPTypes
import Synchronization

extension SessionManager {
    /// Performs a request and collects the response's body in memory, regardless of its status.
    ///
    /// - Parameter request: The request to send.
    /// - Returns: The response with its body, possibly empty.
    /// - Throws: ``SessionError`` if the request fails, such as ``SessionError/transport(_:)``, whose reason is
    ///   ``ANHTTP/TransportError/Reason/responseTooLarge(_:)`` if the body exceeds
    ///   ``ANHTTP/TransferOptions/maximumBodySize``, 128 MiB by default, before or after decompression;
    ///   ``SessionError/invalidated`` if the manager was invalidated or shut down before; `CancellationError` if the
    ///   calling task is cancelled or the manager cancels its requests; or the error of an interceptor or another
    ///   closure of the program's own.
    public nonisolated func data(for request: Request) async throws -> Response<Data> {
        let limit = request.options(inheriting: pipeline.options).value.maximumBodySize
        let start = pipeline.uptime.elapsed
        var response = try await perform(
            registry.begin(.data, request), request, delivery: .collected(upTo: limit)
        ) { head, body in
            let data = try await body.collect(upTo: limit)
            return Response(data, head: head, ending: body.ending ?? ResponseEnding())
        }
        response.callDuration = pipeline.uptime.elapsed - start
        return response
    }

    /// Performs a request and deserializes the response.
    ///
    /// The body is collected in memory; one of more than ``ANHTTP/TransferOptions/maximumBodySize`` bytes, 128 MiB by
    /// default, fails with ``ANHTTP/TransportError/Reason/responseTooLarge(_:)``, in a ``SessionError``. The serializer
    /// validates the response and runs in the calling task.
    ///
    /// - Parameters:
    ///   - request: The request to send.
    ///   - serializer: The serializer that validates the response and converts its body.
    /// - Returns: The response with the value that the serializer returned.
    /// - Throws: ``SessionError/serialization(_:)`` with ``ANSerialization/SerializationError/rejected(_:)``, including
    ///   the body, if the serializer does not accept the response's status or media type, or with another error if it
    ///   cannot convert the body; another ``SessionError`` if the request fails, such as
    ///   ``SessionError/transport(_:)``, or ``SessionError/invalidated`` if the manager was invalidated or shut down
    ///   before; or `CancellationError` if the calling task is cancelled or the manager cancels its requests. A
    ///   ``ANHTTP/TransportError`` or ``ANSerialization/SerializationError`` of the program's own interceptors and
    ///   serializers is wrapped in a ``SessionError``; their other errors are thrown unchanged.
    public nonisolated func response<Serializer: ResponseSerializer>(
        for request: Request, as serializer: Serializer
    ) async throws -> Response<Serializer.Output> {
        try await data(for: request).serialized(by: serializer)
    }

    /// Performs a request and returns only the deserialized value, without the response's head and metrics.
    ///
    /// Arguments and errors are those of ``response(for:as:)``.
    public nonisolated func value<Serializer: ResponseSerializer>(
        for request: Request, as serializer: Serializer
    ) async throws -> Serializer.Output {
        try await response(for: request, as: serializer).value
    }

    /// Performs a request and runs a closure as soon as the response's head has arrived, with the body as a stream.
    ///
    /// The size of the body is not limited. A slow reader slows the server down: at most
    /// ``ANHTTP/TransferOptions/streamBufferSize`` bytes, 256 KiB by default, are buffered. The part of the body that
    /// `body` has not read when it ends is discarded. The request ends with the closure, which runs in the calling
    /// task. Once the closure has been called, the request is not retried.
    ///
    /// - Parameters:
    ///   - request: The request to send.
    ///   - validation: The accepted statuses and media types; by default every response is accepted, such as a 404.
    ///   - events: Receives the events of every exchange, including those answered by redirects; `nil`, the default,
    ///     for none. Called on the thread of the event, mostly an event-loop thread, so it must return immediately.
    ///   - body: Receives the head of the final response and its body, which is valid only while the closure runs.
    ///     ``ANHTTP/ResponseHead/redirectHistory`` lists the redirects that were followed.
    /// - Returns: The value that `body` returns.
    /// - Throws: ``SessionError``, which wraps ``ANSerialization/SerializationError/rejected(_:)`` with up to 64 KiB of
    ///   the body if `validation` does not accept the response; ``SessionError/invalidated`` if the manager was
    ///   invalidated or shut down before; `CancellationError` if the calling task is cancelled or the manager cancels
    ///   its requests; or the error that `body` or an interceptor throws. A ``ANHTTP/TransportError`` or
    ///   ``ANSerialization/SerializationError`` that `body` throws is wrapped in a ``SessionError``.
    public nonisolated func withResponse<Value: Sendable>(
        for request: Request, validating validation: ResponseValidation = .anything,
        reporting events: (any ExchangeEventSink)? = nil,
        _ body: (ResponseHead, ResponseBody) async throws -> Value
    ) async throws -> Value {
        try await perform(
            registry.begin(.stream, request), request, delivery: .streamed, reporting: events.map(PlainEventSink.init)
        ) { head, responseBody in
            try await validation.validate(head, responseBody, on: pipeline.clock)
            return try await body(head, responseBody)
        }
    }

    /// Creates the request that a verb such as ``get(_:parameters:headers:timeout:options:as:)`` would send, without
    /// sending it.
    ///
    /// Parameters are encoded by ``SessionConfiguration/requestSerializer`` into the query or the body, depending on the
    /// method. With neither parameters nor a body, the default serializer adds an empty form body for methods other than
    /// GET, HEAD and DELETE. A form takes its fields by its own functions; parameters beside it would be a second body.
    ///
    /// - Parameters:
    ///   - method: The method; any method may have a body.
    ///   - target: A path or URL as a string, resolved against the base URL, or a `URL`; see
    ///     ``ANSerialization/URLResolver``.
    ///   - parameters: The parameters; `nil`, the default, for none. Empty ones may result in a body, as in JSON.
    ///   - body: The body, such as `.json(user)`, `.form(form)` or `.file(path)`; ``ANHTTP/RequestBody/none`` by
    ///     default. JSON is encoded by ``SessionConfiguration/json``.
    ///   - headers: Header fields that replace all others of the same name: those of the serializer, of the session's
    ///     configuration, and the default ones. None by default.
    ///   - timeout: The time limit of the whole call, measured from the time when the request is sent; `nil`, the
    ///     default, for none. See `Request.timeout`.
    ///   - options: Modifies the session's transfer options for this request, and is called before this function
    ///     returns; `nil`, the default, changes none.
    /// - Returns: The request, without the header fields that the session adds when it is sent.
    /// - Throws: ``SessionError/serialization(_:)`` if the URL or a part of the request cannot be created, if parameters
    ///   would replace a body, or if `headers` contain `Content-Type` together with a form.
    public nonisolated func request(
        _ method: HTTPRequest.Method, _ target: some RequestTarget, parameters: Parameters? = nil,
        body: RequestBody = .none, headers: HTTPFields = [:], timeout: Duration? = nil,
        options: ((inout TransferOptions) -> Void)? = nil
    ) throws -> Request {
        do {
            var request = Request(
                method: method, url: try target.resolved(by: resolver), headers: headers, body: body)
            let mediaType = try request.encodeUntypedBody(with: configuration.json.encoder)
            request = try configuration.requestSerializer.serialize(request, parameters: parameters)
            // A serializer may leave JSON to the session's encoder.
            try request.encodeBody(with: configuration.json.encoder)
            if let mediaType { request.headers.fill(.contentType, mediaType) }
            request.headers.replace(with: headers)
            if let timeout { request.timeout = timeout }
            if let options { request.changeOptions(inheritingFrom: pipeline.options, by: options) }
            return request
        } catch {
            throw SessionError.lifting(error)
        }
    }
}

extension Response<Data> {
    /// Returns the response with its body deserialized.
    func serialized<Serializer: ResponseSerializer>(by serializer: Serializer) throws -> Response<Serializer.Output> {
        do {
            return try map { data in try serializer.value(of: head, data) }
        } catch let error as SerializationError {
            throw SessionError.serialization(error.naming(head.url.redactedDescription))
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

extension ResponseValidation {
    /// Validates a response whose body is streamed. The body of an accepted response is not read, except to learn that
    /// it is empty; of a rejected one, the error contains at most 64 KiB, as far as they arrive in time.
    ///
    /// - Parameters:
    ///   - checksEmptyBody: Whether the media type of an empty body is checked.
    ///   - clock: The clock of the session.
    /// - Throws: ``ANSerialization/SerializationError/rejected(_:)``; `CancellationError`; or the errors of a body of
    ///   which only the first byte tells whether it is rejected.
    func validate(
        _ head: ResponseHead, _ body: ResponseBody, checksEmptyBody: Bool = false, on clock: any Clock<Duration>
    ) async throws {
        guard rejection(of: head, Data(), checksMediaType: true) != nil else { return }
        var beginning = Data()
        if rejection(of: head, Data(), checksMediaType: checksEmptyBody) == nil {
            guard let first = try await body.next() else { return }
            beginning = first
        }
        let excerpt = try await body.excerpt(
            of: head, after: beginning, upTo: Self.maximumRejectedSize, on: clock)
        if let rejection = rejection(of: head, excerpt, checksMediaType: checksEmptyBody || !excerpt.isEmpty) {
            throw SerializationError.rejected(rejection)
        }
    }

    /// The maximum size in bytes of a rejected body in an error.
    private static let maximumRejectedSize = 64 << 10
}

extension ResponseBody {
    /// Reads the beginning of the body of a response that is rejected whatever the body is: what arrives within a second
    /// and before an error.
    ///
    /// - Parameters:
    ///   - head: The head of the response.
    ///   - beginning: The bytes that were read before.
    ///   - limit: The maximum number of bytes, with those read before.
    ///   - clock: The clock of the session.
    /// - Throws: `CancellationError` if the task is cancelled or the session cancels its requests.
    func excerpt(
        of head: ResponseHead, after beginning: Data = Data(), upTo limit: Int, on clock: any Clock<Duration>
    ) async throws -> Data {
        // The indices of a chunk need not begin at 0.
        let beginning = Data(beginning.prefix(limit))
        guard beginning.count < limit else { return beginning }
        let excerpt =
            if isWhole || head.contentLength == 0 {
                try await read(after: beginning, upTo: limit)
            } else {
                try await readInTime(after: beginning, upTo: limit, on: clock)
            }
        try Task.checkCancellation()
        return excerpt
    }

    private func readInTime(
        after beginning: Data, upTo limit: Int, on clock: any Clock<Duration>
    ) async throws -> Data {
        try await withThrowingTaskGroup(of: Data?.self) { group in
            let isRead = Atomic(false)
            // What has arrived is read before the clock is needed.
            group.addImmediateTask {
                defer { isRead.store(true, ordering: .releasing) }
                return try await withTaskCancellationHandler {
                    try await read(after: beginning, upTo: limit)
                } onCancel: {
                    cancel()
                }
            }
            if !isRead.load(ordering: .acquiring) {
                group.addTask {
                    try await clock.sleep(for: .seconds(1))
                    return nil
                }
            }
            defer { group.cancelAll() }
            while let result = try await group.next() {
                if let result { return result }
                // The second is over, and what did not arrive is not missed.
                noteDisuse?()
                group.cancelAll()
            }
            return beginning
        }
    }

    /// Returns `beginning` and what follows until there are `limit` bytes, the body ends, the task is cancelled, or an
    /// error other than a cancellation by the session occurs.
    private func read(after beginning: Data, upTo limit: Int) async throws -> Data {
        var excerpt = beginning
        do {
            for try await chunk in self {
                excerpt.append(chunk.prefix(limit - excerpt.count))
                if excerpt.count >= limit { break }
            }
        } catch let error as CancellationError {
            guard Task.isCancelled else { throw error }
        } catch {
            // The rejection is the result, and not what became of its body.
            noteDisuse?()
        }
        return excerpt
    }
}
