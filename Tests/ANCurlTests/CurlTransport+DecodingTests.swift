// SPDX-License-Identifier: MIT

import ANCurl
import ANHTTP
import ANSystem
import AsyncNetworkingTesting
import Foundation
import HTTPTypes
import Testing

@Suite(.timeLimit(.minutes(5))) struct DecodingTests {
    /// The text that ``encodings`` were made from, by gzip(1), zlib, brotli and zstd(1).
    private static let text = String(repeating: "The quick brown fox jumps over the lazy dog. ", count: 20)
    private static let encodings = [
        "gzip": """
        H4sIAAAAAAACAwvJSFUoLM1MzlZIKsovz1NIy69QyCrNLShWyC9LLVIoAUrnJFZVKqTkp+sphIwqHlU8qpjaigHmSmawhAMAAA==
        """,
        "deflate": "eNoLyUhVKCzNTM5WSCrKL89TSMuvUMgqzS0oVsgvSy1SKAFK5yRWVSqk5KfrKYSMKh5VPKqY2ooBR6VDHA==",
        "br": "G4MDiCwOeNPQlV2XELsXK6nK0JLMjK1BXObyNsgZnp4Ke4MNOHBIIG8kvkGnFc4cHieqKTjCibhPgwE=",
        "zstd": "KLUv/QRotQEA1AJUaGUgcXVpY2sgYnJvd24gZm94IGp1bXBzIG92ZXIgdGhlIGxhenkgZG9nLiABAKUKK1UGWRP6hQ==",
    ]

    private static func encoded(_ coding: String) throws -> Data {
        try #require(encodings[coding].flatMap { Data(base64Encoded: $0) })
    }

    private func reply(_ coding: String, _ data: Data) -> Script {
        .reply(headers: ["Content-Encoding": coding], body: .bytes(data))
    }

    @Test(arguments: ["gzip", "deflate", "br", "zstd"], [BodyDelivery.collected(upTo: 1 << 20), .streamed])
    func `a compressed body is decoded and the head says so`(coding: String, delivery: BodyDelivery) async throws {
        guard ContentDecoder.supportedCodings.contains(coding) else { return }
        try await StubServer.with { server in
            let data = try Self.encoded(coding)
            server.route("/", reply(coding, data))
            let (head, body, metrics) = try await CurlTransport().withResponse(
                for: server.request(), delivery: delivery, reporting: nil
            ) { head, body in (head, try await body.collect(upTo: 1 << 20), body.metrics) }
            #expect(String(decoding: body, as: UTF8.self) == Self.text)
            #expect(head.headers[.contentEncoding] == coding)
            #expect(metrics?.responseBodyBytes == Int64(data.count))
            let accepted = try #require(try await server.requests(count: 1)[0].headers["Accept-Encoding"])
            #expect(accepted.contains(coding))
        }
    }

    @Test func `a compressed chunked body is decoded`() async throws {
        try await StubServer.with { server in
            server.route(
                "/",
                .reply(
                    headers: ["Content-Encoding": "gzip"], body: .bytes(try Self.encoded("gzip")),
                    framing: .chunked(size: 3)))
            #expect(try await CurlTransport().text(server.request()) == Self.text)
        }
    }

    @Test func `without decoding nothing is asked for and bytes stay as they are`() async throws {
        try await StubServer.with { server in
            let data = try Self.encoded("gzip")
            server.route("/", reply("gzip", data))
            let options = TransferOptions.with {
                $0.decodesContent = false
                $0.decompressionLimit.maximumSize = 10
            }
            let (head, body) = try await CurlTransport().collect(server.request(options: options))
            #expect(body == data)
            #expect(head.headers[.contentEncoding] == "gzip")
            #expect(try await server.requests(count: 1)[0].headers["Accept-Encoding"] == nil)
        }
    }

    @Test(arguments: ["gzip", "deflate"])
    func `a broken coding is an invalid response`(coding: String) async throws {
        try await StubServer.with { server in
            var data = try Self.encoded(coding)
            data[data.startIndex + 30] ^= 0xFF
            server.enqueue(reply(coding, data), reply(coding, Data("plain text".utf8)))
            let transport = try CurlTransport()
            for _ in 0..<2 {
                let error = try await transport.failure(server.request())
                guard case .invalidContentEncoding = error.reason else { throw error }
            }
        }
    }

    @Test(
        arguments: ["gzip", "deflate", "br", "zstd"],
        [Reply.Framing.contentLength, .chunked, .chunked(size: 7), .untilClose])
    func `a coding that ends early is an invalid response`(coding: String, framing: Reply.Framing) async throws {
        guard ContentDecoder.supportedCodings.contains(coding) else { return }
        try await StubServer.with { server in
            let data = try Self.encoded(coding).dropLast(3)
            server.route(
                "/", .reply(headers: ["Content-Encoding": coding], body: .bytes(Data(data)), framing: framing))
            let transport = try CurlTransport()
            for delivery: BodyDelivery in [.collected(upTo: 1 << 20), .streamed] {
                let error = try await transport.failure(server.request(), delivery: delivery)
                guard case .invalidContentEncoding = error.reason else { throw error }
                let context = error.context
                #expect(context.message?.contains(coding) == true)
                #expect(context.address?.port == server.endpoint.port)
            }
            try await transport.withResponse(for: server.request(), delivery: .streamed, reporting: nil) { _, body in
                await #expect(throws: TransportError.self) { for try await _ in body {} }
                #expect(body.ending == nil)
            }
        }
    }

    @Test(arguments: [BodyDelivery.collected(upTo: 1 << 20), .streamed])
    func `all members of a gzip file are decoded, and bytes after them ignored`(delivery: BodyDelivery) async throws {
        try await StubServer.with { server in
            let member = try Self.encoded("gzip")
            server.enqueue(reply("gzip", member + member), reply("gzip", member + Data("after".utf8)))
            let transport = try CurlTransport()
            for count in [2, 1] {
                let body = try await transport.withResponse(for: server.request(), delivery: delivery, reporting: nil) {
                    try await $1.collect(upTo: 1 << 20)
                }
                #expect(String(decoding: body, as: UTF8.self) == String(repeating: Self.text, count: count))
            }
        }
    }

    @Test func `a field of the request's own says which codings are accepted`() async throws {
        try await StubServer.with { server in
            server.route("/", reply("gzip", try Self.encoded("gzip")))
            let transport = try CurlTransport()
            #expect(try await transport.text(server.request(headers: [.acceptEncoding: "gzip;q=0.5"])) == Self.text)
            #expect(try await server.requests(count: 1)[0].headers.values("Accept-Encoding") == ["gzip;q=0.5"])
        }
    }

    @Test func `a part of a representation is asked for without a coding, and never decoded`() async throws {
        try await StubServer.with { server in
            let part = try Self.encoded("gzip").dropFirst(20)
            let fields: HeaderPairs = [
                "Content-Encoding": "gzip", "Content-Range": "bytes 20-\(19 + part.count)/\(20 + part.count)",
            ]
            server.fallback { request in
                request.path == "/whole"
                    ? reply("gzip", Data(base64Encoded: Self.encodings["gzip"] ?? "") ?? Data())
                    : .reply(status: 206, headers: fields, body: .bytes(Data(part)))
            }
            let transport = try CurlTransport()
            func get(_ path: String, _ headers: HTTPFields) async throws -> Data {
                var request = server.request(headers: headers)
                request.url = server.url(path)
                return try await transport.collect(request).body
            }
            #expect(try await get("/", [.range: "bytes=20-"]) == part)
            #expect(try await get("/", [.range: "bytes=20-", .acceptEncoding: "gzip"]) == part)
            // A server may answer with all of it.
            #expect(try await get("/whole", [.range: "bytes=20-"]) == Data(Self.text.utf8))
            let codings = try await server.requests(count: 3).map { $0.headers.values("Accept-Encoding") }
            #expect(codings == [["identity"], ["gzip"], ["identity"]])
        }
    }

    @Test func `a limit below the body acts before more than one chunk is handed out`() async throws {
        try await StubServer.with { server in
            server.route("/", reply("gzip", Self.bomb))
            var count = 0
            let options = TransferOptions.with {
                $0.decompressionLimit.maximumRatio = nil
                $0.decompressionLimit.maximumSize = 3_000_000
            }
            let transport = try CurlTransport()
            await #expect(throws: TransportError.self) {
                try await transport.withResponse(
                    for: server.request(options: options), delivery: .streamed, reporting: nil
                ) {
                    for try await chunk in $1 { count += chunk.count }
                }
            }
            #expect(count <= 3_000_000)
            #expect(count > 2_900_000)
        }
    }

    @Test func `the limit of a reader counts the decoded bytes`() async throws {
        try await StubServer.with { server in
            let short = try Body.deflated(Data("short".utf8), .gzip)
            #expect(short.count > 20)
            server.route("/", reply("gzip", short))
            for (limit, isEnough) in [(5, true), (4, false)] {
                let body = try? await CurlTransport().stream(server.request()) { try await $1.collect(upTo: limit) }
                #expect(body == (isEnough ? Data("short".utf8) : nil))
            }
        }
    }

    @Test func `an unknown coding is an invalid response`() async throws {
        try await StubServer.with { server in
            server.enqueue(reply("rot13", Data("grkg".utf8)))
            let error = try await CurlTransport().failure(server.request())
            guard case .invalidContentEncoding = error.reason else { throw error }
        }
    }

    /// 20 MB of zeros, compressed to about 20 KB.
    private static let bomb = (try? Body.zeros(20_000_000, .gzip)) ?? Data()

    @Test(arguments: [BodyDelivery.collected(upTo: 1 << 30), .streamed])
    func `a body that unpacks to too many times its size is refused`(delivery: BodyDelivery) async throws {
        try await StubServer.with { server in
            #expect(Self.bomb.count > 16_000)
            server.route("/", reply("gzip", Self.bomb))
            let transport = try CurlTransport()
            let error = try await transport.failure(server.request(), delivery: delivery)
            guard case .responseTooLarge(.decompressionRatio(limit: 200)) = error.reason else { throw error }
            let options = TransferOptions.with { $0.decompressionLimit.maximumRatio = nil }
            let count = try await transport.withResponse(
                for: server.request(options: options), delivery: delivery, reporting: nil
            ) { try await $1.collect(upTo: 20_000_000).count }
            #expect(count == 20_000_000)
        }
    }

    @Test func `a body that unpacks to too much is refused`() async throws {
        try await StubServer.with { server in
            server.route("/", reply("gzip", Self.bomb))
            let options = TransferOptions.with {
                $0.decompressionLimit.maximumRatio = nil
                $0.decompressionLimit.maximumSize = 1_000_000
            }
            let error = try await CurlTransport().failure(server.request(options: options))
            guard case .responseTooLarge(.decompressed(limit: 1_000_000)) = error.reason else { throw error }
        }
    }

    @Test(arguments: [BodyDelivery.collected(upTo: 1 << 30), .streamed])
    func `a body that has arrived is not decoded further when its reader is cancelled`(
        delivery: BodyDelivery
    ) async throws {
        try await StubServer.with { server in
            server.route("/", reply("gzip", Self.bomb))
            let options = TransferOptions.with { $0.decompressionLimit.maximumRatio = nil }
            try await CurlTransport().withResponse(
                for: server.request(options: options), delivery: delivery, reporting: nil
            ) { _, body in
                var iterator = body.makeAsyncIterator()
                _ = try await iterator.next()
                let reader = Task {
                    unsafe withUnsafeCurrentTask { unsafe $0?.cancel() }
                    var iterator = body.makeAsyncIterator()
                    await #expect(throws: CancellationError.self) { try await iterator.next() }
                    await #expect(throws: CancellationError.self) { try await body.collect(upTo: 1 << 30) }
                }
                await reader.value
            }
        }
    }

    @Test func `a paused reader of a body that unpacks to much gets all of it`() async throws {
        try await StubServer.with { server in
            server.route("/", reply("gzip", Self.bomb))
            let options = TransferOptions.with { $0.decompressionLimit.maximumRatio = nil }
            let count = try await CurlTransport().stream(server.request(options: options)) { _, body in
                var count = 0
                for try await chunk in body {
                    count += chunk.count
                    await Task.yield()
                }
                return count
            }
            #expect(count == 20_000_000)
        }
    }
}
