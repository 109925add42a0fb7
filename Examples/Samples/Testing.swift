// SPDX-License-Identifier: MIT

import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials

// The samples of the article "Testing with the kit".

func testWithMock() async throws {
    // snippet.mock-transport
    let transport = MockTransport { request in
        request.url.path() == "/users/7" ? .json(#"{"id": 7, "name": "Ada"}"#) : .status(.notFound)
    }
    let api = SessionManager(baseURL: URL(string: "https://api.example.com/")) { $0.transport = transport }
    let user = try await api.get("users/7", as: .decodable(User.self)).value
    print(user.name == "Ada", transport.requests.map(\.request.url.path) == ["/users/7"])
    // snippet.end
}

func testWithServer() async throws {
    // snippet.scripted-server
    try await StubServer.with { server in
        server.route("/users/7", .status(503), .json(#"{"id": 7, "name": "Ada"}"#))
        let api = SessionManager(baseURL: server.url())
        print(try await api.data(for: api.request(.get, "users/7")).statusCode)
        print(try await api.get("users/7", as: .decodable(User.self)).value)
        print(try await server.requests(count: 2).map(\.target))
    }
    // snippet.end
}

func testFaults() async throws {
    try await StubServer.with { server in
        // snippet.scripted-server-2
        server.route("/cut", .truncated(declared: 1000, sent: 10))
        server.route("/slow", .drip(bytes: 10, every: .milliseconds(50)))
        server.route("/never", .hang)
        server.route("/reset", .resetAfter(bytes: 20))
        // snippet.end
        let api = SessionManager(baseURL: server.url()) { $0.timeouts.total = .milliseconds(200) }
        for path in ["cut", "slow", "never", "reset"] {
            do {
                print(try await api.get(path).value.count)
            } catch {
                print(error)
            }
        }
    }
}

func testTime() async throws {
    // snippet.manual-clock
    let clock = ManualClock()
    let transport = MockTransport(.status(.tooManyRequests, headers: [.retryAfter: "60"]), .text("ok"))
    let api = SessionManager(baseURL: URL(string: "https://api.example.com/")) {
        $0.transport = transport
        $0.retryPolicy = RetryPolicy(limit: 1)
        $0.clock = clock
    }
    async let response = api.get("x")
    print(try await clock.sleepers(count: 1))  // [60.0 seconds]
    clock.advance(by: .seconds(60))
    print(try await response.statusCode)
    // snippet.end
}

func testTLS() async throws {
    // snippet.certificates
    let authority = try TestCertificateAuthority()
    try await StubServer.with(.init(tls: .init(authority.issue(.expired)))) { server in
        let api = SessionManager(baseURL: server.url()) { $0.tls.trustRoots = .pem(authority.pemData) }
        // snippet.end
        do {
            _ = try await api.get("")
        } catch let error as SessionError {
            print(error.isTrustFailure)
        }
    }
}
