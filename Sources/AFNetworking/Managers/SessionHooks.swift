// SPDX-License-Identifier: MIT

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
