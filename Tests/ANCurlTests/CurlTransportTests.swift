// SPDX-License-Identifier: MIT

import ANCurl
import ANHTTP
import AsyncNetworkingTesting
import FoundationEssentials
import HTTPTypes
import Testing

@Suite struct CurlTransportTests {
    @Test func `a collected response arrives with its head`() async throws {
        try await StubServer.with { server in
            server.route("/", .json(#"{"a": 1}"#))
            let transport = try CurlTransport()
            let (head, body) = try await transport.collect(Request(url: server.url("/")))
            #expect(head.status.code == 200)
            #expect(head.mediaType == "application/json")
            #expect(String(decoding: body, as: UTF8.self) == #"{"a": 1}"#)
        }
    }

    @Test func `a streamed response arrives in chunks`() async throws {
        try await StubServer.with { server in
            server.route("/", .generated(3_000_000))
            let transport = try CurlTransport()
            let count = try await transport.perform(
                Request(url: server.url("/")), delivery: .streamed, reporting: nil
            ) { _, body in
                var count = 0
                for try await chunk in body { count += chunk.count }
                return count
            }
            #expect(count == 3_000_000)
        }
    }

    @Test func `a body in memory is sent by any method`() async throws {
        try await StubServer.with { server in
            server.fallback { _ in .echo }
            let transport = try CurlTransport()
            for method: HTTPRequest.Method in [.get, .post, .put, .patch, .delete, .options] {
                _ = try await transport.collect(
                    Request(method: method, url: server.url("/x"), body: .string("hello")))
            }
            let requests = try await server.requests(count: 6)
            #expect(requests.map(\.method) == ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
            #expect(requests.allSatisfy { $0.text == "hello" })
            #expect(requests.allSatisfy { $0.connection == 0 })
        }
    }
}

extension CurlTransport {
    func collect(_ request: Request, upTo limit: Int = 1 << 24) async throws -> (ResponseHead, Data) {
        try await perform(request, delivery: .collected(upTo: limit), reporting: nil) { head, body in
            (head, try await body.collect(upTo: limit))
        }
    }
}
