// SPDX-License-Identifier: MIT

import AsyncNetworkingTesting
import Testing

@Suite struct TransportConformanceTests {
    @Test(.timeLimit(.minutes(5)), arguments: TransportConformanceCase.all)
    func `the mock transport conforms to the requirements`(_ testCase: TransportConformanceCase) async throws {
        try await testCase.run(makeMock: { MockTransport(script: $0) })
    }

    @Test func `the names of the cases are unique`() {
        #expect(Set(TransportConformanceCase.all.map(\.name)).count == TransportConformanceCase.all.count)
    }
}
