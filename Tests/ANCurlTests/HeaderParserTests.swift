// SPDX-License-Identifier: MIT

import ANCurl
import ANHTTP
import AsyncNetworkingTesting
import FoundationEssentials
import HTTPTypes
import Testing

@Suite struct HeaderParserTests {
    // MARK: Heads

    @Test(arguments: [
        ("HTTP/1.1 200 OK\r\n", 200, "OK", HTTPVersion.http1_1),
        ("HTTP/1.1 200\r\n", 200, "", .http1_1),
        ("HTTP/1.1 200 \r\n", 200, "", .http1_1),
        ("HTTP/1.1 200 OK\n", 200, "OK", .http1_1),
        ("HTTP/1.1 200 OK", 200, "OK", .http1_1),
        ("HTTP/1.0 404 Not Found\r\n", 404, "Not Found", .http1_0),
        ("HTTP/2 200 \r\n", 200, "", .http2),
        ("HTTP/3 204 \r\n", 204, "", .http3),
        ("HTTP/1.1 999 Odd\r\n", 999, "Odd", .http1_1),
        ("HTTP/1.1 200  two  spaces\r\n", 200, " two  spaces", .http1_1),
        ("HTTP/1.1 200 gr\u{FC}n\r\n", 200, "gr\u{FC}n", .http1_1),
    ])
    func `a status line is understood`(line: String, code: Int, phrase: String, version: HTTPVersion) throws {
        let head = try #require(try Self.parse([line, "\r\n"]).final)
        #expect(head.status.code == code)
        #expect(head.status.reasonPhrase == phrase)
        #expect(head.version == version)
        #expect(head.url == Self.url)
    }

    @Test(arguments: [
        "", "\r\n", "\n", " HTTP/1.1 200 OK\r\n", "Http/1.1 200 OK\r\n", "http/1.1 200 OK\r\n", "HTTP\r\n", "HTT",
        "ICY 200 OK\r\n", "<html>\r\n", "\0HTTP/1.1 200\r\n", "\u{FEFF}HTTP/1.1 200\r\n", "A: b\r\n",
    ])
    func `what does not begin like HTTP is not HTTP`(line: String) {
        #expect(Self.failure([line]) == .invalid(.notHTTP))
    }

    @Test(arguments: [
        "HTTP/", "HTTP/1.1", "HTTP/1.1 ", "HTTP/1.1 99", "HTTP/1.1 099", "HTTP/1.1 1000", "HTTP/1.1 20",
        "HTTP/1.1  200", "HTTP/1.1\t200", "HTTP/1.1 2OO", "HTTP/1.1 -20", "HTTP/1.1 +20", "HTTP/1.1 20x OK",
        "HTTP/1.1 2 0 0", "HTTP/1.1 ２００", "HTTP/1.1 200\tOK", "HTTP/ 200", "HTTP/1 200", "HTTP/1.2 200",
        "HTTP/11 200", "HTTP/1.10 200", "HTTP/0.9 200", "HTTP/-1.1 200", "HTTP/2.0 200", "HTTP/4 200",
        "HTTP/1.1\0 200", "HTTP/1.1 200\0", "HTTP/1.1 18446744073709551817",
    ])
    func `a broken status line is refused with its text`(line: String) {
        #expect(Self.failure([line + "\r\n"]) == .invalid(.statusLine(line)))
    }

    @Test func `a very long status line is quoted in part`() {
        let line = "HTTP/1.1 x" + String(repeating: "y", count: 1000)
        #expect(Self.failure([line]) == .invalid(.statusLine(String(line.prefix(80)))))
    }

    // MARK: Fields

    @Test(arguments: [
        ("A: b\r\n", "A", "b"),
        ("A:b\r\n", "A", "b"),
        ("A: \t b c \t \r\n", "A", "b c"),
        ("A: b\n", "A", "b"),
        ("A: b", "A", "b"),
        ("A:\r\n", "A", ""),
        ("A: \r\n", "A", ""),
        ("A: b: c:\r\n", "A", "b: c:"),
        ("A: \u{E4}\u{20AC}\r\n", "A", "\u{E4}\u{20AC}"),
        ("a!#$%&'*+-.^_`|~1: x\r\n", "a!#$%&'*+-.^_`|~1", "x"),
        ("A: b\0c\r\n", "A", "b c"),
        ("A: b\rc\r\n", "A", "b c"),
        ("A: b\r\r\n", "A", "b "),
        ("A: \"b, c\"; d\r\n", "A", "\"b, c\"; d"),
    ])
    func `a field is understood`(line: String, name: String, value: String) throws {
        let head = try #require(try Self.parse([Self.ok, line, "\r\n"]).final)
        #expect(head.headers.map(\.name.rawName) == [name])
        #expect(head.headers.map(\.value) == [value])
    }

