// SPDX-License-Identifier: MIT

import ANCache
import ANHTTP
import HTTPTypes
import Testing

/// RFC 9111 §4.3 and RFC 9110 §13–§14: conditions, 304, HEAD and ranges.
@Suite struct ValidationRulesTests {
    private static let modified = date(-500)

    // MARK: Sending conditions

    @Test(
        arguments: [
            (["ETag: \"a\""], ["If-None-Match: \"a\""]), (["ETag: W/\"a\""], ["If-None-Match: W/\"a\""]),
            (["Last-Modified: \(modified)"], ["If-Modified-Since: \(modified)"]),
            (
                ["ETag: \"a\"", "Last-Modified: \(modified)"],
                ["If-None-Match: \"a\"", "If-Modified-Since: \(modified)"]
            ),
            // Browsers return a tag without quotation marks as it is.
            (["ETag: a"], ["If-None-Match: a"]), (["ETag: 0"], ["If-None-Match: 0"]), (["ETag: a, b"], []),
            (["Last-Modified: yesterday"], []), ([], []),
        ] as [([String], [String])])
    func `§4.3.1 a validation request has the stored validators`(lines: [String], conditions: [String]) {
        let stored = StoredResponse.from(lines + ["Cache-Control: max-age=0"])
        #expect(decide(.get(), stored, at: 1).conditions == conditions)
        #expect(decide(.get(method: .head), stored, at: 1).conditions == conditions)
    }

    @Test(
        arguments: [
            ("If-None-Match: \"b\"", ["If-None-Match: \"b\", \"a\""]), ("If-None-Match: \"a\"", []),
            ("If-None-Match: W/\"a\", \"b\"", []), ("If-None-Match: *", []),
            ("If-None-Match: b", ["If-None-Match: b, \"a\""]),
            ("If-Modified-Since: \(modified)", []),
        ] as [(String, [String])])
    func `§4.3.2 the tag is added to those of the request, whose other conditions stay`(
        line: String, conditions: [String]
    ) {
        let stored = StoredResponse.of("Cache-Control: max-age=0", "ETag: \"a\"", "Last-Modified: \(Self.modified)")
        #expect(decide(.get(line), stored, at: 1).conditions == conditions)
    }

    @Test func `§4.3.2 a tag without quotation marks that the request has is not added`() {
        let stored = StoredResponse.of("Cache-Control: max-age=0", "ETag: a")
        #expect(decide(.get("If-None-Match: a"), stored, at: 1).conditions == [])
        #expect(decide(.get("If-None-Match: b, a"), stored, at: 1).conditions == [])
        #expect(decide(.get("If-None-Match: \"a\""), stored, at: 1).conditions == ["If-None-Match: \"a\", a"])
    }

    @Test func `a tag that is not UTF-8 is not sent, and confirms a response with the same bytes`() throws {
        func head(_ status: Int, _ byte: UInt8) throws -> ResponseHead {
            var head = ResponseHead.of(status, "Cache-Control: max-age=0")
            let name = try #require(HTTPField.Name("ETag"))
            head.headers.append(HTTPField(name: name, lenientValue: [0x22, byte, 0x22]))
            return head
        }
        let stored = StoredResponse(
            try head(200, 0xE9), bodyLength: 10, to: .get(), requestTime: start, responseTime: start, owner: 0)
        #expect(decide(.get(), stored, at: 1).conditions == [])
        #expect(try outcome(head(304, 0xE8), .get(), stored) == .mismatch)
        #expect(try outcome(head(304, 0xE9), .get(), stored) == .confirmed([0]))
        for (byte, change) in [(0xE8 as UInt8, StoredChange.invalidate(0)), (0xE9, .update(0))] {
            let changes = StoredChange.after(try head(200, byte), toHead: .get(method: .head), stored: [stored])
            #expect(changes == [change])
        }
    }

    @Test func `§4.3.1 a request for a range is sent as it is`() {
        let stored = StoredResponse.of("Cache-Control: max-age=0", "ETag: \"a\"")
        #expect(decide(.get("Range: bytes=0-1"), stored, at: 1) == .forward)
        #expect(decide(.get("Range: bytes=0-1", "If-Range: \"a\""), stored, at: 1) == .forward)
    }

    // MARK: Evaluating conditions

