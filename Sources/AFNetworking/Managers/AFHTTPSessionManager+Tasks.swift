// SPDX-License-Identifier: MIT

import ANSystem
import AsyncNetworking
import Dispatch

// The one path of the verbs. A subclass may have overridden the methods that create tasks, so these are called for it;
// their completion handler takes a Foundation response, which is not created otherwise.

extension AFHTTPSessionManager {
    typealias Success = @Sendable (URLSessionDataTask, Any?) -> Void
    typealias Failure = @Sendable (URLSessionDataTask?, any Error) -> Void

    /// Starts the task of a verb.
    func perform(
        _ method: String, _ urlString: String, _ parameters: Any?, _ headers: [String: String]?,
        uploadProgress: (@Sendable (Progress) -> Void)? = nil, downloadProgress: (@Sendable (Progress) -> Void)? = nil,
        _ success: Success?, _ failure: Failure?
    ) -> URLSessionDataTask? {
        let task = (self as any HTTPTaskMaker).dataTask(
            withHTTPMethod: method, urlString: urlString, parameters: parameters, headers: headers,
            uploadProgress: uploadProgress, downloadProgress: downloadProgress, success: success, failure: failure)
        task?.resume()
        return task
    }

    /// Starts the task of a POST request with a multipart form.
    func performForm(
        _ urlString: String, _ parameters: Any?, _ headers: [String: String]?,
        _ block: ((any AFMultipartFormData) -> Void)?, uploadProgress: (@Sendable (Progress) -> Void)? = nil,
        _ success: Success?, _ failure: Failure?
    ) -> URLSessionDataTask? {
        let serialized = attempt(orCall: failure) {
            let fields = try parameters.map(Self.fields)
            return try makeRequest(urlString, headers) {
                try requestSerializer.multipartFormRequest(
                    withMethod: "POST", urlString: $0, parameters: fields, constructingBodyWith: block)
            }
        }
        guard let request = serialized else { return nil }
        let task: URLSessionDataTask
        if isSubclassed {
            task = self.task(success, failure) {
                (self as any TaskMaker).uploadTask(
                    withStreamedRequest: request, progress: uploadProgress, completionHandler: $0)
            }
        } else {
            task = makeUploadTask(request, nil, uploadProgress, completion(success, failure))
        }
        task.resume()
        return task
    }

    /// Returns the callback at the end of a task that calls the blocks of a verb.
    func completion(_ success: Success?, _ failure: Failure?) -> TaskCallbacks.Completion {
        { _, task, object, error in
            if let error {
                failure?(task, error)
            } else if let task {
                success?(task, object)
            }
        }
    }

    /// Returns the task that an overridden method makes with a completion handler that calls the blocks of a verb. The
    /// handler may be called before the method has returned the task; the blocks are then called on the completion
    /// queue.
    func task<Made: URLSessionDataTask>(
        _ success: Success?, _ failure: Failure?,
        _ make: (@escaping @Sendable (URLResponse, Any?, (any Error)?) -> Void) -> Made
    ) -> Made {
        let verb = Lock(OverriddenVerb())
        let completion = completion(success, failure)
        let task = make { response, object, error in
            let call = UncheckedSendable { (task: URLSessionDataTask) in completion({ response }, task, object, error) }
            let task = verb.withLock { verb in
                if verb.task == nil { verb.early.append(call) }
                return verb.task
            }
            if let task { call.value(task) }
        }
        let early = verb.withLock { verb in
            verb.task = task
            return verb.early
        }
        if !early.isEmpty { delivery.completionQueue.call { for call in early { call.value(task) } } }
        return task
    }

