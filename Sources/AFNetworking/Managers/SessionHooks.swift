// SPDX-License-Identifier: MIT

/// The blocks set on a manager; `nil` for each that is not set.
struct SessionHooks: Sendable {
    var didBecomeInvalid: Handover<(URLSession, (any Error)?) -> Void>?
    var needNewBodyStream: Handover<(URLSession, URLSessionTask) -> InputStream?>?
    var redirection: Handover<(URLSession, URLSessionTask, URLResponse, URLRequest) -> URLRequest?>?
    var didSendBodyData: Handover<(URLSession, URLSessionTask, Int64, Int64, Int64) -> Void>?
    var didComplete: Handover<(URLSession, URLSessionTask, (any Error)?) -> Void>?
    var didCollectMetrics: Handover<(URLSession, URLSessionTask, URLSessionTaskMetrics?) -> Void>?
    var didReceiveResponse: Handover<(URLSession, URLSessionDataTask, URLResponse) -> URLSession.ResponseDisposition>?
    var didBecomeDownload: Handover<(URLSession, URLSessionDataTask, URLSessionDownloadTask) -> Void>?
    var didReceiveData: Handover<(URLSession, URLSessionDataTask, Data) -> Void>?
    var willCache: Handover<(URLSession, URLSessionDataTask, CachedURLResponse) -> CachedURLResponse?>?
    var didFinishDownloading: Handover<(URLSession, URLSessionDownloadTask, URL) -> URL?>?
    var didWriteData: Handover<(URLSession, URLSessionDownloadTask, Int64, Int64, Int64) -> Void>?
    var didResume: Handover<(URLSession, URLSessionDownloadTask, Int64, Int64) -> Void>?
    var sessionChallenge: Handover<AFURLSessionManager.SessionChallengeBlock>?
    var taskChallenge: Handover<AFURLSessionManager.TaskChallengeBlock>?
}
