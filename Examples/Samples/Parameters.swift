// SPDX-License-Identifier: MIT

import AsyncNetworking
import FoundationEssentials

func makeParameters(name: String, age: Int, manager: String?, tags: [String], born: Date) throws {
    // snippet.creating-parameters
    let literal: Parameters = [
        "name": name, "age": age, "manager": manager, "tags": tags, "born": born, "active": true,
        "address": ["city": "London", "floor": 2],
    ]
    // snippet.end

    struct User: Encodable {
        var name = "Ada"
        var tags = ["math", "code"]
    }
    // snippet.creating-parameters-2
    let encoded = try Parameters(encoding: User())
    // snippet.end
    print(literal, encoded)
}

func sendParameters(_ api: SessionManager, page: Int, cursor: String?, name: String) async throws {
    // snippet.creating-parameters-3
    // GET …/users?page=2&sort%5B%5D=name&sort%5B%5D=age, without a cursor if it is nil
    let users = try await api.get(
        "users", parameters: ["page": page, "cursor": cursor, "sort": ["name", "age"]], as: .json)
    // POST …/users with the form name=Ada%20Lovelace
    try await api.post("users", parameters: ["name": name])
    // snippet.end
    print(users.value)
}

func chooseEncoder() -> SessionManager {
    // snippet.forms-and-queries
    let encoder = URLEncodedFormEncoder().with {
        $0.arrays = .indexed
        $0.usesBooleanWords = true
        $0.dates = .iso8601
        $0.keys = .snakeCase
        $0.encodesSpacesAsPlus = true
        $0.sortsNames = false
    }
    // snippet.end
    return SessionManager { $0.requestSerializer = HTTPRequestSerializer(encoder: encoder) }
}

func chooseSerializer() throws -> SessionManager {
    // snippet.where-parameters-are-placed
    var base = HTTPRequestSerializer()
    try base.headers.setBearerAuthorization("mF_9.B5f-4.1JqM")
    base.queryMethods = [.get, .head]
    let serializer = JSONRequestSerializer(base: base)
    // snippet.end
    return SessionManager { $0.requestSerializer = serializer }
}

func compress(_ report: Data, to url: URL) -> Request {
    var request = Request(method: .put, url: url, body: .bytes(report))
    // snippet.compressed-bodies
    request.compressBody(.gzip)
    // snippet.end
    return request
}
