// SPDX-License-Identifier: MIT

import ANSystem

/// The blocks set on a manager; `nil` for each that is not set.
struct SessionHooks: Sendable {
    var didBecomeInvalid: (@Sendable (URLSession, (any Error)?) -> Void)?
    var needNewBodyStream: (@Sendable (URLSession, URLSessionTask) -> InputStream?)?
    var redirection: (@Sendable (URLSession, URLSessionTask, URLResponse, URLRequest) -> URLRequest?)?
    var didSendBodyData: (@Sendable (URLSession, URLSessionTask, Int64, Int64, Int64) -> Void)?
    var didComplete: (@Sendable (URLSession, URLSessionTask, (any Error)?) -> Void)?
    var didCollectMetrics: (@Sendable (URLSession, URLSessionTask, URLSessionTaskMetrics?) -> Void)?
    var didReceiveResponse: (@Sendable (URLSession, URLSessionDataTask, URLResponse) -> URLSession.ResponseDisposition)?
    var didBecomeDownload: (@Sendable (URLSession, URLSessionDataTask, URLSessionDownloadTask) -> Void)?
    var didReceiveData: (@Sendable (URLSession, URLSessionDataTask, Data) -> Void)?
    var willCache: (@Sendable (URLSession, URLSessionDataTask, CachedURLResponse) -> CachedURLResponse?)?
    var didFinishDownloading: (@Sendable (URLSession, URLSessionDownloadTask, URL) -> URL?)?
    var didWriteData: (@Sendable (URLSession, URLSessionDownloadTask, Int64, Int64, Int64) -> Void)?
    var didResume: (@Sendable (URLSession, URLSessionDownloadTask, Int64, Int64) -> Void)?
    var sessionChallenge: AFURLSessionManager.SessionChallengeBlock?
    var taskChallenge: AFURLSessionManager.TaskChallengeBlock?

    /// Whether a block is set for challenges.
    var hasChallenge: Bool { sessionChallenge != nil || taskChallenge != nil }
}

// Blocks that are called on the manager's own serial queue, with the manager's session and the task as their first
// arguments. `nil` removes a block.

extension AFURLSessionManager {
    /// Sets the block to call after ``invalidateSessionCancelingTasks(_:resetSession:)``, when the last task of the
    /// session has ended; its error is always `nil`. It is not called when the manager is merely freed. It is called on
    /// the manager's own serial queue; `nil` removes it.
    @preconcurrency
    public func setSessionDidBecomeInvalidBlock(_ block: (@Sendable (URLSession, (any Error)?) -> Void)?) {
        setHook(\.didBecomeInvalid, block)
    }

    /// Has no effect: the block is never called, as there are no background sessions.
    @available(
        *, deprecated,
        message: "The block is never called: there are no background sessions on Linux. See DownloadOptions.isDurable."
    )
    @preconcurrency
    public func setDidFinishEventsForBackgroundURLSessionBlock(_ block: (@Sendable (URLSession) -> Void)?) {}

    /// Sets the block that returns a new stream for a body that was given as an `InputStream` and must be sent again,
    /// for example after a redirect or a challenge. Without a block or a stream, the request fails with -1021. It is
    /// called on the manager's own serial queue; `nil` removes it.
    ///
    /// It is not called for multipart forms of this module: these are sent again without it. If a part is a stream, the
    /// request fails with -1021 after a redirect, and with -1013 after a challenge.
    @preconcurrency
    public func setTaskNeedNewBodyStreamBlock(_ block: (@Sendable (URLSession, URLSessionTask) -> InputStream?)?) {
        setHook(\.needNewBodyStream, block)
    }

