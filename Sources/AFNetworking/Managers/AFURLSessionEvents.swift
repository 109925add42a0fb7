// SPDX-License-Identifier: MIT

import ANSystem
import AsyncNetworking
import Dispatch
import Synchronization

/// The delegate methods for the events of a manager's session and tasks. Each method calls the block set for its event.
///
/// A subclass of ``AFURLSessionManager`` may override these methods and must call `super`, or else the block is not
/// called. They are called on the manager's own serial queue, except for challenges during TLS handshakes. A completion
/// handler that is released without a call counts as called with `nil` or the disposition that cancels, or, for a
/// task's challenge during a TLS handshake, with `performDefaultHandling`.
open class AFURLSessionEvents: NSObject, URLSessionDataDelegate, URLSessionDownloadDelegate, @unchecked Sendable {
    /// The serial queue for all calls except completion handlers and notifications.
    let sessionQueue = DispatchQueue(label: "com.alamofire.networking.session.manager")
    let state = Lock(ManagerState(.default))
    /// The answers to questions asked during TLS handshakes.
    let handshakeDecisions = HandshakeDecisions<ChallengeDecision>()

    /// Creates an object that handles no events. Use the initializers of ``AFURLSessionManager``.
    public override init() {
        super.init()
    }

    /// Whether any event other than task completion is observed, by a block or a subclass.
    var isObserved: Bool { isSubclassed || hasHooks.load(ordering: .acquiring) }

    /// Whether a block was ever set.
    private let hasHooks = Atomic(false)

    /// Sets a block, or removes it if `block` is `nil`, together with what depends on it.
    func setHook<Block>(
        _ hook: WritableKeyPath<SessionHooks, Block?>, _ block: Block?,
        _ update: (inout ManagerState) -> Void = { _ in }
    ) {
        // The previous block is released after the critical section.
        var other = block
        state.withLock { state in
            swap(&state.hooks[keyPath: hook], &other)
            update(&state)
        }
        hasHooks.store(true, ordering: .releasing)
    }

    /// Whether the manager is a subclass, whose methods may be overridden.
    var isSubclassed: Bool { type(of: self) != AFURLSessionManager.self && type(of: self) != AFHTTPSessionManager.self }

    private func hook<Block>(_ hook: KeyPath<SessionHooks, Block?>) -> Block? {
        state.withLock { $0.hooks[keyPath: hook] }
    }

    // MARK: Sessions

