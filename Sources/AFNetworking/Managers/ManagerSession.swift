// SPDX-License-Identifier: MIT

import ANSystem

/// The session that blocks are told of: it knows the manager's configuration and tasks, and hands all else to the manager.
/// Tasks that it makes without a completion handler are the manager's.
///
/// Tasks with one, and tasks of an invalidated manager that is gone, are those of Foundation's session, which it descends
/// from: that one knows neither the manager's security policy nor its header fields.
final class ManagerSession: URLSession, @unchecked Sendable {
    private let manager: Lock<WeakManager>
    private let ownConfiguration: URLSessionConfiguration

    private struct WeakManager: Sendable {
        weak var value: AFURLSessionManager?
    }

    init(configuration: URLSessionConfiguration, manager: AFURLSessionManager) {
        self.manager = Lock(WeakManager(value: manager))
        ownConfiguration = configuration
        super.init(configuration: .ephemeral)
    }

    private var owner: AFURLSessionManager? { manager.withLock { $0.value } }

    /// Gives up what Foundation keeps.
    func end() {
        super.invalidateAndCancel()
    }

    override var configuration: URLSessionConfiguration {
        ownConfiguration.copy() as? URLSessionConfiguration ?? ownConfiguration
    }

    override func dataTask(with request: URLRequest) -> URLSessionDataTask {
        owner?.dataTask(with: request, completionHandler: nil) ?? super.dataTask(with: request)
    }

    override func dataTask(with url: URL) -> URLSessionDataTask {
        dataTask(with: URLRequest(url: url))
    }

    override func uploadTask(with request: URLRequest, fromFile fileURL: URL) -> URLSessionUploadTask {
        owner?.uploadTask(with: request, fromFile: fileURL, progress: nil, completionHandler: nil)
            ?? super.uploadTask(with: request, fromFile: fileURL)
    }

    override func uploadTask(with request: URLRequest, from bodyData: Data) -> URLSessionUploadTask {
        owner?.uploadTask(with: request, from: bodyData, progress: nil, completionHandler: nil)
            ?? super.uploadTask(with: request, from: bodyData)
    }

    override func downloadTask(with request: URLRequest) -> URLSessionDownloadTask {
        owner?.downloadTask(with: request, progress: nil, destination: nil, completionHandler: nil)
            ?? super.downloadTask(with: request)
    }

    override func downloadTask(with url: URL) -> URLSessionDownloadTask {
        downloadTask(with: URLRequest(url: url))
    }

    override func finishTasksAndInvalidate() {
        owner?.invalidateSessionCancelingTasks(false, resetSession: false)
    }

    override func invalidateAndCancel() {
        owner?.invalidateSessionCancelingTasks(true, resetSession: false)
    }

    override func getTasksWithCompletionHandler(
        _ completionHandler:
            @escaping @Sendable (
                [URLSessionDataTask], [URLSessionUploadTask], [URLSessionDownloadTask]
            ) -> Void
    ) {
        guard let owner else { return completionHandler([], [], []) }
        owner.sessionQueue.async { completionHandler(owner.dataTasks, owner.uploadTasks, owner.downloadTasks) }
    }

    override func getAllTasks(completionHandler: @escaping @Sendable ([URLSessionTask]) -> Void) {
        guard let owner else { return completionHandler([]) }
        owner.sessionQueue.async { completionHandler(owner.tasks) }
    }
}
