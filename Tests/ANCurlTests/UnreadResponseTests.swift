// SPDX-License-Identifier: MIT

import ANCurl
import Testing

@Suite struct UnreadResponseTests {
    @Test(
        arguments: [
            ("HTTP/1.1 413 \r\nA: b\r\n\r\nbody", ["HTTP/1.1 413 \r\n", "A: b\r\n", "\r\n"]),
            ("HTTP/1.1 413 \nA: b\n\n", ["HTTP/1.1 413 \n", "A: b\n", "\n"]), ("HTTP/1.1 413", []), ("", []),
        ])
    func `lines are returned with their terminators, and only complete ones`(bytes: String, lines: [String]) {
        var response = UnreadResponse(Array(bytes.utf8))
        var found: [String] = []
        while let line = response.nextLine() { found.append(String(decoding: line, as: UTF8.self)) }
        #expect(found == lines)
    }

    @Test(
        arguments: [
            ("body and more", .length(4), "body", true, " and more"), ("body", .length(4), "body", true, ""),
            ("bod", .length(4), "bod", false, ""), ("next", .length(0), "", true, "next"),
            ("body", .length(.max), "body", false, ""), ("body", .close, "body", false, ""),
            ("3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nX: y\r\n\r\n", .chunked, "abcde", true, "X: y\r\n\r\n"),
            ("A\nabcdefghij\n0 \n\n", .chunked, "abcdefghij", true, "\n"), ("0\r\n", .chunked, "", true, ""),
            ("3\r\nab", .chunked, "ab", false, ""), ("3\r\nabc", .chunked, "abc", false, ""),
            ("3\r\nabcd\r\n", .chunked, "abc", false, ""), ("3\r\nabc\r\n", .chunked, "abc", false, ""),
            ("x\r\n", .chunked, "", false, ""), ("\r\n", .chunked, "", false, ""), ("", .chunked, "", false, ""),
            ("-3\r\nabc\r\n", .chunked, "", false, "abc\r\n"), ("+3\r\nabc\r\n", .chunked, "", false, "abc\r\n"),
            ("8000000000000000\r\nabc", .chunked, "", false, "abc"),
            ("7FFFFFFFFFFFFFFF\r\nabc", .chunked, "abc", false, ""),
        ] as [(String, UnreadResponse.Framing, String, Bool, String)])
    func `a body ends where its framing says`(
        bytes: String, framing: UnreadResponse.Framing, body: String, isComplete: Bool, rest: String
    ) {
        var response = UnreadResponse(Array(bytes.utf8))
        let result = response.nextBody(framing)
        #expect(String(decoding: result.bytes, as: UTF8.self) == body)
        #expect(result.isComplete == isComplete)
        guard isComplete else { return }
        let left = result.trailers.joined() + response.nextBody(.close).bytes
        #expect(String(decoding: Array(left), as: UTF8.self) == rest)
    }
}
