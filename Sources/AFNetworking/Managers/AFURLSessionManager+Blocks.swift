// SPDX-License-Identifier: MIT

import ANSystem

// Blocks that are called on the manager's own serial queue. The first argument is the manager's session, the second the
// task.

extension AFURLSessionManager {
    /// Sets the block to call when the manager has been invalidated and its last task has ended; `nil` removes it.
    public func setSessionDidBecomeInvalidBlock(_ block: ((URLSession, (any Error)?) -> Void)?) {
        setHook(\.didBecomeInvalid, block)
    }

    /// Sets the block that returns a new stream for a body that must be sent again; `nil` removes it. Without a block,
    /// or if it returns `nil`, the request fails.
    public func setTaskNeedNewBodyStreamBlock(_ block: ((URLSession, URLSessionTask) -> InputStream?)?) {
        setHook(\.needNewBodyStream, block)
    }

    /// Sets the block that decides on redirects. It returns the request to send, or `nil` to use the redirect response
    /// as the result. Without a block (`nil`) all redirects are followed.
    public func setTaskWillPerformHTTPRedirectionBlock(
        _ block: ((URLSession, URLSessionTask, URLResponse, URLRequest) -> URLRequest?)?
    ) {
        setHook(\.redirection, block)
    }

    /// Sets the block to call when bytes of a request body have been sent; `nil` removes it. Its last arguments are the
    /// bytes sent since the last call, the bytes sent in total, and the bytes expected in total (-1 if unknown).
    public func setTaskDidSendBodyDataBlock(_ block: ((URLSession, URLSessionTask, Int64, Int64, Int64) -> Void)?) {
        setHook(\.didSendBodyData, block)
    }

    /// Sets the block to call when a task has ended, before its completion handler, with the error of the transfer;
    /// `nil` removes it.
    public func setTaskDidCompleteBlock(_ block: ((URLSession, URLSessionTask, (any Error)?) -> Void)?) {
        setHook(\.didComplete, block)
    }

    /// Sets the block to call when a task has ended; the name that Swift derived from Objective-C for
    /// ``setTaskDidCompleteBlock(_:)``.
    public func setTaskDidComplete(_ block: ((URLSession, URLSessionTask, (any Error)?) -> Void)?) {
        setTaskDidCompleteBlock(block)
    }

    /// Sets the block to call with the metrics of a task, an ``AFURLSessionTaskMetrics``; `nil` removes it.
    public func setTaskDidFinishCollectingMetricsBlock(
        _ block: ((URLSession, URLSessionTask, URLSessionTaskMetrics?) -> Void)?
    ) {
        setHook(\.didCollectMetrics, block)
    }

    /// Sets the block that returns the disposition of a response when its head has been received. Without a block
    /// (`nil`) all responses are accepted.
    public func setDataTaskDidReceiveResponseBlock(
        _ block: ((URLSession, URLSessionDataTask, URLResponse) -> URLSession.ResponseDisposition)?
    ) {
        setHook(\.didReceiveResponse, block)
    }

    /// Sets the block to call when a data task becomes a download task; `nil` removes it.
    public func setDataTaskDidBecomeDownloadTaskBlock(
        _ block: ((URLSession, URLSessionDataTask, URLSessionDownloadTask) -> Void)?
    ) {
        setHook(\.didBecomeDownload, block)
    }

    /// Sets the block to call with each part of a response body as it is received; `nil` removes it. The complete body
    /// is collected in any case.
    public func setDataTaskDidReceiveDataBlock(_ block: ((URLSession, URLSessionDataTask, Data) -> Void)?) {
        setHook(\.didReceiveData, block)
    }

    /// Sets a block that is never called: sessions have no `URLCache`. It exists for source compatibility.
    public func setDataTaskWillCacheResponseBlock(
        _ block: ((URLSession, URLSessionDataTask, CachedURLResponse) -> CachedURLResponse?)?
    ) {
        setHook(\.willCache, block)
    }

    /// Sets the block that returns the destination of a completed download; `nil` removes it. If it returns `nil`, the
    /// `destination` of the task decides.
    public func setDownloadTaskDidFinishDownloadingBlock(_ block: ((URLSession, URLSessionDownloadTask, URL) -> URL?)?)
    {
        setHook(\.didFinishDownloading, block)
    }

    /// Sets the block to call when bytes of a download have been written; `nil` removes it. Its last arguments are the
    /// bytes written since the last call, the bytes written in total, and the bytes expected in total (-1 if unknown).
    public func setDownloadTaskDidWriteDataBlock(
        _ block: ((URLSession, URLSessionDownloadTask, Int64, Int64, Int64) -> Void)?
    ) {
        setHook(\.didWriteData, block)
    }

    /// Sets the block to call when a download resumes at an offset in its file; `nil` removes it. Its last arguments
    /// are the offset and the expected total, in bytes (-1 if unknown).
    public func setDownloadTaskDidResumeBlock(_ block: ((URLSession, URLSessionDownloadTask, Int64, Int64) -> Void)?) {
        setHook(\.didResume, block)
    }
}
