// SPDX-License-Identifier: MIT

import AFNetworking
import AsyncNetworking
import AsyncNetworkingTesting
import Dispatch
import Testing

/// The async verbs, and the core task of each task.
@Suite(.timeLimit(.minutes(5))) struct AsyncVerbsTests {
    @Test func `each verb can be awaited`() async throws {
        try await StubServer.with { server in
            server.fallback { _ in .echo }
            let manager = AFHTTPSessionManager(for: server)
            let responses = [
                try await manager.get("x", parameters: ["a": 1]), try await manager.post("x", parameters: ["a": 1]),
                try await manager.put("x"), try await manager.patch("x"), try await manager.delete("x"),
                try await manager.post("x", constructingBodyWith: { $0.appendPart(withForm: Data(), name: "f") }),
            ]
            let methods = responses.map { ($0.object as? [String: Any])?["method"] as? String }
            #expect(methods == ["GET", "POST", "PUT", "PATCH", "DELETE", "POST"])
            let head = try await manager.head("x").task.response as? HTTPURLResponse
            #expect(head?.statusCode == 200)
        }
    }

    @Test func `errors are thrown, and cancelling the calling task cancels the request`() async throws {
        try await StubServer.with { server in
            server.route("/hang", .hang)
            let manager = AFHTTPSessionManager(for: server)
            let error = await #expect(throws: NSError.self) { _ = try await manager.get("missing") }
            #expect(error?.code == -1011 || error?.code == -1016)
            let task = Task { _ = try await manager.get("hang") }
            try await server.activity { $0.requests.contains { $0.path == "/hang" } }
            task.cancel()
            await #expect(throws: CancellationError.self) { try await task.value }
        }
    }

    @Test func `the core task of a task has streams of progress and events`() async throws {
        try await StubServer.with { server in
            server.route("/", .json("{}"))
            let manager = AFHTTPSessionManager(for: server)
            let task = manager.dataTask(with: URLRequest(url: server.url("/"))) { _, _, _ in }
            let transfer = try #require(task.coreTask)
            #expect(transfer.status.state == .suspended)
            task.resume()
            var words: [String] = []
            for await event in transfer.events {
                switch event {
                case .created: words.append("created")
                case .resumed: words.append("resumed")
                case .response: words.append("response")
                case .ended: words.append("finished")
                default: break
                }
            }
            #expect(words == ["created", "resumed", "response", "finished"])
            #expect(transfer.status.downloadProgress?.completedBytes == 2)
        }
    }
}
