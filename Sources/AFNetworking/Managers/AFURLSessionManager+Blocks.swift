// SPDX-License-Identifier: MIT

import ANSystem

/// The blocks set on a manager; `nil` for each that is not set.
struct SessionHooks: Sendable {
    var didBecomeInvalid: UncheckedSendable<(URLSession, (any Error)?) -> Void>?
    var needNewBodyStream: UncheckedSendable<(URLSession, URLSessionTask) -> InputStream?>?
    var redirection: UncheckedSendable<(URLSession, URLSessionTask, URLResponse, URLRequest) -> URLRequest?>?
    var didSendBodyData: UncheckedSendable<(URLSession, URLSessionTask, Int64, Int64, Int64) -> Void>?
    var didComplete: UncheckedSendable<(URLSession, URLSessionTask, (any Error)?) -> Void>?
    var didCollectMetrics: UncheckedSendable<(URLSession, URLSessionTask, URLSessionTaskMetrics?) -> Void>?
    var didReceiveResponse:
        UncheckedSendable<(URLSession, URLSessionDataTask, URLResponse) -> URLSession.ResponseDisposition>?
    var didBecomeDownload: UncheckedSendable<(URLSession, URLSessionDataTask, URLSessionDownloadTask) -> Void>?
    var didReceiveData: UncheckedSendable<(URLSession, URLSessionDataTask, Data) -> Void>?
    var willCache: UncheckedSendable<(URLSession, URLSessionDataTask, CachedURLResponse) -> CachedURLResponse?>?
    var didFinishDownloading: UncheckedSendable<(URLSession, URLSessionDownloadTask, URL) -> URL?>?
    var didWriteData: UncheckedSendable<(URLSession, URLSessionDownloadTask, Int64, Int64, Int64) -> Void>?
    var didResume: UncheckedSendable<(URLSession, URLSessionDownloadTask, Int64, Int64) -> Void>?
    var sessionChallenge: UncheckedSendable<AFURLSessionManager.SessionChallengeBlock>?
    var taskChallenge: UncheckedSendable<AFURLSessionManager.TaskChallengeBlock>?
}

// Blocks that are called on the manager's own serial queue, with the manager's session and the task as their first
// arguments. `nil` removes a block.

extension AFURLSessionManager {
    /// Sets the block to call when the manager has been invalidated and its last task has ended; its error is always
    /// `nil`. It is called on the manager's own serial queue; `nil` removes it.
    public func setSessionDidBecomeInvalidBlock(_ block: ((URLSession, (any Error)?) -> Void)?) {
        setHook(\.didBecomeInvalid, block)
    }

    /// Sets the block that returns a new stream for a body that was given as an `InputStream` and must be sent again.
    /// Without a block or a stream, the request fails. It is called on the manager's own serial queue; `nil` removes
    /// it.
    public func setTaskNeedNewBodyStreamBlock(_ block: ((URLSession, URLSessionTask) -> InputStream?)?) {
        setHook(\.needNewBodyStream, block)
    }

    /// Sets the block that returns the request with which to follow a redirect, or `nil` to use the redirect response
    /// as the result. Without a block all redirects are followed. It is called on the manager's own serial queue; `nil`
    /// removes it.
    public func setTaskWillPerformHTTPRedirectionBlock(
        _ block: ((URLSession, URLSessionTask, URLResponse, URLRequest) -> URLRequest?)?
    ) {
        setHook(\.redirection, block)
    }

    /// Sets the block to call when bytes of a request body have been sent: newly, in total, and expected (-1 if
    /// unknown). It is called on the manager's own serial queue; `nil` removes it.
    public func setTaskDidSendBodyDataBlock(_ block: ((URLSession, URLSessionTask, Int64, Int64, Int64) -> Void)?) {
        setHook(\.didSendBodyData, block)
    }

    /// Sets the block to call when a task has ended, before its completion handler, with the error of the transfer or
    /// `nil`; the error of the response serializer is not included. It is called on the manager's own serial queue;
    /// `nil` removes it.
    public func setTaskDidCompleteBlock(_ block: ((URLSession, URLSessionTask, (any Error)?) -> Void)?) {
        setHook(\.didComplete, block)
    }

