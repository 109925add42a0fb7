// SPDX-License-Identifier: MIT

import ANHTTP
import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials
import HTTPTypes
import Testing

/// Values that programs compute, and that no arithmetic of a session may take for granted.
@Suite struct ExtremeValuesTests {
    private static let durations = [
        Duration(attoseconds: .max), Duration(attoseconds: .min), .seconds(Int64.max), .zero,
    ]

    @Test(arguments: durations)
    func `any duration is accepted as a limit, a wait or a period`(duration: Duration) async throws {
        let authenticator = Authenticator(
            for: [try url("https://a.example/")], token: Authenticator.Token("old"), leeway: duration,
            refreshPeriod: duration
        ) { _ in Authenticator.Token("new") }
        let transport = MockTransport { request in
            request.headers[.authorization] == "Bearer old" ? .status(.unauthorized) : .status(.serviceUnavailable)
        }
        let session = SessionManager(baseURL: try url("https://a.example/")) {
            $0.transport = transport
            $0.clock = ManualClock()
            $0.authentication.authenticators = [authenticator]
            $0.attemptInterceptors = [CircuitBreaker(failures: 1, cooldown: duration)]
            $0.retryPolicy = RetryPolicy(limit: 1).with {
                ($0.deadline, $0.backoff, $0.maximumRetryAfter) = (duration, Backoff(base: .zero), duration)
            }
        }
        for _ in 0..<3 {
            await #expect(throws: (any Error).self) { try await session.get("x", timeout: duration, as: .data) }
        }
        var request = Request(url: try url("https://a.example/events"))
        request.timeout = duration
        request.retryPolicy = RetryPolicy(limit: 0)
        await #expect(throws: (any Error).self) {
            for try await _ in session.events(for: request, reconnectionTime: duration) {}
        }
        await session.shutdown(draining: .zero)
    }

    @Test(arguments: [4_097, 65_530, 65_534])
    func `a request with too many fields is refused`(count: Int) async throws {
        var request = Request(url: try url("https://a.example/"))
        for number in 0..<count {
            request.headers.append(HTTPField(name: try #require(HTTPField.Name("X-\(number)")), value: ""))
        }
        let session = SessionManager(on: MockTransport(.text("x")))
        let error = try await sessionError { _ = try await session.data(for: request) }
        guard case .invalidRequest = error.reason else { throw error }
    }
}
