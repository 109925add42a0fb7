// SPDX-License-Identifier: MIT

import AsyncNetworkingTesting
import Testing

@Suite struct RequestParserTests {
    /// Returns the parts that the parser returns for bytes in chunks of a size, as words.
    private func parse(_ text: String, pieces size: Int = .max, maximumHeadSize: Int = 1000) -> [String] {
        var parser = RequestParser(maximumHeadSize: maximumHeadSize)
        var words: [String] = []
        var rest = Array(text.utf8)[...]
        do throws(RequestParser.ParsingError) {
            while true {
                switch try parser.next() {
                case .needsMore:
                    guard !rest.isEmpty else { return words + (parser.isIdle ? [] : ["unfinished"]) }
                    parser.append(rest.prefix(size))
                    rest = rest.dropFirst(size)
                case .head(let method, let target, let version, let headers):
                    words.append(([method, target, version] + headers.map(\.description)).joined(separator: "|"))
                case .body(let bytes):
                    let text = String(decoding: bytes, as: UTF8.self)
                    if words.last?.hasPrefix("<") == true {
                        words[words.count - 1] += text
                    } else {
                        words.append("<" + text)
                    }
                case .end(let trailers):
                    words.append((["end"] + trailers.map(\.description)).joined(separator: "|"))
                }
            }
        } catch {
            return words + ["\(error)"]
        }
    }

    @Test(arguments: [Int.max, 1, 2, 3, 7])
    func `requests are parsed independently of the sizes of chunks`(size: Int) {
        let cases: [(String, [String])] = [
            ("", []),
            ("GET / HTTP/1.1\r\n\r\n", ["GET|/|HTTP/1.1", "end"]),
            ("GET / HTTP/1.0\n\n", ["GET|/|HTTP/1.0", "end"]),
            ("\r\n\r\nGET / HTTP/1.1\r\n\r\n", ["GET|/|HTTP/1.1", "end"]),
            ("GET / HTTP/1.1\r\nA:1\r\na: \t2 \r\nB:\r\n\r\n", ["GET|/|HTTP/1.1|A: 1|a: 2|B: ", "end"]),
            ("GET /a b HTTP/1.1\r\n\r\n", ["GET|/a b|HTTP/1.1", "end"]),
            ("PUT / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc", ["PUT|/|HTTP/1.1|Content-Length: 3", "<abc", "end"]),
            ("PUT / HTTP/1.1\r\nContent-Length: 0\r\n\r\n", ["PUT|/|HTTP/1.1|Content-Length: 0", "end"]),
            (
                "PUT / HTTP/1.1\r\nContent-Length: 1\r\n\r\naGET /b HTTP/1.1\r\n\r\n",
                ["PUT|/|HTTP/1.1|Content-Length: 1", "<a", "end", "GET|/b|HTTP/1.1", "end"]
            ),
            (
                "PUT / HTTP/1.1\r\nTransfer-Encoding: gzip, Chunked\r\n\r\n2\r\nab\r\n0A ;x\r\n0123456789\r\n0\r\nT: 1\r\n\r\n",
                ["PUT|/|HTTP/1.1|Transfer-Encoding: gzip, Chunked", "<ab0123456789", "end|T: 1"]
            ),
            (
                "PUT / HTTP/1.1\r\nContent-Length: 3\r\n\r\nab",
                ["PUT|/|HTTP/1.1|Content-Length: 3", "<ab", "unfinished"]
            ),
            ("GET", ["unfinished"]),
        ]
        for (text, words) in cases { #expect(parse(text, pieces: size) == words) }
    }

    @Test func `a malformed request is rejected with a reason`() {
        let length = "PUT / HTTP/1.1\r\nContent-Length: "
        let chunked = "PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
        let cases: [(String, String)] = [
            ("hello\r\n", "requestLine"),
            ("GET /\r\n", "requestLine"),
            ("GET / HTTP/2.0\r\n", "requestLine"),
            ("\u{16}\u{3}\u{1}\n", "requestLine"),
            ("GET / HTTP/1.1\r\nfield\r\n", "field"),
            ("GET / HTTP/1.1\r\n: 1\r\n", "field"),
            (length + "x\r\n\r\n", "contentLength"),
            (length + "-1\r\n\r\n", "contentLength"),
            (length + "\r\n\r\n", "contentLength"),
            (length + "99999999999999999999\r\n\r\n", "contentLength"),
            (length + "1\r\nContent-Length: 2\r\n\r\n", "contentLength"),
            (chunked + "x\r\n", "chunk"),
            (chunked + "\r\n", "chunk"),
            (chunked + "-1\r\n", "chunk"),
            (chunked + "+1\r\n", "chunk"),
            (chunked + "ffffffffffffffffff\r\n", "chunk"),
            (chunked + "1\r\nab\r\n", "chunk"),
            (String(repeating: "a", count: 1001), "tooLarge"),
            ("GET / HTTP/1.1\r\n" + String(repeating: "a: 1\r\n", count: 300), "tooLarge"),
        ]
        for (text, failure) in cases { #expect(parse(text).last == failure, "\(text)") }
    }

    @Test func `the largest length is parsed without overflow`() {
        let text = "PUT / HTTP/1.1\r\nContent-Length: 9223372036854775807\r\n\r\nab"
        #expect(parse(text).suffix(2) == ["<ab", "unfinished"])
        let chunk = "PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n7fffffffffffffff\r\nab"
        #expect(parse(chunk).suffix(2) == ["<ab", "unfinished"])
    }

    @Test func `random bytes do not crash the parser`() {
        let seed = Array(
            "PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 9\r\n\r\n5;a\r\nabcde\r\n0\r\nT: 1\r\n\r\n"
                .utf8)
        var random = UInt64(1)
        /// Returns the next number of Knuth's linear congruential generator (MMIX).
        func next(below limit: Int) -> Int {
            random = random &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return Int(random >> 33) % limit
        }
        for _ in 0..<3000 {
            var bytes = seed
            for _ in 0...next(below: 6) { bytes[next(below: bytes.count)] = UInt8(next(below: 256)) }
            var parser = RequestParser(maximumHeadSize: 100)
            var rest = bytes[...]
            loop: while true {
                switch try? parser.next() {
                case nil: break loop
                case .needsMore:
                    guard !rest.isEmpty else { break loop }
                    let count = 1 + next(below: 20)
                    parser.append(rest.prefix(count))
                    rest = rest.dropFirst(count)
                case .head, .body, .end: continue
                }
            }
        }
    }

    @Test func `bytes that are not UTF-8 are decoded as Latin-1`() throws {
        var parser = RequestParser(maximumHeadSize: 100)
        parser.append(Array("GET / HTTP/1.1\r\nA: ".utf8) + [0xE4] + Array("\r\n\r\n".utf8))
        #expect(try parser.next() == .head(method: "GET", target: "/", version: "HTTP/1.1", ["A": "ä"]))
    }
}
