// SPDX-License-Identifier: MIT

import ANCurl
import ANHTTP
import ANSystem
import FoundationEssentials
import Glibc
import HTTPTypes
import Testing

@Suite(.timeLimit(.minutes(5))) struct BodyPumpTests {
    @Test func `a body at hand needs no pump`() throws {
        #expect(try BodyPump(for: Self.request(.none)) == nil)
        #expect(try BodyPump(for: Self.request(.bytes(Data([1])))) == nil)
    }

    @Test(arguments: [
        (RequestBody.none, ""), (.string("hello"), "hello"), (.bytes(Data()), ""),
        (.stream(Pieces(["a", "", "bc"])), "abc"),
    ])
    func `a body with trailers is pumped, without a length`(body: RequestBody, text: String) async throws {
        var request = try Self.request(body)
        request.trailers = { [.eTag: "1"] }
        let pump = try #require(try BodyPump(for: request))
        #expect(pump.channel.length == nil)
        #expect(await pump.outcome() == .end(text))
        #expect(pump.channel.trailers == [.eTag: "1"])
    }

    @Test func `a task that a closure has left behind ends with the body`() async throws {
        let (tasks, continuation) = AsyncStream<Task<Void, any Error>>.makeStream()
        let body = RequestBody.writer { writer in
            nonisolated(unsafe) let writer = writer
            continuation.yield(Task { while true { unsafe try await writer.write(Data(count: 1 << 20)) } })
        }
        let pump = try #require(try BodyPump(for: Self.request(body)))
        async let outcome = pump.outcome()
        for await task in tasks {
            await #expect(throws: CancellationError.self) { try await task.value }
            break
        }
        if case .failed(let problem) = await outcome { Issue.record("\(problem)") }
    }

    /// The tasks write to their first suspension, and thus have begun, when the closure returns.
    @Test(arguments: [2 << 20, nil] as [Int64?])
    func `writes that have begun when the closure returns are part of the body`(length: Int64?) async throws {
        let texts = ["a", "b"].map { String(repeating: $0, count: 1 << 20) }
        let body = RequestBody.writer(length: length) { writer in
            nonisolated(unsafe) let writer = writer
            for text in texts { _ = Task.immediate { unsafe try await writer.write(text) } }
        }
        let pump = try #require(try BodyPump(for: Self.request(body)))
        #expect(await pump.outcome() == .end(texts.joined()))
    }

    @Test func `writes at the same time follow each other, although large ones are sent in parts`() async throws {
        let texts = [(10_000, "a"), (20_000, "b"), (10, "c")].map { String(repeating: $1, count: $0) }
        let body = RequestBody.writer { writer in
            nonisolated(unsafe) let writer = writer
            let writing = texts.map { text in Task.immediate { unsafe try await writer.write(text) } }
            for task in writing { try await task.value }
        }
        let pump = try #require(try BodyPump(for: Self.request(body), memory: MemoryBudget(total: 0)))
        #expect(await pump.outcome() == .end(texts.joined()))
    }

    @Test func `the end of an exchange ends all writes`() async throws {
        let (errors, continuation) = AsyncStream<any Error>.makeStream()
        let body = RequestBody.writer { writer in
            nonisolated(unsafe) let writer = writer
            let writing = (0..<3).map { _ in Task.immediate { unsafe try await writer.write(Data(count: 10_000)) } }
            for task in writing {
                do { try await task.value } catch { continuation.yield(error) }
            }
            continuation.finish()
        }
        let pump = try #require(try BodyPump(for: Self.request(body), memory: MemoryBudget(total: 0)))
        async let running: Void = pump.run(tellLoop: {})
        _ = await pump.channel.takeWhenThere(1)
        pump.channel.stop()
        await running
        #expect(await errors.map { $0 is CancellationError }.reduce(into: []) { $0.append($1) } == [true, true, true])
    }

    @Test(arguments: [true, false])
    func `a write that fails also fails the body if its error is caught`(isLeftBehind: Bool) async throws {
        let plain = RequestBody.writer { writer in
            nonisolated(unsafe) let writer = writer
            let writing = Task.immediate { unsafe try await writer.write("a") }
            if !isLeftBehind { _ = try? await writing.value }
        }
        guard case .writer(_, _, let write) = plain.content else { return }
        let body = RequestBody.writer { _ in try await write(RequestBodyWriter { _ in throw Pieces.Broken() }) }
        let pump = try #require(try BodyPump(for: Self.request(body)))
        #expect(await pump.outcome() == .failed("Broken()"))
    }

    @Test func `a closure that throws fails the body although a write that it has left does not end`() async throws {
        let (ends, continuation) = AsyncStream<Void>.makeStream()
        let plain = RequestBody.writer { writer in
            nonisolated(unsafe) let writer = writer
            _ = Task.immediate { unsafe try await writer.write("a") }
            throw Pieces.Broken()
        }
        guard case .writer(_, _, let write) = plain.content else { return }
        let body = RequestBody.writer { _ in
            try await write(RequestBodyWriter { _ in for await _ in ends { break } })
        }
        let pump = try #require(try BodyPump(for: Self.request(body)))
        #expect(await pump.outcome() == .failed("Broken()"))
        continuation.finish()
    }

    @Test func `trailers are made after the last chunk, and may fail`() async throws {
        var request = try Self.request(.stream(Pieces(["a"])))
        request.trailers = { throw Pieces.Broken() }
        let pump = try #require(try BodyPump(for: request))
        #expect(await pump.outcome() == .failed("Broken()"))
    }

    @Test(
        arguments: [
            (nil, ["a", "bc"], .end("abc")),
            (3, ["a", "bc"], .end("abc")),
            (0, [], .end("")),
            (4, ["a", "bc"], .failed("3 of 4")),
            (1, [], .failed("0 of 1")),
            (2, ["a", "bc"], .failed("above 2")),
            (0, ["a"], .failed("above 0")),
        ] as [(Int64?, [String], Outcome)])
    func `a stream keeps the length that it declared, or fails`(
        length: Int64?, pieces: [String], outcome: Outcome
    ) async throws {
        let pump = try #require(try BodyPump(for: Self.request(.stream(Pieces(pieces), length: length))))
        #expect(pump.channel.length == length)
        #expect(!pump.channel.isReplayable)
        #expect(await pump.outcome() == outcome)
    }

    @Test(arguments: [-1, .min] as [Int64], [true, false])
    func `a negative length is an invalid request, also with trailers`(length: Int64, hasTrailers: Bool) throws {
        var request = try Self.request(.stream(Pieces([]), length: length))
        if hasTrailers { request.trailers = { [:] } }
        let error = #expect(throws: TransportError.self) { _ = try BodyPump(for: request) }
        #expect(error?.reason == .invalidRequest("the length of the body, \(length), is negative."))
    }

    @Test func `an error of the stream is the body's problem`() async throws {
        let pump = try #require(
            try BodyPump(for: Self.request(.stream(Pieces(["a"], failure: Pieces.Broken())))))
        #expect(await pump.outcome() == .failed("Broken()"))
    }

    @Test func `a rewound body is sent from its start`() async throws {
        let pump = try #require(
            try BodyPump(for: Self.request(.stream(Pieces(["abc", "def"]), length: 6, isReplayable: true))))
        #expect(pump.channel.isReplayable)
        async let running: Void = pump.run(tellLoop: {})
        #expect(await pump.channel.takeWhenThere(2) == .bytes("ab"))
        pump.channel.rewind()
        #expect(await pump.channel.takeAll() == .end("abcdef"))
        pump.channel.rewind()
        #expect(await pump.channel.takeAll() == .end("abcdef"))
        pump.channel.stop()
        await running
    }

    @Test func `a pump ends when the exchange does, while it waits for room`() async throws {
        let pump = try #require(
            try BodyPump(for: Self.request(.stream(Pieces([String](repeating: "0123456789", count: 200_000))))))
        async let running: Void = pump.run(tellLoop: {})
        #expect(await pump.channel.takeWhenThere(1) == .bytes("0"))
        pump.channel.stop()
        await running
    }

    @Test(arguments: [0, 1, 262_144, 262_145, 1_000_000])
    func `a file is read to its end, with its length`(size: Int) async throws {
        let text = String(repeating: "x", count: size)
        try await Self.withFile(Data(text.utf8)) { path in
            let pump = try #require(try BodyPump(for: Self.request(.file(path))))
            #expect(pump.channel.length == Int64(size))
            #expect(pump.channel.isReplayable)
            #expect(await pump.outcome() == .end(text))
        }
    }

    @Test func `a file that shrank or went fails, one that grew is sent up to its first size`() async throws {
        try await Self.withFile(Data("12345".utf8)) { path in
            let shrunk = try #require(try BodyPump(for: Self.request(.file(path))))
            try Data("123".utf8).write(to: URL(filePath: path))
            #expect(await shrunk.outcome() == .failed("3 of 5"))

            let gone = try #require(try BodyPump(for: Self.request(.file(path))))
            unsafe unlink(path)
            guard case .failed(let text) = await gone.outcome() else {
                Issue.record("It was read.")
                return
            }
            #expect(text.contains("No such file or directory"))
        }
    }

    @Test(arguments: [
        ("/nonexistent", "open: No such file or directory (errno 2)"),
        ("/", "open: Is a directory (errno 21)"),
        ("", "open: No such file or directory (errno 2)"),
    ])
    func `what cannot be read is refused at once`(path: String, reason: String) throws {
        let error = #expect(throws: TransportError.self) { _ = try BodyPump(for: Self.request(.file(path))) }
        #expect(error?.reason == .requestBody(.file(path: path, reason: reason)))
    }

    @Test(.timeLimit(.minutes(5)))
    func `a named pipe is not opened before its content is sent`() throws {
        let path = FileManager.default.temporaryDirectory.appending(path: "an-\(UUID())").path()
        #expect(unsafe mkfifo(path, 0o600) == 0)
        defer { unsafe unlink(path) }
        let pump = try #require(try BodyPump(for: Self.request(.file(path))))
        #expect(pump.channel.length == nil && !pump.channel.isReplayable)
        // It has no reader yet.
        #expect(unsafe open(path, O_WRONLY | O_NONBLOCK) == -1)
    }

    @Test func `a source that ended because it was cancelled has not ended the body`() async throws {
        let pump = try #require(try BodyPump(for: Self.request(.stream(Feed()))))
        #expect(pump.channel.take(10) == .starving)
        let running = Task { await pump.run(tellLoop: {}) }
        running.cancel()
        await running.value
        #expect(pump.channel.take(10) == .starving)
    }

    private static func request(_ body: RequestBody) throws -> Request {
        Request(method: .post, url: try #require(URL(string: "http://localhost/")), body: body)
    }

    private static func withFile(_ data: Data, _ body: (String) async throws -> Void) async throws {
        let path = FileManager.default.temporaryDirectory.appending(path: "an-\(UUID())").path()
        try data.write(to: URL(filePath: path))
        defer { unsafe unlink(path) }
        try await body(path)
    }
}

