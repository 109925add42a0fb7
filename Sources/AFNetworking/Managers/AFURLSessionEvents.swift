// SPDX-License-Identifier: MIT

import ANSystem
import Dispatch
import Synchronization

/// What happens to a manager's session and tasks: each event is a method that calls the block for it.
///
/// A subclass of ``AFURLSessionManager`` may override the methods, and calls `super`. They are called on the manager's own
/// serial queue.
open class AFURLSessionEvents: NSObject, URLSessionDataDelegate, URLSessionDownloadDelegate, @unchecked Sendable {
    /// The queue of all that is called but completion handlers and notifications.
    let sessionQueue = DispatchQueue(label: "com.alamofire.networking.session.manager")
    let state: Lock<ManagerState>
    /// The answers to what is asked within handshakes.
    let handshakeAnswers = HandshakeAnswers()

    init(_ state: ManagerState) {
        self.state = Lock(state)
        super.init()
    }

    /// Whether somebody listens to more than the ends of tasks: a block, or a subclass.
    var isObserved: Bool { isSubclassed || hasHooks.load(ordering: .acquiring) }

    /// Whether there ever was a block.
    private let hasHooks = Atomic(false)

    /// Sets a block, or removes it.
    func setHook<Block>(_ hook: WritableKeyPath<SessionHooks, Handover<Block>?>, _ block: Block?) {
        let hooks: WritableKeyPath<ManagerState, SessionHooks> = \.hooks
        state.set(hooks.appending(path: hook), to: block.map(Handover.init))
        hasHooks.store(true, ordering: .releasing)
    }

    /// Whether methods may be overridden.
    var isSubclassed: Bool { type(of: self) != AFURLSessionManager.self && type(of: self) != AFHTTPSessionManager.self }

    private func hook<Block>(_ hook: KeyPath<SessionHooks, Handover<Block>?>) -> Block? {
        state.withLock { $0.hooks[keyPath: hook]?.value }
    }

    // MARK: Sessions

    /// The manager was invalidated and its last task is over.
    open func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) {
        hook(\.didBecomeInvalid)?(session, error)
        NotificationCenter.default.post(name: .AFURLSessionDidInvalidate, object: session)
    }

    /// A server has shown its certificate, or asks for the client's, and there is a block for it: `completionHandler` takes what
    /// to make of it, now or later. It is called within the handshake, on the thread of all connections.
    open func urlSession(
        _ session: URLSession, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        guard let decide = hook(\.sessionChallenge) else { return completionHandler(.performDefaultHandling, nil) }
        let place = AutoreleasingUnsafeMutablePointer<URLCredential?>(nil)
        let disposition = decide(session, challenge, place)
        completionHandler(disposition, place.pointee)
    }

    // MARK: Tasks

    /// A redirect is to be followed: `completionHandler` takes the request to follow with, or nil.
    open func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping (URLRequest?) -> Void
    ) {
        guard let decide = hook(\.redirection) else { return completionHandler(request) }
        completionHandler(decide(session, task, response, request))
    }

    /// A server or proxy asks for a credential: `completionHandler` takes the answer.
    open func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        guard let handler = hook(\.taskChallenge) else { return completionHandler(.performDefaultHandling, nil) }
        switch handler(session, task, challenge, completionHandler) {
        case nil: return
        case let credential as URLCredential: completionHandler(.useCredential, credential)
        case let disposition as URLSession.AuthChallengeDisposition: completionHandler(disposition, nil)
        case let number as Int where URLSession.AuthChallengeDisposition(rawValue: number) != nil:
            completionHandler(URLSession.AuthChallengeDisposition(rawValue: number) ?? .performDefaultHandling, nil)
        case let error as any Error: refuse(task, error, completionHandler)
        default:
            let reason = """
                The return value from the authentication challenge handler must be nil, an NSError, an NSURLCredential or \
                an NSNumber.
                """
            refuse(
                task,
                NSError(
                    domain: "Invalid Return Value", code: 0, userInfo: [NSLocalizedFailureReasonErrorKey: reason]),
                completionHandler)
        }
    }

    /// Ends a task with an error of the handler's.
    private func refuse(
        _ task: URLSessionTask, _ error: any Error,
        _ completionHandler: (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        (task as? any DrivenTask)?.driver.change { $0.challengeError = error }
        completionHandler(.cancelAuthenticationChallenge, nil)
    }

    /// Bytes of a body were sent.
    open func urlSession(
        _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
        totalBytesExpectedToSend: Int64
    ) {
        hook(\.didSendBodyData)?(session, task, bytesSent, totalBytesSent, totalBytesExpectedToSend)
    }

    /// A body has to be sent again: `completionHandler` takes a stream for it, or nil.
    open func urlSession(
        _ session: URLSession, task: URLSessionTask,
        needNewBodyStream completionHandler: @escaping (InputStream?) -> Void
    ) {
        completionHandler(hook(\.needNewBodyStream)?(session, task))
    }

    /// A task is over.
    open func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        hook(\.didComplete)?(session, task, error)
    }

    /// It is known what a task has cost.
    open func urlSession(
        _ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics
    ) {
        hook(\.didCollectMetrics)?(session, task, metrics)
    }

    // MARK: Data tasks

    /// A response has begun: `completionHandler` takes what is to become of it.
    open func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping (URLSession.ResponseDisposition) -> Void
    ) {
        completionHandler(hook(\.didReceiveResponse)?(session, dataTask, response) ?? .allow)
    }

    /// A response goes to a file after all.
    open func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didBecome downloadTask: URLSessionDownloadTask
    ) {
        hook(\.didBecomeDownload)?(session, dataTask, downloadTask)
    }

    /// A piece of a body has arrived.
    open func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        hook(\.didReceiveData)?(session, dataTask, data)
    }

    /// A response could be cached: sessions have no cache, so it is not called.
    open func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, willCacheResponse proposedResponse: CachedURLResponse,
        completionHandler: @escaping (CachedURLResponse?) -> Void
    ) {
        guard let decide = hook(\.willCache) else { return completionHandler(proposedResponse) }
        completionHandler(decide(session, dataTask, proposedResponse))
    }

    // MARK: Download tasks

    /// A download is complete: it is moved to where the block for it says.
    open func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL
    ) {
        guard let place = hook(\.didFinishDownloading)?(session, downloadTask, location) else { return }
        move(downloadTask, from: location, to: place)
    }

    /// A piece of a download was written.
    open func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didWriteData bytesWritten: Int64,
        totalBytesWritten: Int64, totalBytesExpectedToWrite: Int64
    ) {
        hook(\.didWriteData)?(session, downloadTask, bytesWritten, totalBytesWritten, totalBytesExpectedToWrite)
    }

    /// A download goes on in the middle of its file.
    open func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didResumeAtOffset fileOffset: Int64,
        expectedTotalBytes: Int64
    ) {
        hook(\.didResume)?(session, downloadTask, fileOffset, expectedTotalBytes)
    }

    /// Moves a download, and posts how that went; a file that is there is left alone.
    func move(_ task: URLSessionDownloadTask, from location: URL, to place: URL) {
        (task as? any DrivenTask)?.driver.change { $0.place = place }
        do {
            try FileManager.default.moveItem(at: location, to: place)
            NotificationCenter.default.post(name: .AFURLSessionDownloadTaskDidMoveFileSuccessfully, object: task)
        } catch {
            NotificationCenter.default.post(
                name: .AFURLSessionDownloadTaskDidFailToMoveFile, object: task, userInfo: (error as NSError).userInfo)
        }
    }
}
