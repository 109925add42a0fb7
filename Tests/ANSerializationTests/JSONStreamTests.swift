// SPDX-License-Identifier: MIT

import ANHTTP
import ANSerialization
import ANSystem
import AsyncNetworkingTesting
import FoundationEssentials
import Testing

@Suite(.timeLimit(.minutes(5))) struct JSONStreamTests {
    private struct Change: Codable, Hashable, Sendable {
        var row: Int
        var text: String?
    }

    // MARK: Splitting

    private typealias Part = JSONStreamSplitter.Part

    private static let lines: [(stream: String, parts: [(Int, Part)])] = [
        ("", []),
        ("1", [(1, text("1"))]),
        ("1\n", [(1, text("1"))]),
        ("1\n2", [(1, text("1")), (2, text("2"))]),
        ("1\r\n2\r\n", [(1, text("1")), (2, text("2"))]),
        ("1\r\n2\r", [(1, text("1")), (2, text("2"))]),
        ("\n1\n\r\n \t\n2\n\n", [(2, text("1")), (5, text("2"))]),
        // Only LF ends a line.
        ("1\r2\n", [(1, text("1\r2"))]),
        (
            "\"a\u{2028}b\u{2029}c\u{85}d\u{0B}\u{0C}\"\n2",
            [(1, text("\"a\u{2028}b\u{2029}c\u{85}d\u{0B}\u{0C}\"")), (2, text("2"))]
        ),
        ("\u{FEFF}1\n\u{FEFF}2\n", [(1, text("1")), (2, text("\u{FEFF}2"))]),
        ("{\"ä€😀\": [1,\n2]}", [(1, text("{\"ä€😀\": [1,")), (2, text("2]}"))]),
    ]

    private static let sequences: [(stream: String, parts: [(Int, Part)])] = [
        ("", []),
        ("\u{1E}1\n", [(1, text("1"))]),
        ("\u{1E}{}\n\u{1E}[]\n", [(1, text("{}")), (2, text("[]"))]),
        ("\u{1E}\u{1E}\u{1E}1\n\u{1E} \n\u{1E}2\n", [(3, text("1")), (5, text("2"))]),
        // Texts may have several lines.
        ("\u{1E}{\n1\n}\n\u{1E}[\n]\n", [(1, text("{\n1\n}")), (2, text("[\n]"))]),
        ("\u{1E}\n\n1\n\n\n\u{1E}2\n", [(1, text("\n\n1")), (2, text("2"))]),
        ("\u{1E}{}\r\n\u{1E}1\r\n", [(1, text("{}")), (2, text("1"))]),
        // Brackets and escapes in strings.
        ("\u{1E}\"]}\\\"\\\\\"\n", [(1, text("\"]}\\\"\\\\\""))]),
        ("\u{1E}[\"\\\\\",\"]\"]\n", [(1, text("[\"\\\\\",\"]\"]"))]),
        // Without LF, a text is complete if it delimits itself (RFC 7464 §2.4).
        (
            "\u{1E}{}\u{1E}[1]\u{1E}\"a\"\u{1E}1 ",
            [(1, text("{}")), (2, text("[1]")), (3, text("\"a\"")), (4, text("1 "))]
        ),
        ("\u{1E}12\u{1E}true\u{1E}null", [(1, cut("12")), (2, cut("true")), (3, cut("null"))]),
        ("\u{1E}[1\u{1E}\"a\n\u{1E}{\"a\":", [(1, cut("[1")), (2, cut("\"a\n")), (3, cut("{\"a\":"))]),
        // Bytes that do not follow a separator.
        ("x\u{1E}1\n", [(0, .unseparated(Data("x".utf8))), (1, text("1"))]),
        (" \n\u{1E}1\n \n 2\u{1E}3\n", [(1, text("1")), (1, .unseparated(Data("2".utf8))), (2, text("3"))]),
        ("\u{1E}1\nx", [(1, text("1")), (1, .unseparated(Data("x".utf8)))]),
        ("\u{1E}{} 1\n", [(1, text("{} 1"))]),
    ]

    private static func text(_ text: String) -> Part { .text(Data(text.utf8)) }
    private static func cut(_ text: String) -> Part { .truncated(Data(text.utf8)) }

    @Test(arguments: lines.indices)
    func `lines do not depend on two cuts between chunks`(index: Int) {
        Self.check(Self.lines[index].stream, .lines(limit: 100), Self.lines[index].parts)
    }

    @Test(arguments: sequences.indices)
    func `sequences do not depend on two cuts between chunks`(index: Int) {
        Self.check(Self.sequences[index].stream, .sequence(limit: 100), Self.sequences[index].parts)
    }

    @Test func `texts above the limit do not depend on two cuts between chunks`() {
        let tooLong = Part.tooLong(Data("123456789".utf8))
        Self.check(
            "12345678\n123456789\n1\n", .lines(limit: 8),
            [(1, Self.text("12345678")), (2, tooLong), (3, Self.text("1"))])
        Self.check("123456789012", .lines(limit: 8), [(1, tooLong)])
        Self.check("\u{FEFF}12345678\n", .lines(limit: 8), [(1, Self.text("12345678"))])
        Self.check("\u{FEFF}1\n", .lines(limit: 1), [(1, Self.text("1"))])
        Self.check("\u{FEFF}123456789\n", .lines(limit: 8), [(1, tooLong)])
        Self.check(
            "\u{1E}123456789\u{1E}[1234567\u{1E}1\n", .sequence(limit: 8),
            [(1, tooLong), (2, Self.cut("[1234567")), (3, Self.text("1"))])
        Self.check("1234567890\u{1E}1\n", .sequence(limit: 8), [(0, tooLong), (1, Self.text("1"))])
    }

    /// Checks the parts of all splits into three chunks.
    private static func check(_ stream: String, _ splitter: JSONStreamSplitter, _ parts: [(Int, Part)]) {
        let bytes = Data(stream.utf8)
        for first in 0...bytes.count {
            for second in first...bytes.count {
                var splitter = splitter
                var found: [(Int, Part)] = []
                for chunk in [bytes[..<first], bytes[first..<second], bytes[second...]] {
                    splitter.append(chunk)
                    while let (part, number) = splitter.next() { found.append((number, part)) }
                }
                if let (part, number) = splitter.finish() { found.append((number, part)) }
                if !found.elementsEqual(parts, by: ==) {
                    Issue.record("\(found) for \(stream.debugDescription) cut at \(first) and \(second)")
                }
            }
        }
    }

    @Test func `a text of a sequence is returned with its line break`() {
        var splitter = JSONStreamSplitter.sequence(limit: 100)
        splitter.append(Data("\u{1E}{\"a\":\n[1]}".utf8))
        #expect(splitter.next() == nil)
        splitter.append(Data("\n".utf8))
        #expect(splitter.next()?.part == Self.text("{\"a\":\n[1]}"))
        splitter.append(Data("\u{1E}12".utf8))
        #expect(splitter.next() == nil)
        splitter.append(Data("\n".utf8))
        #expect(splitter.next()?.part == Self.text("12"))
        #expect(splitter.finish() == nil)
    }

    @Test func `a line above the limit is refused before its end, and its rest is skipped in constant memory`() {
        var splitter = JSONStreamSplitter.lines(limit: 1000)
        splitter.append(Data(repeating: 0x31, count: 1001))
        #expect(splitter.next()?.part == .tooLong(Data(repeating: 0x31, count: 120)))
        for _ in 0..<100 {
            splitter.append(Data(repeating: 0x31, count: 10_000))
            #expect(splitter.next() == nil)
        }
        splitter.append(Data("1\n2\n".utf8))
        let next = splitter.next()
        #expect(next?.part == Self.text("2"))
        #expect(next?.number == 2)
    }

    // MARK: Decoding

    @Test func `each line is decoded`() async throws {
        let body = ResponseBody(Data("{\"row\": 1}\r\n\n{\"row\": 2, \"text\": \"a\u{2028}b\"}".utf8))
        #expect(
            try await Self.collect(body.jsonLines(of: Change.self)) == [
                Change(row: 1), Change(row: 2, text: "a\u{2028}b"),
            ])
    }

    @Test func `a second iteration continues where the first one stopped`() async throws {
        let changes = ResponseBody(Data("{\"row\": 1}\n{\"row\": 2}\n".utf8)).jsonLines(of: Change.self)
        #expect(try await changes.first { _ in true } == Change(row: 1))
        #expect(try await Self.collect(changes) == [Change(row: 2)])
    }

    @Test func `each text of a sequence is decoded`() async throws {
        let body = ResponseBody(Data("\u{1E}{\"row\":\n1}\n\u{1E}{\"row\": 2}\n".utf8))
        #expect(try await Self.collect(body.jsonSequence(of: Change.self)) == [Change(row: 1), Change(row: 2)])
    }

    @Test func `an invalid line names its number and bytes, and the iteration can go on`() async throws {
        let body = ResponseBody(Data("{\"row\": 1}\noops\n{\"row\": \"x\"}\n{\"row\": 4}\n".utf8))
        var values = body.jsonLines(of: Change.self).makeAsyncIterator()
        #expect(try await values.next(isolation: #isolation) == Change(row: 1))
        let first = try await Self.failure { _ = try await values.next(isolation: #isolation) }
        #expect(first.number == 2)
        #expect(first.bytes == Data("oops".utf8))
        guard case .invalid(.json(let syntax)) = first.reason else { throw first.error }
        #expect(syntax.offset == 0)
        let second = try await Self.failure { _ = try await values.next(isolation: #isolation) }
        #expect(second.number == 3)
        guard case .invalid(.decoding(let mismatch)) = second.reason else { throw second.error }
        #expect(mismatch.path == "row")
        #expect(try await values.next(isolation: #isolation) == Change(row: 4))
        #expect(try await values.next(isolation: #isolation) == nil)
        #expect(try await values.next(isolation: #isolation) == nil)
    }

    @Test func `a closure decides whether the iteration goes on`() async throws {
        let body = Data("{\"row\": 1}\n[]\n{\"row\": 3}\n\"\u{FFFD}".utf8).dropLast(3) + [0xFF, 0x22]
        var skipped: [Change] = []
        for try await change in ResponseBody(Data(body)).jsonLines(
            of: Change.self, onFailure: { #expect([2, 4].contains($0.number)) })
        {
            skipped.append(change)
        }
        #expect(skipped == [Change(row: 1), Change(row: 3)])
        struct Stop: Error {}
        await #expect(throws: Stop.self) {
            _ = try await Self.collect(
                ResponseBody(Data(body)).jsonLines(of: Change.self, onFailure: { _ in throw Stop() }))
        }
    }

    @Test func `a line above the limit is a failure`() async throws {
        let body = ResponseBody(Data("[1]\n[1, 2, 3]\n[4]".utf8))
        let failure = try await Self.failure {
            _ = try await Self.collect(body.jsonLines(of: [Int].self, maximumSize: 5))
        }
        #expect(failure.number == 2)
        guard case .tooLong(limit: 5) = failure.reason else { throw failure.error }
        #expect("\(failure)".contains("longer than 5 bytes"))
    }

    @Test(arguments: [
        "\u{1E}{\"row\": 1}\n\u{1E}{\"row\":\u{1E}{\"row\": 3}\n", "\u{1E}{\"row\": 1}\nx\u{1E}{\"row\": 3}\n",
    ])
    func `a text that was cut off affects no other one`(stream: String) async throws {
        let failures = FailureCounter()
        let values = ResponseBody(Data(stream.utf8)).jsonSequence(of: Change.self, onFailure: { _ in failures.count() })
        #expect(try await Self.collect(values) == [Change(row: 1), Change(row: 3)])
        #expect(failures.value == 1)
    }

    // MARK: Encoding

    @Test func `a body has a line for each value`() async throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
        let body = RequestBody.jsonLines([Change(row: 1), Change(row: 2, text: "a\nb")], encoder: encoder)
        #expect(body.isReplayable && body.length == nil)
        let chunks = try await chunks(of: body)
        #expect(chunks.count == 2)
        #expect(chunks.allSatisfy { $0.count { $0 == 0x0A } == 1 && $0.last == 0x0A })
        let decoded = try await Self.collect(ResponseBody(chunks.reduce(Data(), +)).jsonLines(of: Change.self))
        #expect(decoded == [Change(row: 1), Change(row: 2, text: "a\nb")])
    }

    @Test func `a body has a text with a separator for each value`() async throws {
        let (values, continuation) = AsyncStream.makeStream(of: Int.self)
        let body = RequestBody.jsonSequence(values)
        #expect(!body.isReplayable)
        for number in 1...2 { continuation.yield(number) }
        continuation.finish()
        #expect(try await chunks(of: body) == [Data("\u{1E}1\n".utf8), Data("\u{1E}2\n".utf8)])
    }

    @Test func `a value that cannot be encoded fails the body`() async throws {
        await #expect(throws: EncodingError.self) { try await chunks(of: .jsonLines([Double.nan])) }
    }

    @Test(arguments: 0..<20)
    func `random values survive a round trip through any chunks`(seed: UInt64) async throws {
        var random = SplitMix64(seed: seed)
        let values = (0..<50).map { Change(row: $0, text: Self.text(&random)) }
        for body in [RequestBody.jsonLines(values), .jsonSequence(values)] {
            var bytes = try await chunks(of: body).reduce(Data(), +)[...]
            var pieces: [Data] = []
            while !bytes.isEmpty {
                pieces.append(Data(bytes.prefix(1 + Int(random.next() % 40))))
                bytes = bytes.dropFirst(pieces.last?.count ?? 0)
            }
            let response = ResponseBody(source: Pieces(pieces))
            let isSequence = pieces.first?.first == 0x1E
            let stream: any AsyncSequence<Change, any Error> =
                isSequence ? response.jsonSequence(of: Change.self) : response.jsonLines(of: Change.self)
            #expect(try await Self.collect(stream) == values)
        }
    }

    private static func collect<Value>(_ stream: some AsyncSequence<Value, any Error>) async throws -> [Value] {
        var values: [Value] = []
        for try await value in stream { values.append(value) }
        return values
    }

    private static func failure(_ body: () async throws -> Void) async throws -> SerializationError.JSONStreamFailure {
        let error = try #require(await #expect(throws: SerializationError.self) { try await body() })
        guard case .jsonStream(let failure) = error else { throw error }
        return failure
    }

    private final class FailureCounter: Sendable {
        private let number = Lock(0)
        var value: Int { number.withLock { $0 } }
        func count() { number.withLock { $0 += 1 } }
    }

    private final class Pieces: ResponseBodySource {
        private let rest: Lock<ArraySlice<Data>>
        var ending: ResponseEnding? { nil }

        init(_ pieces: [Data]) {
            rest = Lock(pieces[...])
        }

        func next() async throws -> Data? {
            rest.withLock { $0.popFirst() }
        }
    }

    private static func text(_ random: inout SplitMix64) -> String {
        let pieces = ["\n", "\r\n", "\u{2028}", "\u{1E}", "\"", "\\", "]", "}", "ä€😀", "a", "\0", "/", ""]
        return (0..<random.next() % 8).map { _ in pieces[Int(random.next() % UInt64(pieces.count))] }.joined()
    }
}

extension SerializationError.JSONStreamFailure {
    /// The error that wraps the failure.
    fileprivate var error: SerializationError { .jsonStream(self) }
}
