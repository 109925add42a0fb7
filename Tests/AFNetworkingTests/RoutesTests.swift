// SPDX-License-Identifier: MIT

import AFNetworking
import AsyncNetworking
import AsyncNetworkingTesting
import Dispatch
import Testing

/// Subclasses of serializers receive Foundation requests and responses, which this module's own classes do not need.
/// Both code paths must have the same results.
@Suite(.timeLimit(.minutes(5))) struct RoutesTests {
    private final class FormSubclass: AFHTTPRequestSerializer, @unchecked Sendable {}
    private final class JSONSubclass: AFJSONRequestSerializer, @unchecked Sendable {}
    private final class ListSubclass: AFPropertyListRequestSerializer, @unchecked Sendable {}
    private final class ResponseSubclass: AFJSONResponseSerializer, @unchecked Sendable {}

    private static let pairs: [(own: AFHTTPRequestSerializer, subclass: AFHTTPRequestSerializer)] = [
        (AFHTTPRequestSerializer(), FormSubclass()),
        (
            AFJSONRequestSerializer(writingOptions: .sortedKeys), JSONSubclass(writingOptions: .sortedKeys)
        ),
        (AFPropertyListRequestSerializer(), ListSubclass()),
    ]

    /// A request as the task and the server report it, or its error.
    private struct Outcome: Equatable {
        var lines: [String]
        var original: [String: String]?
        var body: Data?
        var timeout: TimeInterval?
        var error: String?
    }

    private func outcome(
        _ serializer: AFHTTPRequestSerializer, _ method: String, _ parameters: Any?, _ headers: [String: String]?
    ) async throws -> Outcome {
        try await StubServer.with { server in
            server.fallback { _ in .json("{}") }
            let manager = AFHTTPSessionManager(for: server)
            manager.requestSerializer = serializer
            let result = await manager.call {
                manager.dataTask(
                    withHTTPMethod: method, urlString: "x?q=1#f", parameters: parameters, headers: headers,
                    uploadProgress: nil, downloadProgress: nil, success: $0, failure: $1)?.nowResumed
            }
            let error = result.error.map { "\($0.domain) \($0.code) with\(result.task == nil ? "out" : "") a task" }
            let original = result.task?.originalRequest
            var lines: [String] = []
            if result.error == nil {
                let request = try await server.requests(count: 1)[0]
                lines = ["\(request.method) \(request.target)", String(decoding: request.body, as: UTF8.self)]
                lines += request.headers.filter { $0.name != "Host" }.map { "\($0.name.lowercased()): \($0.value)" }
            }
            return Outcome(
                lines: lines, original: original?.allHTTPHeaderFields, body: original?.httpBody,
                timeout: original?.timeoutInterval, error: error)
        }
    }

    /// Slow, because it sends two requests for each of 252 combinations.
    @Test(arguments: ["GET", "DELETE", "get", "POST", "PUT", "REPORT", "BAD METHOD"], 0..<3)
    func `both code paths create the same requests`(method: String, index: Int) async throws {
        let (own, subclass) = Self.pairs[index]
        for parameters in [nil, [:], ["b": "ü &", "a": [1, 2]], ["x": NSObject()]] as [[String: Any]?] {
            for headers in [nil, ["X-B": "2", "content-type": "text/x"], ["bad name": "x"]] as [[String: String]?] {
                let made = try await outcome(own, method, parameters, headers)
                let given = try await outcome(subclass, method, parameters, headers)
                #expect(made.error == given.error)
                #expect(Set(made.lines) == Set(given.lines))
                #expect(lowercased(made.original) == lowercased(given.original))
                #expect(made.body == given.body)
                #expect(made.timeout == given.timeout)
            }
        }
    }

    private func lowercased(_ headers: [String: String]?) -> [String: String]? {
        headers.map { Dictionary($0.map { ($0.key.lowercased(), $0.value) }) { first, _ in first } }
    }

    @Test func `settings of a serializer are applied to requests`() async throws {
        for serializer in [AFHTTPRequestSerializer(), FormSubclass()] {
            serializer.timeoutInterval = 7
            serializer.httpShouldHandleCookies = false
            serializer.setValue("1", forHTTPHeaderField: "X-One")
            serializer.setValue("2", forHTTPHeaderField: "x-one")
            try await StubServer.with { server in
                server.fallback { _ in .reply(headers: ["Set-Cookie": "a=1"]) }
                let manager = AFHTTPSessionManager(for: server)
                manager.requestSerializer = serializer
                manager.responseSerializer = AFHTTPResponseSerializer()
                _ = await manager.fetch("")
                let result = await manager.fetch("")
                let request = try await server.requests(count: 2)[1]
                #expect(request.headers["X-One"] == "2")
                #expect(request.headers["Cookie"] == nil)
                #expect(result.task?.originalRequest?.timeoutInterval == 7)
                #expect(result.task?.originalRequest?.httpShouldHandleCookies == false)
            }
        }
    }

    @Test(arguments: ResponseSerializersTests.rows)
    func `both code paths validate responses equally`(row: ResponseSerializersTests.Row) async throws {
        try await StubServer.with { server in
            server.fallback { _ in
                .reply(
                    status: row.status, headers: row.type.map { ["Content-Type": $0] } ?? [:], body: .string(row.body))
            }
            var seen: [[String]] = []
            for serializer in [AFJSONResponseSerializer(), ResponseSubclass()] {
                let manager = AFHTTPSessionManager(for: server)
                manager.responseSerializer = serializer
                let result = await manager.fetch("")
                var facts = [(result.object as? NSObject)?.description ?? "nil"]
                var next = result.error
                while let error = next {
                    facts.append("\(error.domain) \(error.code) \(error.localizedDescription)")
                    let response = error.userInfo[AFNetworkingOperationFailingURLResponseErrorKey] as? HTTPURLResponse
                    facts.append("\(response?.statusCode ?? 0) \(response?.url?.path ?? "")")
                    next = error.userInfo[NSUnderlyingErrorKey] as? NSError
                }
                seen.append(facts)
            }
            #expect(seen[0] == seen[1])
            #expect(seen[0].count == row.errors.count * 2 + 1)
        }
    }
}
