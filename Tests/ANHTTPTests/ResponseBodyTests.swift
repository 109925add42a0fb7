// SPDX-License-Identifier: MIT

import ANHTTP
import FoundationEssentials
import HTTPTypes
import Testing

@Suite struct ResponseBodyTests {
    private var ending: ResponseEnding {
        var metrics = TransferMetrics()
        metrics.sendCount = 2
        return ResponseEnding(trailers: [.eTag: "\"1\""], metrics: metrics)
    }

    @Test func `data in memory is one chunk, which is read once`() async throws {
        let body = ResponseBody(Data("hello".utf8))
        var chunks: [Data] = []
        for try await chunk in body { chunks.append(chunk) }
        for try await chunk in body { chunks.append(chunk) }
        #expect(chunks == [Data("hello".utf8)])
    }

    @Test func `a slice of data is collected with indices from 0`() async throws {
        let body = ResponseBody(Data("abcdef".utf8).dropFirst(4))
        let collected = try await body.collect(upTo: 10)
        #expect(collected.startIndex == 0)
        #expect(collected == Data("ef".utf8))
    }

    @Test func `empty data has no chunks`() async throws {
        for try await chunk in ResponseBody(Data()) { Issue.record("\(chunk)") }
    }

    @Test func `trailers and metrics are available once the end was read`() async throws {
        let body = ResponseBody(Data("x".utf8), ending: ending)
        #expect(body.trailers == nil)
        #expect(body.metrics == nil)
        #expect(try await body.collect(upTo: 1) == Data("x".utf8))
        #expect(body.trailers == [.eTag: "\"1\""])
        #expect(body.metrics?.sendCount == 2)
    }

    @Test(arguments: [0, 4, -1, Int.min])
    func `a body above the limit fails and can be collected with a higher limit`(limit: Int) async throws {
        let body = ResponseBody(Data("hello".utf8), ending: ending)
        let error = await #expect(throws: TransportError.self) { try await body.collect(upTo: limit) }
        #expect(error?.reason == .responseTooLarge(.body(limit: max(limit, 0))))
        #expect(body.trailers == nil)
        #expect(try await body.collect(upTo: 5) == Data("hello".utf8))
    }

    @Test(arguments: [0, -1, Int.min])
    func `an empty body satisfies each limit`(limit: Int) async throws {
        #expect(try await ResponseBody(Data()).collect(upTo: limit) == Data())
    }

    @Test func `collecting twice yields nothing the second time`() async throws {
        let body = ResponseBody(Data("hello".utf8))
        #expect(try await body.collect(upTo: 100).count == 5)
        #expect(try await body.collect(upTo: 100) == Data())
        #expect(try await body.collect(upTo: 1) == Data())
    }

    @Test func `a source of chunks is collected up to the limit`() async throws {
        #expect(try await ResponseBody(source: Pieces(["ab", "cd", "e"])).collect(upTo: 5) == Data("abcde".utf8))
        for limit in [4, 1, 0, -1, Int.min] {
            let body = ResponseBody(source: Pieces(["ab", "cd", "e"]))
            await #expect(throws: TransportError.self) { try await body.collect(upTo: limit) }
        }
    }

    @Test func `collected data has indices from 0 even if it was a slice`() async throws {
        let whole = Data("abcde".utf8)
        let collected = try await ResponseBody(source: Pieces([whole[2...]])).collect(upTo: 5)
        #expect(collected.startIndex == 0)
        #expect(collected == Data("cde".utf8))
    }

