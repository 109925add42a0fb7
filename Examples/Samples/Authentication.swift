// SPDX-License-Identifier: MIT

import AsyncNetworking
import FoundationEssentials

// The samples of the articles "Authentication" and "Cookies".

func logInWithPassword(_ url: URL, password: String) async throws {
    // snippet.passwords
    let api = SessionManager(baseURL: url) {
        $0.authentication.credentials[url] = Credential(user: "ada", password: password)
    }
    // snippet.end
    var request = try api.request(.get, "users/7")
    // snippet.passwords-2
    request.credential = Credential(user: "ada", password: password, schemes: [.basic])
    // snippet.end
    _ = try await api.data(for: request)
}

func askForPassword(_ space: ProtectionSpace) async -> String? { nil }

func answerChallenges() -> SessionManager {
    SessionManager {
        // snippet.challenge-handlers
        $0.authentication.challengeHandler = { challenge in
            guard challenge.previousFailureCount < 3 else { return .performDefaultHandling }
            guard let password = await askForPassword(challenge.protectionSpace) else { return .cancel }
            return .use(Credential(user: "ada", password: password))
        }
        // snippet.end
    }
}

private struct TokenResponse: Decodable, Sendable {
    var token: String
    var seconds: Double
}

func refreshTokens(_ url: URL, logIn: SessionManager, stored: Authenticator.Token?, grant: String) -> SessionManager {
    // snippet.tokens
    let authenticator = Authenticator(for: [url], token: stored) { _ in
        let answer = try await logIn.post(
            "token", parameters: ["grant": grant], as: .decodable(TokenResponse.self))
        return Authenticator.Token(answer.value.token, expires: Date(timeIntervalSinceNow: answer.value.seconds))
    }
    let api = SessionManager(baseURL: url) { $0.authentication.authenticators = [authenticator] }
    // snippet.end
    return api
}

func signRequests(id: String, secret: String) -> SessionManager {
    SessionManager {
        // snippet.signatures
        $0.authentication.signatures = [
            AWSSignature(accessKeyID: id, secretAccessKey: secret, region: "eu-central-1", service: "s3")
        ]
        // snippet.end
    }
}

func readNetrcFile() -> SessionManager {
    SessionManager {
        // snippet.password-files
        $0.authentication.netrcFile = "/home/ada/.netrc"
        // snippet.end
    }
}

func answerProxy(password: String) -> SessionManager {
    SessionManager {
        // snippet.proxies
        $0.proxy = .proxy(
            Proxy(.https, host: "proxy.example", port: 3128, credential: Credential(user: "ada", password: password)))
        // snippet.end
    }
}

func doWithoutCookies(_ url: URL) async throws {
    // snippet.overview
    let api = SessionManager(baseURL: url) {
        $0.handlesCookies = false
    }
    // snippet.end
    var request = try api.request(.get, "users/7")
    // snippet.overview-2
    request.handlesCookies = false
    // snippet.end
    _ = try await api.data(for: request)
}

func keepCookies(_ api: SessionManager, for url: URL) async throws {
    // snippet.the-cookie-store
    for cookie in await api.cookies.cookies(for: url) { print(cookie.name) }
    try await api.cookies.set(Cookie(name: "theme", value: "dark", domain: "api.example.com"))
    await api.cookies.removeAll { $0.domain == "ads.example.com" }
    // snippet.end

    // snippet.cookie-files
    try await api.cookies.load(from: "cookies.txt")
    _ = try await api.get("users/7")
    try await api.cookies.save(to: "cookies.txt")
    // snippet.end
}
