// SPDX-License-Identifier: MIT

import ANHTTP
import ANSerialization
import ANSystem
import AsyncNetworkingTesting
import FoundationEssentials
import HTTPTypes
import Testing

@Suite struct MultipartResponseTests {
    private struct Part: Equatable {
        var headers: [String]
        var content: String
    }

    private static let documents: [(text: String, parts: [Part])] = [
        ("--b\r\nA: 1\r\n\r\none\r\n--b--\r\n", [Part(headers: ["A: 1"], content: "one")]),
        // No line ending after the last delimiter, and text after it.
        ("--b\r\nA: 1\r\n\r\none\r\n--b--", [Part(headers: ["A: 1"], content: "one")]),
        ("--b\r\n\r\none\r\n--b--\r\n--b\r\n\r\nnot a part\r\n", [Part(headers: [], content: "one")]),
        // A preamble, and whitespace after the delimiters.
        (
            "preamble --b\r\n\r\n--b \t\r\n\r\n1\r\n--b\t\r\n\r\n2\r\n--b-- \r\nepilogue",
            [Part(headers: [], content: "1"), Part(headers: [], content: "2")]
        ),
        // Empty contents, with and without their own line ending.
        (
            "--b\r\n\r\n\r\n--b\r\nA: x\r\n\r\n--b\r\n\r\n--b--",
            [Part(headers: [], content: ""), Part(headers: ["A: x"], content: ""), Part(headers: [], content: "")]
        ),
        // Text that resembles a delimiter.
        (
            "--b\r\n\r\n--bc\r\n --b\r\nx--b\r\n--b-\r\n--\r\n\r\r\n--b x\r\n-\r\n--b--",
            [Part(headers: [], content: "--bc\r\n --b\r\nx--b\r\n--b-\r\n--\r\n\r\r\n--b x\r\n-")]
        ),
        // The line ending before a delimiter belongs to it; the one before that is content.
        ("--b\r\n\r\na\r\n\r\n--b--", [Part(headers: [], content: "a\r\n")]),
        ("--b\r\n\r\na\r\r\n--b--", [Part(headers: [], content: "a\r")]),
        // Line endings of LF alone.
        (
            "x\n--b\nA: 1\nB: 2\n\none\ntwo\n--b\n\n\n--b--\n",
            [
                Part(headers: ["A: 1", "B: 2"], content: "one\ntwo"), Part(headers: [], content: ""),
            ]
        ),
        // Folded fields, whitespace around values, and repeated names.
        (
            "--b\r\nA:  1 \r\n\t2\r\na:3\r\nB:\r\n\r\n\r\n--b--",
            [Part(headers: ["A: 1 2", "a: 3", "B: "], content: "")]
        ),
        ("--b--", []),
        ("--b--\r\n", []),
    ]

    private static func head(_ type: String?) -> ResponseHead { makeHead(status: 200, type: type) }

    private static func read(_ body: ResponseBody, _ type: String = "multipart/mixed; boundary=b") async throws
        -> [Part]
    {
        var parts: [Part] = []
        for try await part in try body.parts(of: head(type)) {
            let content = try await part.body.collect(upTo: 1 << 20)
            parts.append(
                Part(
                    headers: part.headers.map { "\($0.name.rawName): \($0.value)" },
                    content: String(decoding: content, as: UTF8.self)))
        }
        return parts
    }

    @Test(arguments: documents.indices, [1, 2, 3, 7, 1_000])
    func `parts do not depend on the sizes of chunks`(index: Int, size: Int) async throws {
        let (text, parts) = Self.documents[index]
        #expect(try await Self.read(ResponseBody(source: Pieces(text, size: size))) == parts)
    }

    @Test(arguments: documents.indices)
    func `a truncated body is an error`(index: Int) async throws {
        let text = Self.documents[index].text
        let whole = try #require(text.firstRange(of: "--b--"))
        for end in text.utf8.indices where end < text.index(whole.upperBound, offsetBy: -1) {
            await expectParts(.unexpectedEnd) { try await Self.read(ResponseBody(Data(text.utf8[..<end]))) }
        }
    }

