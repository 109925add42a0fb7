// SPDX-License-Identifier: MIT

import AsyncNetworkingTesting
import Releases
import Testing

@Test func `the latest release is read`() async throws {
    let transport = MockTransport(.json(#"{"tag_name": "v1.2", "published_at": "2026-11-25T12:00:00Z"}"#))
    let release = try await Releases { $0.transport = transport }.latest(of: "ada/engine")
    #expect(release?.tagName == "v1.2")
    #expect(transport.requests.map(\.request.url.path) == ["/repos/ada/engine/releases/latest"])
}

@Test func `a repository may have no release`() async throws {
    let transport = MockTransport(.status(.notFound))
    let release = try await Releases { $0.transport = transport }.latest(of: "ada/engine")
    #expect(release == nil)
}
