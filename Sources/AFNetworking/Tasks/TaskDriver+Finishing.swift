// SPDX-License-Identifier: MIT

import AsyncNetworking
import Dispatch

extension TaskDriver {
    /// Ends the task: hooks, then the completion handler, then the notification.
    func finish(_ result: Result<TaskOutcome, any Error>) async {
        var ending = Ending(serializer: manager.currentSerializer)
        var raw: (any Error)?
        switch result {
        case .success(let outcome): serialize(outcome, into: &ending)
        case .failure(let error):
            let failure = TaskFailure(error, url: original.url)
            raw = failure.raw
            ending.error = change { $0.challengeError } ?? failure.effective
            ending.data = change { $0.partialData }
        }
        // What was sent to the manager's queue before is heard before the end.
        let isWatched = manager.isObserved || change { $0.isWatched }
        if isWatched { await onSessionQueue { Handover(()) } }
        let metrics = change { $0.metrics }
        let (callbacks, task) = change { [raw] state in state.finish(raw) }
        if let task, isWatched { await tellEnd(of: task, raw, metrics) }
        manager.taskEnded(identifier)
        guard let task else { return }
        let delivery = Handover((callbacks.completion?.value, ending, metrics))
        let (queue, group) = manager.completionPlace
        (queue ?? .main).async(group: group) { [self] in
            let (completion, ending, metrics) = delivery.value
            Self.$ended.withValue(self) { completion?(self, ending.object, ending.error) }
            change { $0.dataTask = nil }
            guard queue != nil else { return ending.post(of: task, metrics) }
            Outbox.main.send { delivery.value.1.post(of: task, delivery.value.2) }
        }
    }

    private func serialize(_ outcome: TaskOutcome, into ending: inout Ending) {
        let pointer = AutoreleasingUnsafeMutablePointer<NSError?>(nil)
        if let serializer = ending.serializer as? AFHTTPResponseSerializer, serializer.needsNoResponse, let head {
            let verdict = serializer.judge(ResponseFacts(head) { [self] in response }, outcome.data)
            ending.object = serializer.object(of: outcome.data, verdict, pointer)
        } else {
            ending.object = ending.serializer.responseObject(for: response, data: outcome.data, error: pointer)
        }
        ending.error = pointer.pointee
        ending.data = outcome.data
        guard let file = outcome.file else { return }
        ending.object = file
        ending.file = file
    }

    private func tellEnd(of task: URLSessionTask, _ raw: (any Error)?, _ metrics: [TransferMetrics]) async {
        await onSessionQueue { [manager, session] in
            guard manager.isObserved else { return Handover(()) }
            manager.urlSession(
                session, task: task, didFinishCollecting: AFURLSessionTaskMetrics(exchanges: metrics))
            manager.urlSession(session, task: task, didCompleteWithError: raw)
            return Handover(())
        }
    }
}

extension TaskState {
    /// Whether something was sent to the manager's queue that has to be heard before the end.
    fileprivate var isWatched: Bool {
        callbacks.uploadProgress != nil || callbacks.downloadProgress != nil || uploadProgress != nil
            || downloadProgress != nil
    }
}

extension AFURLSessionManager {
    /// What makes objects of responses, as a subclass may have it.
    fileprivate var currentSerializer: any AFURLResponseSerialization {
        let serializer = anyResponseSerializer
        guard isSubclassed, serializer is AFHTTPResponseSerializer, let manager = self as? AFHTTPSessionManager else {
            return serializer
        }
        return manager.responseSerializer
    }
}

/// What a task ended with.
private struct Ending {
    let serializer: any AFURLResponseSerialization
    var object: Any?
    var error: (any Error)?
    var data = Data()
    var file: URL?

    init(serializer: any AFURLResponseSerialization) {
        self.serializer = serializer
    }

    /// Posts that the task is over; on the main queue.
    func post(of task: URLSessionTask, _ metrics: [TransferMetrics]) {
        var userInfo = [AnyHashable: Any](minimumCapacity: 5)
        userInfo[AFNetworkingTaskDidCompleteResponseSerializerKey] = serializer
        if let file {
            userInfo[AFNetworkingTaskDidCompleteAssetPathKey] = file
        } else {
            userInfo[AFNetworkingTaskDidCompleteResponseDataKey] = data
        }
        userInfo[AFNetworkingTaskDidCompleteSerializedResponseKey] = object
        // In an `Any`, `as? NSError` finds objects only.
        userInfo[AFNetworkingTaskDidCompleteErrorKey] = error.map { $0 as NSError }
        if !metrics.isEmpty {
            userInfo[AFNetworkingTaskDidCompleteSessionTaskMetrics] = AFURLSessionTaskMetrics(exchanges: metrics)
        }
        NotificationCenter.default.post(name: .AFNetworkingTaskDidComplete, object: task, userInfo: userInfo)
    }
}
