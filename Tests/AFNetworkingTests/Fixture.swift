// SPDX-License-Identifier: MIT

import AFNetworking
import ANSystem
import AsyncNetworkingTesting
import Dispatch
import Testing

private let onMainQueue: DispatchSpecificKey<Bool> = {
    let key = DispatchSpecificKey<Bool>()
    DispatchQueue.main.setSpecific(key: key, value: true)
    return key
}()

/// The arguments of a callback.
struct Callback: @unchecked Sendable {
    var task: URLSessionTask?
    var response: URLResponse?
    var object: Any?
    var error: NSError?
    /// Whether the callback runs on the main queue, possibly on a thread other than the main thread.
    var isOnMainQueue = DispatchQueue.getSpecific(key: onMainQueue) == true

    var text: String? { (object as? Data).map { String(decoding: $0, as: UTF8.self) } }
    var dictionary: [String: Any]? { object as? [String: Any] }
}

/// A directory that is removed with the value.
final class TemporaryDirectory: Sendable {
    let url = FileManager.default.temporaryDirectory.appending(path: "af-tests-\(UUID())")

    init() throws {
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(at: url) }
}

/// A thread-safe list of entries in the order in which they were added.
final class Log<Entry: Sendable>: Sendable {
    private let state = Lock([Entry]())

    func add(_ entry: Entry) { state.withLock { $0.append(entry) } }
    var entries: [Entry] { state.withLock { $0 } }
}

/// Calls `start` and returns the arguments of the first call of its callback.
func callback(_ start: (@escaping @Sendable (Callback) -> Void) throws -> Void) async rethrows -> Callback {
    let (stream, continuation) = AsyncStream.makeStream(of: Callback.self)
    try start { continuation.yield($0) }
    var iterator = stream.makeAsyncIterator()
    return await iterator.next() ?? Callback()
}

extension AFHTTPSessionManager {
    /// Creates a manager for a stub server, with a cookie storage of its own and a completion queue other than the main
    /// queue.
    convenience init(for server: StubServer, _ configure: (URLSessionConfiguration) -> Void = { _ in }) {
        let configuration = URLSessionConfiguration.default
        configuration.httpCookieStorage = URLSessionConfiguration.ephemeral.httpCookieStorage
        configure(configuration)
        self.init(baseURL: server.url("/"), sessionConfiguration: configuration)
        completionQueue = DispatchQueue(label: "completion")
    }

    /// Calls a verb and returns the arguments of `success` or `failure`.
    func call(
        _ verb: (
            _ success: @escaping @Sendable (URLSessionDataTask, Any?) -> Void,
            _ failure: @escaping @Sendable (URLSessionDataTask?, any Error) -> Void
        ) -> URLSessionDataTask?
    ) async -> Callback {
        await callback { done in
            _ = verb(
                { task, object in done(Callback(task: task, response: task.response, object: object)) },
                { task, error in
                    done(Callback(task: task, response: task?.response, object: nil, error: error as NSError))
                })
        }
    }

    /// Performs a GET and returns the arguments of its callback.
    func fetch(_ path: String, parameters: Any? = nil, headers: [String: String]? = nil) async -> Callback {
        await call { get(path, parameters: parameters, headers: headers, progress: nil, success: $0, failure: $1) }
    }

    /// Performs a GET from a dispatch queue's thread, for code that blocks, and returns the arguments of its callback.
    func fetchFromOwnThread(_ path: String) async -> Callback {
        let caller = DispatchQueue(label: "caller")
        return await callback { done in
            caller.async { [self] in
                get(
                    path, parameters: nil, headers: nil, progress: nil,
                    success: { done(Callback(task: $0, object: $1)) },
                    failure: { done(Callback(task: $0, error: $1 as NSError)) })
            }
        }
    }
}