    /// Sets the block that returns the request with which to follow a redirect, or `nil` to use the redirect response
    /// as the result. Its last argument is the proposed request, which is sent if there is no block. It is called on
    /// the manager's own serial queue; `nil` removes it.
    ///
    /// The `RedirectPolicy` of the session applies before and after it: by default a redirect from https to http, or to
    /// an invalid URL, fails with -1010 without a call, and following more than 20 redirects fails with -1007. If the
    /// origin changes, the proposed request has no `Authorization` and `Cookie` fields; the fields and the body of the
    /// returned one are sent unchanged. A body that the proposed request does not show, that of an upload from a file, is
    /// sent if the returned one has the same method and no body. One with a body stream, other than that of the proposed
    /// request or of a form of this module, fails with -1021.
    @preconcurrency
    public func setTaskWillPerformHTTPRedirectionBlock(
        _ block: (@Sendable (URLSession, URLSessionTask, URLResponse, URLRequest) -> URLRequest?)?
    ) {
        setHook(\.redirection, block)
    }

    /// Sets the block to call when bytes of a request body have been sent, with their number, the total so far, which
    /// restarts when a body is sent again, and the expected total: that of the body, or else of the request's
    /// `Content-Length`, or -1 if both are unknown. It is called on the manager's own serial queue; `nil` removes it.
    @preconcurrency
    public func setTaskDidSendBodyDataBlock(
        _ block: (@Sendable (URLSession, URLSessionTask, Int64, Int64, Int64) -> Void)?
    ) {
        setHook(\.didSendBodyData, block)
    }

    /// Sets the block to call when a task has ended, before its completion handler, with the error of the transfer or
    /// `nil`; the error of the response serializer is not included. It is called on the manager's own serial queue;
    /// `nil` removes it.
    ///
    /// In two cases the block receives -999 and the completion handler another error: -1202 for a rejected server
    /// certificate, or a connection that a challenge block refused; and the error that the block of
    /// ``setAuthenticationChallengeHandler(_:)`` returned, or caused by an invalid value.
    @preconcurrency
    public func setTaskDidCompleteBlock(_ block: (@Sendable (URLSession, URLSessionTask, (any Error)?) -> Void)?) {
        setHook(\.didComplete, block)
    }

    /// Sets the block to call when a task has ended, before its completion handler, with the error of the transfer or
    /// `nil`. It is called on the manager's own serial queue; `nil` removes it.
    ///
    /// This is the name that Swift derived from Objective-C for ``setTaskDidCompleteBlock(_:)``: the two set the same
    /// block. The error of the response serializer is not included. For a rejected server certificate, a connection
    /// that a challenge block refused, and an error that the block returned or caused by an invalid value, the error is
    /// -999 and differs from that of the completion handler.
    @preconcurrency
    public func setTaskDidComplete(_ block: (@Sendable (URLSession, URLSessionTask, (any Error)?) -> Void)?) {
        setTaskDidCompleteBlock(block)
    }

    /// Sets the block to call with the metrics of a task that has ended, an ``AFURLSessionTaskMetrics`` that is never
    /// `nil`, before the block of ``setTaskDidCompleteBlock(_:)``. It is called on the manager's own serial queue;
    /// `nil` removes it.
    @preconcurrency
    public func setTaskDidFinishCollectingMetricsBlock(
        _ block: (@Sendable (URLSession, URLSessionTask, URLSessionTaskMetrics?) -> Void)?
    ) {
        setHook(\.didCollectMetrics, block)
    }

    /// Sets the block that returns the disposition of the response to a data or upload task when its head has been
    /// received. Without a block it is `allow`; `cancel` ends the task with the error -999, and `becomeDownload`
    /// continues it as a download task, see ``setDataTaskDidBecomeDownloadTaskBlock(_:)``. It is called on the
    /// manager's own serial queue; `nil` removes it.
    ///
    /// It is called once per task, not for redirects that are followed or challenges that are answered.
    @preconcurrency
    public func setDataTaskDidReceiveResponseBlock(
        _ block: (@Sendable (URLSession, URLSessionDataTask, URLResponse) -> URLSession.ResponseDisposition)?
    ) {
        setHook(\.didReceiveResponse, block)
    }

