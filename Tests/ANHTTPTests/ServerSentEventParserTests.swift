// SPDX-License-Identifier: MIT

import ANHTTP
import FoundationEssentials
import Testing

/// The rules of the WHATWG HTML standard, sections “Parsing an event stream” and “Interpreting an event stream”.
@Suite struct ServerSentEventParserTests {
    private struct Case: Sendable, CustomTestStringConvertible {
        let rule: String
        let stream: [UInt8]
        let events: [ServerSentEvent]
        var lastEventID = ""
        var retry: Duration?

        init(
            _ rule: String, _ stream: String, _ events: [ServerSentEvent], lastEventID: String = "",
            retry: Duration? = nil
        ) {
            self.init(rule, Array(stream.utf8), events, lastEventID: lastEventID, retry: retry)
        }

        init(
            _ rule: String, _ stream: [UInt8], _ events: [ServerSentEvent], lastEventID: String = "",
            retry: Duration? = nil
        ) {
            self.rule = rule
            self.stream = stream
            self.events = events
            self.lastEventID = lastEventID
            self.retry = retry
        }

        var testDescription: String { rule }
    }

    private static let cases: [Case] = [
        // The examples of the standard.
        Case(
            "several lines of data are joined", "data: YHOO\ndata: +2\ndata: 10\n\n", [event("YHOO\n+2\n10")]),
        Case(
            "comments, ids and fields without values",
            ": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n\n",
            [event("first event", id: "1"), event("second event"), event(" third event")]),
        Case(
            "data without a value, and an incomplete last event", "data\n\ndata\ndata\n\ndata:",
            [event(""), event("\n")]),
        Case("one space after the colon is removed", "data:test\n\ndata: test\n\n", [event("test"), event("test")]),
        // Lines.
        Case("lines end with LF", "data: a\ndata: b\n\n", [event("a\nb")]),
        Case("lines end with CR", "data: a\rdata: b\r\r", [event("a\nb")]),
        Case("lines end with CR LF", "data: a\r\ndata: b\r\n\r\n", [event("a\nb")]),
        Case(
            "line endings can be mixed", "data: a\rdata: b\r\ndata: c\n\r\ndata: d\n\r", [event("a\nb\nc"), event("d")]),
        Case("CR LF is one line ending", "data: a\r\n\ndata: b\n\n", [event("a"), event("b")]),
        Case("LF CR are two line endings", "data: a\n\rdata: b\n\r", [event("a"), event("b")]),
        Case(
            "other separators are part of a line", "data: a\u{0B}b\u{0C}c\u{85}d\u{2028}e\u{2029}f\n\n",
            [event("a\u{0B}b\u{0C}c\u{85}d\u{2028}e\u{2029}f")]),
        // UTF-8.
        Case("one byte order mark is ignored", "\u{FEFF}data: a\n\n", [event("a")]),
        Case("a second byte order mark is part of a name", "\u{FEFF}\u{FEFF}data: a\n\ndata: b\n\n", [event("b")]),
        Case("a later byte order mark is part of a name", "data: a\n\n\u{FEFF}data: b\n\n", [event("a")]),
        Case("a byte order mark in data is kept", "data:\u{FEFF}a\n\n", [event("\u{FEFF}a")]),
        Case("a byte order mark alone is an empty line", "\u{FEFF}\ndata: a\n\n", [event("a")]),
        Case(
            "a part of a byte order mark is part of a name", [0xEF, 0xBB] + Array("data: a\n\ndata: b\n\n".utf8),
            [event("b")]),
        Case(
            "characters of one to four bytes", "data: ä€😀\nid: ü\nevent: é\n\n", [event("ä€😀", id: "ü", type: "é")],
            lastEventID: "ü"),
        Case("invalid bytes become U+FFFD", Array("data: a".utf8) + [0xFF, 0x62, 0x0A, 0x0A], [event("a\u{FFFD}b")]),
        Case(
            "a truncated character becomes one U+FFFD", Array("data: ".utf8) + [0xF0, 0x9F, 0x98, 0x0A, 0x0A],
            [event("\u{FFFD}")]),
        Case(
            "an overlong sequence becomes a U+FFFD for each byte", Array("data: ".utf8) + [0xC0, 0x8A, 0x0A, 0x0A],
            [event("\u{FFFD}\u{FFFD}")]),
        Case(
            "a surrogate becomes a U+FFFD for each byte", Array("data: ".utf8) + [0xED, 0xA0, 0x80, 0x0A, 0x0A],
            [event("\u{FFFD}\u{FFFD}\u{FFFD}")]),
        Case("NUL in data is kept", "data: a\0b\n\n", [event("a\0b")]),
        // Fields.
        Case("a line with a colon first is a comment", ": data: a\n:data: b\n:\ndata: c\n\n", [event("c")]),
        Case("only the first colon separates", "data: a:b: c\n\n", [event("a:b: c")]),
        Case("a value may begin with a colon", "data::a\n\n", [event(":a")]),
        Case("only one space is removed", "data:  a\n\ndata: \n\ndata:  \n\n", [event(" a"), event(""), event(" ")]),
        Case("a tab is not removed", "data:\ta\n\n", [event("\ta")]),
        Case("spaces at the end are kept", "data: a \n\n", [event("a ")]),
        Case("a space before the name is part of it", " data: a\n\ndata: b\n\n", [event("b")]),
        Case("a space before the colon is part of the name", "data : a\n\ndata: b\n\n", [event("b")]),
        Case("names are compared with their case", "Data: a\nDATA: b\ndata: c\nID: 1\nEvent: x\n\n", [event("c")]),
        Case(
            "unknown fields are ignored", "foo: 1\ndatadata: 2\ndat: 3\nxdata: 4\nevents: 5\ndata: a\n\n", [event("a")]),
        Case(
            "a longer name whose end is a known one is unknown",
            "atadata: 1\nxevent: 2\nxxretry: 3\nxxxid: 4\ndata: a\n\n",
            [event("a")]),
        Case("a name with NUL is unknown", "\0data: 1\n\0id: 2\ndata: a\n\n", [event("a")]),
        // Data.
        Case("empty lines of data are kept", "data\ndata:\ndata: \n\n", [event("\n\n")]),
        Case(
            "an event without data is not dispatched", "event: a\nid: 1\n\ndata: b\n\n", [event("b", id: "1")],
            lastEventID: "1"),
        Case(
            "empty lines between events have no effect", "\n\n\ndata: a\n\n\n\ndata: b\n\n\n", [event("a"), event("b")]),
        Case("an event without an empty line at the end is discarded", "data: a\n\ndata: b\n", [event("a")]),
        Case("an event without a line ending is discarded", "data: a\n\ndata: b", [event("a")]),
        Case("an empty stream has no events", "", []),
        // Types.
        Case("a type applies to one event", "event: x\ndata: a\n\ndata: b\n\n", [event("a", type: "x"), event("b")]),
        Case("a type of an event without data does not apply to the next", "event: x\n\ndata: b\n\n", [event("b")]),
        Case("the last type wins", "event: x\nevent: y\ndata: a\n\n", [event("a", type: "y")]),
        Case("an empty type is message", "event: x\nevent:\ndata: a\n\nevent\ndata: b\n\n", [event("a"), event("b")]),
        Case("a type after the data applies", "data: a\nevent: x\n\n", [event("a", type: "x")]),
        // IDs.
        Case(
            "an id applies to later events", "id: 1\ndata: a\n\ndata: b\n\n",
            [event("a", id: "1"), event("b", id: "1")], lastEventID: "1"),
        Case("an empty id resets", "id: 1\ndata: a\n\nid:\ndata: b\n\n", [event("a", id: "1"), event("b")]),
        Case("an id without a colon resets", "id: 1\ndata: a\n\nid\ndata: b\n\n", [event("a", id: "1"), event("b")]),
        Case(
            "an id with NUL is ignored", "id: 1\ndata: a\n\nid: 2\0\ndata: b\n\n",
            [event("a", id: "1"), event("b", id: "1")], lastEventID: "1"),
        Case("an id may be any text", "id:  a: b \ndata: a\n\n", [event("a", id: " a: b ")], lastEventID: " a: b "),
        Case("an id without data is the last event ID", "id: 7\n\n", [], lastEventID: "7"),
        Case(
            "an id of an incomplete event is not the last event ID", "id: 1\ndata: a\n\nid: 2\ndata: b\n",
            [event("a", id: "1")], lastEventID: "1"),
        // Reconnection times.
        Case("retry sets the reconnection time", "retry: 1500\n\n", [], retry: .milliseconds(1500)),
        Case("retry applies without an empty line", "retry: 10\n", [], retry: .milliseconds(10)),
        Case("retry may have leading zeros", "retry: 007\n", [], retry: .milliseconds(7)),
        Case("retry may be zero", "retry: 0\n", [], retry: .zero),
        Case("the last valid retry wins", "retry: 1\nretry: 2\nretry: 3x\n", [], retry: .milliseconds(2)),
        Case(
            "retry with other characters is ignored",
            "retry: 1.5\nretry: -1\nretry: +1\nretry: 1 \nretry:  1\nretry: 0x1\nretry: ١\n", []),
        Case("an empty retry is ignored", "retry\nretry:\nretry: \n", []),
        Case(
            "a retry that is too large is the largest possible", "retry: 99999999999999999999\n", [],
            retry: .milliseconds(Int64.max)),
        Case("retry does not dispatch", "data: a\nretry: 5\ndata: b\n\n", [event("a\nb")], retry: .milliseconds(5)),
    ]