    @Test func `the content of a part is available before its end arrives`() async throws {
        let source = Pieces("--b\r\n\r\n" + String(repeating: "x", count: 1_000) + "\r\n--b--", size: 100)
        var parts = try ResponseBody(source: source).parts(of: Self.head("multipart/mixed; boundary=b"))
            .makeAsyncIterator()
        var chunks = try #require(try await parts.next()).body.makeAsyncIterator()
        #expect(try await chunks.next() == Data(repeating: UInt8(ascii: "x"), count: 93))
        #expect(source.handedOut == 100)
        #expect(try await chunks.next()?.count == 100)
    }

    @Test func `the unread rest of a part is skipped`() async throws {
        let text = "--b\r\nA: 1\r\n\r\none\r\n--b\r\nA: 2\r\n\r\ntwo\r\n--b--"
        var names: [String?] = []
        for try await part in try ResponseBody(source: Pieces(text, size: 2)).parts(
            of: Self.head("multipart/mixed; boundary=b"))
        {
            names.append(part.headers.first?.value)
        }
        #expect(names == ["1", "2"])
    }

    @Test func `a skipped part cannot be read, and a part that was read has ended`() async throws {
        let text = "--b\r\n\r\none\r\n--b\r\n\r\ntwo\r\n--b\r\n\r\nthree\r\n--b--"
        var parts = try ResponseBody(Data(text.utf8)).parts(of: Self.head("multipart/mixed; boundary=b"))
            .makeAsyncIterator()
        let first = try #require(try await parts.next())
        let second = try #require(try await parts.next())
        await expectParts(.outOfTurn) { try await first.body.collect(upTo: 10) }
        #expect(second.body.ending == nil)
        #expect(try await second.body.collect(upTo: 10) == Data("two".utf8))
        #expect(second.body.ending != nil)
        let third = try #require(try await parts.next())
        #expect(try await second.body.collect(upTo: 10) == Data())
        #expect(try await third.body.collect(upTo: 10) == Data("three".utf8))
        #expect(try await parts.next() == nil)
        #expect(try await parts.next() == nil)
    }

    @Test func `the last part cannot be read after it was skipped`() async throws {
        let text = "--b\r\n\r\none\r\n--b--"
        var parts = try ResponseBody(Data(text.utf8)).parts(of: Self.head("multipart/mixed; boundary=b"))
            .makeAsyncIterator()
        let last = try #require(try await parts.next())
        #expect(try await parts.next() == nil)
        await expectParts(.outOfTurn) { try await last.body.collect(upTo: 10) }
        #expect(last.body.ending == nil)
    }

