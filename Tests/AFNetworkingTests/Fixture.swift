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

/// What a callback was given.
struct Callback: @unchecked Sendable {
    var task: URLSessionTask?
    var response: URLResponse?
    var object: Any?
    var error: NSError?
    /// Whether the callback runs on the main queue, which need not be on the main thread.
    var isOnMainQueue = DispatchQueue.getSpecific(key: onMainQueue) == true

    var text: String? { (object as? Data).map { String(decoding: $0, as: UTF8.self) } }
    var dictionary: [String: Any]? { object as? [String: Any] }
}

/// Notes things in their order, from any thread.
final class Log<Entry: Sendable>: Sendable {
    private let state = Lock([Entry]())

    func add(_ entry: Entry) { state.withLock { $0.append(entry) } }
    var entries: [Entry] { state.withLock { $0 } }
}

/// Waits for one call of a callback.
func callback(_ start: (@escaping @Sendable (Callback) -> Void) throws -> Void) async rethrows -> Callback {
    let (stream, continuation) = AsyncStream.makeStream(of: Callback.self)
    try start { continuation.yield($0) }
    var iterator = stream.makeAsyncIterator()
    return await iterator.next() ?? Callback()
}

extension AFHTTPSessionManager {
    /// A manager for a stub server, away from proxies and the main queue.
    convenience init(for server: StubServer, _ configure: (URLSessionConfiguration) -> Void = { _ in }) {
        let configuration = URLSessionConfiguration.default
        configure(configuration)
        self.init(baseURL: server.url("/"), sessionConfiguration: configuration)
        completionQueue = DispatchQueue(label: "completion")
    }

    /// Calls a verb and waits for its success or failure.
    func call(
        _ verb: (
            _ success: @escaping (URLSessionDataTask, Any?) -> Void,
            _ failure: @escaping (URLSessionDataTask?, any Error) -> Void
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

    /// The outcome of a GET.
    func fetch(_ path: String, parameters: Any? = nil, headers: [String: String]? = nil) async -> Callback {
        await call { get(path, parameters: parameters, headers: headers, progress: nil, success: $0, failure: $1) }
    }

    /// The outcome of a GET that is called on a thread of its own, for methods that wait.
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