    @Test(
        arguments: [
            (["If-None-Match: \"a\""], true), (["If-None-Match: W/\"a\""], true), (["If-None-Match: \"b\""], false),
            (["If-None-Match: \"b\", \"a\""], true), (["If-None-Match: \"b\"", "If-None-Match: \"a\""], true),
            (["If-None-Match: *"], true), (["If-None-Match: a"], false), (["If-None-Match: \"b, a\", \"c\""], false),
            (["If-Modified-Since: \(modified)"], true), (["If-Modified-Since: \(date(-499))"], true),
            (["If-Modified-Since: \(date(-501))"], false), (["If-Modified-Since: never"], false),
            (["If-None-Match: \"b\"", "If-Modified-Since: \(modified)"], false),
            (["If-None-Match: \"a\"", "If-Modified-Since: \(date(-900))"], true),
        ] as [([String], Bool)])
    func `§4.3.2 a fresh stored response evaluates If-None-Match, or else If-Modified-Since`(
        lines: [String], isNotModified: Bool
    ) throws {
        let stored = StoredResponse.of("Cache-Control: max-age=60", "ETag: \"a\"", "Last-Modified: \(Self.modified)")
        for method in [HTTPRequest.Method.get, .head] {
            let request = CacheRequest(target: page, method: method, headers: fields(lines))
            let use = try #require(decide(request, stored, at: 1).use)
            #expect((use.part == .notModified) == isNotModified)
            #expect(stored.head(for: use, isValidated: false, at: url).status.code == (isNotModified ? 304 : 200))
        }
    }

    @Test func `§4.3.2 without Last-Modified, Date is compared`() {
        let stored = StoredResponse.of("Cache-Control: max-age=60", "Date: \(date(-10))")
        #expect(decide(.get("If-Modified-Since: \(date(-10))"), stored, at: 1).use?.part == .notModified)
        #expect(decide(.get("If-Modified-Since: \(date(-11))"), stored, at: 1).use?.part == .whole)
    }

    @Test func `§4.3.2 conditions apply to stored responses with status 200`() {
        let stored = StoredResponse.of("Cache-Control: max-age=60", "ETag: \"a\"", status: 404)
        #expect(decide(.get("If-None-Match: \"a\""), stored, at: 1).use?.part == .whole)
    }

    @Test(arguments: ["If-Match: \"a\"", "If-Unmodified-Since: \(modified)"])
    func `§4.3.2 conditions for origin servers are not evaluated`(line: String) {
        let stored = StoredResponse.of("Cache-Control: max-age=60", "ETag: \"a\"", "Last-Modified: \(Self.modified)")
        #expect(decide(.get(line), stored, at: 1) == .forward)
    }

    // MARK: 304

    private func outcome(
        _ head: ResponseHead, _ request: CacheRequest = .get(), _ stored: StoredResponse...
    ) -> ValidationOutcome {
        ValidationOutcome(of: head, to: request, stored: stored, ifFailing: nil)
    }

    @Test(
        arguments: [
            (["ETag: \"a\""], ["ETag: \"a\""], true), (["ETag: \"a\""], ["ETag: \"b\""], false),
            (["ETag: \"a\""], ["ETag: W/\"a\""], true), (["ETag: W/\"a\""], ["ETag: W/\"a\""], true),
            (["ETag: \"a\""], ["ETag: a"], false),
            (["ETag: \"a\"", "Last-Modified: \(modified)"], ["ETag: \"b\"", "Last-Modified: \(modified)"], false),
            (["Last-Modified: \(modified)"], ["Last-Modified: \(modified)"], true),
            (["Last-Modified: \(modified)"], ["Last-Modified: \(date(-400))"], false),
            (["ETag: \"a\""], [], true), (["Last-Modified: \(modified)"], [], true), ([], [], true),
        ] as [([String], [String], Bool)])
    func `§4.3.4 a 304 updates the stored response with the same validator only`(
        stored: [String], received: [String], isConfirmed: Bool
    ) {
        let outcome = outcome(ResponseHead(304, received), .get(), .from(stored))
        #expect(outcome == (isConfirmed ? .confirmed([0]) : .mismatch))
    }

    @Test func `§4.3.4 a 304 with a strong tag does not update a response with the weak one, which is used`() {
        let (weak, other) = (StoredResponse.of("ETag: W/\"a\""), StoredResponse.of("ETag: \"b\""))
        #expect(outcome(.of(304, "ETag: \"a\""), .get(), other, weak) == .reused(1))
        #expect(outcome(.of(304, "ETag: \"c\""), .get(), other, weak) == .mismatch)
    }