    @Test func `lines span chunks, and an error is rethrown`() async throws {
        var lines: [String] = []
        for try await line in ResponseBody(source: Pieces(["a\r", "\nb", "c\n", "d"])).lines { lines.append(line) }
        #expect(lines == ["a", "bc", "d"])

        lines = []
        let broken = ResponseBody(source: Pieces(["a\nb"], failure: Chunks.Broken()))
        await #expect(throws: Chunks.Broken.self) {
            for try await line in broken.lines { lines.append(line) }
        }
        #expect(lines == ["a"], "A truncated line is not returned.")
    }

    @Test func `a second iteration continues where the first one stopped`() async throws {
        let lines = ResponseBody(source: Pieces(["a\nb\nc", "d"])).lines
        let line = try await lines.first { _ in true }
        #expect(line == "a")
        #expect(try await lines.reduce(into: []) { $0.append($1) } == ["b", "cd"])
        #expect(try await lines.first { _ in true } == nil)

        let events = ResponseBody(source: Pieces(["data: a\n\ndata: b\n\ndata: c\n", "\n"])).serverSentEvents
        let event = try await events.first { _ in true }
        #expect(event?.data == "a")
        #expect(try await events.reduce(into: []) { $0.append($1.data) } == ["b", "c"])
    }

    @Test func `a cancelled task receives no line that has arrived before`() async throws {
        let task = Task {
            var count = 0
            await #expect(throws: CancellationError.self) {
                for try await _ in ResponseBody(source: Pieces(["a\nb\n"])).lines {
                    count += 1
                    unsafe withUnsafeCurrentTask { unsafe $0?.cancel() }
                }
            }
            return count
        }
        #expect(await task.value == 1)
    }

    @Test func `a line above the limit fails`() async throws {
        let body = ResponseBody(source: Pieces(["1234", "56\n"]))
        await #expect(throws: TransportError.self) {
            for try await line in body.lines(maximumLength: 5) { Issue.record("\(line)") }
        }
    }

    @Test func `a body that is transformed or observed knows as before whether it is whole`() async {
        let (whole, partial) = (ResponseBody(Data("a".utf8)), ResponseBody(source: Pieces(["a"])))
        for (body, isWhole) in [(whole, true), (partial, false)] {
            #expect(body.isWhole == isWhole)
            #expect(body.transforming { $0 }.isWhole == isWhole)
            #expect(body.reading(Observing(base: body)).isWhole == isWhole)
        }
    }

    @Test func `a file is announced to the source that reads its bytes unchanged`() async {
        let observing = Observing(base: ResponseBody(Data("a".utf8)))
        let body = ResponseBody(Data("a".utf8)).reading(observing)
        await body.transforming { $0 }.willBeWritten(to: "b")
        #expect(await observing.path == nil)
        await body.willBeWritten(to: "c")
        #expect(await observing.path == "c")
    }
}

/// A source that notes the file to which its bytes are written.
private actor Observing: FileBodySource {
    let base: ResponseBody
    private(set) var path: String?

    init(base: ResponseBody) {
        self.base = base
    }

    func next() async throws -> Data? { try await base.next() }
    func willBeWritten(to path: String) { self.path = path }
}

/// A source of chunks, optionally followed by an error.
private actor Pieces: ResponseBodySource {
    private var rest: [Data]
    private let failure: (any Error)?

    init(_ pieces: [Data]) {
        rest = pieces
        failure = nil
    }

    init(_ pieces: [String], failure: (any Error)? = nil) {
        rest = pieces.map { Data($0.utf8) }
        self.failure = failure
    }

    func next() async throws -> Data? {
        guard !rest.isEmpty else {
            if let failure { throw failure }
            return nil
        }
        return rest.removeFirst()
    }

    nonisolated var ending: ResponseEnding? { nil }
}

@Suite struct TransformedBodyTests {
    @Test func `chunks are transformed as they are read, and empty ones omitted`() async throws {
        let body = ResponseBody(Data("a".utf8), ending: ResponseEnding(trailers: [.eTag: "1"]))
        let doubled = body.transforming { $0 + $0 }
        #expect(doubled.trailers == nil)
        #expect(try await doubled.collect(upTo: 2) == Data("aa".utf8))
        #expect(doubled.trailers == [.eTag: "1"])
        for try await chunk in ResponseBody(Data("a".utf8)).transforming({ _ in Data() }) { Issue.record("\(chunk)") }
    }

    @Test func `the limit applies to the transformed bytes`() async throws {
        let body = ResponseBody(Data("a".utf8)).transforming { $0 + $0 }
        await #expect(throws: TransportError.self) { try await body.collect(upTo: 1) }
    }
}
