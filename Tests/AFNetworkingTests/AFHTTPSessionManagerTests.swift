// SPDX-License-Identifier: MIT

import AFNetworking
import AsyncNetworkingTesting
import Dispatch
import Testing

/// Rows HSM-001…022, REQ-010…033, USM-009.
@Suite(.timeLimit(.minutes(1))) struct AFHTTPSessionManagerTests {
    @Test func `a GET calls success with the task and the JSON`() async throws {
        try await StubServer.with { server in
            server.route("/user", .json(#"{"name": "Ada", "age": 36}"#))
            let manager = AFHTTPSessionManager(for: server)
            let result = await manager.get("user")
            #expect(result.error == nil)
            #expect(result.dictionary?["name"] as? String == "Ada")
            #expect(result.dictionary?["age"] as? Int == 36)
            #expect((result.response as? HTTPURLResponse)?.statusCode == 200)
            #expect(result.task?.state == .completed)
        }
    }

    @Test func `callbacks arrive on the main queue unless told otherwise`() async throws {
        try await StubServer.with { server in
            server.route("/", .json("{}"))
            let manager = AFHTTPSessionManager(for: server)
            manager.completionQueue = nil
            #expect(await manager.get("").isOnMainQueue)
        }
    }
}
