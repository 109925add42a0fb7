// SPDX-License-Identifier: MIT

import ANSystem

/// The session that blocks are told of: it knows the manager's configuration and tasks, and hands all else to the manager.
///
/// Foundation's session, which it descends from, performs nothing.
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

    override var configuration: URLSessionConfiguration { ownConfiguration }

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
