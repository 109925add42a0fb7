// SPDX-License-Identifier: MIT

// A program with callbacks, with both interfaces on one session, and with async functions only. Its server runs here.
//
//     swift run FromAFNetworking

import AFNetworking
import AsyncNetworking
import AsyncNetworkingTesting

struct User: Decodable, Sendable { var name: String }

/// 1. As written for AFNetworking: callbacks on the main queue, which an asynchronous `main` serves while it awaits.
func withCallbacks(_ base: URL, done: @escaping @Sendable (String) -> Void) {
    let manager = AFHTTPSessionManager(baseURL: base)
    manager.requestSerializer.setValue("Bearer token", forHTTPHeaderField: "Authorization")
    let failed = { @Sendable (_: URLSessionDataTask?, error: any Error) in done(error.localizedDescription) }
    manager.get(
        "user", parameters: nil, headers: nil, progress: nil,
        success: { _, json in
            let name = (json as? [String: Any])?["name"] as? String ?? "unknown"
            manager.post(
                "notes", parameters: ["author": name], headers: nil, progress: nil,
                success: { task, _ in
                    let status = (task.response as? HTTPURLResponse)?.statusCode ?? 0
                    let request = URLRequest(url: base.appending(path: "file"))
                    let target = { @Sendable (_: URL, _: URLResponse) in URL(filePath: "copy") }
                    manager.downloadTask(with: request, progress: nil, destination: target) { _, file, _ in
                        done("callbacks: \(name), status \(status), \(file?.lastPathComponent ?? "no file")")
                    }.resume()
                }, failure: failed)
        }, failure: failed)
}

/// 2. During the migration: one session for both. Its header fields belong to the configuration, not to a serializer.
func mixed(_ base: URL) async throws {
    let session = SessionManager(baseURL: base) { $0.headers[.authorization] = "Bearer token" }
    let manager = AFHTTPSessionManager(session: session)
    let user = try await session.get("user", as: .decodable(User.self)).value
    let note = try await manager.post("notes", parameters: ["author": user.name])
    let file = try await session.download("file", to: "copy").value
    print("mixed: \(user.name), status \((note.task.response as? HTTPURLResponse)?.statusCode ?? 0), \(file.path)")
}

/// 3. After the migration: nothing of the AFNetworking module is used.
func asynchronous(_ base: URL) async throws {
    let session = SessionManager(baseURL: base) { $0.headers[.authorization] = "Bearer token" }
    let user = try await session.get("user", as: .decodable(User.self)).value
    let note = try await session.post("notes", parameters: ["author": user.name])
    let file = try await session.download("file", to: "copy").value
    print("async: \(user.name), status \(note.statusCode), \(file.path)")
}

try await StubServer.with { server in
    func authorized(_ script: Script) -> @Sendable (RecordedRequest) -> Script {
        { $0.headers["Authorization"] == "Bearer token" ? script : .status(401) }
    }
    server.route("/user", authorized(.json(#"{"name": "Ada"}"#)))
    server.route("/notes", authorized(.json("{}", status: 201)))
    server.route("/file", .text("content"))
    let base = server.url("/")
    print(await withCheckedContinuation { done in withCallbacks(base) { done.resume(returning: $0) } })
    try await mixed(base)
    try await asynchronous(base)
}