    @Test(arguments: [
        "no colon", ": blank name", ":", "a b: c", "a : b", "a\t: b", "\u{E4}: b", "a\0: b", "(a): b", "a\"b: c",
        "HTTP/1.1 200 OK", "\0", "a/b: c",
    ])
    func `a line that is no field is refused with its text`(line: String) {
        #expect(Self.failure([Self.ok, line + "\r\n"]) == .invalid(.headerLine(line)))
        #expect(Self.failure([Self.ok, "\r\n", line + "\r\n"]) == .invalid(.headerLine(line)), "as a trailer")
    }

    @Test(arguments: ["HTTP/1.1 200 e", "Keep-Alive: e", "Content-Encoding: e"])
    func `a line that takes too long to compare is refused`(line: String) {
        let accents = String(repeating: "\u{301}", count: 200) + String(repeating: "\u{316}", count: 200)
        for lines in [[Self.ok], [Self.ok, "\r\n"]] {
            guard case .invalid? = Self.failure(lines + ["\(line)\(accents)\r\n"]) else {
                Issue.record("not refused")
                return
            }
        }
        #expect(Self.failure(["\(line)\(accents)\r\n"]) != nil)
        #expect(Self.failure([Self.ok, "A: \(String(repeating: "漢字 é", count: 10_000))\r\n"]) == nil)
    }