    /// Returns the request of a verb without a multipart form.
    func makeRequest(
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
    func attempt<Made>(orCall failure: Failure?, _ make: () throws -> Made) -> Made? {
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

/// A verb whose task an overridden method makes.
private struct OverriddenVerb: Sendable {
    /// The task; `nil` until the method has returned it.
    var task: URLSessionDataTask?
    /// The calls of the completion handler before the task was known.
    var early: [UncheckedSendable<(URLSessionDataTask) -> Void>] = []
}

// The verbs and the methods that create tasks, which a subclass may override. This module calls them by protocols,
// because with the trait `MigrationHints` calls of deprecated methods give warnings.

protocol TaskMaker {
    func dataTask(
        with request: URLRequest, uploadProgress: (@Sendable (Progress) -> Void)?,
        downloadProgress: (@Sendable (Progress) -> Void)?,
        completionHandler: (@Sendable (URLResponse, Any?, (any Error)?) -> Void)?
    ) -> URLSessionDataTask

    func uploadTask(
        with request: URLRequest, fromFile fileURL: URL, progress: (@Sendable (Progress) -> Void)?,
        completionHandler: (@Sendable (URLResponse, Any?, (any Error)?) -> Void)?
    ) -> URLSessionUploadTask

    func uploadTask(
        with request: URLRequest, from bodyData: Data?, progress: (@Sendable (Progress) -> Void)?,
        completionHandler: (@Sendable (URLResponse, Any?, (any Error)?) -> Void)?
    ) -> URLSessionUploadTask

    func uploadTask(
        withStreamedRequest request: URLRequest, progress: (@Sendable (Progress) -> Void)?,
        completionHandler: (@Sendable (URLResponse, Any?, (any Error)?) -> Void)?
    ) -> URLSessionUploadTask

    func downloadTask(
        with request: URLRequest, progress: (@Sendable (Progress) -> Void)?,
        destination: (@Sendable (URL, URLResponse) -> URL)?,
        completionHandler: (@Sendable (URLResponse, URL?, (any Error)?) -> Void)?
    ) -> URLSessionDownloadTask

    func downloadTask(
        withResumeData resumeData: Data, progress: (@Sendable (Progress) -> Void)?,
        destination: (@Sendable (URL, URLResponse) -> URL)?,
        completionHandler: (@Sendable (URLResponse, URL?, (any Error)?) -> Void)?
    ) -> URLSessionDownloadTask
}

protocol HTTPTaskMaker {
    func dataTask(
        withHTTPMethod method: String, urlString: String, parameters: Any?, headers: [String: String]?,
        uploadProgress: (@Sendable (Progress) -> Void)?, downloadProgress: (@Sendable (Progress) -> Void)?,
        success: (@Sendable (URLSessionDataTask, Any?) -> Void)?,
        failure: (@Sendable (URLSessionDataTask?, any Error) -> Void)?
    ) -> URLSessionDataTask?
}

protocol HTTPVerbs {
    func get(
        _ urlString: String, parameters: Any?, headers: [String: String]?, progress: (@Sendable (Progress) -> Void)?,
        success: (@Sendable (URLSessionDataTask, Any?) -> Void)?,
        failure: (@Sendable (URLSessionDataTask?, any Error) -> Void)?
    ) -> URLSessionDataTask?

    func head(
        _ urlString: String, parameters: Any?, headers: [String: String]?,
        success: (@Sendable (URLSessionDataTask) -> Void)?,
        failure: (@Sendable (URLSessionDataTask?, any Error) -> Void)?
    ) -> URLSessionDataTask?

    func post(
        _ urlString: String, parameters: Any?, headers: [String: String]?, progress: (@Sendable (Progress) -> Void)?,
        success: (@Sendable (URLSessionDataTask, Any?) -> Void)?,
        failure: (@Sendable (URLSessionDataTask?, any Error) -> Void)?
    ) -> URLSessionDataTask?

    func post(
        _ urlString: String, parameters: Any?, headers: [String: String]?,
        constructingBodyWith block: ((any AFMultipartFormData) -> Void)?, progress: (@Sendable (Progress) -> Void)?,
        success: (@Sendable (URLSessionDataTask, Any?) -> Void)?,
        failure: (@Sendable (URLSessionDataTask?, any Error) -> Void)?
    ) -> URLSessionDataTask?

    func put(
        _ urlString: String, parameters: Any?, headers: [String: String]?,
        success: (@Sendable (URLSessionDataTask, Any?) -> Void)?,
        failure: (@Sendable (URLSessionDataTask?, any Error) -> Void)?
    ) -> URLSessionDataTask?

    func patch(
        _ urlString: String, parameters: Any?, headers: [String: String]?,
        success: (@Sendable (URLSessionDataTask, Any?) -> Void)?,
        failure: (@Sendable (URLSessionDataTask?, any Error) -> Void)?
    ) -> URLSessionDataTask?

    func delete(
        _ urlString: String, parameters: Any?, headers: [String: String]?,
        success: (@Sendable (URLSessionDataTask, Any?) -> Void)?,
        failure: (@Sendable (URLSessionDataTask?, any Error) -> Void)?
    ) -> URLSessionDataTask?
}

extension AFURLSessionManager: TaskMaker {}
extension AFHTTPSessionManager: HTTPTaskMaker, HTTPVerbs {}