    /// Called on the manager's own serial queue after
    /// ``AFURLSessionManager/invalidateSessionCancelingTasks(_:resetSession:)``, when the last task of the session has
    /// ended, but not when the manager is merely freed. Calls the block and posts `AFURLSessionDidInvalidate`. `error`
    /// is always `nil`.
    open func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) {
        session.becomeInvalid(error, hook(\.didBecomeInvalid))
    }

    /// Called when a server presents its certificate or requests a client certificate and a block is set for session
    /// challenges.
    ///
    /// Without the block, an override in a subclass is not called, and the security policy decides. An override that
    /// decides on certificates therefore needs a block, too, such as one that returns `.performDefaultHandling`; or
    /// override ``AFSecurityPolicy/evaluateServerTrust(_:forDomain:)`` instead, which needs none.
    ///
    /// It is called during the TLS handshake, on the thread that serves all connections, and must return at once.
    /// `completionHandler` takes the decision, with the meaning described for
    /// ``AFURLSessionManager/SessionChallengeBlock``. If it is called later, the handshake is repeated on a new
    /// connection; if it is released without a call, the connection is refused (-1202). A client certificate that
    /// cannot be used fails the task with -1205.
    open func urlSession(
        _ session: URLSession, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        guard let decide = hook(\.sessionChallenge) else { return completionHandler(.performDefaultHandling, nil) }
        let pointer = AutoreleasingUnsafeMutablePointer<URLCredential?>(nil)
        let disposition = decide(session, challenge, pointer)
        completionHandler(disposition, pointer.pointee)
    }

    // MARK: Tasks

    /// Called on the manager's own serial queue before a redirect is followed. `completionHandler` takes the request to
    /// send, or `nil` to use the redirect response as the result. Without a block, the proposed request is sent.
    ///
    /// The `RedirectPolicy` of the session applies before and after it: by default a redirect from https to http, or to
    /// an invalid URL, fails with -1010 without a call, and following more than 20 redirects fails with -1007. If the
    /// origin changes, the proposed request has no `Authorization` and `Cookie` fields; the fields and the body of the
    /// request passed to `completionHandler` are sent unchanged. A body that the proposed request does not show, that of an
    /// upload from a file, is sent if the passed one has the same method and no body. One with a body stream, other than
    /// that of the proposed request or of a form of this module, fails with -1021.
    open func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping (URLRequest?) -> Void
    ) {
        guard let decide = hook(\.redirection) else { return completionHandler(request) }
        completionHandler(decide(session, task, response, request))
    }

    /// Called on the manager's own serial queue when a server or proxy requests a credential. `completionHandler` takes
    /// the answer, at once or later. Without a block, the 401 or 407 response is the result, unless a shared
    /// AsyncNetworking session can answer it; a proxy that refuses to open a tunnel fails the task with -1004.
    ///
    /// It is called after any credentials of a shared session were refused, and not for a 401 if the request has an
    /// `Authorization` field, or a shared session signs it or adds a bearer token. By default, after five refused
    /// credentials, or a second time the same one, the response is the result.
    ///
    /// If a block is set for it and none for session challenges, it is also called during TLS handshakes, on the thread
    /// that serves all connections: it must return at once, and can call `completionHandler` later. Without the block,
    /// an override in a subclass is not called for them, and the security policy decides on certificates. A client
    /// certificate that cannot be used fails the task with -1205. See
    /// ``AFURLSessionManager/setAuthenticationChallengeHandler(_:)``.
    open func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        guard let handler = hook(\.taskChallenge) else { return completionHandler(.performDefaultHandling, nil) }
        // The block may call it on any thread, once.
        let answer = UncheckedSendable(completionHandler)
        switch handler(session, task, challenge, { answer.value($0, $1) }) {
        case nil: return
        case let credential as URLCredential: completionHandler(.useCredential, credential)
        case let disposition as URLSession.AuthChallengeDisposition: completionHandler(disposition, nil)
        case let other:
            if let disposition = (other as? Int).flatMap(URLSession.AuthChallengeDisposition.init) {
                return completionHandler(disposition, nil)
            }
            let reason = """
                The return value from the authentication challenge handler must be nil, an NSError, an NSURLCredential or \
                an NSNumber.
                """
            let error =
                other as? any Error
                ?? NSError(
                    domain: "Invalid Return Value", code: 0, userInfo: [NSLocalizedFailureReasonErrorKey: reason])
            (self as? AFURLSessionManager)?.endChallenge(challenge, of: task, with: error)
            completionHandler(.cancelAuthenticationChallenge, nil)
        }
    }

    /// Called on the manager's own serial queue when bytes of the request body have been sent, with their number, the
    /// total so far, which restarts when a body is sent again, and the expected total: that of the body, or else of the
    /// request's `Content-Length`, or -1 if both are unknown.
    open func urlSession(
        _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
        totalBytesExpectedToSend: Int64
    ) {
        hook(\.didSendBodyData)?(session, task, bytesSent, totalBytesSent, totalBytesExpectedToSend)
    }

    /// Called on the manager's own serial queue when a body that was given as an `InputStream` must be sent again, for
    /// example after a redirect or a challenge. `completionHandler` takes a new stream; `nil` fails the request with
    /// -1021. If the manager is not of a subclass and there is no block when the task starts, the request is not retried, and
    /// fails with -1021 after a redirect, and with -1013 after a challenge.
    ///
    /// It is not called for multipart forms of this module: these are sent again without it. If a part is a stream, the
    /// request fails with -1021 after a redirect, and with -1013 after a challenge.
    open func urlSession(
        _ session: URLSession, task: URLSessionTask,
        needNewBodyStream completionHandler: @escaping (InputStream?) -> Void
    ) {
        completionHandler(hook(\.needNewBodyStream)?(session, task))
    }

    /// Called on the manager's own serial queue when a task has ended, before its completion handler. `error` is that
    /// of the transfer, `nil` after success; the error of the response serializer is not included.
    ///
    /// In two cases `error` is -999 and the completion handler receives another one: -1202 for a rejected server
    /// certificate, or a connection that a challenge block refused; and the error that the block of
    /// ``AFURLSessionManager/setAuthenticationChallengeHandler(_:)`` returned, or caused by an invalid value.
    open func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        hook(\.didComplete)?(session, task, error)
    }

    /// Called on the manager's own serial queue when a task has ended, before
    /// ``urlSession(_:task:didCompleteWithError:)``, with its metrics: an ``AFURLSessionTaskMetrics``.
    open func urlSession(
        _ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics
    ) {
        hook(\.didCollectMetrics)?(session, task, metrics)
    }

    // MARK: Data tasks

    /// Called on the manager's own serial queue when the head of the response to a data or upload task has been
    /// received, once per task: not for redirects that are followed or challenges that are answered.
    ///
    /// `completionHandler` takes the disposition of the response; without a block, `allow`. `cancel` ends the task with
    /// the error -999, and `becomeDownload` continues it as a download task.
    open func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping (URLSession.ResponseDisposition) -> Void
    ) {
        completionHandler(hook(\.didReceiveResponse)?(session, dataTask, response) ?? .allow)
    }

    /// Called on the manager's own serial queue when a data task becomes a download task, which takes its place.
    ///
    /// The file is moved to the URL from the block of
    /// ``AFURLSessionManager/setDownloadTaskDidFinishDownloadingBlock(_:)``; without one, it is removed. At the end the
    /// completion handler of the data task is called, with that URL as its object or, without one, the object of the
    /// response serializer for an empty body.
    open func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didBecome downloadTask: URLSessionDownloadTask
    ) {
        hook(\.didBecomeDownload)?(session, dataTask, downloadTask)
    }

    /// Called on the manager's own serial queue when a part of the response body of a data or upload task has been
    /// received, after decompression. The parts are also collected for the response serializer. The next part is read
    /// when it has returned.
    open func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        hook(\.didReceiveData)?(session, dataTask, data)
    }

    /// Called on the manager's own serial queue before the response of a data or upload task is stored in the manager's
    /// cache (RFC 9111 §3), with the complete, decompressed body.
    ///
    /// `completionHandler` takes the response to store, or `nil` to prevent that, as do the storage policies
    /// `notAllowed` and `allowedInMemoryOnly`. Without a block, the response is stored unchanged. In a subclass, that of a
    /// validation in the background, which has outlived its task, is not stored. See
    /// ``AFURLSessionManager/setDataTaskWillCacheResponseBlock(_:)`` for the parts that may be changed.
    open func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, willCacheResponse proposedResponse: CachedURLResponse,
        completionHandler: @escaping (CachedURLResponse?) -> Void
    ) {
        guard let decide = hook(\.willCache) else { return completionHandler(proposedResponse) }
        completionHandler(decide(session, dataTask, proposedResponse))
    }

    // MARK: Download tasks

    /// Called on the manager's own serial queue when a download is complete, for any status. It moves the file at
    /// `location` to the URL that the block set for this event returns, where it gets the permissions of a new file.
    ///
    /// If there is no block or it returns `nil`, the destination of the task applies; a file that is not moved is
    /// removed. An existing file is not overwritten: the move fails, which only the notification
    /// `AFURLSessionDownloadTaskDidFailToMoveFile` reports; the completion handler receives that URL nevertheless.
    open func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL
    ) {
        guard let destinationURL = hook(\.didFinishDownloading)?(session, downloadTask, location) else { return }
        move(downloadTask, from: location, to: destinationURL)
    }

    /// Called on the manager's own serial queue when a part of a download has been received, with its number of bytes,
    /// the total so far, and the expected total (-1 if unknown).
    ///
    /// The bytes are counted before decompression for a download task, and after it for a data task that became a
    /// download. The totals of a resumed download include the bytes that it had before. The method is not called for
    /// the body of a download task's response with a status outside 200 to 299.
    open func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didWriteData bytesWritten: Int64,
        totalBytesWritten: Int64, totalBytesExpectedToWrite: Int64
    ) {
        hook(\.didWriteData)?(session, downloadTask, bytesWritten, totalBytesWritten, totalBytesExpectedToWrite)
    }

    /// Called on the manager's own serial queue when the server continues a download, with the number of bytes that are
    /// already in its file, and the expected total in bytes (-1 if unknown). It is not called if the download starts
    /// over.
    open func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didResumeAtOffset fileOffset: Int64,
        expectedTotalBytes: Int64
    ) {
        hook(\.didResume)?(session, downloadTask, fileOffset, expectedTotalBytes)
    }

    /// Moves a download and posts a notification about success or failure. An existing file at the destination is not
    /// overwritten: the move fails.
    func move(_ task: URLSessionDownloadTask, from location: URL, to destinationURL: URL) {
        (task as? any DrivenTask)?.driver.change { $0.destinationURL = destinationURL }
        do {
            try FileManager.default.moveItem(at: location, to: destinationURL)
            // In the directory for temporary files, only the user can read it.
            PartialFile.setDefaultMode(ofPrivateFile: destinationURL.path)
            NotificationCenter.default.post(name: .AFURLSessionDownloadTaskDidMoveFileSuccessfully, object: task)
        } catch {
            NotificationCenter.default.post(
                name: .AFURLSessionDownloadTaskDidFailToMoveFile, object: task, userInfo: (error as NSError).userInfo)
        }
    }
}

