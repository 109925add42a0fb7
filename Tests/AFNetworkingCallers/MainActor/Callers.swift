// SPDX-License-Identifier: MIT

// Calls of AFNetworking from the main actor, in language mode 6 and in a module without upcoming features.
// `Tests/AFNetworkingCallers/MainActor` has a link to this file and compiles it with the main actor as the default
// isolation.

import AFNetworking

/// A manager of the program, which is used from any thread.
nonisolated public final class Client: AFHTTPSessionManager, @unchecked Sendable {
    @discardableResult
    override public func get(
        _ urlString: String, parameters: Any?, headers: [String: String]?,
        progress downloadProgress: (@Sendable (Progress) -> Void)?,
        success: (@Sendable (URLSessionDataTask, Any?) -> Void)?,
        failure: (@Sendable (URLSessionDataTask?, any Error) -> Void)?
    ) -> URLSessionDataTask? {
        super.get(
            urlString, parameters: parameters, headers: headers, progress: downloadProgress, success: success,
            failure: failure)
    }
}

/// A view model that makes requests.
@MainActor public final class Screen {
    /// The progress of the last request.
    public private(set) var fraction = 0.0
    /// The name of the user, or the description of an error.
    public private(set) var name = ""
    /// The number of redirects.
    public private(set) var redirects = 0
    private let client: Client

    /// Creates a view model.
    public init(baseURL: URL) {
        client = Client(baseURL: baseURL)
    }

    /// Loads a user with callbacks. Progress is reported on another queue, the result on the main queue, unless the
    /// manager has another completion queue: a hop to the main actor is right in each case.
    public func load(_ path: String) async {
        await withCheckedContinuation { continuation in
            client.get(
                path, parameters: nil, headers: nil,
                progress: { progress in
                    let fraction = progress.fractionCompleted
                    Task { @MainActor in self.fraction = fraction }
                },
                success: { _, object in
                    let name = (object as? [String: Any])?["name"] as? String ?? ""
                    Task { @MainActor in
                        self.name = name
                        continuation.resume()
                    }
                },
                failure: { _, error in
                    Task { @MainActor in
                        self.name = error.localizedDescription
                        continuation.resume()
                    }
                })
        }
    }

    /// Loads a user with an async verb. The response is not sendable: what crosses to another task is taken from it.
    public func loadAsync(_ path: String) async throws {
        name = try await Task { [client] in
            let response = try await client.get(path)
            return (response.object as? [String: Any])?["name"] as? String ?? ""
        }.value
    }

    /// Loads a user and reports the code of an error, in two forms, with blocks left out.
    public func codes(_ path: String) async -> [Int] {
        let error = await withCheckedContinuation { continuation in
            client.dataTask(with: URLRequest(url: URL(string: path, relativeTo: client.baseURL) ?? URL(filePath: "/")))
            {
                _, _, error in
                continuation.resume(returning: error)
            }.resume()
        }
        client.head(path, parameters: nil, headers: nil, success: nil)
        do {
            _ = try await client.get(path)
        } catch let caught as NSError {
            return [((error as Any) as? NSError)?.code ?? 0, caught.code]
        }
        return []
    }

    /// Sets blocks, which are called on the manager's own queue.
    public func countRedirects() {
        client.setTaskWillPerformHTTPRedirectionBlock { _, _, _, request in
            Task { @MainActor in self.redirects += 1 }
            return request
        }
        client.setTaskDidCompleteBlock { [weak self] _, _, _ in
            Task { @MainActor in self?.fraction = 1 }
        }
    }
}
