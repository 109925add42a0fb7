// SPDX-License-Identifier: MIT

import ANSystem
import AsyncNetworking
import Dispatch

extension AFHTTPSessionManager {
    /// Creates the request for a verb.
    func makeRequest(
        _ method: String, _ urlString: String, _ parameters: Any?, _ headers: [String: String]?
    ) throws -> OriginalRequest {
        let serializer = requestSerializer
        if let made = try serializer.makeRequest(method, resolve(urlString), parameters, headers) { return .made(made) }
        return .given(
            try makeRequest(urlString, headers) { url, error in
                serializer.request(
                    withMethod: method, urlString: url.absoluteString, parameters: parameters, error: error)
            })
    }

    /// Creates a Foundation request, in which `headers` replace the fields with the same name.
    func makeRequest(
        _ urlString: String, _ headers: [String: String]?, _ make: (URL, NSErrorPointer) -> NSMutableURLRequest
    ) throws -> URLRequest {
        let url = try resolve(urlString)
        var request = try throwingError { make(url, $0) } as URLRequest
        for (name, value) in headers ?? [:] { request.setField(name, value) }
        return request
    }

    private func resolve(_ urlString: String) throws -> URL {
        do throws(SerializationError) {
            // A subclass may override `baseURL`.
            return try (isSubclassed ? URLResolver(base: baseURL) : base).resolve(urlString)
        } catch {
            throw NSError.requestSerialization(.badURL, reason: "\(error)", underlying: error)
        }
    }

    /// Returns the result of `make`. If `make` throws, returns `nil` and schedules a call to `failure` on the
    /// completion queue.
    func orTelling<Made>(
        _ failure: ((URLSessionDataTask?, any Error) -> Void)?, _ make: () throws -> Made
    ) -> Made? {
        do {
            return try make()
        } catch {
            guard let failure else { return nil }
            let delivery = UncheckedSendable((failure, error))
            CompletionQueue(queue: completionQueue).call { delivery.value.0(nil, delivery.value.1) }
            return nil
        }
    }

    /// Returns the parameters of a multipart form with string keys.
    ///
    /// - Throws: An error of ``AFURLRequestSerializationErrorDomain`` with code -1016 if `parameters` is not a
    ///   dictionary.
    static func fields(_ parameters: Any) throws -> [String: Any] {
        if let fields = parameters as? [String: Any] { return fields }
        guard let fields = parameters as? [AnyHashable: Any] else {
            throw NSError.requestSerialization(
                .cannotDecodeContentData, reason: "The parameters of a multipart form must be a dictionary.")
        }
        return Dictionary(fields.map { ("\($0.key.base)", $0.value) }) { first, _ in first }
    }

    /// Performs a request. For a subclass it calls the overridable `dataTask(withHTTPMethod:…)`.
    func perform(
        _ method: String, _ urlString: String, _ parameters: Any?, _ headers: [String: String]?,
        uploadProgress: ((Progress) -> Void)? = nil, downloadProgress: ((Progress) -> Void)? = nil,
        _ success: ((URLSessionDataTask, Any?) -> Void)?, _ failure: ((URLSessionDataTask?, any Error) -> Void)?
    ) -> URLSessionDataTask? {
        guard isSubclassed else {
            return makeTask(
                method, urlString, parameters, headers, uploadProgress: uploadProgress,
                downloadProgress: downloadProgress, success, failure, isResumed: true)
        }
        return started(
            dataTask(
                withHTTPMethod: method, urlString: urlString, parameters: parameters, headers: headers,
                uploadProgress: uploadProgress, downloadProgress: downloadProgress, success: success,
                failure: failure))
    }

    /// Creates the data task of a verb. Its callbacks need no Foundation response, so none is created for them.
    func makeTask(
        _ method: String, _ urlString: String, _ parameters: Any?, _ headers: [String: String]?,
        uploadProgress: ((Progress) -> Void)?, downloadProgress: ((Progress) -> Void)?,
        _ success: ((URLSessionDataTask, Any?) -> Void)?, _ failure: ((URLSessionDataTask?, any Error) -> Void)?,
        isResumed: Bool
    ) -> URLSessionDataTask? {
        let request = orTelling(failure) { try makeRequest(method, urlString, parameters, headers) }
        guard let request else { return nil }
        return AFDataTask(
            makeDriver(
                request, .data,
                TaskCallbacks(
                    uploadProgress: uploadProgress, downloadProgress: downloadProgress,
                    completion: .blocks(success: success, failure: failure))),
            isResumed: isResumed)
    }

    /// Resumes the task and returns it.
    func started<Task: URLSessionTask>(_ task: Task?) -> Task? {
        task?.resume()
        return task
    }

    /// Returns the task from `make`, which a subclass may have overridden. The completion handler passed to `make`
    /// calls `success` or `failure`.
    func making<Made: URLSessionDataTask>(
        _ success: ((URLSessionDataTask, Any?) -> Void)?, _ failure: ((URLSessionDataTask?, any Error) -> Void)?,
        _ make: (@escaping (URLResponse, Any?, (any Error)?) -> Void) -> Made
    ) -> Made {
        let made = MadeTask()
        let task = make { _, object, error in
            made.use { task in
                if let error { failure?(task, error) } else if let task { success?(task, object) }
            }
        }
        for call in made.set(task) { call(task) }
        return task
    }
}

/// A holder of the task for its completion handler, which is created before the task. The reference is weak: the
/// manager retains the task until the task ends.
private final class MadeTask: Sendable {
    private let state = Lock(State())

    private struct State {
        var task: WeakTask?
        var calls: [UncheckedSendable<(URLSessionDataTask?) -> Void>] = []
    }

    /// Calls `call` with the task that is completing on this thread, or else with the created task. If an override
    /// resumed the task and is called back before it has returned the task, `call` is deferred until ``set(_:)``.
    func use(_ call: @escaping (URLSessionDataTask?) -> Void) {
        if let ended = TaskDriver.ended { return call(ended) }
        let later = UncheckedSendable(call)
        let task = state.withLock { state in
            if state.task == nil { state.calls.append(later) }
            return state.task
        }
        if let task { call(task.value as? URLSessionDataTask) }
    }

    /// Stores the created task and returns the calls that were deferred until it was known.
    func set(_ task: URLSessionDataTask) -> [(URLSessionDataTask?) -> Void] {
        let calls = state.withLock { state in
            defer { state.calls = [] }
            state.task = WeakTask(task)
            return state.calls
        }
        return calls.map(\.value)
    }
}
