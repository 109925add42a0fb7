// SPDX-License-Identifier: MIT

import AFNetworking

/// Observers on `OperationQueue.main` of all notifications, including those that completion handlers post, without a
/// completion queue and on the main queue.
public final class MainQueueObservers {
    private static let names: [Notification.Name] = [
        .AFNetworkingTaskDidResume, .AFNetworkingTaskDidSuspend, .AFNetworkingTaskDidComplete,
        .AFURLSessionDidInvalidate, .AFURLSessionDownloadTaskDidMoveFileSuccessfully,
        .AFURLSessionDownloadTaskDidFailToMoveFile, .AFNetworkingReachabilityDidChange, own, ownOnQueue,
    ]
    private static let own = Notification.Name("posted by a completion handler")
    private static let ownOnQueue = Notification.Name("posted by a completion handler on DispatchQueue.main")

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
    /// blocks. The server must not respond to requests for `/unanswered`.
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
        load("get") { [self] in
            NotificationCenter.default.post(name: Self.own, object: nil)
            manager.completionQueue = .main
            download { [self] in
                NotificationCenter.default.post(name: Self.ownOnQueue, object: nil)
                download { [self] in manager.invalidateSessionCancelingTasks(false) }
            }
        }.resume()
        // A task that could complete before it is suspended would not post the notification.
        let unanswered = load("unanswered") {}
        unanswered.resume()
        unanswered.suspend()
        unanswered.cancel()
    }

    private func load(_ path: String, _ completion: @escaping () -> Void) -> URLSessionDataTask {
        manager.dataTask(with: request(path), uploadProgress: nil, downloadProgress: nil) { _, _, _ in completion() }
    }

    private func request(_ path: String) -> URLRequest {
        URLRequest(url: URL(string: path, relativeTo: manager.baseURL)!)
    }

    private func download(_ next: @escaping () -> Void) {
        manager.downloadTask(
            with: request("get"), progress: nil, destination: { [self] _, _ in place }
        ) { _, _, _ in next() }.resume()
    }
}