    @Test func `§4.3.4 a 304 without validators does not choose among several stored responses`() {
        let one = StoredResponse.of("ETag: \"1\"")
        let two = StoredResponse.of("ETag: \"2\"")
        #expect(outcome(.of(304), .get(), one, two) == .mismatch)
        #expect(outcome(.of(304, "ETag: \"2\""), .get(), one, two) == .confirmed([1]))
    }

    @Test(arguments: ["If-None-Match: \"b\"", "If-Modified-Since: \(date(-100))"])
    func `§4.3.4 a 304 without validators to the program's own condition does not update a response that has one`(
        line: String
    ) {
        #expect(
            outcome(.of(304), .get(line), .of("Last-Modified: \(Self.modified)")) == .notModified(updating: []))
        // If the cache has added its own tag, it is unknown which one is meant.
        let isAmbiguous = line.hasPrefix("If-None-Match")
        #expect(
            outcome(.of(304), .get(line), .of("ETag: \"a\""))
                == (isAmbiguous ? .mismatch : .notModified(updating: [])))
        #expect(outcome(.of(304), .get(line), .of()) == .notModified(updating: [0]))
    }

    @Test func `updates with ever new fields replace the other fields of the stored response`() {
        var stored = StoredResponse.of("Content-Encoding: gzip", "X-First: 1")
        for round in 0..<3 {
            let lines = (0..<4000).map { "X-\(round)-\($0): 1" }
            stored.update(from: ResponseHead(304, lines), to: .get(), requestTime: start, responseTime: start)
            #expect(stored.headers.count <= 4100)
        }
        #expect(stored.headers[.contentEncoding] == "gzip")
        #expect(!stored.headers.contains { $0.name.rawName == "X-First" || $0.name.rawName == "X-0-0" })
    }

    @Test func `§4.1 a 304 can choose a variant that the request's fields do not match`() {
        let one = StoredResponse.of("ETag: \"1\"", "Vary: Foo", to: .get("Foo: 1"))
        #expect(outcome(.of(304, "ETag: \"1\""), .get("Foo: 3"), one) == .confirmed([0]))
    }

    @Test func `§4.3.2 a 304 for the program's own tag is passed on, one for another tag is not`() {
        let stored = StoredResponse.of("ETag: \"a\"")
        #expect(outcome(.of(304, "ETag: \"b\""), .get("If-None-Match: \"b\""), stored) == .notModified(updating: []))
        #expect(outcome(.of(304, "ETag: \"a\""), .get("If-None-Match: \"b\""), stored) == .confirmed([0]))
        #expect(outcome(.of(304, "ETag: \"a\""), .get("If-None-Match: \"a\""), stored) == .notModified(updating: [0]))
        #expect(
            outcome(.of(304, "ETag: \"a\""), .get("If-Modified-Since: x"), stored) == .notModified(updating: [0]))
    }

    @Test(
        arguments: [
            ("W/\"b\"", "\"a\"", "\"b\"", .reused(0)), ("\"b\"", "a", "\"b\"", .confirmed([0])),
            ("\"b\"", "a", "a", .notModified(updating: [])), ("b", "a", "b", .confirmed([0])),
            ("\"b\"", "W/\"a\"", "\"a\"", .notModified(updating: [])), ("\"b\"", "\"a\"", "\"c\"", .mismatch),
        ] as [(String, String, String, ValidationOutcome)])
    func `§4.3.2 a 304 for a tag that only the cache has sent is not passed on, however the tags are written`(
        stored: String, own: String, received: String, expected: ValidationOutcome
    ) {
        let outcome = outcome(.of(304, "ETag: \(received)"), .get("If-None-Match: \(own)"), .of("ETag: \(stored)"))
        #expect(outcome == expected)
    }

    @Test func `§4.3.3 any other response replaces the stored one`() {
        for status in [200, 404, 410, 500, 503, 301] {
            #expect(outcome(.of(status), .get(), .of("ETag: \"a\"")) == .replaced)
        }
    }

    @Test func `§3.2 the fields of a 304 replace those of the stored response, except those of its body`() {
        var stored = StoredResponse.of(
            "Date: \(date(-10))", "Cache-Control: max-age=1", "Content-Length: 10", "Content-Type: text/plain",
            "Content-Encoding: gzip", "X-A: 1", "X-B: 2", "X-B: 3", "Age: 5", "ETag: \"a\"")
        stored.update(
            from: .of(
                304, "Date: \(date(20))", "Cache-Control: max-age=60", "Content-Length: 0", "Content-Encoding: br",
                "X-B: 4", "X-C: 5", "Connection: x-d", "X-D: 6", "Content-Range: bytes 0-1/2"),
            to: .get(), requestTime: after(19), responseTime: after(20))
        #expect(
            Set(stored.lines) == [
                "Date: \(date(20))", "Cache-Control: max-age=60", "Content-Length: 10", "Content-Type: text/plain",
                "Content-Encoding: gzip", "X-A: 1", "X-B: 4", "X-C: 5", "ETag: \"a\"",
            ])
        #expect(decide(.get(), stored, at: 78).name == "fresh")
        #expect(decide(.get(), stored, at: 79).name != "fresh")
    }

    @Test func `§5.2.2.4 an update stores no field that no-cache lists in either response`() {
        var stored = StoredResponse.of("Cache-Control: no-cache=\"x-a\", max-age=1", "X-A: 1", "X-B: 1", "ETag: \"a\"")
        stored.update(
            from: .of(304, "X-A: 2"), to: .get(), requestTime: start, responseTime: start)
        #expect(!stored.lines.contains("X-A: 2"))
        stored.update(
            from: .of(304, "Cache-Control: no-cache=\"x-b\", max-age=1"), to: .get(), requestTime: start,
            responseTime: start)
        #expect(!stored.lines.contains("X-B: 1"))
        #expect(stored.lines.contains("ETag: \"a\""))
    }

    @Test func `§4.3.4 an update ends an invalidation and does not change the variant`() {
        var stored = StoredResponse.of(
            "ETag: \"a\"", "Vary: Foo", "Cache-Control: max-age=60", to: .get("Foo: 1")
        ).invalidated()
        stored.update(from: .of(304), to: .get("Foo: 2"), requestTime: start, responseTime: start)
        #expect(decide(.get("Foo: 1"), stored, at: 1).name == "fresh")
        #expect(decide(.get("Foo: 2"), stored, at: 1).name == "validate")
    }

    @Test(arguments: ["Foo, Bar", "*"])
    func `§4.1 a response is validated once an update for another variant has named further fields`(
        vary: String
    ) {
        var stored = StoredResponse.of("ETag: \"a\"", "Vary: Foo", to: .get("Foo: 1", "Bar: 1"))
        let head = ResponseHead.of(304, "Vary: \(vary)", "Cache-Control: max-age=60")
        stored.update(from: head, to: .get("Foo: 2", "Bar: 2"), requestTime: start, responseTime: start)
        for request in [CacheRequest.get("Foo: 1", "Bar: 1"), .get("Foo: 1", "Bar: 2"), .get("Foo: 2", "Bar: 2")] {
            #expect(decide(request, stored, at: 1).name == "validate")
        }
        // An update for the values that are known names the others.
        stored.update(from: head, to: .get("Foo: 1", "Bar: 1"), requestTime: start, responseTime: start)
        #expect((decide(.get("Foo: 1", "Bar: 1"), stored, at: 1).name == "fresh") == (vary != "*"))
        #expect(decide(.get("Foo: 1", "Bar: 2"), stored, at: 1).name == "validate")
    }

    @Test(arguments: [
        ("1,2", " 1, 2 ", true), ("1, \"a,b\"", "1,\"a,b\"", true), ("\"a,b\"", "\"a, b\"", false),
        ("1,2", "12", false),
    ])
    func `§4.1 blanks around the members of a list do not matter`(one: String, other: String, isSame: Bool) {
        let stored = StoredResponse.of("Vary: Foo", "Cache-Control: max-age=60", to: .get("Foo: \(one)"))
        #expect((decide(.get("Foo: \(other)"), stored, at: 1).name == "fresh") == isSame)
    }

    // MARK: HEAD

    @Test(
        arguments: [
            (["ETag: \"a\"", "Content-Length: 10"], true), (["ETag: \"a\""], true), ([], true),
            (["ETag: \"b\""], false), (["Last-Modified: \(date(-1))"], false), (["Content-Length: 11"], false),
        ] as [([String], Bool)])
    func `§4.3.5 a response to HEAD updates or invalidates the stored response`(lines: [String], isSame: Bool) {
        let stored = StoredResponse.of("ETag: \"a\"", "Last-Modified: \(Self.modified)", "Content-Length: 10")
        let head = CacheRequest.get(method: .head)
        let changes = StoredChange.after(ResponseHead(200, lines), toHead: head, stored: [stored])
        #expect(changes == [isSame ? .update(0) : .invalidate(0)])
        #expect(StoredChange.after(.of(404), toHead: head, stored: [stored]) == [])
        #expect(StoredChange.after(.of(200), toHead: .get(), stored: [stored]) == [])
    }

    // MARK: Ranges

    @Test(
        arguments: [
            ("bytes=0-3", 0..<4), ("bytes=2-", 2..<10), ("bytes=-3", 7..<10), ("bytes=-30", 0..<10),
            ("bytes=9-99", 9..<10), ("BYTES=0-0", 0..<1), ("bytes=0-9223372036854775807", 0..<10),
        ] as [(String, Range<Int64>)])
    func `§3.3 §9110 14.2 a fresh stored response answers a range with 206`(
        value: String, range: Range<Int64>
    ) throws {
        let stored = StoredResponse.of(
            "Cache-Control: max-age=60", "Content-Length: 10", "Content-Digest: sha-256=:AA==:", length: 10)
        let use = try #require(decide(.get("Range: \(value)"), stored, at: 1).use)
        #expect(use.part == .range(range))
        let head = stored.head(for: use, isValidated: false, at: url)
        #expect(head.status.code == 206)
        #expect(head.headers[.contentRange] == "bytes \(range.lowerBound)-\(range.upperBound - 1)/10")
        #expect(head.headers[.contentLength] == String(range.count))
        // It is the digest of the whole (RFC 9530 §2).
        #expect(!head.headers.contains(.contentDigest))
    }

    @Test(arguments: [
        "bytes=0-1,3-4", "bytes=10-", "bytes=-0", "bytes=4-2", "lines=0-1", "bytes=x-", "bytes", "bytes=-",
        "bytes=99999999999999999999-",
    ])
    func `another range is left to the server`(value: String) {
        let stored = StoredResponse.of("Cache-Control: max-age=60", length: 10)
        #expect(decide(.get("Range: \(value)"), stored, at: 1) == .forward)
    }

    @Test(
        arguments: [
            (["ETag: \"a\""], "\"a\"", true), (["ETag: \"a\""], "\"b\"", false), (["ETag: W/\"a\""], "W/\"a\"", false),
            (["ETag: \"a\""], "W/\"a\"", false), (["Last-Modified: \(modified)"], modified, true),
            (["Last-Modified: \(modified)"], date(-499), false), (["Last-Modified: \(date(0))"], date(0), false),
            ([], "\"a\"", false),
        ] as [([String], String, Bool)])
    func `§9110 13.1.5 If-Range compares strongly, and the whole is sent otherwise`(
        lines: [String], condition: String, isRange: Bool
    ) {
        let stored = StoredResponse.from(lines + ["Cache-Control: max-age=60"])
        let use = decide(.get("Range: bytes=0-1", "If-Range: \(condition)"), stored, at: 1).use
        #expect(use?.part == (isRange ? .range(0..<2) : .whole))
    }

    @Test func `§9110 13.2.2 a range is ignored if the response is not modified`() {
        let stored = StoredResponse.of("Cache-Control: max-age=60", "ETag: \"a\"")
        #expect(
            decide(.get("Range: bytes=0-1", "If-None-Match: \"a\""), stored, at: 1).use?.part == .notModified)
    }

    @Test func `§9110 14.2 Range applies to GET only`() {
        let stored = StoredResponse.of("Cache-Control: max-age=60")
        #expect(decide(.get("Range: bytes=0-1", method: .head), stored, at: 1).use?.part == .head)
    }

    @Test func `a range of a body that was decoded is left to the server`() {
        let stored = StoredResponse.of("Cache-Control: max-age=60", "Content-Encoding: gzip")
        #expect(decide(.get("Range: bytes=0-1"), stored, at: 1) == .forward)
        #expect(decide(.get(), stored, at: 1).use?.part == .whole)
    }
}
