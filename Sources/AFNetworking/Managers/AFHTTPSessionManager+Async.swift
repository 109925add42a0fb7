// SPDX-License-Identifier: MIT

import ANSystem

/// The result of a request that was made with an async verb of ``AFHTTPSessionManager`` and accepted by its response
/// serializer.
public struct AFResponse {
    /// The completed task, with its request and response. The response has any status that the serializer accepts, by
    /// default 200 to 299.
    public let task: URLSessionDataTask
    /// The object that the response serializer returned; `nil` for a HEAD request or if the serializer returned none.
    public let object: Any?
}

extension AFHTTPSessionManager {
    /// Performs a GET request with the encoded parameters, by default in its query. Each async verb calls the variant
    /// with callbacks, which a subclass may override; the override must not call the async verb.
    ///
    /// The result is delivered by way of ``AFURLSessionManager/completionQueue``, by default the main queue, which must
    /// be served.
    ///
    /// - Parameters:
    ///   - urlString: The URL, resolved against ``baseURL`` (RFC 3986 §5): a leading slash replaces the base's path. An
    ///     invalid one fails with -1000 of ``AFURLRequestSerializationErrorDomain``.
    ///   - parameters: The values to encode with ``requestSerializer``; `nil`, the default, for none.
    ///   - headers: Header fields that replace those of the request serializer with the same name; `nil`, the default,
    ///     for none.
    /// - Returns: The completed task and the object that ``responseSerializer`` returned.
    /// - Throws: `CancellationError` if the calling task is cancelled, which cancels the request; otherwise the error
    ///   that `failure` of the variant with callbacks receives, such as a `URLError`, or an error of
    ///   ``AFURLRequestSerializationErrorDomain`` or ``AFURLResponseSerializationErrorDomain``; -999 if an override in a
    ///   subclass releases the callbacks without a call.
    public func get(
        _ urlString: String, parameters: Any? = nil, headers: [String: String]? = nil
    ) async throws -> AFResponse {
        try await awaiting {
            verbs.get(urlString, parameters: parameters, headers: headers, progress: nil, success: $0, failure: $1)
        }
    }

    /// Performs a HEAD request with the encoded parameters, by default in its query.
    ///
    /// The result is delivered by way of ``AFURLSessionManager/completionQueue``, by default the main queue, which must
    /// be served.
    ///
    /// - Parameters:
    ///   - urlString: The URL, resolved against ``baseURL`` (RFC 3986 §5): a leading slash replaces the base's path. An
    ///     invalid one fails with -1000 of ``AFURLRequestSerializationErrorDomain``.
    ///   - parameters: The values to encode with ``requestSerializer``; `nil`, the default, for none.
    ///   - headers: Header fields that replace those of the request serializer with the same name; `nil`, the default,
    ///     for none.
    /// - Returns: The completed task, whose response has the header fields; the object is `nil`.
    /// - Throws: `CancellationError` if the calling task is cancelled, which cancels the request; otherwise the error
    ///   that `failure` of the variant with callbacks receives, such as a `URLError`, or an error of
    ///   ``AFURLRequestSerializationErrorDomain`` or ``AFURLResponseSerializationErrorDomain``; -999 if an override in a
    ///   subclass releases the callbacks without a call.
    public func head(
        _ urlString: String, parameters: Any? = nil, headers: [String: String]? = nil
    ) async throws -> AFResponse {
        try await awaiting { success, failure in
            verbs.head(
                urlString, parameters: parameters, headers: headers, success: { success($0, nil) }, failure: failure)
        }
    }

