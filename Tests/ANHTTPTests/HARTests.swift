// SPDX-License-Identifier: MIT

import ANHTTP
import FoundationEssentials
import HTTPTypes
import Testing

@Suite struct HARTests {
    private static func metrics(
        _ queued: Int, _ lookup: Int?, _ connect: Int?, _ tls: Int?, _ start: Int?, _ first: Int?, _ total: Int,
        reused: Bool = false
    ) -> TransferMetrics {
        var metrics = TransferMetrics()
        metrics.queued = .milliseconds(queued)
        metrics.nameLookup = lookup.map { .milliseconds($0) }
        metrics.connect = connect.map { .milliseconds($0) }
        metrics.tlsHandshake = tls.map { .milliseconds($0) }
        metrics.requestStart = start.map { .milliseconds($0) }
        metrics.firstByte = first.map { .milliseconds($0) }
        metrics.total = .milliseconds(total)
        metrics.isConnectionReused = reused
        return metrics
    }

    // blocked, dns, connect, ssl, send, wait, receive
    @Test(
        arguments: [
            // A new connection with TLS; TLS is a part of connect.
            (metrics(5, 15, 35, 65, 66, 96, 100), nil, [6, 10, 50, 30, 0, 30, 4]),
            // Without TLS, and with a body that is sent for 10 ms.
            (metrics(0, 1, 3, nil, 3, 33, 40), 13, [0, 1, 2, -1, 10, 20, 7]),
            // A reused connection.
            (metrics(2, nil, nil, nil, 3, 8, 9, reused: true), nil, [3, -1, -1, -1, 0, 5, 1]),
            // The answer came before the end of the body.
            (metrics(0, 1, 2, nil, 2, 5, 9), 8, [0, 1, 1, -1, 3, 0, 4]),
            // Failed in the queue, in name lookup, in TCP, in TLS, and while waiting for the answer.
            (metrics(7, nil, nil, nil, nil, nil, 7), nil, [7, -1, -1, -1, 0, 0, 0]),
            (metrics(1, nil, nil, nil, nil, nil, 7), nil, [1, 6, -1, -1, 0, 0, 0]),
            (metrics(1, 2, nil, nil, nil, nil, 7), nil, [1, 1, 5, -1, 0, 0, 0]),
            (metrics(1, 2, 3, nil, nil, nil, 7), nil, [1, 1, 5, 4, 0, 0, 0]),
            (metrics(1, 2, 3, nil, 4, nil, 7), nil, [2, 1, 1, -1, 0, 3, 0]),
            // Times that are out of order do not make a phase negative.
            (metrics(5, 3, 2, nil, 1, 9, 8), nil, [5, 0, 0, -1, 0, 3, 0]),
            (TransferMetrics(), nil, [0, -1, -1, -1, 0, 0, 0]),
        ] as [(TransferMetrics, Int?, [Double])])
    func `the phases of an exchange follow from its metrics, and their sum is the total`(
        metrics: TransferMetrics, sent: Int?, expected: [Double]
    ) {
        let timings = HAR.Timings(metrics, sent: sent.map { .milliseconds($0) })
        let found = [
            timings.blocked, timings.dns, timings.connect, timings.ssl, timings.send, timings.wait, timings.receive,
        ]
        #expect(found == expected)
        #expect(timings.sum == metrics.total / .milliseconds(1))
    }

    private static func entry(_ path: String) throws -> HAR.Entry {
        let url = try #require(URL(string: "http://a.example\(path)"))
        return HAR.Entry(
            startedDateTime: "2026-01-01T00:00:00.000Z", request: HAR.Request(Request(url: url)),
            response: HAR.Response(ResponseHead(status: .ok, url: url)), timings: HAR.Timings())
    }

    @Test(.timeLimit(.minutes(1))) func `the time for a page grows with its text`() throws {
        var entry = try Self.entry("/")
        entry.response.content.text = String(repeating: "<b>", count: 300_000)
        #expect(try HAR(entries: [entry]).html(title: "<t>").utf8.count > 2_000_000)
        #expect("a<\u{301}b<".replacing(each: "<", with: "&lt;") == "a&lt;\u{301}b&lt;")
        #expect("".replacing(each: "<", with: "x") == "" && "aaa".replacing(each: "aa", with: "b") == "ba")
    }

    @Test func `an archive is read as it was written`() throws {
        let archive = HAR(entries: [try Self.entry("/a?b=1&c"), try Self.entry("/\"<>…")])
        let read = try HAR(archive.data())
        #expect(read == archive)
        #expect(read.count == 2)
        #expect(try HAR(HAR().data()).count == 0)
        #expect(archive.entries[0].request.queryString == [HAR.Pair("b", "1"), HAR.Pair("c", "")])
    }