    @Test func `a cancelled task receives no part that has arrived before`() async throws {
        let parts = try ResponseBody(Data("--b\r\n\r\n1\r\n--b\r\n\r\n2\r\n--b--".utf8)).parts(
            of: Self.head("multipart/mixed; boundary=b"))
        let task = Task {
            var count = 0
            await #expect(throws: CancellationError.self) {
                for try await _ in parts {
                    count += 1
                    unsafe withUnsafeCurrentTask { unsafe $0?.cancel() }
                }
            }
            return count
        }
        #expect(await task.value == 1)
    }

    @Test func `two tasks cannot read at the same time`() async throws {
        let gate = Gate(Data("--b\r\n\r\none\r\n--b--".utf8))
        let parts = try ResponseBody(source: gate).parts(of: Self.head("multipart/mixed; boundary=b"))
        try await withThrowingTaskGroup { group in
            group.addTask {
                var iterator = parts.makeAsyncIterator()
                return try await iterator.next()?.body.collect(upTo: 10)
            }
            await gate.isReached()
            await expectParts(.outOfTurn) {
                var iterator = parts.makeAsyncIterator()
                return try await iterator.next() as Any
            }
            gate.open()
            let content = try await group.next()
            #expect(content == Data("one".utf8))
        }
    }

    @Test(
        arguments: [
            (nil, .notMultipart(contentType: nil)),
            ("text/html; boundary=b", .notMultipart(contentType: "text/html")),
            ("multipart/mixed", .responseBoundary(nil)),
            ("multipart/mixed; boundary=", .responseBoundary("")),
            ("multipart/mixed; boundary=\"a \"", .responseBoundary("a ")),
            ("multipart/mixed; boundary=é", .responseBoundary("é")),
            (
                "multipart/mixed; boundary=" + String(repeating: "b", count: 71),
                .responseBoundary(String(repeating: "b", count: 71))
            ),
        ] as [(String?, SerializationError.Failure)])
    func `a response that is not multipart is rejected`(type: String?, failure: SerializationError.Failure) {
        expectFailure {
            try ResponseBody(Data()).parts(of: Self.head(type))
        } where: { error in
            if case .parts(failure) = error { true } else { false }
        }
    }

    @Test(arguments: [
        "multipart/mixed;boundary=b", "Multipart/X-Mixed-Replace; charset=x; BOUNDARY=\"b\"",
        #"multipart/related; type="a;boundary=c"; boundary=b"#, #"multipart/x; boundary="\b""#,
    ])
    func `the boundary is found in the content type`(type: String) async throws {
        #expect(try await Self.read(ResponseBody(Data("--b\r\n\r\n1\r\n--b--".utf8)), type).count == 1)
    }

    // MARK: Limits

    private static func limited(
        _ text: String, size: Int = 1_000, _ change: (inout MultipartLimits) -> Void
    ) async throws -> [Data] {
        var limits = MultipartLimits()
        change(&limits)
        var contents: [Data] = []
        let body = ResponseBody(source: Pieces(text, size: size))
        for try await part in try body.parts(of: head("multipart/mixed; boundary=b"), limits: limits) {
            contents.append(try await part.body.collect(upTo: 1 << 20))
        }
        return contents
    }

    @Test(arguments: [1, 1_000])
    func `headers, parts, contents and the preamble have limits`(size: Int) async throws {
        let text = "12345\r\n--b\r\nA: 1\r\n\r\n1234\r\n--b\r\n\r\n5\r\n--b--"
        #expect(
            try await Self.limited(text, size: size) {
                $0.header = 8
                $0.parts = 2
                $0.part = 4
                $0.preamble = 5
            } == [Data("1234".utf8), Data("5".utf8)])
        await expectParts(.tooLarge(.header, limit: 7)) { try await Self.limited(text, size: size) { $0.header = 7 } }
        await expectParts(.tooLarge(.parts, limit: 1)) { try await Self.limited(text, size: size) { $0.parts = 1 } }
        await expectParts(.tooLarge(.part, limit: 3)) { try await Self.limited(text, size: size) { $0.part = 3 } }
        await expectParts(.tooLarge(.preamble, limit: 4)) {
            try await Self.limited(text, size: size) { $0.preamble = 4 }
        }
        await expectParts(.tooLarge(.preamble, limit: 4)) {
            try await Self.limited("12345\r\n--b--", size: size) { $0.preamble = 4 }
        }
    }

    @Test func `an endless header and an endless preamble fail at their limits`() async {
        let endless = "--b\r\nA: " + String(repeating: "x", count: 1_000_000)
        await expectParts(.tooLarge(.header, limit: 16 << 10)) { try await Self.limited(endless) { _ in } }
        let many = "--b\r\n" + String(repeating: "A: x\r\n", count: 100_000)
        await expectParts(.tooLarge(.header, limit: 16 << 10)) { try await Self.limited(many) { _ in } }
        await expectParts(.tooLarge(.fields, limit: 4096)) { try await Self.limited(many) { $0.header = 1 << 20 } }
        let other = String(repeating: "--c\r\n\r\n", count: 100_000)
        await expectParts(.tooLarge(.preamble, limit: 64 << 10)) { try await Self.limited(other) { _ in } }
    }

    @Test func `folded lines of a header are joined in linear time`() throws {
        let folded = "A: x \r\n\t y\n z\r\n " + String(repeating: "b\n ", count: 100_000) + "c\nB: d\n\n"
        var limits = MultipartLimits()
        limits.header = 1 << 20
        var parser = MultipartParser(boundary: "x", limits: limits)
        parser.append(Data("--x\n".utf8))
        // One line at a time.
        for line in folded.split(separator: "\n", omittingEmptySubsequences: false).dropLast(2) {
            #expect(try parser.next() == .needsMore)
            parser.append(Data((line + "\n").utf8))
        }
        parser.append(Data("\n".utf8))
        guard case .header(let fields) = try parser.next() else { throw CancellationError() }
        let value = try #require(fields.first).value
        #expect(value.hasPrefix("x y z b b "))
        #expect(value.hasSuffix(" b c"))
        #expect(fields.count == 2)
    }

    @Test(arguments: [
        "no colon", ": no name", "a b: c", "A: \u{0}", "A: b\rc", " : folded into nothing", "A: b\n \u{0}",
        "A: b\n c\u{7F}\nB: c",
    ])
    func `a malformed header line is rejected`(line: String) async {
        await #expect {
            try await Self.read(ResponseBody(Data("--b\r\n\(line)\r\n\r\n--b--".utf8)))
        } throws: { error in
            if case .parts(let failure)? = error as? SerializationError {
                failure.description.contains("has a malformed header line")
            } else {
                false
            }
        }
    }

    @Test func `an error is thrown again by later calls`() async throws {
        var parts = try ResponseBody(Data("--b\r\nx\r\n\r\n--b\r\n\r\n--b--".utf8)).parts(
            of: Self.head("multipart/mixed; boundary=b")
        ).makeAsyncIterator()
        await expectParts(.partHeader("x")) { try await parts.next(isolation: #isolation) as Any }
        await expectParts(.partHeader("x")) { try await parts.next(isolation: #isolation) as Any }
    }

    // MARK: Random input

    @Test func `a form that is written can be read`() async throws {
        var random = SplitMix64(seed: 3)
        for _ in 0..<300 {
            var form = try MultipartFormData(boundary: "b")
            var contents: [Data] = []
            for index in 0..<Int.random(in: 1...5, using: &random) {
                let content = Self.content(&random)
                contents.append(content)
                try form.append(content, name: "field \(index)", fileName: "f\(index).txt")
            }
            let (type, body) = try form.makeBody()
            let written = try await bytes(of: body)
            let source = Pieces(written, size: Int.random(in: 1...40, using: &random))
            var index = 0
            for try await part in try ResponseBody(source: source).parts(of: Self.head(type)) {
                #expect(part.name == "field \(index)")
                #expect(part.fileName == "f\(index).txt")
                #expect(part.mediaType == "text/plain")
                #expect(try await part.body.collect(upTo: 1 << 20) == contents[index])
                index += 1
            }
            #expect(index == contents.count)
        }
    }

    /// Returns bytes that resemble a delimiter, but without a line that begins with one.
    private static func content(_ random: inout SplitMix64) -> Data {
        let pieces = ["\r", "\n", "\r\n", "-", "--", "--c", "b", "x", "\r\n--", "\r\n-", "\u{0}", "--bb"]
        var bytes = Data("\n".utf8)
        for _ in 0..<Int.random(in: 0..<30, using: &random) {
            bytes += Data((pieces.randomElement(using: &random) ?? "").utf8)
        }
        while let line = bytes.firstRange(of: Data("\n--b".utf8)) {
            bytes.removeSubrange(bytes.index(after: line.lowerBound)..<line.upperBound)
        }
        return Data(bytes.dropFirst())
    }

    private func bytes(of body: RequestBody) async throws -> Data {
        Data(try await chunks(of: body).joined())
    }

    @Test func `random bodies give the same result for all sizes of chunks`() async throws {
        var random = SplitMix64(seed: 4)
        let pieces = [
            "--b", "--b--", "\r\n", "\n", "\r", "\r\n\r\n", "A: 1", ":", " ", "x", "--", "-", "\u{0}", "é",
            "Content-Type: text/plain", "\r\n--b\r\n", "\r\n--b--",
        ]
        for _ in 0..<5_000 {
            var text = Bool.random(using: &random) ? "--b\r\n" : ""
            for _ in 0..<Int.random(in: 0..<25, using: &random) { text += pieces.randomElement(using: &random) ?? "" }
            let size = Int.random(in: 1...20, using: &random)
            let whole = await Self.outcome(Data(text.utf8), size: .max)
            #expect(await Self.outcome(Data(text.utf8), size: size) == whole)
        }
    }

    /// Returns the parts up to the end or the error, as text.
    private static func outcome(_ data: Data, size: Int) async -> String {
        var log = Data()
        do {
            for try await part in try ResponseBody(source: Pieces(data, size: size)).parts(
                of: head("multipart/mixed; boundary=b"))
            {
                log += Data((part.headers.map { "\($0.name):\($0.value)" }.joined(separator: ",") + "=").utf8)
                for try await chunk in part.body { log += chunk }
            }
        } catch let error as SerializationError {
            log += Data(" error: \(error)".utf8)
        } catch {
            Issue.record("another error: \(error)")
        }
        return String(decoding: log, as: UTF8.self)
    }
}

/// Expects that the work throws a particular failure of multipart responses.
private func expectParts(
    _ failure: SerializationError.Failure, sourceLocation: SourceLocation = #_sourceLocation,
    _ work: () async throws -> Any
) async {
    do {
        let value = try await work()
        Issue.record("no error was thrown; returned \(value)", sourceLocation: sourceLocation)
    } catch SerializationError.parts(let actual) {
        #expect(actual == failure, sourceLocation: sourceLocation)
    } catch {
        Issue.record("another error: \(error)", sourceLocation: sourceLocation)
    }
}

/// A body that arrives in chunks of a fixed size.
private final class Pieces: ResponseBodySource {
    private let left: Lock<Data>
    private let size: Int
    private let count: Int

    init(_ data: Data, size: Int) {
        left = Lock(data)
        self.size = size
        count = data.count
    }

    convenience init(_ text: String, size: Int) {
        self.init(Data(text.utf8), size: size)
    }

    /// The number of bytes read so far.
    var handedOut: Int { left.withLock { count - $0.count } }

    func next() async throws -> Data? {
        left.withLock { left in
            guard !left.isEmpty else { return nil }
            let piece = Data(left.prefix(size))
            left = left.dropFirst(size)
            return piece
        }
    }

    var ending: ResponseEnding? { left.withLock { $0.isEmpty } ? ResponseEnding() : nil }
}

/// A body whose bytes arrive when it is opened.
private final class Gate: ResponseBodySource {
    private let data: Data
    private let reached = AsyncStream<Void>.makeStream()
    private let opened = AsyncStream<Void>.makeStream()
    private let isRead = Lock(false)

    init(_ data: Data) {
        self.data = data
    }

    func isReached() async {
        for await _ in reached.stream { return }
    }

    func open() {
        opened.continuation.finish()
    }

    func next() async throws -> Data? {
        guard
            !isRead.withLock({ isRead in
                defer { isRead = true }
                return isRead
            })
        else { return nil }
        reached.continuation.yield()
        for await _ in opened.stream {}
        return data
    }

    var ending: ResponseEnding? { nil }
}
