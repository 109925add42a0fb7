// SPDX-License-Identifier: MIT

import ANHTTP
import ANSerialization
import ANSystem
import AsyncNetworkingTesting
import FoundationEssentials
import HTTPTypes
import TestSupport
import Testing

@Suite struct RequestBodyCompressionTests {
    private static let play = Data(String(repeating: "All work and no play makes Jack a dull boy.\n", count: 500).utf8)
    private static let codings: [ContentCoding] = [.gzip, .deflate]

    @Test(arguments: codings, [1, 6, 9, 0, 99])
    func `small data is compressed at once`(coding: ContentCoding, level: Int) throws {
        for data in [Data(), Data("a".utf8), Self.play, Self.play.dropFirst(3)] {
            guard case .bytes(let compressed) = RequestBody.bytes(data).compressed(coding, level: level).content else {
                Issue.record("no bytes")
                return
            }
            #expect(try Inflater.inflate(compressed, coding) == data)
            if data.count > 1_000 { #expect(compressed.count < data.count / 20) }
        }
    }

    @Test func `a cancelled task writes no more of a body`() async throws {
        try await withFile(named: "f", Self.play) { path in
            for body in [RequestBody.bytes(Self.play), .file(path), .stream(Chunks([Self.play, Self.play]))] {
                let count = Lock(0)
                let task = Task {
                    unsafe withUnsafeCurrentTask { unsafe $0?.cancel() }
                    try await body.write(to: RequestBodyWriter { _ in count.withLock { $0 += 1 } })
                }
                await #expect(throws: CancellationError.self) { try await task.value }
                #expect(count.withLock(\.self) == 0)
            }
        }
    }

    /// Slow, because only data above 1 MiB is compressed in chunks, and a decoder in Swift inflates the results.
    @Test(arguments: codings)
    func `large data, files and sequences are compressed chunk by chunk`(coding: ContentCoding) async throws {
        var random = SplitMix64(seed: 3)
        // A part of the data that is not compressible.
        var large = Data((0..<100_000).map { _ in UInt8.random(in: .min ... .max, using: &random) })
        large += Data(repeating: 7, count: 1_000_000)
        let pieces = stride(from: 0, to: large.count, by: 100_001).map { large.dropFirst($0).prefix(100_001) }
        try await withFile(named: "f", large) { path in
            for body in [RequestBody.bytes(large), .file(path), .stream(Chunks(pieces), isReplayable: true)] {
                let compressed = body.compressed(coding)
                #expect(compressed.length == nil)
                #expect(compressed.isReplayable)
                let parts = try await chunks(of: compressed)
                #expect(parts.allSatisfy { !$0.isEmpty && $0.count <= 65_536 })
                let all = parts.reduce(into: Data()) { $0 += $1 }
                #expect(all.count < 105_000)
                #expect(try Inflater.inflate(all, coding) == large)
                #expect(try await chunks(of: compressed) == parts)
            }
        }
    }

    @Test(arguments: codings)
    func `sequences of many small chunks and of no chunks are compressed`(coding: ContentCoding)
        async throws
    {
        let pieces = (0..<3_000).map { Data("line \($0)\n".utf8) }
        for pieces in [pieces, [], [Data()]] {
            let body = RequestBody.stream(Chunks(pieces)).compressed(coding)
            #expect(!body.isReplayable)
            let all = try await chunks(of: body).reduce(into: Data()) { $0 += $1 }
            #expect(try Inflater.inflate(all, coding) == pieces.reduce(into: Data()) { $0 += $1 })
        }
    }

    @Test func `a body that is compressed or throttled waits for the gate of the original`() async throws {
        for content in [RequestBody.string("abc"), .bytes(Data(count: 2 << 20)), .stream(Chunks(["abc"]))] {
            let count = Lock(0)
            var body = content
            body.gate = { count.withLock { $0 += 1 } }
            for body in [body.compressed(), try body.throttled(.packets(delay: .zero))] {
                try await body.gate?()
            }
            #expect(count.withLock { $0 } == 2)
        }
    }

    @Test func `a multipart form is compressed like any body`() async throws {
        var form = MultipartFormData()
        form.append(Self.play, name: "a")
        let body = try form.makeBody().body
        let compressed = try await chunks(of: body.compressed()).reduce(into: Data()) { $0 += $1 }
        let original = try await chunks(of: body).reduce(into: Data()) { $0 += $1 }
        #expect(try Inflater.inflate(compressed, .gzip) == original)
    }

    /// Random bytes, whose compressed form is larger than one chunk, while the writer that receives it gives way.
    @Test func `chunks that are written at the same time are compressed one after the other`() async throws {
        var random = SeededGenerator(seed: 5)
        let parts = (0..<3).map { _ in Data((0..<(1 << 18)).map { _ in UInt8.random(in: 0...255, using: &random) }) }
        let body = RequestBody.writer { writer in
            nonisolated(unsafe) let writer = writer
            let writing = parts.map { part in Task.immediate { unsafe try await writer.write(part) } }
            for task in writing { try await task.value }
        }
        let compressed = Lock(Data())
        try await body.compressed().write(
            to: RequestBodyWriter { chunk in
                await Task.yield()
                compressed.withLock { $0 += chunk }
            })
        #expect(try Inflater.inflate(compressed.withLock { $0 }, .gzip) == parts.reduce(Data(), +))
    }

    @Test func `a missing file or a failing sequence fails the body`() async throws {
        let missing = RequestBody.file("/nonexistent/f").compressed()
        await expectFailure(.file(path: "/nonexistent/f", reason: "open: No such file or directory (errno 2)")) {
            try await text(of: missing)
        }
        let failing = RequestBody.stream(Chunks(["a"], failing: true)).compressed()
        await #expect(throws: Chunks.Failing.self) { try await text(of: failing) }
        let once = RequestBody.stream(Chunks(["a"])).compressed()
        try await text(of: once)
        await expectFailure(.partReadTwice(part: "")) { try await text(of: once) }
    }

    @Test func `a request declares the coding of its body`() throws {
        var request = try makeRequest("POST")
        request.headers[.contentLength] = "22000"
        request.body = .bytes(Self.play)
        request.compressBody(.deflate)
        #expect(request.headers == [.contentEncoding: "deflate"])
        let once = request
        request.compressBody()
        #expect(request.headers == once.headers)
        #expect(request.body.length == once.body.length)
    }

    @Test func `a missing or short body is not compressed`() throws {
        var request = try makeRequest("POST")
        request.compressBody()
        #expect(request.headers.isEmpty)
        request.body = .bytes(Data(count: 1_023))
        request.compressBody()
        #expect(request.headers.isEmpty)
        #expect(request.body.length == 1_023)
        request.compressBody(minimumSize: 1_023)
        #expect(request.headers[.contentEncoding] == "gzip")
        guard case .none = RequestBody.none.compressed().content else {
            Issue.record("a body")
            return
        }
    }
}
