// SPDX-License-Identifier: MIT

import ANCurl
import Testing

@Suite struct ChunkedBodyTests {
    /// A body, its content and trailers, and whether it is complete and over.
    static let bodies: [(bytes: String, content: String, trailers: [String], isComplete: Bool, isOver: Bool)] = [
        ("3\r\nabc\r\n2;x=\"y\"\r\nde\r\n0\r\nX: y\r\n\r\nmore", "abcde", ["X: y\r\n", "\r\n"], true, true),
        ("A\nabcdefghij\n0 \n\n", "abcdefghij", ["\n"], true, true), ("0\r\n", "", [], true, false),
        ("0\r\nX: y\r\n", "", ["X: y\r\n"], true, false), ("3\r\nab", "ab", [], false, false),
        ("3\r\nabc\r\n", "abc", [], false, false), ("", "", [], false, false),
        ("7FFFFFFFFFFFFFFF\r\nabc", "abc", [], false, false), ("000\r\n\r\n", "", ["\r\n"], true, true),
    ]

    @Test(arguments: bodies.indices)
    func `a body is decoded wherever its bytes are split`(index: Int) {
        let (text, expected, lines, isComplete, isOver) = Self.bodies[index]
        let bytes = Array(text.utf8)
        for first in 0...bytes.count {
            for second in first...bytes.count {
                var chunks = ChunkedBody()
                var content: [UInt8] = []
                var trailers: [[UInt8]] = []
                for part in [bytes[..<first], bytes[first..<second], bytes[second...]] {
                    let decoded = chunks.decode(part)
                    content += decoded.content
                    trailers += decoded.trailers
                }
                #expect(content == Array(expected.utf8) && trailers == lines.map { Array($0.utf8) })
                #expect(chunks.isComplete == isComplete && chunks.isOver == isOver && !chunks.isMalformed)
            }
        }
    }

    @Test(
        arguments: [
            "x\r\n", "\r\n", "-3\r\nabc\r\n", "+3\r\nabc\r\n", "8000000000000000\r\nabc", "3\r\nabcd\r\n", "0x3\r\nabc",
            "3\r\nabc0\r\n\r\n", String(repeating: "0", count: 70_000),
        ])
    func `what does not follow the coding is malformed`(text: String) {
        var chunks = ChunkedBody()
        _ = chunks.decode(Array(text.utf8))
        #expect(chunks.isMalformed && !chunks.isComplete)
        #expect(chunks.decode(Array("0\r\n\r\n".utf8)) == (content: [], trailers: []))
    }
}