    /// Performs a POST request with the encoded parameters, by default as its body.
    ///
    /// The result is delivered by way of ``AFURLSessionManager/completionQueue``, by default the main queue, which must
    /// be served.
    ///
    /// - Parameters:
    ///   - urlString: The URL, resolved against ``baseURL`` (RFC 3986 §5): a leading slash replaces the base's path. An
    ///     invalid one fails with -1000 of ``AFURLRequestSerializationErrorDomain``.
    ///   - parameters: The values to encode with ``requestSerializer``; `nil`, the default, for none.
    ///   - headers: Header fields that replace those of the request serializer with the same name; `nil`, the default,
    ///     for none.
    /// - Returns: The completed task and the object that ``responseSerializer`` returned.
    /// - Throws: `CancellationError` if the calling task is cancelled, which cancels the request; otherwise the error
    ///   that `failure` of the variant with callbacks receives, such as a `URLError`, or an error of
    ///   ``AFURLRequestSerializationErrorDomain`` or ``AFURLResponseSerializationErrorDomain``; -999 if an override in a
    ///   subclass releases the callbacks without a call.
    @discardableResult
    public func post(
        _ urlString: String, parameters: Any? = nil, headers: [String: String]? = nil
    ) async throws -> AFResponse {
        try await awaiting {
            verbs.post(urlString, parameters: parameters, headers: headers, progress: nil, success: $0, failure: $1)
        }
    }

    /// Performs a POST request with a multipart form (RFC 7578): one field per parameter, followed by the parts that
    /// `block` appends.
    ///
    /// The result is delivered by way of ``AFURLSessionManager/completionQueue``, by default the main queue, which must
    /// be served.
    ///
    /// - Parameters:
    ///   - urlString: The URL, resolved against ``baseURL`` (RFC 3986 §5): a leading slash replaces the base's path. An
    ///     invalid one fails with -1000 of ``AFURLRequestSerializationErrorDomain``.
    ///   - parameters: A dictionary with the fields of the form, sorted by name; `nil`, the default, for none. Other
    ///     values fail with -1016 of ``AFURLRequestSerializationErrorDomain``.
    ///   - headers: Header fields that replace those of the request serializer with the same name; `nil`, the default,
    ///     for none.
    ///   - block: Appends the parts, before this function suspends; `nil` for none. If the form is empty, the request
    ///     is the one without parameters. A part that cannot be encoded fails it with -1016 of that domain.
    /// - Returns: The completed task and the object that ``responseSerializer`` returned.
    /// - Throws: `CancellationError` if the calling task is cancelled, which cancels the request; otherwise the error
    ///   that `failure` of the variant with callbacks receives, such as a `URLError`, or an error of
    ///   ``AFURLRequestSerializationErrorDomain`` or ``AFURLResponseSerializationErrorDomain``; -999 if an override in a
    ///   subclass releases the callbacks without a call.
    @discardableResult
    public func post(
        _ urlString: String, parameters: Any? = nil, headers: [String: String]? = nil,
        constructingBodyWith block: ((any AFMultipartFormData) -> Void)?
    ) async throws -> AFResponse {
        try await awaiting {
            verbs.post(
                urlString, parameters: parameters, headers: headers, constructingBodyWith: block, progress: nil,
                success: $0, failure: $1)
        }
    }

    /// Performs a PUT request with the encoded parameters, by default as its body.
    ///
    /// The result is delivered by way of ``AFURLSessionManager/completionQueue``, by default the main queue, which must
    /// be served.
    ///
    /// - Parameters:
    ///   - urlString: The URL, resolved against ``baseURL`` (RFC 3986 §5): a leading slash replaces the base's path. An
    ///     invalid one fails with -1000 of ``AFURLRequestSerializationErrorDomain``.
    ///   - parameters: The values to encode with ``requestSerializer``; `nil`, the default, for none.
    ///   - headers: Header fields that replace those of the request serializer with the same name; `nil`, the default,
    ///     for none.
    /// - Returns: The completed task and the object that ``responseSerializer`` returned.
    /// - Throws: `CancellationError` if the calling task is cancelled, which cancels the request; otherwise the error
    ///   that `failure` of the variant with callbacks receives, such as a `URLError`, or an error of
    ///   ``AFURLRequestSerializationErrorDomain`` or ``AFURLResponseSerializationErrorDomain``; -999 if an override in a
    ///   subclass releases the callbacks without a call.
    @discardableResult
    public func put(
        _ urlString: String, parameters: Any? = nil, headers: [String: String]? = nil
    ) async throws -> AFResponse {
        try await awaiting {
            verbs.put(urlString, parameters: parameters, headers: headers, success: $0, failure: $1)
        }
    }

