// SPDX-License-Identifier: MIT

import ANSystem
import AsyncNetworking
import Dispatch

// The one path of the verbs. A subclass may have overridden the methods that create tasks, so these are called for it;
// their completion handler takes a Foundation response, which is not created otherwise.

extension AFHTTPSessionManager {
    typealias Success = (URLSessionDataTask, Any?) -> Void
    typealias Failure = (URLSessionDataTask?, any Error) -> Void

    /// Starts the task of a verb.
    func perform(
        _ method: String, _ urlString: String, _ parameters: Any?, _ headers: [String: String]?,
        uploadProgress: ((Progress) -> Void)? = nil, downloadProgress: ((Progress) -> Void)? = nil,
        _ success: Success?, _ failure: Failure?
    ) -> URLSessionDataTask? {
        guard isSubclassed else {
            return makeTask(
                method, urlString, parameters, headers, uploadProgress, downloadProgress, success, failure,
                isResumed: true)
        }
        let task = dataTask(
            withHTTPMethod: method, urlString: urlString, parameters: parameters, headers: headers,
            uploadProgress: uploadProgress, downloadProgress: downloadProgress, success: success, failure: failure)
        task?.resume()
        return task
    }

    /// Creates the data task of a verb.
    func makeTask(
        _ method: String, _ urlString: String, _ parameters: Any?, _ headers: [String: String]?,
        _ uploadProgress: ((Progress) -> Void)?, _ downloadProgress: ((Progress) -> Void)?,
        _ success: Success?, _ failure: Failure?, isResumed: Bool
    ) -> URLSessionDataTask? {
        let made = request(failure) { try makeRequest(method, urlString, parameters, headers) }
        guard let request = made else { return nil }
        guard isSubclassed else {
            let callbacks = TaskCallbacks(
                uploadProgress: uploadProgress, downloadProgress: downloadProgress,
                completion: .blocks(success: success, failure: failure))
            return AFDataTask(makeDriver(request, .data, callbacks), isResumed: isResumed)
        }
        return VerbCallbacks(success, failure).task(calledOn: delivery.completionQueue) {
            dataTask(
                with: request.urlRequest, uploadProgress: uploadProgress, downloadProgress: downloadProgress,
                completionHandler: $0)
        }
    }

    /// Starts the upload task of a form.
    func postForm(
        _ urlString: String, _ parameters: Any?, _ headers: [String: String]?,
        _ block: ((any AFMultipartFormData) -> Void)?, _ uploadProgress: ((Progress) -> Void)?,
        _ success: Success?, _ failure: Failure?
    ) -> URLSessionDataTask? {
        let made = request(failure) {
            let fields = try parameters.map(Self.fields)
            return try makeRequest(urlString, headers) {
                try requestSerializer.multipartFormRequest(
                    withMethod: "POST", urlString: $0, parameters: fields, constructingBodyWith: block)
            }
        }
        guard let request = made else { return nil }
        guard isSubclassed else {
            let callbacks = TaskCallbacks(
                uploadProgress: uploadProgress, completion: .blocks(success: success, failure: failure))
            return AFUploadTask(makeDriver(.given(request), .upload(nil), callbacks), isResumed: true)
        }
        let task = VerbCallbacks(success, failure).task(calledOn: delivery.completionQueue) {
            uploadTask(withStreamedRequest: request, progress: uploadProgress, completionHandler: $0)
        }
        task.resume()
        return task
    }

    /// Creates the request for a verb.
    private func makeRequest(
        _ method: String, _ urlString: String, _ parameters: Any?, _ headers: [String: String]?
    ) throws -> OriginalRequest {
        let serializer = requestSerializer
        if let made = try serializer.makeRequest(method, resolve(urlString), parameters, headers) { return .made(made) }
        return .given(
            try makeRequest(urlString, headers) {
                try serializer.request(withMethod: method, urlString: $0, parameters: parameters)
            })
    }

    /// Creates a Foundation request, in which `headers` replace the fields with the same name.
    private func makeRequest(
        _ urlString: String, _ headers: [String: String]?, _ make: (String) throws -> NSMutableURLRequest
    ) throws -> URLRequest {
        var request = try make(resolve(urlString).absoluteString) as URLRequest
        for (name, value) in headers ?? [:] { request.setField(name, value) }
        return request
    }

    private func resolve(_ urlString: String) throws -> URL {
        do throws(SerializationError) {
            return try resolver.resolve(urlString)
        } catch {
            throw NSError.requestSerialization(.badURL, reason: "\(error)", underlying: error)
        }
    }

    /// Returns the request from `make`. If `make` throws, returns `nil` and schedules a call to `failure` on the
    /// completion queue.
    private func request<Made>(_ failure: Failure?, _ make: () throws -> Made) -> Made? {
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
    private static func fields(_ parameters: Any) throws -> [String: Any] {
        if let fields = parameters as? [String: Any] { return fields }
        guard let fields = parameters as? [AnyHashable: Any] else {
            throw NSError.requestSerialization(
                .cannotDecodeContentData, reason: "The parameters of a multipart form must be a dictionary.")
        }
        return Dictionary(fields.map { ("\($0.key.base)", $0.value) }) { first, _ in first }
    }
}

/// The blocks of a verb whose task a method of a subclass creates. The method takes a completion handler, which it may
/// call before it returns the task: the blocks are called when both the task and the result are known.
private final class VerbCallbacks: Sendable {
    private let blocks: UncheckedSendable<(AFHTTPSessionManager.Success?, AFHTTPSessionManager.Failure?)>
    private let state = Lock(State())

    private struct State: Sendable {
        var task: URLSessionDataTask?
        var results: [UncheckedSendable<(object: Any?, error: (any Error)?)>] = []
    }

    init(_ success: AFHTTPSessionManager.Success?, _ failure: AFHTTPSessionManager.Failure?) {
        blocks = UncheckedSendable((success, failure))
    }

    /// Returns the task from `make`. If that has called its completion handler already, the blocks are called on a queue.
    func task<Made: URLSessionDataTask>(
        calledOn queue: CompletionQueue, _ make: (@escaping (URLResponse, Any?, (any Error)?) -> Void) -> Made
    ) -> Made {
        let task = make { _, object, error in
            self.state.withLock { $0.results.append(UncheckedSendable((object, error))) }
            self.deliver()
        }
        let isLate = state.withLock { state in
            state.task = task
            return !state.results.isEmpty
        }
        if isLate { queue.call { self.deliver() } }
        return task
    }

    /// Calls a block for each result if the task is known.
    private func deliver() {
        let (task, results) = state.withLock { state in
            defer { if state.task != nil { state.results = [] } }
            return (state.task, state.results)
        }
        guard let task else { return }
        for result in results {
            if let error = result.value.error {
                blocks.value.1?(task, error)
            } else {
                blocks.value.0?(task, result.value.object)
            }
        }
    }
}
