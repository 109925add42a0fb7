// SPDX-License-Identifier: MIT

import ANSystem

// What is called on the manager's own queue. The first argument is the manager's session, the second the task.

extension AFURLSessionManager {
    /// Sets what is called when the manager was invalidated and its last task is over; nil removes it.
    public func setSessionDidBecomeInvalidBlock(_ block: ((URLSession, (any Error)?) -> Void)?) {
        setHook(\.didBecomeInvalid, block)
    }

    /// Sets what makes another stream for a body that has to be sent again; nil removes it.
    public func setTaskNeedNewBodyStreamBlock(_ block: ((URLSession, URLSessionTask) -> InputStream?)?) {
        setHook(\.needNewBodyStream, block)
    }

    /// Sets what decides on redirects: the request to follow with, or nil to take the redirect as the response; nil
    /// follows all.
    public func setTaskWillPerformHTTPRedirectionBlock(
        _ block: ((URLSession, URLSessionTask, URLResponse, URLRequest) -> URLRequest?)?
    ) {
        setHook(\.redirection, block)
    }

    /// Sets what is told how many bytes of a body were sent: now, so far, and of how many; nil removes it.
    public func setTaskDidSendBodyDataBlock(_ block: ((URLSession, URLSessionTask, Int64, Int64, Int64) -> Void)?) {
        setHook(\.didSendBodyData, block)
    }

    /// Sets what is told that a task is over, before its completion handler, with the error of the transfer; nil removes
    /// it.
    public func setTaskDidCompleteBlock(_ block: ((URLSession, URLSessionTask, (any Error)?) -> Void)?) {
        setHook(\.didComplete, block)
    }

    /// The same, under the name that Swift gave it.
    public func setTaskDidComplete(_ block: ((URLSession, URLSessionTask, (any Error)?) -> Void)?) {
        setTaskDidCompleteBlock(block)
    }

    /// Sets what is told what a task cost, an ``AFURLSessionTaskMetrics``; nil removes it.
    public func setTaskDidFinishCollectingMetricsBlock(
        _ block: ((URLSession, URLSessionTask, URLSessionTaskMetrics?) -> Void)?
    ) {
        setHook(\.didCollectMetrics, block)
    }

    /// Sets what decides on a response as soon as its head is there; nil takes all.
    public func setDataTaskDidReceiveResponseBlock(
        _ block: ((URLSession, URLSessionDataTask, URLResponse) -> URLSession.ResponseDisposition)?
    ) {
        setHook(\.didReceiveResponse, block)
    }

    /// Sets what is told that a response goes to a file after all; nil removes it.
    public func setDataTaskDidBecomeDownloadTaskBlock(
        _ block: ((URLSession, URLSessionDataTask, URLSessionDownloadTask) -> Void)?
    ) {
        setHook(\.didBecomeDownload, block)
    }

    /// Sets what is given each piece of a body as it arrives; the whole is collected all the same. Nil removes it.
    public func setDataTaskDidReceiveDataBlock(_ block: ((URLSession, URLSessionDataTask, Data) -> Void)?) {
        setHook(\.didReceiveData, block)
    }

    /// Keeps a block that decides what is cached: sessions have no cache, so it is not called.
    public func setDataTaskWillCacheResponseBlock(
        _ block: ((URLSession, URLSessionDataTask, CachedURLResponse) -> CachedURLResponse?)?
    ) {
        setHook(\.willCache, block)
    }

    /// Sets what says where downloads belong, before their own `destination` is asked; nil removes it.
    public func setDownloadTaskDidFinishDownloadingBlock(_ block: ((URLSession, URLSessionDownloadTask, URL) -> URL?)?)
    {
        setHook(\.didFinishDownloading, block)
    }

    /// Sets what is told how many bytes of a download were written: now, so far, and of how many; nil removes it.
    public func setDownloadTaskDidWriteDataBlock(
        _ block: ((URLSession, URLSessionDownloadTask, Int64, Int64, Int64) -> Void)?
    ) {
        setHook(\.didWriteData, block)
    }

    /// Sets what is told that a download goes on in the middle of its file; nil removes it.
    public func setDownloadTaskDidResumeBlock(_ block: ((URLSession, URLSessionDownloadTask, Int64, Int64) -> Void)?) {
        setHook(\.didResume, block)
    }
}
