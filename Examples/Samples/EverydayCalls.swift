// SPDX-License-Identifier: MIT

import AsyncNetworking
import FoundationEssentials

// The calls of the article "Everyday calls" and of the table in README.md.

func callVerbs(_ api: SessionManager, user: User, password: String, token: String) async throws {
    do {
        let user = try await api.get("users/7", as: .decodable(User.self)).value
        print(user)
    }
    let created = try await api.post("users", body: .json(user), as: .decodable(User.self)).value
    let page = try await api.get("users", parameters: ["name": "Ada", "page": 2], as: .json).value
    try await api.post("login", parameters: ["user": "ada", "password": password])
    let report = try await api.get("report", timeout: .seconds(5)).value
    let me = try await api.get("me", headers: [.authorization: "Bearer \(token)"]).value
    try await api.delete("users/7")
    print(created, page, report, me)
}

func callWithBodies(_ api: SessionManager, path: String, lines: AsyncStream<String>) async throws {
    var form = MultipartFormData()
    try form.append(file: path, name: "portrait")
    try await api.post("photos", body: .form(form))
    try await api.put("disk.iso", body: .file(path))
    try await api.post("log", body: .writer { log in for await line in lines { try await log.write(line) } })
}

func callForFiles(_ api: SessionManager, path: String, url: URL) async throws {
    let file = try await api.download("disk.iso", to: "disk.iso").value
    try await api.withResponse(for: Request(url: url)) { _, body in for try await line in body.lines { print(line) } }
    let page = try await api.get(url, options: { $0.proxy = .none }).value
    print(file, page)
}

func makeRetryingManager() -> SessionManager {
    let api = SessionManager { $0.retryPolicy = RetryPolicy(limit: 3) }
    return api
}
