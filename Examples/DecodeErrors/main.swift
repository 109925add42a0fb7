// SPDX-License-Identifier: MIT

// Asks for values that a server does not send as they should be, and prints what the errors say:
//
//     swift run DecodeErrors          a server inside the program

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

/// Prints what a request comes to: its value, or its error.
func show<Value>(_ title: String, _ request: () async throws -> Value) async {
    print("\n\(title)")
    do {
        print("  value:", try await request())
    } catch let error as SessionError {
        print("  error:", error)
        if let problem = try? error.rejection?.decoded(as: Problem.self) {
            print("  the API says: \(problem.title). \(problem.detail)")
        }
        if case .serialization(.decoding(let problem)) = error {
            print("  path: \(problem.path), type: \(problem.type)")
            print("  text: \(problem.excerpt)")
        }
    } catch {
        print("  error:", error)
    }
}

/// Asks a server for each kind of document.
func demonstrate(_ server: StubServer) async {
    server.fallback { request in
        switch request.target {
        case "/intact": .json(#"{"users":[{"id":1,"name":"Ada","tags":["math"]}]}"#)
        case "/missing": .json(#"{"users":[{"id":1,"name":"Ada","tags":["math"]},{"id":2,"name":"Grace"}]}"#)
        case "/mistyped": .json(#"{"users":[{"id":1,"name":"Ada","tags":["math", 7]}]}"#)
        case "/truncated": .json(#"{"users":[{"id":1,"name":"A"#)
        case "/empty": .status(204)
        case "/problem":
            .json(#"{"title":"No such user","detail":"Users have numbers up to 41."}"#, status: 404)
        default: .text("<html>Service login required</html>")
        }
    }
    let api = SessionManager(baseURL: server.url("/")) { $0.proxy = .none }
    let users = DecodableResponseSerializer([String: [User]].self)

    await show("What was asked for") { try await api.get("intact", as: users).value }
    await show("A value is missing") { try await api.get("missing", as: users).value }
    await show("A value is of another type") { try await api.get("mistyped", as: users).value }
    await show("The document is cut off") { try await api.get("truncated", as: users).value }
    await show("There is no body") { try await api.get("empty", as: users).value }
    await show("There is no body, and there need not be one") {
        try await api.get("empty", as: .decodable([String: [User]]?.self)).value as Any
    }
    await show("The API explains its error") { try await api.get("problem", as: users).value }
    await show("Something in between answers with a page") { try await api.get("page", as: users).value }
    await show("The page, as what it is") { try await api.get("page", as: .string).value }
}

do {
    try await StubServer.with { await demonstrate($0) }
} catch {
    print(error)
}
