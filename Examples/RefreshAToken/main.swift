// SPDX-License-Identifier: MIT

// Sends twenty concurrent requests with an expired token, which is refreshed once for all of them:
//
//     swift run RefreshAToken

import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials

struct TokenResponse: Decodable, Sendable {
    let token: String
    let seconds: Double
}

struct Narrator: EventMonitor {
    func receive(_ event: TaskEvent, of task: AnySessionTask) {
        switch event {
        case .exchange(_, .started), .exchange(_, .head), .refreshingToken: print("#\(task.id)", event)
        default: break
        }
    }
}

/// Requests twenty pages with a token that the server no longer accepts.
func askForPages(of server: StubServer) async throws {
    let logIn = SessionManager(baseURL: server.url("/"))
    let authenticator = Authenticator(for: [server.url("/")], token: Authenticator.Token("ended")) { old in
        print("Refreshing \(old.map { "\($0)" } ?? "nothing")")
        let answer = try await logIn.post("token", as: .decodable(TokenResponse.self)).value
        return Authenticator.Token(answer.token, expires: Date(timeIntervalSinceNow: answer.seconds))
    }
    let api = SessionManager(baseURL: server.url("/")) {
        $0.authentication.authenticators = [authenticator]
        $0.eventMonitors = [Narrator()]
    }
    try await withThrowingTaskGroup(of: Int.self) { group in
        for number in 1...20 { group.addTask { try await api.get("pages/\(number)").statusCode } }
        for try await status in group where status != 200 { print("Status \(status)") }
    }
}

do {
    try await StubServer.with { server in
        server.route("/token", .json(#"{"token": "fresh", "seconds": 3600}"#))
        server.fallback { request in
            request.headers["Authorization"] == "Bearer fresh" ? .text("welcome") : .status(401)
        }
        try await askForPages(of: server)
        let requests = server.activity.requests
        print(requests.count, "requests,", requests.count { $0.path == "/token" }, "of them for a token")
    }
} catch {
    print(error)
}
