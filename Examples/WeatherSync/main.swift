// SPDX-License-Identifier: MIT

// Copies the observations of a weather service into a file of JSON lines: page by page, with tokens that expire, and
// from the last observation on when it runs again.
//
//     swift run WeatherSync                       twice, from a server in this process
//     swift run WeatherSync URL USER PASSWORD FILE

import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials

struct Observation: Codable, Sendable {
    var station: String
    var takenAt: Date
    var celsius: Double
}

struct Page: Codable, Sendable {
    var observations: [Observation]
    var nextCursor: String?
}

struct Tokens: Decodable, Sendable {
    let accessToken: String
    let refreshToken: String
    let expiresIn: Double
}

struct Account: Sendable {
    let user: String
    let password: String

    /// Creates a session that logs in, and refreshes its token when it has expired or the server refuses it.
    func session(for base: URL) -> SessionManager {
        var configuration = SessionConfiguration(baseURL: base) {
            $0.json.encoder.keyEncodingStrategy = .convertToSnakeCase
            $0.json.decoder.keyDecodingStrategy = .convertFromSnakeCase
            $0.requestSerializer = HTTPRequestSerializer(encoder: URLEncodedFormEncoder().with { $0.dates = .iso8601 })
            $0.retryPolicy = RetryPolicy(limit: 3)
        }
        let logIn = SessionManager(configuration)
        @Sendable func token(_ grant: Parameters) async throws -> Authenticator.Token {
            let tokens = try await logIn.post("token", parameters: grant, as: .decodable(Tokens.self)).value
            let expires = Date(timeIntervalSinceNow: tokens.expiresIn)
            return Authenticator.Token(tokens.accessToken, expires: expires, refreshToken: tokens.refreshToken)
        }
        let authenticator = Authenticator(for: [base]) { [user, password] old in
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
        return SessionManager(configuration)
    }
}

/// Appends the observations after the last one in the file, and returns their number.
func sync(_ api: SessionManager, to path: String) async throws -> Int {
    let encoder = api.configuration.json.encoder
    var text = (try? Data(contentsOf: URL(filePath: path))) ?? Data()
    let last = try text.split(separator: UInt8(ascii: "\n")).last.map {
        try api.configuration.json.decoder.decode(Observation.self, from: $0)
    }
    var count = 0
    var cursor: String?
    repeat {
        let parameters: Parameters = ["after": last?.takenAt, "cursor": cursor, "limit": 100]
        let page = try await api.get("observations", parameters: parameters, as: .decodable(Page.self)).value
        for observation in page.observations { text += try encoder.encode(observation) + Data("\n".utf8) }
        // Replaced atomically, so that the file ends with a complete line at any time.
        try text.write(to: URL(filePath: path), options: .atomic)
        count += page.observations.count
        cursor = page.nextCursor
    } while cursor != nil
    return count
}

/// Serves ten observations in pages of three, and accepts each token for two pages only.
func serve(on server: StubServer) {
    server.route("/token") { request in
        let count = server.activity.requests.count { $0.path == "/token" }
        let grant = String(decoding: request.body, as: UTF8.self).contains("=refresh_token") ? "refresh" : "login"
        print("Token \(count) by \(grant)")
        return .json(#"{"access_token": "t\#(count)", "refresh_token": "r\#(count)", "expires_in": 3600}"#)
    }
    server.route("/observations") { request in
        let field = request.headers["Authorization"]
        let uses = server.activity.requests.count { $0.path == "/observations" && $0.headers["Authorization"] == field }
        guard field != nil, uses <= 2 else { return .status(401, headers: ["WWW-Authenticate": "Bearer"]) }
        guard request.query?.contains("after=") != true else { return .json(#"{"observations": []}"#) }
        let start =
            request.query?.split(separator: "&").first { $0.hasPrefix("cursor=") }
            .flatMap { Int($0.dropFirst("cursor=".count)) } ?? 0
        let observations = (start..<min(start + 3, 10)).map {
            #"{"station": "Oslo", "taken_at": "2026-01-\#(10 + $0)T12:00:00Z", "celsius": -\#($0).5}"#
        }
        let next = start + 3 < 10 ? #", "next_cursor": "\#(start + 3)""# : ""
        return .json(#"{"observations": [\#(observations.joined(separator: ", "))]\#(next)}"#)
    }
}

do {
    let words = CommandLine.arguments
    if words.count == 5, let url = URL(string: words[1]) {
        print(try await sync(Account(user: words[2], password: words[3]).session(for: url), to: words[4]), "new")
    } else {
        try await StubServer.with { server in
            serve(on: server)
            for _ in 1...2 {
                let api = Account(user: "ada", password: "secret").session(for: server.url("/"))
                print(try await sync(api, to: "observations.jsonl"), "new observations")
            }
        }
    }
}
