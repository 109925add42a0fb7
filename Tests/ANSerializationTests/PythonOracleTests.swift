// SPDX-License-Identifier: MIT

import ANHTTP
import ANSerialization
import ANSystem
import FoundationEssentials
import HTTPTypes
import TestSupport
import Testing

/// Random forms, multipart bodies, lines, cookies and events are read by the library and by a program in Python, which
/// uses the module of its standard library for the format where there is one.
@Suite(.timeLimit(.minutes(1))) struct PythonOracleTests {
    private static let count = 300

    private static func hex(_ text: String) -> String { PythonOracle.hexadecimal(text.utf8) }

    private static func text(
        of alphabet: String, _ length: ClosedRange<Int>, using random: inout SeededGenerator
    ) -> String {
        var text = ""
        for _ in 0..<Int.random(in: length, using: &random) {
            if let scalar = alphabet.unicodeScalars.randomElement(using: &random) { text.unicodeScalars.append(scalar) }
        }
        return text
    }

    private static let hostile = "aZ09 &=+%#?/[].\"<>\\^`{|}~;,:'\r\n\t\u{0}\u{7F}éß漢👴🏿\u{301}\u{202E}\u{FFFD}"

    // MARK: Forms

    /// `urllib.parse`: the form as it would be written, and the pairs as they are read.
    @Test(arguments: [1, 2] as [UInt64])
    func `forms are those of urllib`(seed: UInt64) async throws {
        let oracle = PythonOracle(
            """
            from urllib.parse import parse_qsl, urlencode
            def answer(data):
                pairs = parse_qsl(data.decode("ascii"), keep_blank_values=True, strict_parsing=bool(data))
                return urlencode(pairs) + " " + ",".join(n.encode().hex() + "=" + v.encode().hex() for n, v in pairs)
            """)
        var random = SeededGenerator(seed: seed)
        let encoder = URLEncodedFormEncoder().with {
            $0.encodesSpacesAsPlus = true
            $0.allowedCharacters = .unreserved
            $0.sortsNames = false
        }
        var (forms, expected): ([[UInt8]], [String]) = ([], [])
        for _ in 0..<Self.count {
            var pairs: [(name: String, value: String)] = []
            for _ in 0..<Int.random(in: 0...5, using: &random) {
                let name = Self.text(of: Self.hostile, 1...6, using: &random)
                pairs.append((name, Self.text(of: Self.hostile, 0...8, using: &random)))
            }
            let form = try encoder.encode(.dictionary(pairs.map { .init($0.name, .string($0.value)) }))
            forms.append(Array(form.utf8))
            expected.append(
                form + " " + pairs.map { Self.hex($0.name) + "=" + Self.hex($0.value) }.joined(separator: ","))
        }
        try await oracle.expect(expected, for: forms)
    }

    // MARK: Multipart

    /// `email.parser`: the parts of forms that the library writes. The library reads the same ones.
    @Test(arguments: [1, 2] as [UInt64])
    func `the parts of a form are those of the email package`(seed: UInt64) async throws {
        let oracle = PythonOracle(
            """
            from email import message_from_string
            def text(value):
                return "-" if value is None else value.encode("latin-1").hex()
            def answer(data):
                message = message_from_string(data.decode("latin-1"))
                if message.defects or not message.is_multipart(): raise ValueError()
                return ",".join(
                    ":".join([text(part.get_param("name", header="content-disposition")),
                        text(part.get_param("filename", header="content-disposition")),
                        text(part.get("content-type")), text(part.get_payload())])
                    for part in message.get_payload())
            """)
        var random = SeededGenerator(seed: seed)
        var (bodies, expected): ([[UInt8]], [String]) = ([], [])
        // The package removes backslashes from quoted strings; browsers, as the library, do not write them.
        let names = String(
            Self.hostile.unicodeScalars.filter { $0 != "\\" && $0 != "\0" && $0 != "\t" && $0 != "\u{7F}" })
        for _ in 0..<Self.count {
            var form = try MultipartFormData(boundary: "Boundary+0123456789")
            for _ in 0..<Int.random(in: 1...4, using: &random) {
                let name = Self.text(of: names, 1...6, using: &random)
                let content = Self.content(using: &random)
                if Bool.random(using: &random) {
                    form.append(content, name: name)
                } else {
                    let type = ["text/plain; charset=utf-8", "image/png", "application/x"].randomElement(using: &random)
                    try form.append(
                        content, name: name, fileName: Self.text(of: names, 1...6, using: &random), mediaType: type)
                }
            }
            let (contentType, body) = try form.makeBody()
            let bytes = try await Array(chunks(of: body).joined())
            bodies.append(Array("Content-Type: \(contentType)\r\n\r\n".utf8) + bytes)
            var parts: [String] = []
            for try await part in try ResponseBody(Data(bytes)).parts(of: makeHead(type: contentType)) {
                let disposition = part.headers[.contentDisposition] ?? ""
                let fields = [
                    Self.parameter("name", of: disposition), Self.parameter("filename", of: disposition),
                    part.headers[.contentType],
                ]
                let content = PythonOracle.hexadecimal(try await part.body.collect(upTo: 1 << 20))
                parts.append((fields.map { $0.map(Self.hex) ?? "-" } + [content]).joined(separator: ":"))
            }
            expected.append(parts.joined(separator: ","))
        }
        try await oracle.expect(expected, for: bodies)
    }

    /// The text between the quotes of a parameter: none of the names contains a quote that is not escaped.
    private static func parameter(_ name: String, of disposition: String) -> String? {
        // By scalars: a name may begin with a combining one.
        let parts = disposition.unicodeScalars.split(
            separator: "; \(name)=\"".unicodeScalars, maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2 else { return nil }
        return String(String.UnicodeScalarView(parts[1].prefix { $0 != "\"" }))
    }

    private static func content(using random: inout SeededGenerator) -> Data {
        let pieces: [[UInt8]] = [
            [0x0D, 0x0A], [0x0D], [0x0A], Array("--".utf8), Array("--Boundary+012345678".utf8), Array("a: b".utf8),
            [0xFF], [0], Array("é".utf8), Array(" ".utf8),
        ]
        let count = Int.random(in: 0...8, using: &random)
        return Data((0..<count).flatMap { _ in pieces.randomElement(using: &random) ?? [] })
    }

    // MARK: JSON lines

    /// `json`, after the stream was split at LF. A byte order mark in front of a text is ignored (RFC 8259 §8.1).
    @Test(arguments: [1, 2] as [UInt64])
    func `JSON lines are those of the json module`(seed: UInt64) async throws {
        let oracle = PythonOracle(
            """
            import json
            def one(data):
                try: return json.dumps(json.loads(data.decode("utf-8-sig")), separators=(",", ":"), ensure_ascii=False)
                except Exception: return "error"
            def answer(data):
                if data.startswith(b"\\xef\\xbb\\xbf"): data = data[3:]
                lines = [l for l in data.split(b"\\n") if l.strip(b" \\t\\r")]
                return " ".join(one(l[:-1] if l.endswith(b"\\r") else l) for l in lines)
            """)
        var random = SeededGenerator(seed: seed)
        let pieces: [[UInt8]] =
            [
                "[1,2]", "[]", "{\"a\":-3}", "0", "7", "true", "null", "\"x\"", "[", "]", "\"", "{", " ", "\t", "\n",
                "\n", "\n", "\r\n", "\r\n", "\u{FEFF}", "é", ",", "[[]]", "\u{1E}",
            ].map { Array($0.utf8) } + [[0xFF], [0xC3]]
        var (streams, expected): ([[UInt8]], [String]) = ([], [])
        for _ in 0..<Self.count {
            let count = Int.random(in: 0...14, using: &random)
            let stream = (0..<count).flatMap { _ in pieces.randomElement(using: &random) ?? [] }
            streams.append(stream)
            var body = Self.body(stream, using: &random).jsonLines(of: Written.self).makeAsyncIterator()
            var values: [String] = []
            while true {
                do {
                    guard let value = try await body.next() else { break }
                    values.append(value.text)
                } catch { values.append("error") }
            }
            expected.append(values.joined(separator: " "))
        }
        try await oracle.expect(expected, for: streams)
    }

    /// A value, written as Python does.
    private struct Written: Decodable {
        let text: String

        init(from decoder: any Decoder) throws {
            let value = try decoder.singleValueContainer()
            if value.decodeNil() {
                text = "null"
            } else if let bool = try? value.decode(Bool.self) {
                text = "\(bool)"
            } else if let integer = try? value.decode(Int.self) {
                text = "\(integer)"
            } else if let string = try? value.decode(String.self) {
                text = "\"\(string)\""
            } else if let elements = try? value.decode([Written].self) {
                text = "[" + elements.map(\.text).joined(separator: ",") + "]"
            } else {
                let members = try value.decode([String: Written].self)
                text = "{" + members.map { "\"\($0.key)\":\($0.value.text)" }.joined(separator: ",") + "}"
            }
        }
    }

    /// Returns a body of the bytes in chunks of random sizes.
    private static func body(_ bytes: [UInt8], using random: inout SeededGenerator) -> ResponseBody {
        var chunks: [Data] = []
        var rest = bytes[...]
        while !rest.isEmpty {
            let size = min(Int.random(in: 1...5, using: &random), rest.count)
            chunks.append(Data(rest.prefix(size)))
            rest = rest.dropFirst(size)
        }
        return ResponseBody(source: ChunkSource(chunks))
    }

    // MARK: Cookies

    /// `http.cookiejar`: the cookies in files that the library writes.
    @Test func `files of cookies are read by http cookiejar`() async throws {
        let oracle = PythonOracle(
            """
            import http.cookiejar, io
            def answer(data):
                jar = http.cookiejar.MozillaCookieJar()
                text = "# Netscape HTTP Cookie File\\n" + data.decode("utf-8") + "\\n"
                jar._really_load(io.StringIO(text), "x", True, True)
                c, = list(jar)
                words = [c.name, c.value, c.domain.lstrip("."), c.path]
                return ":".join([w.encode("utf-8").hex() for w in words] + [str(c.domain_specified), str(c.secure),
                    str(c.has_nonstandard_attr("HTTPOnly")), str(c.expires)])
            """)
        var random = SeededGenerator(seed: 1)
        let alphabet = String(Self.hostile.unicodeScalars.filter { $0.value >= 0x20 && $0 != "\u{7F}" })
        var (lines, expected): ([[UInt8]], [String]) = ([], [])
        while lines.count < Self.count {
            func flag() -> Bool { Bool.random(using: &random) }
            func word() -> String { Self.text(of: alphabet, 1...6, using: &random) }
            let cookie = Cookie(
                name: "n" + word(), value: word(),
                domain: ["a.example", "B.Example", "10.0.0.1"].randomElement(using: &random) ?? "",
                includesSubdomains: flag(), path: "/" + word(), isSecure: flag(), isHTTPOnly: flag(),
                expires: flag() ? Date(timeIntervalSince1970: .random(in: 1...3e9, using: &random)) : nil)
            guard let line = cookie.netscapeLine else { continue }
            #expect(Cookie(netscapeLine: line)?.netscapeLine == line)
            lines.append(Array(line.utf8))
            let words = [cookie.name, cookie.value, cookie.domain, cookie.path].map(Self.hex)
            let flags = [cookie.includesSubdomains, cookie.isSecure, cookie.isHTTPOnly].map { $0 ? "True" : "False" }
            let seconds = cookie.expires.map { Int64($0.timeIntervalSince1970) } ?? 0
            expected.append((words + flags + ["\(seconds)"]).joined(separator: ":"))
        }
        try await oracle.expect(expected, for: lines)
    }

    // MARK: Server-sent events

    /// A model of the WHATWG HTML standard, section “Interpreting an event stream”, which has the whole stream at once.
    @Test(arguments: [1, 2, 3] as [UInt64])
    func `events are those of a model of the standard`(seed: UInt64) async throws {
        let oracle = PythonOracle(
            """
            import re
            def hexed(text): return text.encode("utf-8").hex()
            def answer(stream):
                text = stream.decode("utf-8", "replace")
                if text.startswith("\\ufeff"): text = text[1:]
                data, kind, identifier, last, retry, events = "", "", "", "", None, []
                # What follows the last line ending is not a line.
                for line in re.split("\\r\\n|\\n|\\r", text)[:-1]:
                    if line == "":
                        last = identifier
                        if data:
                            events.append(":".join(map(hexed, [kind or "message", data[:-1], last])))
                        data, kind = "", ""
                        continue
                    name, _, value = line.partition(":")
                    if value.startswith(" "): value = value[1:]
                    if name == "event": kind = value
                    elif name == "data": data += value + "\\n"
                    elif name == "id" and "\\0" not in value: identifier = value
                    elif name == "retry" and re.fullmatch("[0-9]+", value): retry = int(value)
                return ",".join(events) + " " + hexed(last) + " " + str(retry)
            """)
        var random = SeededGenerator(seed: seed)
        let pieces: [[UInt8]] =
            [
                "data", "data", "data:", "data: x", "event", "event:", "id", "id:", "id: 7", "retry:", "retry: 1", ":",
                " ", "  ", "\n", "\n", "\n\n", "\r", "\r", "\r\n", "\r\n", "\0", "é", "\u{FEFF}", "12", "\u{2028}",
                "\t",
                "datas", "Data:", "a",
            ].map { Array($0.utf8) } + [[0xFF], [0xC3], [0xE2, 0x80]]
        var (streams, expected): ([[UInt8]], [String]) = ([], [])
        for _ in 0..<2 * Self.count {
            let count = Int.random(in: 0...24, using: &random)
            let stream = (0..<count).flatMap { _ in pieces.randomElement(using: &random) ?? [] }
            streams.append(stream)
            var parser = ServerSentEventParser(maximumEventSize: 1 << 20)
            var events: [String] = []
            func read() throws {
                while let event = try parser.next() {
                    events.append([event.type, event.data, event.id].map(Self.hex).joined(separator: ":"))
                }
            }
            var rest = stream[...]
            while !rest.isEmpty {
                let size = min(Int.random(in: 1...5, using: &random), rest.count)
                parser.append(Data(rest.prefix(size)))
                rest = rest.dropFirst(size)
                try read()
            }
            let retry = parser.reconnectionTime.map {
                "\($0.components.seconds * 1_000 + $0.components.attoseconds / 1_000_000_000_000_000)"
            }
            expected.append("\(events.joined(separator: ",")) \(Self.hex(parser.lastEventID)) \(retry ?? "None")")
        }
        try await oracle.expect(expected, for: streams)
    }
}

/// Chunks, one after the other.
private final class ChunkSource: ResponseBodySource {
    private let chunks: Lock<ArraySlice<Data>>
    var ending: ResponseEnding? { nil }

    init(_ chunks: [Data]) { self.chunks = Lock(chunks[...]) }

    func next() async throws -> Data? { chunks.withLock { $0.popFirst() } }
}
