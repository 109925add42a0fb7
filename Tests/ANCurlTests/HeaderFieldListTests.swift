// SPDX-License-Identifier: MIT

import ANCurl
import ANHTTP
import FoundationEssentials
import HTTPTypes
import Testing

/// Heads that are compared with the one before.
@Suite struct HeaderFieldListTests {
    @Test(
        arguments: [
            ["A: 1", "B: 2", "C: 3"], ["A: 1", "B: x", "C: 3"], ["A: x", "B: 2", "C: 3"], ["A: 1", "B: 2", "C: x"],
            ["A: 1", "B: 2"], ["A: 1"], [], ["A: 1", "B: 2", "C: 3", "D: 4"], ["B: 2", "C: 3"], ["A: 1", "C: 3"],
            ["A: 1", "X: y", "B: 2", "C: 3"], ["a: 1", "B: 2", "C: 3"], ["A: 1", "A: 1", "A: 1"],
            ["A: 1", " 2", "B: 2", "C: 3"], ["A: 1", "B: 2", "C: 3", " 4"], ["A: 1", "B: 2", "\tb", "C: 3"],
            ["A: 1 ", "B: 2", "C: 3"], ["A:", "B: 2", "C: 3"], ["C: 3", "B: 2", "A: 1"],
        ])
    func `a head is read alike after any other`(lines: [String]) throws {
        let expected = try Self.read(lines, HeaderFieldCache())
        let others = [["A: 1", "B: 2", "C: 3"], ["A: 1", "B: 2", " folded", "C: 3"], ["X: y"], [], lines]
        for other in others {
            let cache = HeaderFieldCache()
            let first = try Self.read(other, cache)
            #expect(try Self.read(lines, cache) == expected)
            #expect(try Self.read(other, cache) == first)
            #expect(try Self.read(lines, cache) == expected)
        }
    }

    @Test func `the length is read from each head`() throws {
        let cache = HeaderFieldCache()
        for (line, length) in [("7", 7), ("7", 7), ("70", 70), ("7", 7)] as [(String, Int64)] {
            var parser = try Self.parser(of: ["Content-Length: \(line)"], cache)
            _ = try parser.take("\r\n")
            #expect(parser.framing.contentLength == length)
        }
        for _ in 0..<2 {
            var parser = try Self.parser(of: ["Transfer-Encoding: chunked"], cache)
            _ = try parser.take("\r\n")
            #expect(parser.framing.contentLength == nil)
            #expect(!parser.framing.isEndedByClose)
        }
    }

    @Test func `a repeated length that differs from the one before it is an error`() throws {
        let cache = HeaderFieldCache()
        _ = try Self.read(["Content-Length: 7", "A: 1"], cache)
        #expect(throws: HeaderParser.Failure.invalid(.contentLength)) {
            try Self.read(["Content-Length: 7", "Content-Length: 8"], cache)
        }
        _ = try Self.read(["Content-Length: 7", "Content-Length: 7, 7"], cache)
        #expect(throws: HeaderParser.Failure.invalid(.contentLength)) {
            try Self.read(["Content-Length: 8", "Content-Length: 7, 7"], cache)
        }
        #expect(throws: HeaderParser.Failure.invalid(.headerLine(" 0"))) {
            try Self.read(["Content-Length: 7", " 0"], cache)
        }
    }

    @Test func `every head that sets a cookie is noted`() throws {
        for _ in 0..<2 {
            let flag = CookieFlag()
            let cache = HeaderFieldCache(noting: flag)
            _ = try Self.read(["Set-Cookie: a=b"], cache)
            #expect(flag.isSet)
        }
    }

    @Test func `cookies are counted again once, and were set even if none is left`() {
        let flag = CookieFlag()
        flag.recount(above: 0) { 1 }
        #expect(!flag.isSet)
        flag.set(3)
        flag.recount(above: 3) { 1 }
        #expect(flag.maximumCount == 3)
        // As two loops that have found too many.
        for _ in 0..<2 {
            flag.recount(above: 2) {
                flag.set(2)
                return 0
            }
        }
        #expect(flag.maximumCount == 2)
        flag.recount(above: 1) { 0 }
        #expect(flag.maximumCount == 0)
        #expect(flag.isSet)
    }

    @Test func `an interim head and trailers do not change the final head`() throws {
        let cache = HeaderFieldCache()
        for _ in 0..<3 {
            var parser = try Self.parser(of: ["A: 1"], cache, status: "HTTP/1.1 103 Early Hints\r\n")
            _ = try parser.take("\r\n")
            for line in ["HTTP/1.1 200 OK\r\n", "A: 1\r\n", "B: 2\r\n"] { _ = try parser.take(line) }
            guard case .final(let head) = try parser.take("\r\n") else { throw Unexpected() }
            _ = try parser.take("C: 3\r\n")
            #expect(head.headers.map(\.description) == ["A: 1", "B: 2"])
            #expect(parser.finishTrailers().map(\.description) == ["C: 3"])
        }
    }

    @Test func `two heads that arrive at the same time are read alike`() throws {
        let cache = HeaderFieldCache()
        _ = try Self.read(["A: 1", "B: 2"], cache)
        var one = try Self.parser(of: ["A: 1"], cache)
        var other = try Self.parser(of: ["A: 1", "B: x"], cache)
        for line in ["B: 2\r\n", "C: 3\r\n"] { _ = try one.take(line) }
        guard case .final(let second) = try other.take("\r\n"), case .final(let first) = try one.take("\r\n") else {
            throw Unexpected()
        }
        #expect(first.headers.map(\.description) == ["A: 1", "B: 2", "C: 3"])
        #expect(second.headers.map(\.description) == ["A: 1", "B: x"])
    }

    @Test func `long and numerous lines are read alike`() throws {
        let cache = HeaderFieldCache()
        let lines = (0..<200).map { "F-\($0): " + String(repeating: "v", count: $0 * 20) }
        for _ in 0..<3 {
            #expect(try Self.read(lines, cache) == lines)
            #expect(try Self.read(Array(lines[50...60]), cache) == Array(lines[50...60]))
        }
    }

    /// Returns the fields of a head with these lines.
    private static func read(_ lines: [String], _ cache: HeaderFieldCache) throws -> [String] {
        var parser = try parser(of: lines, cache)
        guard case .final(let head) = try parser.take("\r\n") else { throw Unexpected() }
        return head.headers.map(\.description)
    }

    /// Returns a parser that has received a status line and these lines.
    private static func parser(
        of lines: [String], _ cache: HeaderFieldCache, status: String = "HTTP/1.1 200 OK\r\n"
    ) throws -> HeaderParser {
        var parser = HeaderParser(url: URL(filePath: "/"), maximumSize: 10 << 20, cache: cache)
        _ = try parser.take(status)
        for line in lines { _ = try parser.take(line + "\r\n") }
        return parser
    }

    private struct Unexpected: Error {}
}
