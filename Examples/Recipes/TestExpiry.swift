// SPDX-License-Identifier: MIT

// Tests without waiting that an expired token is refreshed once, and that a retry waits as long as the server asks.

import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials

let base = URL(string: "https://api.example.com/")
let clock = ManualClock()
let transport = MockTransport(.status(.tooManyRequests, headers: [.retryAfter: "60"]), .text("ok"))
// A token whose date has passed; a token without a date is used until the server answers 401.
let ended = Authenticator.Token("ended", expires: Date(timeIntervalSinceNow: -1))
let authenticator = Authenticator(for: base.map { [$0] } ?? [], token: ended) { _ in Authenticator.Token("fresh") }
let api = SessionManager(baseURL: base) {
    $0.transport = transport
    $0.clock = clock
    $0.retryPolicy = RetryPolicy(limit: 1)
    $0.authentication.authenticators = [authenticator]
}

async let response = api.get("report", as: .string)
print(try await clock.sleepers(count: 1))  // [60.0 seconds]
clock.advance(by: .seconds(60))
print(try await response.value)  // ok
print(transport.requests.map { $0.request.headers[.authorization] ?? "" })  // ["Bearer fresh", "Bearer fresh"]