    @Test func `an archive that is cut off anywhere has the entries of its complete lines`() throws {
        let data = try HAR(entries: [Self.entry("/a"), Self.entry("/b"), Self.entry("/c")]).data()
        let lines = data.indices.filter { data[$0] == UInt8(ascii: "\n") }
        for end in HAR.beginning.count...data.count {
            let complete = lines.dropFirst().count { $0 < end }
            #expect(try HAR(data.prefix(end)).count == min(3, complete), "cut at \(end)")
        }
        #expect(throws: DecodingError.self) { try HAR(data.prefix(20)) }
        #expect(throws: DecodingError.self) { try HAR(Data("[]".utf8)) }
    }

    @Test func `an archive whose end was partly replaced has the entries before`() throws {
        let archive = try HAR(entries: [Self.entry("/a"), Self.entry("/b")]).data()
        let addition = try Data(",\n".utf8) + HAR.line(Self.entry("/c"))
        for count in 0...addition.count {
            var data = archive
            let start = archive.count - HAR.end.count
            data.replaceSubrange(start..<min(start + count, archive.count), with: addition.prefix(count))
            #expect(try HAR(data).count == 2, "\(count) bytes")
        }
    }

    @Test func `an archive of another program may lack members`() throws {
        let text = #"""
            {"log": {"version": "1.2", "creator": {"name": "x", "version": "2", "comment": ""}, "pages": [], "entries": [
            {"startedDateTime": "2026-01-01T00:00:00Z", "time": 1.5, "_priority": "High", "cache": {"beforeRequest": null},
            "request": {"method": "POST", "url": "http://a.example/", "httpVersion": "h2", "cookies": [], "headers": [],
            "queryString": [], "headersSize": -1, "bodySize": 0, "postData": {"mimeType": "a/b",
            "params": [{"name": "x"}]}},
            "response": {"status": 200, "statusText": "", "httpVersion": "h2", "cookies": [], "headers": [],
            "content": {"size": 0, "mimeType": "x"}, "redirectURL": "", "headersSize": -1, "bodySize": -1},
            "timings": {"send": 0, "wait": 1.5, "receive": 0}}]}}
            """#
        let entry = try #require(try HAR(Data(text.utf8)).entries.first)
        #expect(entry.timings.sum == 1.5)
        #expect(entry.timings.dns == -1)
        #expect(entry.request.postData?.params == [HAR.Pair("x", "")])
    }

    /// A value of JSON.
    private indirect enum Node: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByArrayLiteral,
        ExpressibleByDictionaryLiteral
    {
        case literal(String), array([Node]), object([(name: String, value: Node)])

        init(stringLiteral text: String) { self = .literal("\"\(text)\"") }
        init(integerLiteral number: Int) { self = .literal("\(number)") }
        init(arrayLiteral elements: Node...) { self = .array(elements) }
        init(dictionaryLiteral members: (String, Node)...) { self = .object(members.map { (name: $0, value: $1) }) }

        var json: String {
            switch self {
            case .literal(let text): text
            case .array(let elements): "[\(elements.map(\.json).joined(separator: ","))]"
            case .object(let members):
                "{\(members.map { "\"\($0.name)\":\($0.value.json)" }.joined(separator: ","))}"
            }
        }

        /// The values with one change of a member at any depth: it is removed, or has another value.
        func changed(_ value: (_ name: String) -> Node?) -> [(member: String, node: Node)] {
            switch self {
            case .literal: return []
            case .array(let elements):
                return elements.indices.flatMap { index in
                    elements[index].changed(value).map { member, node in
                        var elements = elements
                        elements[index] = node
                        return (member, .array(elements))
                    }
                }
            case .object(let members):
                return members.indices.flatMap { index in
                    let name = members[index].name
                    var others = members
                    if let value = value(name) { others[index].value = value } else { others.remove(at: index) }
                    let inner = members[index].value.changed(value).map { member, node in
                        var members = members
                        members[index].value = node
                        return ("\(name).\(member)", Node.object(members))
                    }
                    return [(name, .object(others))] + inner
                }
            }
        }
    }

    /// An entry with all members.
    private static let complete: Node = [
        "startedDateTime": "2026-01-01T00:00:00Z", "time": 3, "cache": [:], "serverIPAddress": "::1", "connection": "1",
        "comment": "c", "_call": 1, "_source": "cache", "_error": "lost", "_resourceType": "websocket",
        "_webSocketMessages": [["type": "send", "time": 1, "opcode": 2, "data": "d"]],
        "request": [
            "method": "POST", "url": "http://a.example/", "httpVersion": "h2",
            "cookies": [["name": "a", "value": "b"]], "headers": [["name": "a", "value": "b"]],
            "queryString": [["name": "a", "value": "b"]], "headersSize": 1, "bodySize": 1,
            "postData": [
                "mimeType": "a/b", "text": "t", "params": [["name": "a", "value": "b"]], "comment": "c",
                "_encoding": "base64",
            ],
        ],
        "response": [
            "status": 200, "statusText": "OK", "httpVersion": "h2", "cookies": [["name": "a", "value": "b"]],
            "headers": [["name": "a", "value": "b"]], "redirectURL": "/", "headersSize": 1, "bodySize": 1,
            "content": [
                "size": 1, "compression": 1, "mimeType": "a/b", "text": "t", "encoding": "base64", "comment": "c",
                "_truncated": .literal("true"),
            ],
        ],
        "timings": ["blocked": 1, "dns": 1, "connect": 1, "send": 1, "wait": 1, "receive": 1, "ssl": 1],
    ]

    private static func read(_ entry: Node) throws -> HAR.Entry {
        let log: Node = ["log": ["entries": [complete, entry]]]
        let entries = try HAR(Data(log.json.utf8)).entries
        #expect(entries.count == 2)
        return try #require(entries.last)
    }

    @Test func `members of an entry may be missing or null, except the request, and a program's own may have any type`()
        throws
    {
        let whole = try Self.read(Self.complete)
        let missing = Self.complete.changed { _ in nil }
        #expect(missing.count == 67)
        for (index, (member, node)) in missing.enumerated() {
            guard member != "request" else {
                #expect(throws: DecodingError.self) { try Self.read(node) }
                continue
            }
            let entry = try Self.read(node)
            #expect(entry != whole || member == "cache", "\(member)")
            let null = Self.complete.changed { _ in .literal("null") }[index].node
            #expect(try Self.read(null) == entry, "\(member)")
            guard member.contains("_") else { continue }
            for other in ["[]", "{\"a\":{}}", "-1.5", "\"x\"", "false"] {
                let changed = Self.complete.changed { _ in .literal(other) }[index].node
                #expect(throws: Never.self, "\(member): \(other)") { try Self.read(changed) }
            }
        }
        #expect(throws: DecodingError.self) { try Self.read(["request": ["url": 1]]) }
    }

    @Test func `an entry of a request without a response has the default members`() throws {
        // As mitmproxy and Firefox write them.
        let entry = try Self.read([
            "request": ["method": "GET", "url": "http://a.example/"],
            "response": ["status": 0, "content": [:], "redirectURL": .literal("null")],
            "timings": ["send": 1, "wait": 2],
        ])
        #expect(entry.time == 3)
        #expect(entry.response == HAR.Response())
        #expect(entry.request == HAR.Request(Request(url: try #require(URL(string: "http://a.example/")))))
        #expect(entry.timings.connect == -1)
    }

    @Test func `an entry of an archive has no secret in any place`() throws {
        let url = try #require(URL(string: "https://u:SECRET@a.example/x;sid=SECRET?q=SECRET#SECRET"))
        var request = Request(method: .post, url: url)
        for (name, value) in [
            ("Authorization", "Bearer SECRET"), ("Proxy-Authorization", "Basic SECRET"),
            ("Cookie", "a=SECRET; b=SECRET; SECRET"), ("X-Api-Key", "SECRET"),
            ("Referer", "https://a.example/?q=SECRET"),
        ] {
            request.headers.append(HTTPField(name: try #require(HTTPField.Name(name)), value: value))
        }
        var head = ResponseHead(status: .found, url: url)
        for (name, value) in [
            ("Set-Cookie", "a=SECRET; HttpOnly"), ("Set-Cookie", "SECRET; Path=/"), ("Location", "/y?code=SECRET"),
            ("X-Auth-Token", "SECRET"),
            ("Content-Type", "application/json"),
        ] {
            head.headers.append(HTTPField(name: try #require(HTTPField.Name(name)), value: value))
        }
        var entry = HAR.Entry(
            startedDateTime: "2026-01-01T00:00:00.000Z", request: HAR.Request(request), response: HAR.Response(head),
            timings: HAR.Timings())
        entry.request.postData = HAR.PostData(
            mimeType: "application/x-www-form-urlencoded", text: "user=ada&password=SECRET")
        entry.response.content.text = #"{"access_token":"SECRET","n":1}"#
        entry.error = "no answer from https://u:SECRET@a.example/?q=SECRET"
        let line = String(decoding: try HAR.line(Redaction.standard.entry(entry)), as: UTF8.self)
        #expect(!line.contains("SECRET"))
        #expect(line.contains("user=ada") && line.contains("Bearer …") && line.contains("HttpOnly"))
        let whole = String(decoding: try HAR.line(Redaction.none.entry(entry)), as: UTF8.self)
        #expect(whole.ranges(of: "SECRET").count == 25)
    }

    @Test func `a page contains the archive, and no text of it ends the script`() throws {
        var entry = try Self.entry("/a")
        // U+0600 and the character after it are one character to `String`.
        entry.response.content.text = "</script><script>alert(1)</script>\u{600}</script>"
        let page = try HAR(entries: [entry]).html(title: "A & \u{600}<B>")
        #expect(page.contains("<title>A &amp; \u{600}&lt;B></title>"))
        #expect(page.utf8.split(separator: "</script".utf8).count == 3)
        #expect(page.contains(#"\u003c/script>\u003cscript>alert(1)"#))
        #expect(!page.contains("@TITLE@"))
        #expect(!page.contains("src=") && !page.contains("url("))
    }
}