    @Test(arguments: cases)
    private func `a rule holds for all splits into two chunks`(rule: Case) throws {
        for cut in 0...rule.stream.count {
            try Self.check(rule, [Data(rule.stream[..<cut]), Data(rule.stream[cut...])], "cut at \(cut)")
        }
    }

    @Test(arguments: cases)
    private func `a rule holds for all splits into three chunks`(rule: Case) throws {
        for first in 0...rule.stream.count {
            for second in first...rule.stream.count {
                let chunks = [rule.stream[..<first], rule.stream[first..<second], rule.stream[second...]]
                try Self.check(rule, chunks.map { Data($0) }, "cut at \(first) and \(second)")
            }
        }
    }

    @Test(arguments: cases)
    private func `a rule holds for chunks of single bytes`(rule: Case) throws {
        try Self.check(rule, rule.stream.map { Data([$0]) }, "single bytes")
    }

    @Test(arguments: 0..<40)
    func `random streams give the events of an implementation that follows the standard step by step`(seed: Int) throws
    {
        var random = Random(state: UInt64(seed))
        for _ in 0..<100 {
            let stream = random.stream()
            let expected = LiteralParser(stream)
            var parser = ServerSentEventParser(maximumEventSize: 1000)
            var events: [ServerSentEvent] = []
            var rest = stream[...]
            while !rest.isEmpty {
                let chunk = rest.prefix(random.number(1...9))
                rest = rest.dropFirst(chunk.count)
                parser.append(Data(chunk))
                while let event = try parser.next() { events.append(event) }
            }
            #expect(events == expected.events, "\(String(decoding: stream, as: UTF8.self).debugDescription)")
            #expect(parser.lastEventID == expected.lastEventID)
            #expect(parser.reconnectionTime == expected.reconnectionTime)
        }
    }