extension URLSession {
    /// Calls the block for the end of a session, and posts the notification.
    func becomeInvalid(_ error: (any Error)?, _ block: (@Sendable (URLSession, (any Error)?) -> Void)?) {
        block?(self, error)
        NotificationCenter.default.post(name: .AFURLSessionDidInvalidate, object: self)
    }
}

extension NSNotification.Name {
    /// Posted on the main queue when a suspended task of a manager has been resumed, also for the first time. The
    /// object is the task; there is no user info.
    public static let AFNetworkingTaskDidResume = NSNotification.Name("com.alamofire.networking.task.resume")
    /// Posted on the main queue when a running task of a manager has been suspended. The object is the task; there is
    /// no user info.
    public static let AFNetworkingTaskDidSuspend = NSNotification.Name("com.alamofire.networking.task.suspend")
    /// Posted on the main queue when a task of a manager has ended and its completion handler, if any, has returned.
    /// The object is the task. The keys of the user info are the constants `AFNetworkingTaskDidComplete…`.
    public static let AFNetworkingTaskDidComplete = NSNotification.Name("com.alamofire.networking.task.complete")
    /// Posted on the manager's own serial queue when
    /// ``AFURLSessionManager/invalidateSessionCancelingTasks(_:resetSession:)`` was called and the last task of the
    /// session has ended, but not when a manager is freed. The object is the `URLSession`.
    public static let AFURLSessionDidInvalidate = NSNotification.Name("com.alamofire.networking.session.invalidate")
    /// Posted on the manager's own serial queue when a download has been moved to its destination, before the
    /// completion handler is called. The object is the task; there is no user info.
    public static let AFURLSessionDownloadTaskDidMoveFileSuccessfully = NSNotification.Name(
        "com.alamofire.networking.session.download.file-manager-succeed")
    /// Posted on the manager's own serial queue when a download could not be moved to its destination, for example
    /// because a file exists there. The object is the task, the user info that of the error. The download is removed.
    /// The completion handler is called with the destination nevertheless, and does not receive this error.
    public static let AFURLSessionDownloadTaskDidFailToMoveFile = NSNotification.Name(
        "com.alamofire.networking.session.download.file-manager-error")
}

