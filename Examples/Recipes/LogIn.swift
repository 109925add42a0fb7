// SPDX-License-Identifier: MIT

// Logs in with a password, and refreshes the token when it has expired or the server refuses it.

import AsyncNetworking
import FoundationEssentials
import Glibc

struct Tokens: Decodable {
    let accessToken: String
    let refreshToken: String?
    let expiresIn: Double
}

let words = CommandLine.arguments
guard words.count == 4, let base = URL(string: words[1]) else {
    print("usage: URL USER PASSWORD")
    exit(2)
}
let (user, password) = (words[2], words[3])

var configuration = SessionConfiguration(baseURL: base) {
    $0.json.decoder.keyDecodingStrategy = .convertFromSnakeCase
}
// A session of its own, because the other one is created with the authenticator.
let login = SessionManager(configuration)
let authenticator = Authenticator(for: [base]) { old in
    let grant: Parameters =
        if let token = old?.refreshToken {
            ["grant_type": "refresh_token", "refresh_token": token]
        } else {
            ["grant_type": "password", "username": user, "password": password]
        }
    let tokens = try await login.post("token", parameters: grant, as: .decodable(Tokens.self)).value
    let expires = Date(timeIntervalSinceNow: tokens.expiresIn)
    return Authenticator.Token(tokens.accessToken, expires: expires, refreshToken: tokens.refreshToken)
}
configuration.authentication.authenticators = [authenticator]
let api = SessionManager(configuration)
print(try await api.get("me", as: .string).value)