    @Test func `an event is returned as soon as its empty line arrives`() throws {
        var parser = ServerSentEventParser(maximumEventSize: 100)
        parser.append(Data("data: a\r\n\r".utf8))
        #expect(try parser.next() == Self.event("a"))
        parser.append(Data("\ndata: b\n".utf8))
        #expect(try parser.next() == nil)
        parser.append(Data("\n".utf8))
        #expect(try parser.next() == Self.event("b"))
    }

    @Test func `a stream that continues another one begins with its last event ID`() throws {
        var parser = ServerSentEventParser(maximumEventSize: 100, lastEventID: "7")
        #expect(parser.lastEventID == "7")
        parser.append(Data("data: a\n\nid\ndata: b\n\n".utf8))
        #expect(try parser.next() == Self.event("a", id: "7"))
        #expect(try parser.next() == Self.event("b"))
        #expect(parser.lastEventID == "")
    }

    @Test(arguments: ["12345", "123\ndata: 4", "\ndata:\ndata:\ndata:\ndata:\ndata:"])
    func `data may have the maximum size`(data: String) throws {
        #expect(try Self.parse([Data("data:\(data)\n\n".utf8)], limit: 5).count == 1)
        #expect(throws: TransportError.self) { try Self.parse([Data("data:\(data)6\n\n".utf8)], limit: 5) }
        #expect(throws: TransportError.self) { try Self.parse([Data("data:\(data)\ndata\n\n".utf8)], limit: 5) }
    }