/// How a body ended: all of its text, or what was wrong.
enum Outcome: Equatable, Sendable {
    case end(String)
    case failed(String)
}

extension BodyPump {
    /// Runs the pump against a loop that reads to the end.
    fileprivate func outcome() async -> Outcome {
        async let running: Void = run(tellLoop: {})
        let outcome = await channel.takeAll()
        channel.stop()
        await running
        return outcome
    }
}

extension UploadChannel {
    /// Reads to the end.
    fileprivate func takeAll() async -> Outcome {
        var all = ""
        while true {
            switch await takeWhenThere(100_000) {
            case .bytes(let text): all += text
            case .end: return .end(all)
            case .failed: return .failed(problem?.words ?? "")
            case .starving: break
            }
        }
    }
}

extension TransportError.RequestBodyFailure {
    /// The context in short.
    fileprivate var words: String {
        switch self {
        case .tooShort(let declared, let produced): "\(produced) of \(declared)"
        case .tooLong(let declared): "above \(declared)"
        case .source(let error): "\(error)"
        case .file(_, let reason): reason
        case .notReplayable: "not replayable"
        }
    }
}

/// A sequence of texts, and perhaps an error after them.
private struct Pieces: AsyncSequence, Sendable {
    struct Broken: Error {}

    private let pieces: [String]
    private let failure: (any Error)?

    init(_ pieces: [String], failure: (any Error)? = nil) {
        self.pieces = pieces
        self.failure = failure
    }

    func makeAsyncIterator() -> AsyncThrowingStream<Data, any Error>.Iterator {
        AsyncThrowingStream { continuation in
            for piece in pieces { continuation.yield(Data(piece.utf8)) }
            continuation.finish(throwing: failure)
        }.makeAsyncIterator()
    }
}
