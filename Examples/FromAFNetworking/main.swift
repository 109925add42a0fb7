// SPDX-License-Identifier: MIT

// The same program three times: it requests a user and posts a note with callbacks, with callbacks and async functions,
// and with async functions only. The server runs in this process.
//
//     swift run FromAFNetworking

import AFNetworking
import AsyncNetworking
import AsyncNetworkingTesting

struct User: Decodable, Sendable {
    var name: String
}

/// 1. As written for AFNetworking: callbacks on the main queue, which an asynchronous `main` serves while it awaits.
func withCallbacks(_ base: URL, done: @escaping @Sendable () -> Void) {
    let manager = AFHTTPSessionManager(baseURL: base)
    manager.get("user", parameters: nil, headers: nil, progress: nil) { _, json in
        let name = (json as? [String: Any])?["name"] as? String ?? "unknown"
        print("callbacks: the user is \(name)")
        manager.post("notes", parameters: ["author": name], headers: nil, progress: nil) { task, _ in
            print("callbacks: status \((task.response as? HTTPURLResponse)?.statusCode ?? 0)")
            done()
        } failure: { _, error in
            print("callbacks: \(error.localizedDescription)")
            done()
        }
    } failure: { _, error in
        print("callbacks: \(error.localizedDescription)")
        done()
    }
}

/// 2. During the migration: both interfaces share one session. The first call uses AsyncNetworking; the second awaits
///   an async verb of the AFNetworking module.
func mixed(_ base: URL) async throws {
    let session = SessionManager(baseURL: base)
    let manager = AFHTTPSessionManager(session: session)
    let user = try await session.get("user", as: .decodable(User.self)).value
    print("mixed: the user is \(user.name)")
    let response = try await manager.post("notes", parameters: ["author": user.name])
    print("mixed: status \((response.task.response as? HTTPURLResponse)?.statusCode ?? 0)")
}

/// 3. After the migration: nothing of the AFNetworking module is used.
func asynchronous(_ base: URL) async throws {
    let session = SessionManager(baseURL: base)
    let user = try await session.get("user", as: .decodable(User.self)).value
    print("async: the user is \(user.name)")
    let response = try await session.post("notes", parameters: ["author": user.name])
    print("async: status \(response.statusCode)")
}

try await StubServer.with { server in
    server.route("/user", .json(#"{"name": "Ada"}"#))
    server.route("/notes", .json("{}", status: 201))
    await withCheckedContinuation { continuation in
        withCallbacks(server.url("/")) { continuation.resume() }
    }
    try await mixed(server.url("/"))
    try await asynchronous(server.url("/"))
}
