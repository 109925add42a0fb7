// SPDX-License-Identifier: MIT

import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials
import HTTPTypes
import Testing

@Suite struct MultipartResponsesTests {
    private static let ranges = """
        --THIS_STRING_SEPARATES\r
        Content-Type: text/plain\r
        Content-Range: bytes 0-4/11\r
        \r
        hello\r
        --THIS_STRING_SEPARATES\r
        Content-Type: text/plain\r
        Content-Range: bytes 6-10/11\r
        \r
        world\r
        --THIS_STRING_SEPARATES--\r

        """
    private static let type: HeaderPairs = ["Content-Type": "multipart/byteranges; boundary=THIS_STRING_SEPARATES"]

    @Test func `byte ranges are received as parts`() async throws {
        try await StubServer.with { server in
            server.fallback { _ in .data(Data(Self.ranges.utf8), headers: Self.type) }
            let api = SessionManager(for: server)
            let texts = try await api.withResponse(for: Request(url: server.url("/"))) { head, body in
                var texts: [Int64: String] = [:]
                for try await part in try body.parts(of: head) {
                    let first = try #require(part.range).bytes.lowerBound
                    texts[first] = try await part.value(as: .string, upTo: 100)
                }
                return texts
            }
            #expect(texts == [0: "hello", 6: "world"])
        }
    }

    @Test func `a response that is not multipart is a SessionError`() async throws {
        let api = SessionManager(on: MockTransport(.text("x")))
        let request = try Request(url: url("http://a.example/"))
        let error = try await sessionError {
            try await api.withResponse(for: request) { head, body in _ = try body.parts(of: head) }
        }
        guard case .serialization(.parts(let failure)) = error else { throw error }
        #expect(
            failure.description == "The response of http://a.example/ is not multipart: its media type is text/plain.")
    }

    @Test func `a truncated body is a SessionError`() async throws {
        let api = SessionManager(
            on: MockTransport(
                .data(Data(Self.ranges.utf8.dropLast(10)), headers: [.contentType: Self.type.first?.value ?? ""])))
        let request = try Request(url: url("http://a.example/"))
        let error = try await sessionError {
            try await api.withResponse(for: request) { head, body in
                for try await part in try body.parts(of: head) { _ = try await part.body.collect(upTo: 100) }
            }
        }
        guard case .serialization(.parts(let failure)) = error else { throw error }
        #expect(failure.description.hasPrefix("The multipart response of http://a.example/ ended before"))
    }
}
