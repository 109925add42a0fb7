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
@Sendable func token(_ grant: Parameters) async throws -> Authenticator.Token {
    let tokens = try await login.post("token", parameters: grant, as: .decodable(Tokens.self)).value
    let expires = Date(timeIntervalSinceNow: tokens.expiresIn)
    return Authenticator.Token(tokens.accessToken, expires: expires, refreshToken: tokens.refreshToken)
}
let authenticator = Authenticator(for: [base]) { old in
    do {
        if let refreshToken = old?.refreshToken {
            return try await token(["grant_type": "refresh_token", "refresh_token": refreshToken])
        }
    } catch let error as SessionError where [400, 401].contains(error.statusCode) {
        // The refresh token has expired, too.
    }
    return try await token(["grant_type": "password", "username": user, "password": password])
}
configuration.authentication.authenticators = [authenticator]
let api = SessionManager(configuration)
print(try await api.get("me", as: .string).value)
