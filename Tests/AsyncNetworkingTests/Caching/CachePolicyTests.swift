// SPDX-License-Identifier: MIT

import AsyncNetworking
import AsyncNetworkingTesting
import HTTPTypes
import Testing

@Suite struct CachePolicyTests {
    private let transport = MockTransport(.text("end"))

    private func sent(_ policy: CachePolicy?, headers: HTTPFields = [:], session: CachePolicy = .protocolPolicy)
        async throws
        -> [String]
    {
        let manager = SessionManager(.on(transport) { $0.cachePolicy = session })
        var request = try manager.request(.get, "x", headers: headers)
        request.cachePolicy = policy
        _ = try await manager.data(for: request)
        return try #require(transport.requests.last).request.headers.lines
    }

    @Test func `by default no Cache-Control is sent`() async throws {
        #expect(try await sent(nil) == [])
        #expect(try await sent(.protocolPolicy) == [])
    }

    @Test func `a policy is sent as Cache-Control`() async throws {
        #expect(try await sent(.reload) == ["Cache-Control: no-cache"])
        #expect(try await sent(.returnCacheElseLoad) == ["Cache-Control: max-stale"])
    }

    @Test func `a session's policy applies to requests without one`() async throws {
        #expect(try await sent(nil, session: .reload) == ["Cache-Control: no-cache"])
        #expect(try await sent(.protocolPolicy, session: .reload) == [])
    }

    @Test func `an explicit Cache-Control field is kept`() async throws {
        #expect(try await sent(.reload, headers: [.cacheControl: "max-age=1"]) == ["Cache-Control: max-age=1"])
    }

    @Test func `a request that accepts only a cached response fails without being sent`() async throws {
        let error = try await sessionError { _ = try await sent(.returnCacheDontLoad) }
        guard case .notCached = error else { throw error }
        #expect(error.description == "The response is not cached, and the request accepts only a cached one.")
        #expect(transport.requests.isEmpty)
    }
}