/// The user info key for the response body, a `Data`, in `AFNetworkingTaskDidComplete`: after a failure the part that
/// was received; empty for a download. Absent for a complete download with a destination, even if it could not be moved
/// there.
public let AFNetworkingTaskDidCompleteResponseDataKey = "com.alamofire.networking.complete.finish.responsedata"

/// The user info key for the object that the response serializer returned, or for the destination of a download, a
/// `URL`, in `AFNetworkingTaskDidComplete`. Absent if there is no object.
public let AFNetworkingTaskDidCompleteSerializedResponseKey =
    "com.alamofire.networking.task.complete.serializedresponse"

/// The user info key for the response serializer, an ``AFURLResponseSerialization``, in `AFNetworkingTaskDidComplete`.
/// Always present.
public let AFNetworkingTaskDidCompleteResponseSerializerKey =
    "com.alamofire.networking.task.complete.responseserializer"

/// The user info key for the destination of a download, a `URL`, in `AFNetworkingTaskDidComplete`, even if the file
/// could not be moved there. Absent for other tasks, for a download without a destination, and if the transfer failed.
public let AFNetworkingTaskDidCompleteAssetPathKey = "com.alamofire.networking.task.complete.assetpath"

/// The user info key for the error of the transfer or the serializer, an `NSError`, in `AFNetworkingTaskDidComplete`:
/// the error that the completion handler received. Absent after success.
public let AFNetworkingTaskDidCompleteErrorKey = "com.alamofire.networking.task.complete.error"

/// The user info key for the metrics, an ``AFURLSessionTaskMetrics``, in `AFNetworkingTaskDidComplete`. Absent if the
/// `coreTask` of the task is `nil`, for example because its request could not be created.
public let AFNetworkingTaskDidCompleteSessionTaskMetrics = "com.alamofire.networking.complete.sessiontaskmetrics"
