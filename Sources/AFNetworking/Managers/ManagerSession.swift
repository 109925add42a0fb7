// SPDX-License-Identifier: MIT

import ANSystem
import AsyncNetworking

/// The `URLSession` that blocks receive. It returns the manager's configuration and tasks and forwards the creation of
/// tasks to the manager.
///
/// All other tasks are performed by Foundation's session, its superclass: those with a completion handler, WebSocket
/// tasks, and tasks created after the manager was freed. It has an ephemeral configuration, so these tasks lack the
/// manager's configuration (timeouts, proxy, cookies, cache), its security policy and its header fields. The superclass is
/// never invalidated: on Linux, Foundation would end the process when a program that still has the session creates a task.
/// Its resources are released with the session.
final class ManagerSession: URLSession, @unchecked Sendable {
    private let manager: Lock<Weak<AFURLSessionManager>>
    private let ownConfiguration: URLSessionConfiguration
    /// The number of sessions of the manager before this one, which a reset may have replaced.
    private let generation: Int

    init(configuration: URLSessionConfiguration, manager: AFURLSessionManager, generation: Int) {
        self.manager = Lock(Weak(object: manager))
        ownConfiguration = configuration
        self.generation = generation
        super.init(configuration: .ephemeral)
    }

    private var owner: AFURLSessionManager? { manager.withLock { $0.object } }
    private var maker: (any TaskMaker)? { owner }

    override var configuration: URLSessionConfiguration {
        ownConfiguration.copy() as? URLSessionConfiguration ?? ownConfiguration
    }

    override func dataTask(with request: URLRequest) -> URLSessionDataTask {
        maker?.dataTask(with: request, uploadProgress: nil, downloadProgress: nil, completionHandler: nil)
            ?? super.dataTask(with: request)
    }

    override func dataTask(with url: URL) -> URLSessionDataTask {
        dataTask(with: URLRequest(url: url))
    }

    override func uploadTask(with request: URLRequest, fromFile fileURL: URL) -> URLSessionUploadTask {
        maker?.uploadTask(with: request, fromFile: fileURL, progress: nil, completionHandler: nil)
            ?? super.uploadTask(with: request, fromFile: fileURL)
    }

    override func uploadTask(with request: URLRequest, from bodyData: Data) -> URLSessionUploadTask {
        maker?.uploadTask(with: request, from: bodyData, progress: nil, completionHandler: nil)
            ?? super.uploadTask(with: request, from: bodyData)
    }

    override func uploadTask(withStreamedRequest request: URLRequest) -> URLSessionUploadTask {
        maker?.uploadTask(withStreamedRequest: request, progress: nil, completionHandler: nil)
            ?? super.uploadTask(withStreamedRequest: request)
    }

    override func downloadTask(with request: URLRequest) -> URLSessionDownloadTask {
        maker?.downloadTask(with: request, progress: nil, destination: nil, completionHandler: nil)
            ?? super.downloadTask(with: request)
    }

    override func downloadTask(with url: URL) -> URLSessionDownloadTask {
        downloadTask(with: URLRequest(url: url))
    }

    override func downloadTask(withResumeData resumeData: Data) -> URLSessionDownloadTask {
        maker?.downloadTask(withResumeData: resumeData, progress: nil, destination: nil, completionHandler: nil)
            ?? super.downloadTask(withResumeData: resumeData)
    }

    override func finishTasksAndInvalidate() {
        owner?.invalidate(generation: generation, cancellingTasks: false, resetting: false)
    }

    override func invalidateAndCancel() {
        owner?.invalidate(generation: generation, cancellingTasks: true, resetting: false)
    }

    override func reset(completionHandler: @Sendable @escaping () -> Void) {
        if let owner, !owner.state.withLock({ $0.isShared }) { owner.coreSession.configuration.cache?.removeAll() }
        super.reset(completionHandler: completionHandler)
    }

    override func getTasksWithCompletionHandler(
        _ completionHandler:
            @escaping @Sendable (
                [URLSessionDataTask], [URLSessionUploadTask], [URLSessionDownloadTask]
            ) -> Void
    ) {
        guard let owner else { return completionHandler([], [], []) }
        owner.sessionQueue.async { [self] in
            completionHandler(own(owner.dataTasks), own(owner.uploadTasks), own(owner.downloadTasks))
        }
    }

    override func getAllTasks(completionHandler: @escaping @Sendable ([URLSessionTask]) -> Void) {
        guard let owner else { return completionHandler([]) }
        owner.sessionQueue.async { [self] in completionHandler(own(owner.tasks)) }
    }

    /// Returns the tasks that belong to this session and not to one before or after a reset.
    private func own<Made: URLSessionTask>(_ tasks: [Made]) -> [Made] {
        tasks.filter { ($0 as? any DrivenTask)?.driver.generation ?? generation == generation }
    }
}
