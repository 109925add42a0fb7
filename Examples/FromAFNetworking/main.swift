// SPDX-License-Identifier: MIT

// The same small program three times: it asks for a user and posts a note, first with callbacks, then with both, then with
// async functions alone. It talks to a server inside the program.
//
//     swift run FromAFNetworking

import AFNetworking
import AsyncNetworking
import AsyncNetworkingTesting

struct User: Decodable, Sendable {
    var name: String
}

/// 1. As it was written for AFNetworking: callbacks on the main queue, which `main` serves while it awaits.
func withCallbacks(_ base: URL, done: @escaping @Sendable () -> Void) {
    let manager = AFHTTPSessionManager(baseURL: base)
    manager.get("user", parameters: nil, headers: nil, progress: nil) { _, json in
        let name = (json as? [String: Any])?["name"] as? String ?? "nobody"
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

/// 2. On the way: one session for both; the first call has moved, the second awaits the shim.
func mixed(_ base: URL) async throws {
    let session = SessionManager(baseURL: base)
    let manager = AFHTTPSessionManager(session: session)
    let user = try await session.get("user", as: .decodable(User.self)).value
    print("mixed: the user is \(user.name)")
    let response = try await manager.post("notes", parameters: ["author": user.name])
    print("mixed: status \((response.task.response as? HTTPURLResponse)?.statusCode ?? 0)")
}

/// 3. Moved to the end: AFNetworking is not imported any more.
func asynchronous(_ base: URL) async throws {
    let session = SessionManager(baseURL: base)
    let user = try await session.get("user", as: .decodable(User.self)).value
    print("async: the user is \(user.name)")
    let response = try await session.post("notes", parameters: ["author": .string(user.name)])
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
