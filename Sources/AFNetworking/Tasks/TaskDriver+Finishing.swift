// SPDX-License-Identifier: MIT

import AsyncNetworking
import Dispatch

extension TaskDriver {
    /// Ends the task: calls the hooks, then the completion handler, then posts the notification.
    func finish(_ result: Result<Void, any Error>) async {
        guard let manager else { return }
        let delivery = manager.delivery
        var raw: (any Error)?
        var (ending, head, isFollowed) = change {
            ($0.takeEnding(delivery), $0.head, $0.isUploadWatched || $0.isDownloadWatched)
        }
        switch result {
        case .success:
            await serialize(head, into: &ending)
            if let file = ending.file { ending.object = file }
            ending.concludeRejection()
            if ending.error == nil, let used = source.resumeData { manager.forgetFields(for: used) }
        case .failure(let error):
            let left = ending.core.map(\.resumeData) ?? source.resumeData
            if let left { manager.keepFields(of: original.urlRequest, for: left) }
            let failure = TaskFailure(error, url: original.url, resumeData: left)
            raw = failure.raw
            ending.file = nil
            ending.error = ending.error ?? manager.handshakeError(error) ?? failure.effective
        }
        // Calls scheduled earlier on the manager's queue must run before the task ends.
        let isWatched = isFollowed || manager.isObserved
        if isWatched { await onSessionQueue {} }
        let (callbacks, task, dataTask) = change { [raw] state in state.finish(raw) }
        ending.dataTask = dataTask
        if let task, isWatched { await tellEnd(of: task, raw, ending.core, to: manager) }
        manager.taskEnded(identifier)
        if let task { deliver(UncheckedSendable(ending), of: task, to: callbacks) }
    }

    /// Calls the completion handler, then posts the notification.
    private func deliver(
        _ ending: UncheckedSendable<Ending>, of task: URLSessionTask, to callbacks: TaskCallbacks
    ) {
        ending.value.delivery.completionQueue.call {
            callbacks.completion?(
                self.responseOrEmpty, ending.value.dataTask, ending.value.object, ending.value.error)
        } afterwards: {
            ending.value.post(of: task)
        }
    }

    /// The response received, or an empty response.
    private func responseOrEmpty() -> URLResponse {
        response
            ?? URLResponse(
                url: original.url ?? URL(filePath: "/"), mimeType: nil, expectedContentLength: -1,
                textEncodingName: nil)
    }

    private func serialize(_ head: ResponseHead?, into ending: inout Ending) async {
        let data = ending.data
        var failure: NSError?
        if let serializer = ending.delivery.serializer as? AFHTTPResponseSerializer, serializer.needsNoResponse,
            let head
        {
            let pointer = AutoreleasingUnsafeMutablePointer<NSError?>(nil)
            let description = ResponseDescription(head) { [self] in response }
            ending.object = serializer.object(
                of: data, description, serializer.failure(of: description, data), pointer)
            failure = pointer.pointee
        } else {
            let serializer = UncheckedSendable(ending.delivery.serializer)
            (ending.object, failure) = await SerializationQueues.run { [response] in
                let pointer = AutoreleasingUnsafeMutablePointer<NSError?>(nil)
                return (serializer.value.responseObject(for: response, data: data, error: pointer), pointer.pointee)
            }
        }
        // An error with a response gets the request, too. Errors of other serializers are left unchanged.
        ending.error = failure.map { error in
            let isNamed = error.userInfo[AFNetworkingOperationFailingURLResponseErrorKey] != nil
            return isNamed ? error.about(original.urlRequest) : error
        }
    }

    private func tellEnd(
        of task: URLSessionTask, _ raw: (any Error)?, _ core: TaskCore?, to manager: AFURLSessionManager
    ) async {
        await onSessionQueue { [session = session(of: manager)] in
            guard manager.isObserved else { return }
            manager.urlSession(session, task: task, didFinishCollecting: AFURLSessionTaskMetrics(of: core))
            manager.urlSession(session, task: task, didCompleteWithError: raw)
        }
    }
}

