// SPDX-License-Identifier: MIT

import AFNetworking

/// Observers on `OperationQueue.main` of all notifications, including one that a completion handler posts.
public final class MainQueueObservers {
    private static let names: [Notification.Name] = [
        .AFNetworkingTaskDidResume, .AFNetworkingTaskDidSuspend, .AFNetworkingTaskDidComplete,
        .AFURLSessionDidInvalidate, .AFURLSessionDownloadTaskDidMoveFileSuccessfully,
        .AFURLSessionDownloadTaskDidFailToMoveFile, .AFNetworkingReachabilityDidChange, own,
    ]
    private static let own = Notification.Name("posted by a completion handler")

    private let manager: AFHTTPSessionManager
    private let reachability = AFNetworkReachabilityManager(forAddress: "127.0.0.1")
    private let place = FileManager.default.temporaryDirectory.appendingPathComponent("af-main-\(UUID().uuidString)")
    private var tokens: [NSObjectProtocol] = []
    private var missing = Set(MainQueueObservers.names)

    public init(server: String) {
        manager = AFHTTPSessionManager(baseURL: URL(string: server))
        manager.responseSerializer = AFHTTPResponseSerializer()
    }

    /// Makes requests that cause each notification. Calls `finish` when all were received and the main queue still runs
    /// blocks.
    public func run(_ finish: @escaping () -> Void) {
        for name in Self.names {
            let token = NotificationCenter.default.addObserver(forName: name, object: nil, queue: .main) { [self] _ in
                missing.remove(name)
                guard missing.isEmpty else { return }
                try? FileManager.default.removeItem(at: place)
                DispatchQueue.main.async { finish() }
            }
            tokens.append(token)
        }
        reachability.startMonitoring()
        let request = URLRequest(url: URL(string: "get", relativeTo: manager.baseURL)!)
        let task = manager.dataTask(with: request, uploadProgress: nil, downloadProgress: nil) { [self] _, _, _ in
            NotificationCenter.default.post(name: Self.own, object: nil)
            download { [self] in download { [self] in manager.invalidateSessionCancelingTasks(false) } }
        }
        task.resume()
        task.suspend()
        task.resume()
    }

    private func download(_ next: @escaping () -> Void) {
        manager.downloadTask(
            with: URLRequest(url: URL(string: "get", relativeTo: manager.baseURL)!), progress: nil,
            destination: { [self] _, _ in place }
        ) { _, _, _ in next() }.resume()
    }
}