    /// Performs a PATCH request with the encoded parameters, by default as its body.
    ///
    /// The result is delivered by way of ``AFURLSessionManager/completionQueue``, by default the main queue, which must
    /// be served.
    ///
    /// - Parameters:
    ///   - urlString: The URL, resolved against ``baseURL`` (RFC 3986 §5): a leading slash replaces the base's path. An
    ///     invalid one fails with -1000 of ``AFURLRequestSerializationErrorDomain``.
    ///   - parameters: The values to encode with ``requestSerializer``; `nil`, the default, for none.
    ///   - headers: Header fields that replace those of the request serializer with the same name; `nil`, the default,
    ///     for none.
    /// - Returns: The completed task and the object that ``responseSerializer`` returned.
    /// - Throws: `CancellationError` if the calling task is cancelled, which cancels the request; otherwise the error
    ///   that `failure` of the variant with callbacks receives, such as a `URLError`, or an error of
    ///   ``AFURLRequestSerializationErrorDomain`` or ``AFURLResponseSerializationErrorDomain``; -999 if an override in a
    ///   subclass releases the callbacks without a call.
    @discardableResult
    public func patch(
        _ urlString: String, parameters: Any? = nil, headers: [String: String]? = nil
    ) async throws -> AFResponse {
        try await awaiting {
            verbs.patch(urlString, parameters: parameters, headers: headers, success: $0, failure: $1)
        }
    }

    /// Performs a DELETE request with the encoded parameters, by default in its query.
    ///
    /// The result is delivered by way of ``AFURLSessionManager/completionQueue``, by default the main queue, which must
    /// be served.
    ///
    /// - Parameters:
    ///   - urlString: The URL, resolved against ``baseURL`` (RFC 3986 §5): a leading slash replaces the base's path. An
    ///     invalid one fails with -1000 of ``AFURLRequestSerializationErrorDomain``.
    ///   - parameters: The values to encode with ``requestSerializer``; `nil`, the default, for none.
    ///   - headers: Header fields that replace those of the request serializer with the same name; `nil`, the default,
    ///     for none.
    /// - Returns: The completed task and the object that ``responseSerializer`` returned.
    /// - Throws: `CancellationError` if the calling task is cancelled, which cancels the request; otherwise the error
    ///   that `failure` of the variant with callbacks receives, such as a `URLError`, or an error of
    ///   ``AFURLRequestSerializationErrorDomain`` or ``AFURLResponseSerializationErrorDomain``; -999 if an override in a
    ///   subclass releases the callbacks without a call.
    @discardableResult
    public func delete(
        _ urlString: String, parameters: Any? = nil, headers: [String: String]? = nil
    ) async throws -> AFResponse {
        try await awaiting {
            verbs.delete(urlString, parameters: parameters, headers: headers, success: $0, failure: $1)
        }
    }

    /// The verbs with callbacks, which a subclass may have overridden.
    private var verbs: any HTTPVerbs { self }

    /// Starts a task and suspends until one of its callbacks is called. An override in a subclass may call them several
    /// times, of which the first counts, or release them uncalled.
    private func awaiting(
        _ start: (@escaping Success, @escaping Failure) -> URLSessionDataTask?
    ) async throws -> AFResponse {
        let started = Lock<URLSessionDataTask?>(nil)
        let result = await withTaskCancellationHandler {
            await callback(fallback: Result<UncheckedSendable<AFResponse>, any Error>.failure(URLError(.cancelled))) {
                end in
                let task = start(
                    { end(.success(UncheckedSendable(AFResponse(task: $0, object: $1)))) }, { end(.failure($1)) })
                started.set(\.self, to: task)
                // The handler may have run before the task was stored.
                if Task.isCancelled { task?.cancel() }
            }
        } onCancel: {
            started.withLock { $0 }?.cancel()
        }
        do {
            return try result.get().value
        } catch {
            throw Task.isCancelled ? CancellationError() : error
        }
    }
}