    /// Sets the block to call when a data task becomes a download task, because the block of
    /// ``setDataTaskDidReceiveResponseBlock(_:)`` has returned `becomeDownload`. It is called on the manager's own
    /// serial queue; `nil` removes it.
    ///
    /// The file is moved to the URL from the block of ``setDownloadTaskDidFinishDownloadingBlock(_:)``; without one, it
    /// is removed. At the end the completion handler of the data task is called, with that URL as its object or,
    /// without one, the object of the response serializer for an empty body.
    @preconcurrency
    public func setDataTaskDidBecomeDownloadTaskBlock(
        _ block: (@Sendable (URLSession, URLSessionDataTask, URLSessionDownloadTask) -> Void)?
    ) {
        setHook(\.didBecomeDownload, block)
    }

    /// Sets the block to call with each part of the response body of a data or upload task, after decompression. The
    /// complete body is collected in any case. It is called on the manager's own serial queue, and the next part is
    /// read when it has returned; `nil` removes it.
    @preconcurrency
    public func setDataTaskDidReceiveDataBlock(_ block: (@Sendable (URLSession, URLSessionDataTask, Data) -> Void)?) {
        setHook(\.didReceiveData, block)
    }

    /// Sets the block to call before the response of a data or upload task is stored in the manager's cache, with the
    /// complete, decompressed body. It is called on the manager's own serial queue; `nil` removes it.
    ///
    /// The block returns the response to store: its data, and, if its response is an `HTTPURLResponse`, the status and
    /// header fields; its `userInfo` is ignored. `nil` prevents the storage, and so do the storage policies
    /// `notAllowed` and `allowedInMemoryOnly`. The task receives the original response in any case.
    ///
    /// It is called only for responses that may be stored (RFC 9111 §3). A manager has a cache if its configuration has
    /// a `URLCache` other than `URLCache.shared`, or if the AsyncNetworking session that it shares has one. If the task has
    /// ended, as in a validation in the background, no block can be called: the response is then not
    /// stored, and the stored one is kept.
    @preconcurrency
    public func setDataTaskWillCacheResponseBlock(
        _ block: (@Sendable (URLSession, URLSessionDataTask, CachedURLResponse) -> CachedURLResponse?)?
    ) {
        setHook(\.willCache, block)
    }

    /// Sets the block that returns the destination of a completed download, given its temporary file, or `nil` to let
    /// the task's `destination` decide. It is called on the manager's own serial queue; `nil` removes it.
    ///
    /// It is called for any status. If a file exists at the destination, the move fails, which only
    /// `AFURLSessionDownloadTaskDidFailToMoveFile` reports. A temporary file that is not moved is removed.
    @preconcurrency
    public func setDownloadTaskDidFinishDownloadingBlock(
        _ block: (@Sendable (URLSession, URLSessionDownloadTask, URL) -> URL?)?
    ) {
        setHook(\.didFinishDownloading, block)
    }

    /// Sets the block to call when bytes of a download have been received, with their number, the total so far, and the
    /// expected total (-1 if unknown). It is called on the manager's own serial queue; `nil` removes it.
    ///
    /// The bytes are counted before decompression for a download task, and after it for a data task that became a
    /// download. The totals of a resumed download include the bytes that it had before. The block is not called for the
    /// body of a download task's response with a status outside 200 to 299.
    @preconcurrency
    public func setDownloadTaskDidWriteDataBlock(
        _ block: (@Sendable (URLSession, URLSessionDownloadTask, Int64, Int64, Int64) -> Void)?
    ) {
        setHook(\.didWriteData, block)
    }

    /// Sets the block to call when the server continues a download, with the number of bytes already in its file and
    /// the expected total in bytes (-1 if unknown). It is not called if the download starts over. It is called on the
    /// manager's own serial queue; `nil` removes it.
    @preconcurrency
    public func setDownloadTaskDidResumeBlock(
        _ block: (@Sendable (URLSession, URLSessionDownloadTask, Int64, Int64) -> Void)?
    ) {
        setHook(\.didResume, block)
    }
}