    @Test func `bytes that are not UTF-8 are kept in a value and refused in a name`() throws {
        var parser = Self.makeParser()
        _ = try parser.take(Self.ok)
        _ = try parser.take(Array("A: ".utf8) + [0xE4, 0xFF, 0x80] + Array("\r\n".utf8))
        let head = try #require(try parser.take("\r\n").head)
        let bytes = head.headers.first.map { field in unsafe field.withUnsafeBytesOfValue { unsafe Array($0) } }
        #expect(bytes == [0xE4, 0xFF, 0x80])

        parser = Self.makeParser()
        _ = try parser.take(Self.ok)
        #expect(throws: HeaderParser.Failure.invalid(.headerLine("\u{FFFD}: b"))) {
            _ = try parser.take([0xE4] + Array(": b\r\n".utf8))
        }
    }

    @Test func `fields keep their order and their repetitions`() throws {
        let lines = [Self.ok, "Set-Cookie: a=1\r\n", "X: y\r\n", "set-cookie: b=2\r\n", "\r\n"]
        let head = try #require(try Self.parse(lines).final)
        #expect(head.headers.map(\.description) == ["Set-Cookie: a=1", "X: y", "set-cookie: b=2"])
        #expect(head.headers[.setCookie] == "a=1, b=2" || head.headers[values: .setCookie] == ["a=1", "b=2"])
    }

    @Test(arguments: [
        (["A: b\r\n", " c\r\n"], "b c"),
        (["A: b\r\n", "\t c \r\n", "  d\r\n"], "b c d"),
        (["A:\r\n", " b\r\n"], "b"),
        (["A: b\r\n", " \r\n", " c\r\n"], "b c"),
        (["A: b\r\n", " c: d\r\n"], "b c: d"),
        (["A: b\r\n", " \u{E4}\r\n"], "b \u{E4}"),
    ])
    func `a folded line continues the value before it`(lines: [String], value: String) throws {
        let head = try #require(try Self.parse([Self.ok] + lines + ["B: x\r\n", "\r\n"]).final)
        #expect(head.headers.map(\.value) == [value, "x"])
        let last = try #require(try Self.parse([Self.ok] + lines + ["\r\n"]).final)
        #expect(last.headers.map(\.value) == [value])
        #expect(try Self.parse([Self.ok, "\r\n"] + lines).trailers.map(\.value) == [value])
    }

    @Test func `a folded line has nothing to continue at the start or after Content-Length`() {
        #expect(Self.failure([Self.ok, " a: b\r\n"]) == .invalid(.headerLine(" a: b")))
        #expect(Self.failure([Self.ok, "Content-Length: 1\r\n", " 0\r\n"]) == .invalid(.headerLine(" 0")))
        #expect(Self.failure([Self.ok, "A: b\r\n", "\r\n", " c\r\n"]) == .invalid(.headerLine(" c")))
    }

    @Test(arguments: ["Content-Encoding", "Content-Length", "Connection", "content-encoding"])
    func `a field that frames the message is not continued on another line`(name: String) {
        #expect(Self.failure([Self.ok, "\(name): 1\r\n", " 2\r\n"]) == .invalid(.headerLine(" 2")))
    }

    @Test(arguments: ["", "gzip", "gzip, chunked", "chunked, chunked", "identity", "chunke"])
    func `a transfer coding other than chunked is refused`(coding: String) {
        #expect(Self.failure([Self.ok, "Transfer-Encoding: \(coding)\r\n"]) == .invalid(.framing))
    }

    @Test func `a transfer coding is not continued on another line`() {
        #expect(
            Self.failure([Self.ok, "Transfer-Encoding: Chunked\r\n", " \r\n"]) == .invalid(.headerLine(" ")))
    }

    @Test(arguments: ["HTTP/2 200 OK\r\n", "HTTP/2 200 \r\n", "HTTP/3 200\r\n"])
    func `a status line of HTTP/2 is refused on a connection of HTTP/1.1`(line: String) throws {
        var parser = Self.makeParser()
        parser.isOnMultiplexedConnection = false
        #expect(throws: HeaderParser.Failure.invalid(.statusLine(String(line.dropLast())))) {
            _ = try parser.take(line)
        }
        parser = Self.makeParser()
        parser.isOnMultiplexedConnection = false
        _ = try parser.take(Self.ok)
        #expect(try parser.take("\r\n").head?.version == .http1_1)
    }

    @Test func `a hundred thousand folded lines cost no more than their bytes`() throws {
        let lines = [String](repeating: " \u{E4}\r\n", count: 100_000)
        let start = ContinuousClock.now
        let head = try #require(
            try Self.parse([Self.ok, "A: b\r\n"] + lines + ["\r\n"], maximumSize: 1 << 20).final)
        #expect(head.headers.first?.value.utf8.count == 300_001)
        #expect(ContinuousClock.now - start < .seconds(20))
    }

    // MARK: Content-Length

    @Test(
        arguments: [
            (["Content-Length: 0\r\n"], 0),
            (["Content-Length: 5\r\n"], 5),
            (["content-length:5\r\n"], 5),
            (["Content-Length: 005\r\n"], 5),
            (["Content-Length: 5\r\n", "Content-Length: 5\r\n"], 5),
            (["Content-Length: 5\r\n", "Content-Length: 05\r\n"], 5),
            (["Content-Length: 5, 5\r\n"], 5),
            (["Content-Length: 5,05 , 5\r\n", "Content-Length: 5\r\n"], 5),
            (["Content-Length: 999999999999999999\r\n"], 999_999_999_999_999_999),
            (["Content-Type: a/b\r\n"], nil),
            (["Content-Length: 5\r\n", "Transfer-Encoding: chunked\r\n"], nil),
            (["Transfer-Encoding: chunked\r\n", "Content-Length: 5\r\n"], nil),
        ] as [([String], Int64?)])
    func `the declared length is known where it counts`(lines: [String], length: Int64?) throws {
        #expect(try Self.parse([Self.ok] + lines + ["\r\n"]).contentLength == length)
    }

    @Test(arguments: [
        ["Content-Length: 5\r\n", "A: b\r\n", "Transfer-Encoding: chunked\r\n"],
        ["Transfer-Encoding: chunked\r\n", "content-length: 5\r\n", "A: b\r\n", "Content-Length: 5\r\n"],
    ])
    func `a length that a transfer coding overrides is removed`(lines: [String]) throws {
        for status in [Self.ok, "HTTP/1.1 103 Early Hints\r\n"] {
            let parsed = try Self.parse([status] + lines + ["\r\n"])
            let head = try #require(parsed.final ?? parsed.informational.first)
            #expect(Set(head.headers.map(\.description)) == ["A: b", "Transfer-Encoding: chunked"])
        }
    }

    @Test(arguments: [
        ["+5"], ["-5"], ["-0"], ["5, 6"], ["5,6"], ["5,"], [",5"], ["5,,5"], ["5, 5", "6"], ["5 5"], ["0x5"], ["5.0"],
        ["five"], [""], ["5\0"], ["٥"],
        ["9223372036854775808"], ["99999999999999999999999"], ["5", "6"], ["5", ""], ["", "5"], ["5", "5", "7"],
    ])
    func `a length that is no number, or two that differ, are refused`(values: [String]) {
        let lines = values.map { "Content-Length: \($0)\r\n" }
        #expect(Self.failure([Self.ok] + lines + ["\r\n"]) == .invalid(.contentLength))
    }

    @Test func `an interim head's length does not bind the final one`() throws {
        let parsed = try Self.parse([
            "HTTP/1.1 103 Early Hints\r\n", "Content-Length: 1\r\n", "\r\n",
            Self.ok, "Content-Length: 2\r\n", "\r\n",
        ])
        #expect(parsed.contentLength == 2)
        #expect(parsed.informational.map(\.status.code) == [103])
    }

    @Test func `a Content-Length among the trailers changes nothing`() throws {
        let parsed = try Self.parse([Self.ok, "Content-Length: 2\r\n", "\r\n", "Content-Length: 7\r\n", "\r\n"])
        #expect(parsed.contentLength == 2)
        #expect(parsed.trailers.map(\.description) == ["Content-Length: 7"])
    }

    // MARK: Order

    @Test func `interim heads come one by one before the final one, trailers after it`() throws {
        var parser = Self.makeParser()
        #expect(!parser.hasBegun)
        let lines = [
            "HTTP/1.1 100 Continue\r\n", "\r\n", "HTTP/1.1 103 Early Hints\r\n", "Link: </a>\r\n", "\r\n",
            Self.ok, "A: b\r\n", "\r\n", "T: 1\r\n", "U: 2\r\n", "\r\n",
        ]
        let events = try lines.map { try parser.take($0).name }
        #expect(
            events == [
                "none", "100", "none", "none", "103", "none", "none", "final 200", "none", "none", "none",
            ])
        #expect(parser.hasBegun)
        #expect(parser.isComplete)
        #expect(parser.finishTrailers().map(\.description) == ["T: 1", "U: 2"])
    }

    @Test func `the fields of an interim head do not leak into the final one`() throws {
        let parsed = try Self.parse(["HTTP/1.1 103 E\r\n", "Link: x\r\n", "\r\n", Self.ok, "A: b\r\n", "\r\n"])
        #expect(parsed.informational.map { $0.headers.map(\.description) } == [["Link: x"]])
        #expect(parsed.final?.headers.map(\.description) == ["A: b"])
        #expect(parsed.trailers.isEmpty)
    }

    @Test func `before the final head there are no trailers`() throws {
        #expect(try Self.parse([Self.ok, "A: b\r\n"]).trailers.isEmpty)
    }

    @Test func `after an interim head another status line must come`() {
        #expect(Self.failure(["HTTP/1.1 100 C\r\n", "\r\n", "\r\n"]) == .invalid(.notHTTP))
        #expect(Self.failure(["HTTP/1.1 100 C\r\n", "\r\n", "A: b\r\n"]) == .invalid(.notHTTP))
    }

    // MARK: Limits

    @Test func `all heads together may have the greatest size, and not a byte more`() throws {
        let lines = ["HTTP/1.1 100 C\r\n", "\r\n", Self.ok, "A: b\r\n", "\r\n"]
        let size = lines.map(\.utf8.count).reduce(0, +)
        #expect(try Self.parse(lines, maximumSize: size).final != nil)
        #expect(Self.failure(lines, maximumSize: size - 1) == .tooLarge(limit: size - 1))
        #expect(Self.failure(lines + ["T: 1\r\n"], maximumSize: size) == .tooLarge(limit: size), "Trailers count too.")
        #expect(Self.failure([Self.ok], maximumSize: 0) == .tooLarge(limit: 0))
        #expect(Self.failure([Self.ok], maximumSize: .min) == .tooLarge(limit: .min))
    }

    @Test func `a huge line is refused`() {
        let line = "A: " + String(repeating: "x", count: 400_000) + "\r\n"
        #expect(Self.failure([Self.ok, line]) == .tooLarge(limit: 300 << 10))
    }

    @Test func `there may be 4096 fields, and not one more`() throws {
        let lines = [String](repeating: "A: b\r\n", count: 4096)
        #expect(try Self.parse([Self.ok] + lines + ["\r\n"]).final?.headers.count == 4096)
        #expect(Self.failure([Self.ok] + lines + ["A: b\r\n"]) == .tooLarge(limit: 300 << 10))
        #expect(try Self.parse([Self.ok, "\r\n"] + lines + ["\r\n"]).trailers.count == 4096)
        #expect(Self.failure([Self.ok, "\r\n"] + lines + ["A: b\r\n"]) == .tooLarge(limit: 300 << 10))
    }

    // MARK: Noise

    /// Slow, because few random lines form a head: there are 80,000 of them.
    @Test(arguments: 0..<4)
    func `no line makes it trap`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        var parser = HeaderParser(url: Self.url, maximumSize: 1 << 30)
        let pieces: [[UInt8]] = [
            "HTTP/1.1 ", "HTTP/2 ", "200", "103", "100", " ", ":", "\r\n", "\n", "\r", "\0", "\t", "Content-Length",
            "5",
            "99999999999999999999", "Transfer-Encoding: chunked", "Content-Encoding", "a", "b: c", "ä", ",", "-",
        ].map { Array($0.utf8) }
        var events = 0
        for _ in 0..<20_000 {
            var line: [UInt8] = []
            for _ in 0..<Int.random(in: 0...6, using: &random) {
                if Int.random(in: 0..<4, using: &random) == 0 {
                    line += (0..<Int.random(in: 0...20, using: &random)).map { _ in
                        UInt8.random(in: 0...255, using: &random)
                    }
                } else {
                    line += pieces.randomElement(using: &random) ?? []
                }
            }
            do {
                if try parser.take(line).name != "none" { events += 1 }
            } catch {
                // A parser is given up at its first failure; half of them go on here, which must not trap either.
                if Bool.random(using: &random) { parser = HeaderParser(url: Self.url, maximumSize: 1 << 30) }
            }
            if parser.isComplete, Int.random(in: 0..<8, using: &random) == 0 {
                parser = HeaderParser(url: Self.url, maximumSize: 1 << 30)
            }
        }
        #expect(events > 0, "Some of the noise is a head.")
    }

    // MARK: Helpers

    private static let ok = "HTTP/1.1 200 OK\r\n"
    private static let url = URL(filePath: "/x")

    private static func makeParser(maximumSize: Int = 300 << 10) -> HeaderParser {
        HeaderParser(url: url, maximumSize: maximumSize)
    }

    private struct Parsed {
        var informational: [ResponseHead] = []
        var final: ResponseHead?
        var trailers: HTTPFields = [:]
        var contentLength: Int64?
    }

    private static func parse(
        _ lines: [String], maximumSize: Int = 300 << 10
    ) throws(HeaderParser.Failure) -> Parsed {
        var parser = makeParser(maximumSize: maximumSize)
        var parsed = Parsed()
        for line in lines {
            switch try parser.take(line) {
            case .none: break
            case .informational(let head): parsed.informational.append(head)
            case .final(let head): parsed.final = head
            }
        }
        parsed.trailers = parser.finishTrailers()
        parsed.contentLength = parser.framing.contentLength
        return parsed
    }

    private static func failure(_ lines: [String], maximumSize: Int = 300 << 10) -> HeaderParser.Failure? {
        do throws(HeaderParser.Failure) {
            _ = try parse(lines, maximumSize: maximumSize)
            return nil
        } catch {
            return error
        }
    }
}

extension HeaderParser {
    mutating func take(_ line: String) throws(Failure) -> Event {
        try take(Array(line.utf8))
    }

    mutating func take(_ line: [UInt8]) throws(Failure) -> Event {
        var result: Result<Event, Failure> = .success(.none)
        unsafe line.withUnsafeBufferPointer { bytes in
            result = Result { () throws(Failure) in try unsafe receive(bytes) }
        }
        return try result.get()
    }
}

extension HeaderParser.Event {
    fileprivate var head: ResponseHead? {
        if case .final(let head) = self { head } else { nil }
    }

    fileprivate var name: String {
        switch self {
        case .none: "none"
        case .informational(let head): "\(head.status.code)"
        case .final(let head): "final \(head.status.code)"
        }
    }
}
