// SPDX-License-Identifier: MIT

// Records what a client sends to a server in this process, and replays it without the server:
//
//     swift run RecordAndReplay
//
// Tests of a program do the same with the real server: RECORDING=update adds what is missing in the cassette.

import AsyncNetworking
import AsyncNetworkingTesting
import Foundation

struct User: Codable {
    let id: Int
    let name: String
}

/// The client under test.
struct Users {
    let api: SessionManager

    func create(_ name: String) async throws -> User {
        try await api.post("users", body: .json(["name": name]), as: .decodable(User.self)).value
    }

    func list(page: Int) async throws -> [User] {
        try await api.get(
            "users?page=\(page)", headers: [.authorization: "Bearer s3cret"], as: .decodable([User].self)
        ).value
    }
}

let cassette = FileManager.default.temporaryDirectory.appending(path: "users-\(UUID()).har")
defer { try? FileManager.default.removeItem(at: cassette) }

do {
    // The port differs in each run, so that the host is a name.
    let base = URL(string: "http://users.example/")
    try await StubServer.with { server in
        server.route("/users", method: "POST", .json(#"{"id": 7, "name": "Ada"}"#, status: 201))
        server.route("/users", method: "GET", .json(#"[{"id": 7, "name": "Ada"}]"#))
        var configuration = SessionConfiguration(baseURL: base) {
            $0.connection.hostOverrides = [
                .init(host: "users.example", port: 80, address: "127.0.0.1", addressPort: server.endpoint.port)
            ]
        }
        let mode = RecordingMode(rawValue: ProcessInfo.processInfo.environment["RECORDING"] ?? "") ?? .record
        configuration.transport = try RecordingTransport(
            wrapping: configuration.makeTransport(), to: cassette.path, mode: mode)
        let users = Users(api: SessionManager(configuration))
        print("recorded:", try await users.create("Ada").name, try await users.list(page: 1).count)
        await users.api.shutdown()
    }

    let replay = try ReplayTransport(from: cassette.path)
    let users = Users(api: SessionManager(baseURL: base) { $0.transport = replay })
    print("replayed:", try await users.create("Ada").name, try await users.list(page: 1).count)
    print("left:", replay.unused)
    do {
        _ = try await users.list(page: 2)
    } catch {
        print(error)
    }

    let archive = try HAR(Data(contentsOf: cassette))
    print("secrets:", try archive.places(of: ["s3cret"]))
} catch {
    print(error)
}
