// SPDX-License-Identifier: MIT

import AsyncNetworking
import FoundationEssentials

// The samples of the article "Making requests".

struct User: Codable, Sendable {
    let id: Int
    let name: String
}

func makeManager() -> SessionManager {
    // snippet.overview
    let api = SessionManager(baseURL: URL(string: "https://api.example.com/v1/")) {
        $0.headers[.authorization] = "Bearer …"
        $0.timeouts.total = .seconds(20)
        $0.requestSerializer = .json
    }
    // snippet.end
    return api
}

// snippet.configuration
struct UserDirectory {
    let api: SessionManager

    init(configure: (inout SessionConfiguration) -> Void = { _ in }) {
        let base = URL(string: "https://api.example.com/v1/")
        api = SessionManager(SessionConfiguration(baseURL: base, configure: configure))
    }
}
// snippet.end

func useVerbs(_ api: SessionManager) async throws {
    // snippet.verbs
    let user = try await api.get("users/7", as: .decodable(User.self)).value
    let found = try await api.get("users", parameters: ["name": "Ada", "page": 2], as: .json).value
    let created = try await api.post("users", body: .json(User(id: 8, name: "Ada")), as: .decodable(User.self))
    try await api.put("users/8/portrait", body: .file("portrait.png"), headers: [.contentType: "image/png"])
    try await api.delete("users/\(created.value.id)", as: .empty)
    // snippet.end
    print(user, found[0]?["name"] ?? "", created.statusCode, created.metrics.total)
}

func limitCalls(_ api: SessionManager, url: URL) async throws -> Int {
    // snippet.limits
    let report = try await api.get("report", timeout: .seconds(5)).value
    let mirror = try await api.get(url, options: { $0.proxy = .none }).value
    // snippet.end
    return report.count + mirror.count
}

func makeRequestByHand(_ api: SessionManager, url: URL) async throws {
    // snippet.request-values
    var request = Request(method: .put, url: url, headers: [.contentType: "text/plain"], body: .string("Hello"))
    request.timeout = .seconds(5)
    request.changeOptions { $0.proxy = .none }
    let response = try await api.data(for: request)
    print(response.statusCode, response.headers[.eTag] ?? "", response.value.count)
    // snippet.end
}

func addHeadersFromOutside(_ pairs: [(String, String)], to request: inout Request) throws {
    // snippet.request-values-2
    request.headers.append(contentsOf: try HTTPFields(validating: pairs))
    // snippet.end
}

func runManyAtOnce(_ api: SessionManager, _ ids: [Int]) async throws -> [User] {
    // snippet.concurrent-requests
    try await withThrowingTaskGroup { group in
        for id in ids {
            group.addTask { try await api.get("users/\(id)", as: .decodable(User.self)).value }
        }
        return try await group.reduce(into: []) { $0.append($1) }
    }
    // snippet.end
}

func follow(_ feed: URL, _ api: SessionManager) async throws {
    // snippet.long-lived
    var request = Request(url: feed)
    request.isLongLived = true
    try await api.withResponse(for: request) { head, body in
        for try await line in body.lines { print(line) }
    }
    // snippet.end
}

// snippet.custom-serializers
struct ChecksumSerializer: ResponseSerializer {
    func serialize(_ head: ResponseHead, _ body: Data) throws -> Int {
        body.reduce(0) { $0 &+ Int($1) }
    }
}
// snippet.end

func useChecksum(_ api: SessionManager) async throws -> Int {
    try await api.get("file", as: ChecksumSerializer()).value
}

// snippet.api-key
extension HTTPField.Name {
    static let apiKey = HTTPField.Name(constant: "X-API-Key")
}
// snippet.end

func decideRedirects() -> SessionManager {
    // snippet.redirects
    let api = SessionManager {
        $0.redirectPolicy.maximum = 5
        $0.redirectPolicy.sensitiveHeaders.insert(.apiKey)
        $0.redirectPolicy.decision = { redirection in
            redirection.proposed.url.host() == redirection.original.url.host() ? redirection.proposed : nil
        }
    }
    // snippet.end
    return api
}

func endManager(_ api: SessionManager) async {
    // snippet.shutting-down
    await api.shutdown(draining: .seconds(10))
    // snippet.end
}

func useScope(url: URL) async throws -> Data {
    // snippet.shutting-down-2
    try await withSession { session in
        try await session.data(for: Request(url: url)).value
    }
    // snippet.end
}