extension TaskDriverState {
    /// Returns the outcome of the transfer and releases the body and the security policy.
    fileprivate mutating func takeEnding(_ delivery: TaskDelivery) -> Ending {
        defer {
            data = Data()
            securityPolicy = nil
        }
        return Ending(
            delivery: delivery, error: challengeError, data: data, file: destinationURL, resumeData: resumeData,
            core: core, securityPolicy: securityPolicy)
    }
}

/// The serializer and the completion queue for a response.
struct TaskDelivery {
    /// The serializer that converts the response to an object.
    let serializer: any AFURLResponseSerialization
    let completionQueue: CompletionQueue
}

/// The arguments of the completion handler and the notification.
private struct Ending {
    let delivery: TaskDelivery
    var object: Any?
    var error: (any Error)?
    let data: Data
    /// The URL to which a download was moved.
    var file: URL?
    /// The resume data of a download whose continuation the server rejected.
    let resumeData: ResumeData?
    let core: TaskCore?
    /// Retained because a policy of a subclass must not be freed while the state of the task is locked.
    let securityPolicy: AFSecurityPolicy?
    /// The task passed to callbacks.
    var dataTask: URLSessionDataTask?

    /// Adds what is left of a rejected download to the error, or removes it if the rejection was accepted as the file.
    mutating func concludeRejection() {
        guard let resumeData else { return }
        guard let error else { return resumeData.discard() }
        guard let left = resumeData.archived else { return }
        self.error = (error as NSError).adding([NSURLSessionDownloadTaskResumeData: left])
    }

    /// Posts the completion notification; called on the main queue.
    func post(of task: URLSessionTask) {
        let keys = Self.keys.value
        var userInfo = [AnyHashable: Any](minimumCapacity: 5)
        userInfo[keys.serializer] = delivery.serializer
        if let file { userInfo[keys.assetPath] = file } else { userInfo[keys.data] = data }
        if let object { userInfo[keys.object] = object }
        if let error { userInfo[keys.error] = error as NSError }
        if let core { userInfo[keys.metrics] = AFURLSessionTaskMetrics(of: core) }
        NotificationCenter.default.post(name: .AFNetworkingTaskDidComplete, object: task, userInfo: userInfo)
    }

    /// The user info keys, created once: creating an `AnyHashable` from a string takes longer than using it.
    private struct Keys {
        let serializer = AnyHashable(AFNetworkingTaskDidCompleteResponseSerializerKey)
        let assetPath = AnyHashable(AFNetworkingTaskDidCompleteAssetPathKey)
        let data = AnyHashable(AFNetworkingTaskDidCompleteResponseDataKey)
        let object = AnyHashable(AFNetworkingTaskDidCompleteSerializedResponseKey)
        let error = AnyHashable(AFNetworkingTaskDidCompleteErrorKey)
        let metrics = AnyHashable(AFNetworkingTaskDidCompleteSessionTaskMetrics)
    }

    private static let keys = UncheckedSendable(Keys())
}

/// The queues of the serializers of programs, which may wait, such as for another request.
///
/// Up to 64 run at a time, as on a concurrent queue of Apple's systems. On Linux, a concurrent queue has one thread for
/// each processor and slowly gets a few more; a serial queue has a thread of its own.
private enum SerializationQueues {
    private static let places = DispatchSemaphore(value: 64)
    private static let admission = DispatchQueue(label: "com.alamofire.networking.session.manager.processing")

    static func run<Value>(_ body: @escaping @Sendable () -> Value) async -> Value {
        await withCheckedContinuation { (continuation: CheckedContinuation<UncheckedSendable<Value>, Never>) in
            admission.async {
                places.wait()
                DispatchQueue(label: "com.alamofire.networking.serialization").async {
                    let result = UncheckedSendable(body())
                    places.signal()
                    continuation.resume(returning: result)
                }
            }
        }.value
    }
}
