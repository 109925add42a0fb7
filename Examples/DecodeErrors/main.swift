// SPDX-License-Identifier: MIT

// Requests documents that are not what the caller expects, and prints the errors:
//
//     swift run DecodeErrors          with a server in this process

import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials

struct User: Decodable, Sendable {
    var id: Int
    var name: String
    var tags: [String]
}

struct Problem: Decodable, Sendable {
    var title: String
    var detail: String
}

/// Prints the value or the error of a request.
func show<Value>(_ title: String, _ request: () async throws -> Value) async {
    print("\n\(title)")
    do {
        print("  value:", try await request())
    } catch let error as SessionError {
        print("  error:", error)
        if let problem = try? error.rejection?.decoded(as: Problem.self) {
            print("  the API says: \(problem.title). \(problem.detail)")
        }
        if case .serialization(.decoding(let failure)) = error {
            print("  path: \(failure.path ?? "")")
            print("  text: \(failure.excerpt ?? "")")
        }
    } catch {
        print("  error:", error)
    }
}

/// Requests each kind of document from a server.
func demonstrate(_ server: StubServer) async {
    server.fallback { request in
        switch request.target {
        case "/intact": .json(#"{"users":[{"id":1,"name":"Ada","tags":["math"]}]}"#)
        case "/missing": .json(#"{"users":[{"id":1,"name":"Ada","tags":["math"]},{"id":2,"name":"Grace"}]}"#)
        case "/mistyped": .json(#"{"users":[{"id":1,"name":"Ada","tags":["math", 7]}]}"#)
        case "/truncated": .json(#"{"users":[{"id":1,"name":"A"#)
        case "/empty": .status(204)
        case "/problem":
            .json(#"{"title":"No such user","detail":"User IDs range from 1 to 41."}"#, status: 404)
        default: .text("<html>Service login required</html>")
        }
    }
    let api = SessionManager(baseURL: server.url("/")) { $0.proxy = .none }
    let users = DecodableResponseSerializer([String: [User]].self)

    await show("The expected document") { try await api.get("intact", as: users).value }
    await show("A missing value") { try await api.get("missing", as: users).value }
    await show("A value of the wrong type") { try await api.get("mistyped", as: users).value }
    await show("A truncated document") { try await api.get("truncated", as: users).value }
    await show("No body") { try await api.get("empty", as: users).value }
    await show("No body, decoded as an optional") {
        try await api.get("empty", as: .decodable([String: [User]]?.self)).value as Any
    }
    await show("An error document of the API") { try await api.get("problem", as: users).value }
    await show("A login page from a gateway") { try await api.get("page", as: users).value }
    await show("The login page as a string") { try await api.get("page", as: .string).value }
}

do {
    try await StubServer.with { await demonstrate($0) }
} catch {
    print(error)
}