    /// Sets the block to call when a task has ended, with the error of the transfer or `nil`: another name of
    /// ``setTaskDidCompleteBlock(_:)``, which Swift derived from Objective-C. It is called on the manager's own serial
    /// queue; `nil` removes it.
    public func setTaskDidComplete(_ block: ((URLSession, URLSessionTask, (any Error)?) -> Void)?) {
        setTaskDidCompleteBlock(block)
    }

    /// Sets the block to call with the metrics of a task that has ended, an ``AFURLSessionTaskMetrics``. It is called
    /// on the manager's own serial queue; `nil` removes it.
    public func setTaskDidFinishCollectingMetricsBlock(
        _ block: ((URLSession, URLSessionTask, URLSessionTaskMetrics?) -> Void)?
    ) {
        setHook(\.didCollectMetrics, block)
    }

    /// Sets the block that returns the disposition of a response when its head has been received. Without a block it is
    /// `allow`; `cancel` ends the task with the error -999. It is called on the manager's own serial queue; `nil`
    /// removes it.
    public func setDataTaskDidReceiveResponseBlock(
        _ block: ((URLSession, URLSessionDataTask, URLResponse) -> URLSession.ResponseDisposition)?
    ) {
        setHook(\.didReceiveResponse, block)
    }

    /// Sets the block to call when a data task becomes a download task, because the block of
    /// ``setDataTaskDidReceiveResponseBlock(_:)`` has returned `becomeDownload`. It is called on the manager's own
    /// serial queue; `nil` removes it.
    public func setDataTaskDidBecomeDownloadTaskBlock(
        _ block: ((URLSession, URLSessionDataTask, URLSessionDownloadTask) -> Void)?
    ) {
        setHook(\.didBecomeDownload, block)
    }

    /// Sets the block to call with each part of a response body, after decompression. The complete body is collected in
    /// any case. It is called on the manager's own serial queue; `nil` removes it.
    public func setDataTaskDidReceiveDataBlock(_ block: ((URLSession, URLSessionDataTask, Data) -> Void)?) {
        setHook(\.didReceiveData, block)
    }

    /// Sets the block to call before the response of a data task is stored in the manager's cache. The block returns
    /// the response to store, or `nil` to prevent that. It is called on the manager's own serial queue; `nil` removes
    /// it.
    ///
    /// A manager has a cache if its configuration has a `URLCache` other than `URLCache.shared`, or if the
    /// AsyncNetworking session that it shares has one.
    public func setDataTaskWillCacheResponseBlock(
        _ block: ((URLSession, URLSessionDataTask, CachedURLResponse) -> CachedURLResponse?)?
    ) {
        setHook(\.willCache, block)
    }

    /// Sets the block that returns the destination of a completed download, or `nil` to let the task's `destination`
    /// decide. If a file exists there, the move fails. It is called on the manager's own serial queue; `nil` removes
    /// it.
    public func setDownloadTaskDidFinishDownloadingBlock(_ block: ((URLSession, URLSessionDownloadTask, URL) -> URL?)?)
    {
        setHook(\.didFinishDownloading, block)
    }

    /// Sets the block to call when bytes of a download have been received: newly, in total, and expected (-1 if
    /// unknown). It is called on the manager's own serial queue; `nil` removes it.
    public func setDownloadTaskDidWriteDataBlock(
        _ block: ((URLSession, URLSessionDownloadTask, Int64, Int64, Int64) -> Void)?
    ) {
        setHook(\.didWriteData, block)
    }

    /// Sets the block to call when a download resumes: with its offset and the expected total in bytes (-1 if unknown).
    /// It is called on the manager's own serial queue; `nil` removes it.
    public func setDownloadTaskDidResumeBlock(_ block: ((URLSession, URLSessionDownloadTask, Int64, Int64) -> Void)?) {
        setHook(\.didResume, block)
    }
}