    @Test(arguments: [0, 1, 10])
    func `a byte order mark does not count, and errors name the limit that was set`(limit: Int) throws {
        let data = String(repeating: "x", count: limit)
        let chunks = "\u{FEFF}data: \(data)\n\n".utf8.map { Data([$0]) }
        #expect(try Self.parse(chunks, limit: limit) == [Self.event(data)])
        for stream in ["\u{FEFF}data: \(data)x\n\n", ": " + String(repeating: "x", count: 20) + "\n"] {
            let error = #expect(throws: TransportError.self) { try Self.parse([Data(stream.utf8)], limit: limit) }
            #expect(error?.reason == .responseTooLarge(.body(limit: limit)))
        }
    }

    @Test(arguments: ["data: ", "id: ", "event: ", ": ", "unknown: ", ""])
    func `a line without an end fails when it exceeds the limit`(start: String) throws {
        var parser = ServerSentEventParser(maximumEventSize: 1000)
        parser.append(Data(start.utf8))
        var size = 0
        #expect(throws: TransportError.self) {
            while try parser.next() == nil {
                parser.append(Data("0123456789".utf8))
                size += 10
                try #require(size < 1100)
            }
        }
    }

    @Test(arguments: [Int.min, -1, 0, .max])
    func `any limit is possible`(limit: Int) throws {
        let parsed = Result { try Self.parse([Data("data: a\n\n".utf8)], limit: limit) }
        switch parsed {
        case .success(let events): #expect(events == [Self.event("a")] && limit == .max)
        case .failure(let error): #expect(error is TransportError && limit < 1)
        }
    }

    @Test func `an event of many lines takes linear time`() throws {
        let text = String(repeating: "data: 0123456789\n", count: 200_000) + "\n"
        let events = try Self.parse([Data(text.utf8)], limit: 1 << 24)
        #expect(events.map(\.data.utf8.count) == [200_000 * 11 - 1])
    }

    @Test func `a body is a sequence of events`() async throws {
        var events: [ServerSentEvent] = []
        for try await event in ResponseBody(Data("data: a\n\nevent: x\nid: 1\ndata: b\n\ndata: c".utf8))
            .serverSentEvents
        {
            events.append(event)
        }
        #expect(events == [Self.event("a"), Self.event("b", id: "1", type: "x")])
    }

    @Test func `a body's events have the limit that the program sets`() async throws {
        let body = Data("data: 12345\n\n".utf8)
        for try await event in ResponseBody(body).serverSentEvents(maximumEventSize: 5) {
            #expect(event == Self.event("12345"))
        }
        await #expect(throws: TransportError.self) {
            for try await _ in ResponseBody(body).serverSentEvents(maximumEventSize: 4) {}
        }
    }

    private static func event(_ data: String, id: String = "", type: String = "message") -> ServerSentEvent {
        ServerSentEvent(type: type, data: data, id: id)
    }

    private static func check(_ rule: Case, _ chunks: [Data], _ comment: @autoclosure () -> String) throws {
        var parser = ServerSentEventParser(maximumEventSize: 1000)
        var events: [ServerSentEvent] = []
        for chunk in chunks where !chunk.isEmpty {
            parser.append(chunk)
            while let event = try parser.next() { events.append(event) }
        }
        // Thousands of splits: an expectation costs more than the parser.
        if events != rule.events || parser.lastEventID != rule.lastEventID || parser.reconnectionTime != rule.retry {
            Issue.record(
                "\(events), \(parser.lastEventID), \(String(describing: parser.reconnectionTime)): \(comment())")
        }
    }

    private static func parse(_ chunks: [Data], limit: Int) throws -> [ServerSentEvent] {
        var parser = ServerSentEventParser(maximumEventSize: limit)
        var events: [ServerSentEvent] = []
        for chunk in chunks {
            parser.append(chunk)
            while let event = try parser.next() { events.append(event) }
        }
        return events
    }

    /// Random streams made of pieces that matter to the rules.
    private struct Random {
        var state: UInt64

        private static let pieces: [[UInt8]] =
            [
                "data", "data:", "data: ", "event", "event: x", "id", "id: ", "id: 1", "retry: 5", "retry:", ":", " ",
                "\n",
                "\n", "\n", "\n\n", "\r", "\r\n", "\r\n\r\n", "a", "ä€😀", "\0", "\u{FEFF}", "x: y", "\n\ndata: z\n\n",
            ].map { Array($0.utf8) } + [[0xFF], [0xE2, 0x82], [0xF0, 0x9F], [0xC3], [0xED, 0xA0, 0x80]]

        mutating func number(_ range: ClosedRange<Int>) -> Int {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return range.lowerBound + Int(state >> 33) % range.count
        }

        mutating func stream() -> [UInt8] {
            (0..<number(0...40)).flatMap { _ in Self.pieces[number(0...Self.pieces.count - 1)] }
        }
    }

    /// The steps of the standard in its order and words, for a complete stream.
    private struct LiteralParser {
        var events: [ServerSentEvent] = []
        var lastEventID = ""
        var reconnectionTime: Duration?

        init(_ stream: [UInt8]) {
            var text = Substring(String(decoding: stream, as: UTF8.self)).unicodeScalars
            if text.first == "\u{FEFF}" { text.removeFirst() }
            var (data, type, id) = ("", "", "")
            // A line needs its ending: the rest of the stream can only be part of an incomplete event.
            while let end = text.firstIndex(where: { $0 == "\n" || $0 == "\r" }) {
                let line = text[..<end]
                let isCRLF = text[end...].starts(with: "\r\n".unicodeScalars)
                text = text[end...].dropFirst(isCRLF ? 2 : 1)
                guard !line.isEmpty else {
                    lastEventID = id
                    if !data.isEmpty {
                        data.unicodeScalars.removeLast()
                        events.append(ServerSentEvent(type: type.isEmpty ? "message" : type, data: data, id: id))
                    }
                    (data, type) = ("", "")
                    continue
                }
                if line.first == ":" { continue }
                var (field, value) = (line, line[line.endIndex...])
                if let colon = line.firstIndex(of: ":") {
                    field = line[..<colon]
                    value = line[colon...].dropFirst()
                    if value.first == " " { value.removeFirst() }
                }
                switch String(field) {
                case "event": type = String(value)
                case "data":
                    data.unicodeScalars.append(contentsOf: value)
                    data.unicodeScalars.append("\n")
                case "id": if !value.contains("\0") { id = String(value) }
                case "retry":
                    if !value.isEmpty, value.allSatisfy({ "0" <= $0 && $0 <= "9" }) {
                        reconnectionTime = .milliseconds(Int(String(value)) ?? -1)
                    }
                default: break
                }
            }
        }
    }
}
