// SPDX-License-Identifier: MIT

import ANCurl
import ANHTTP
import AsyncNetworkingTesting
import FoundationEssentials
import HTTPTypes
import Testing

@Suite(.timeLimit(.minutes(5))) struct BodiesTests {
    @Test func `a reader that pauses stops the server`() async throws {
        try await StubServer.with { server in
            let sent = Flag()
            server.route(
                "/slow",
                Script([
                    .send(Data("HTTP/1.1 200 OK\r\n\r\n".utf8)), .generate(100_000_000),
                    .respond { _ in
                        sent.raise()
                        return Reply()
                    },
                ]))
            server.route("/fast", .generated(300_000_000))
            let transport = try CurlTransport()
            try await transport.stream(server.request("/slow")) { _, body in
                var chunks = body.makeAsyncIterator()
                let first = try await chunks.next()
                #expect(first?.isEmpty == false)
                // The same loop moves three times as much for another reader meanwhile.
                let fast = try await transport.stream(server.request("/fast")) { _, body in
                    try await body.reduce(0) { $0 + $1.count }
                }
                #expect(fast == 300_000_000)
                #expect(!sent.isRaised)
            }
        }
    }

    @Test func `a reader that pauses gets everything, in order`() async throws {
        try await StubServer.with { server in
            server.route("/", .generated(10_000_000))
            let options = TransferOptions.with { $0.streamBufferSize = 1000 }
            let received = try await CurlTransport().stream(server.request(options: options)) { _, body in
                var received = Data()
                for try await chunk in body {
                    received.append(chunk)
                    await Task.yield()
                }
                return received
            }
            #expect(received == StubServer.generatedBytes(10_000_000))
        }
    }

    @Test(arguments: [BodyDelivery.collected(upTo: 1000), .streamed])
    func `a body up to the limit is collected, a longer one is an error`(delivery: BodyDelivery) async throws {
        try await StubServer.with { server in
            server.enqueue(.generated(1000), .generated(1001), .generated(1001, framing: .chunked(size: 100)))
            server.fallback { _ in .text("next") }
            let transport = try CurlTransport()
            func collect() async throws -> Data {
                try await transport.withResponse(for: server.request(), delivery: delivery, reporting: nil) { _, body in
                    try await body.collect(upTo: 1000)
                }
            }
            #expect(try await collect().count == 1000)
            for _ in 0..<2 {
                let error = await #expect(throws: TransportError.self) { try await collect() }
                #expect(error?.reason == .responseTooLarge(.body(limit: 1000)))
            }
            #expect(try await transport.text(server.request()) == "next")
        }
    }

    @Test func `what is left of a body can be collected`() async throws {
        try await StubServer.with { server in
            server.route("/", .generated(5_000_000))
            let count = try await CurlTransport().stream(server.request()) { _, body in
                var chunks = body.makeAsyncIterator()
                let first = try await chunks.next()?.count ?? 0
                return first + (try await body.collect(upTo: 5_000_000).count)
            }
            #expect(count == 5_000_000)
        }
    }

    @Test func `collecting what a pause held back keeps to the limit`() async throws {
        try await StubServer.with { server in
            server.route("/", .generated(5_000_000))
            let options = TransferOptions.with { $0.streamBufferSize = 10 }
            let error = await #expect(throws: TransportError.self) {
                try await CurlTransport().stream(server.request(options: options)) { _, body in
                    var chunks = body.makeAsyncIterator()
                    _ = try await chunks.next()
                    _ = try await body.collect(upTo: 10)
                }
            }
            #expect(error?.reason == .responseTooLarge(.body(limit: 10)))
            #expect(error?.context.address?.port == server.endpoint.port)
        }
    }

    @Test func `leaving the scope early neither hangs nor spoils the next exchange`() async throws {
        try await StubServer.with { server in
            server.route("/large", .generated(100_000_000))
            server.route("/small", .text("small"))
            let transport = try CurlTransport()
            for _ in 0..<20 {
                let first = try await transport.stream(server.request("/large")) { _, body in
                    try await body.firstChunk()
                }
                #expect(first?.first == 0)
                #expect(try await transport.text(server.request("/small")) == "small")
            }
        }
    }

    @Test func `a head is enough`() async throws {
        try await StubServer.with { server in
            server.route("/", .generated(100_000_000))
            let transport = try CurlTransport()
            for _ in 0..<20 {
                #expect(try await transport.stream(server.request()) { head, _ in head.status.code } == 200)
            }
        }
    }

    @Test func `an error in the scope comes out of it`() async throws {
        try await StubServer.with { server in
            server.route("/", .generated(100_000_000))
            let transport = try CurlTransport()
            await #expect(throws: Planned(number: 3)) {
                try await transport.stream(server.request()) { _, body in
                    for try await _ in body { throw Planned(number: 3) }
                }
            }
            try await server.connections(open: 0)
        }
    }

    @Test func `a second reader gets an error, and the first one its bytes`() async throws {
        try await StubServer.with { server in
            server.enqueue(Script([.send(Data("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n".utf8)), .hang]))
            try await CurlTransport().stream(server.request()) { _, body in
                let outcomes = await withTaskGroup(of: Result<Data?, any Error>.self) { group in
                    for _ in 0..<2 {
                        group.addTask { await Result { try await body.firstChunk() } }
                    }
                    let refused = await group.next()
                    server.disconnectAll()
                    return [refused, await group.next()].compactMap(\.self)
                }
                let errors = try outcomes.map { outcome in
                    guard case .failure(let error as TransportError) = outcome else { throw Planned() }
                    return error
                }
                guard case .internalInconsistency(let words) = errors[0].reason else { throw errors[0] }
                #expect(words.contains("one reader"))
                guard case .connectionLost(.inBody(0, 4)) = errors[1].reason else { throw errors[1] }
            }
        }
    }

    @Test func `two collectors do not share a body`() async throws {
        try await StubServer.with { server in
            server.route("/", .generated(1_000_000))
            let transport = try CurlTransport()
            for _ in 0..<50 {
                let counts = try await transport.stream(server.request()) { _, body in
                    await withTaskGroup(of: Int?.self) { group in
                        for _ in 0..<2 { group.addTask { try? await body.collect(upTo: 1 << 24).count } }
                        return await group.reduce(into: [Int]()) { if let count = $1 { $0.append(count) } }
                    }
                }
                // The slower one may find the body read to its end already.
                #expect(counts.contains(1_000_000))
                #expect(counts.allSatisfy { $0 == 1_000_000 || $0 == 0 })
            }
        }
    }

    @Test(arguments: [BodyDelivery.collected(upTo: 100), .streamed])
    func `a body that escaped its scope is cancelled`(delivery: BodyDelivery) async throws {
        try await StubServer.with { server in
            server.fallback { _ in .text("body") }
            let body = try await CurlTransport().withResponse(for: server.request(), delivery: delivery, reporting: nil)
            { $1 }
            await #expect(throws: CancellationError.self) { try await body.firstChunk() }
            await #expect(throws: CancellationError.self) { try await body.collect(upTo: 100) }
            #expect(body.trailers == nil)
        }
    }

    @Test func `a reader that outlives the scope is woken by its end`() async throws {
        try await StubServer.with { server in
            server.route("/", Script([.send(Data("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n".utf8)), .hang]))
            let transport = try CurlTransport()
            for _ in 0..<50 {
                await withThrowingTaskGroup(of: Data.self) { group in
                    let body = try? await transport.stream(server.request()) { _, body in
                        group.addTask { try await body.collect(upTo: 10) }
                        return body
                    }
                    #expect(body != nil)
                    await #expect(throws: CancellationError.self) { try await group.next() }
                }
            }
        }
    }

    @Test func `a body is read as lines, wherever it was cut`() async throws {
        try await StubServer.with { server in
            let text = "one\r\ntwo\rthree\n\nfünf\nlast"
            server.enqueue(.reply(body: .string(text), framing: .chunked(size: 1)))
            let lines = try await CurlTransport().stream(server.request()) { _, body in
                try await body.lines.reduce(into: [String]()) { $0.append($1) }
            }
            #expect(lines == ["one", "two", "three", "", "fünf", "last"])
        }
    }

    @Test func `lines arrive while the response goes on`() async throws {
        try await StubServer.with { server in
            server.enqueue(Script([.send(Data("HTTP/1.1 200 OK\r\n\r\nfirst\nsec".utf8)), .hang]))
            try await CurlTransport().stream(server.request()) { _, body in
                var lines = body.lines.makeAsyncIterator()
                let first = try await lines.next()
                #expect(first == "first")
            }
        }
    }

    @Test func `progress of a download goes from its start to its end`() async throws {
        try await StubServer.with { server in
            server.route("/", .generated(5_000_000))
            let recorder = EventRecorder()
            _ = try await CurlTransport().collect(server.request(), reporting: recorder)
            let progress = recorder.events.compactMap { event in
                if case .downloadProgress(let progress) = event { progress } else { nil }
            }
            #expect(progress.last == TransferProgress(completedBytes: 5_000_000, totalBytes: 5_000_000))
            #expect(progress.allSatisfy { $0.totalBytes == 5_000_000 })
            #expect(progress.map(\.completedBytes) == progress.map(\.completedBytes).sorted())
        }
    }

    @Test func `the total is unknown where the response does not say it`() async throws {
        try await StubServer.with { server in
            server.enqueue(
                .generated(1000, framing: .chunked),
                .raw("HTTP/1.1 200 OK\r\nContent-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n"))
            let transport = try CurlTransport()
            for count in [1000, 1] as [Int64] {
                let recorder = EventRecorder()
                _ = try await transport.collect(server.request(), reporting: recorder)
                guard case .downloadProgress(let progress) = recorder.events.dropLast().last else {
                    Issue.record("There is no progress.")
                    return
                }
                #expect(progress == TransferProgress(completedBytes: count, totalBytes: nil))
            }
        }
    }
}

extension ResponseBody {
    /// The next chunk.
    fileprivate func firstChunk() async throws -> Data? {
        for try await chunk in self { return chunk }
        return nil
    }
}

extension Result where Failure == any Error {
    fileprivate init(_ body: () async throws -> Success) async {
        do {
            self = .success(try await body())
        } catch {
            self = .failure(error)
        }
    }
}
