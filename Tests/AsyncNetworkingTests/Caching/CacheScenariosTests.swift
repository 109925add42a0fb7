// SPDX-License-Identifier: MIT

import ANCache
import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials
import HTTPTypes
import Testing

/// Pairs of requests through the whole session: the first is answered by a server, and the second as RFC 9111 requires
/// of a private cache.
@Suite struct CacheScenariosTests {
    private let origin = Origin()

    /// A pair of requests, and the source of the second response.
    struct Scenario: Sendable, CustomTestStringConvertible {
        let name: String
        /// The fields of the first response, as `Name: value`.
        let response: [String]
        let source: ResponseSource
        var status = 200
        /// The fields of the first request.
        var first: [String] = []
        /// The fields of the second request.
        var second: [String] = []
        /// The time between the requests in seconds.
        var seconds: Int64 = 2

        init(
            _ name: String, _ response: [String], _ source: ResponseSource, status: Int = 200, first: [String] = [],
            second: [String] = [], after seconds: Int64 = 2
        ) {
            (self.name, self.response, self.source, self.status) = (name, response, source, status)
            (self.first, self.second, self.seconds) = (first, second, seconds)
        }

        var testDescription: String { name }
    }

    // The first request is sent on Sun, 06 Nov 1994 08:49:37 GMT.
    private static let freshness: [Scenario] = [
        Scenario("max-age", ["Cache-Control: max-age=3600"], .cache),
        Scenario("max-age that has passed", ["Cache-Control: max-age=2"], .network),
        Scenario("max-age=0", ["Cache-Control: max-age=0"], .network),
        Scenario("max-age in another case", ["cache-control: MAX-Age=3600"], .cache),
        Scenario("max-age after an unknown directive", ["Cache-Control: foo, max-age=3600"], .cache),
        Scenario("max-age in the second field", ["Cache-Control: foo", "Cache-Control: max-age=3600"], .cache),
        Scenario("max-age after empty members", ["Cache-Control: , ,,max-age=3600,"], .cache),
        Scenario("a quoted max-age", ["Cache-Control: max-age=\"3600\""], .cache),
        Scenario("max-age in apostrophes", ["Cache-Control: max-age='3600'"], .network),
        Scenario("max-age with a leading zero", ["Cache-Control: max-age=003600"], .cache),
        Scenario("max-age with a unit", ["Cache-Control: max-age=3600s"], .network),
        Scenario("a decimal max-age", ["Cache-Control: max-age=3600.0"], .network),
        Scenario("a negative max-age", ["Cache-Control: max-age=-3600"], .network),
        Scenario("max-age without a value", ["Cache-Control: max-age"], .network),
        Scenario("2³¹ as max-age", ["Cache-Control: max-age=2147483648"], .cache),
        Scenario("a max-age of 24 digits", ["Cache-Control: max-age=999999999999999999999999"], .cache),
        Scenario("the same max-age twice", ["Cache-Control: max-age=9", "Cache-Control: max-age=9"], .cache),
        Scenario("a smaller max-age first", ["Cache-Control: max-age=1, max-age=3600"], .network),
        Scenario("a greater max-age first", ["Cache-Control: max-age=3600", "Cache-Control: max-age=1"], .network),
        Scenario("max-age within a quoted argument", ["Cache-Control: foo=\"max-age=3600\""], .network),
        Scenario("a comma within a quoted argument", ["Cache-Control: foo=\", max-age=1\", max-age=3600"], .cache),
        Scenario("s-maxage", ["Cache-Control: s-maxage=3600"], .network),
        Scenario("s-maxage, with max-age", ["Cache-Control: s-maxage=1, max-age=3600"], .cache),
        Scenario("s-maxage, with a max-age that has passed", ["Cache-Control: s-maxage=3600, max-age=1"], .network),
        Scenario("CDN-Cache-Control", ["CDN-Cache-Control: max-age=3600"], .network),
        Scenario("private", ["Cache-Control: private, max-age=3600"], .cache),
        Scenario("private with a field", ["Cache-Control: private=\"x\", max-age=3600"], .cache),
        Scenario("an Age below max-age", ["Cache-Control: max-age=3600", "Age: 1800"], .cache),
        Scenario("an Age above max-age", ["Cache-Control: max-age=3600", "Age: 7200"], .network),
        Scenario("the first of several ages", ["Cache-Control: max-age=3600", "Age: 7200, 0"], .network),
        Scenario("the first of several fields Age", ["Cache-Control: max-age=3600", "Age: 0", "Age: 7200"], .cache),
        Scenario("a very large Age", ["Cache-Control: max-age=3600", "Age: 99999999999999999999"], .network),
        Scenario("an Age that is no number", ["Cache-Control: max-age=3600", "Age: abc"], .cache),
        Scenario("a negative Age", ["Cache-Control: max-age=3600", "Age: -7200"], .cache),
        Scenario("an old Date", ["Cache-Control: max-age=60", "Date: Sun, 06 Nov 1994 08:47:37 GMT"], .network),
        Scenario("a Date in the future", ["Cache-Control: max-age=60", "Date: Sun, 06 Nov 1994 09:49:37 GMT"], .cache),
        Scenario("Expires", ["Expires: Sun, 06 Nov 1994 09:49:37 GMT"], .cache),
        Scenario("Expires in the past", ["Expires: Sun, 06 Nov 1994 08:49:36 GMT"], .network),
        Scenario("Expires in RFC 850's form", ["Expires: Sunday, 06-Nov-94 09:49:37 GMT"], .cache),
        Scenario("Expires in the form of asctime", ["Expires: Sun Nov  6 09:49:37 1994"], .cache),
        Scenario("Expires in lower case", ["Expires: sun, 06 nov 1994 09:49:37 gmt"], .cache),
        Scenario("Expires: 0", ["Expires: 0"], .network),
        Scenario("Expires without a day of the week", ["Expires: 06 Nov 1994 09:49:37 GMT"], .network),
        Scenario("Expires in another zone", ["Expires: Sun, 06 Nov 1994 09:49:37 PST"], .network),
        Scenario("Expires with a numeric zone", ["Expires: Sun, 06 Nov 1994 09:49:37 +0000"], .network),
        Scenario("max-age with an invalid Expires", ["Cache-Control: max-age=3600", "Expires: 0"], .cache),
        Scenario(
            "max-age that has passed, with Expires",
            ["Cache-Control: max-age=1", "Expires: Sun, 06 Nov 1994 09:49:37 GMT"], .network),
        Scenario(
            "Expires before Date",
            ["Expires: Sun, 06 Nov 1994 09:49:37 GMT", "Date: Sun, 06 Nov 1994 09:50:00 GMT"], .network),
        Scenario(
            "contradictory fields Expires",
            ["Expires: Sun, 06 Nov 1994 09:49:37 GMT", "Expires: Sun, 06 Nov 1994 10:49:37 GMT"], .network),
    ]

    private static let heuristics: [Scenario] =
        [200, 203, 204, 300, 404, 405, 410, 414, 501].map {
            Scenario("Last-Modified with \($0)", ["Last-Modified: Sat, 05 Nov 1994 08:49:37 GMT"], .cache, status: $0)
        }
        + [201, 202, 400, 403, 500, 502, 504, 299, 499, 599].flatMap {
            [
                Scenario(
                    "Last-Modified with \($0)", ["Last-Modified: Sat, 05 Nov 1994 08:49:37 GMT"], .network, status: $0),
                Scenario("max-age with \($0)", ["Cache-Control: max-age=3600"], .cache, status: $0),
                Scenario("Expires with \($0)", ["Expires: Sun, 06 Nov 1994 09:49:37 GMT"], .cache, status: $0),
                Scenario(
                    "public and Last-Modified with \($0)",
                    ["Cache-Control: public", "Last-Modified: Sat, 05 Nov 1994 08:49:37 GMT"], .cache, status: $0),
            ]
        }

    private static let directives: [Scenario] = [
        Scenario("no-store", ["Cache-Control: no-store, max-age=3600", "ETag: \"a\""], .network),
        Scenario("no-store in another case", ["Cache-Control: No-StOrE, max-age=3600"], .network),
        Scenario("must-understand with no-store", ["Cache-Control: must-understand, no-store, max-age=60"], .cache),
        Scenario(
            "must-understand with an unknown status", ["Cache-Control: must-understand, no-store, max-age=60"],
            .network, status: 299),
        Scenario("no-cache", ["Cache-Control: no-cache, max-age=3600"], .network),
        Scenario("no-cache with a validator", ["Cache-Control: no-cache", "ETag: \"a\""], .validated),
        Scenario("no-cache in another case", ["Cache-Control: No-CaChE, max-age=3600", "ETag: \"a\""], .validated),
        Scenario("no-cache for a field", ["Cache-Control: no-cache=\"a\", max-age=3600"], .cache),
        Scenario("Pragma in the response", ["Cache-Control: max-age=3600", "Pragma: no-cache"], .cache),
        Scenario("a tag", ["ETag: \"a\""], .validated),
        Scenario("a weak tag", ["ETag: W/\"a\""], .validated),
        Scenario("a date", ["Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT"], .validated),
        Scenario("an invalid date", ["Last-Modified: yesterday"], .network),
        Scenario("immutable", ["Cache-Control: max-age=3600, immutable"], .cache),
        Scenario(
            "stale-while-revalidate", ["Cache-Control: max-age=1, stale-while-revalidate=60"], .stale),
        Scenario(
            "stale-while-revalidate that has passed", ["Cache-Control: max-age=1, stale-while-revalidate=60"],
            .network, after: 62),
        Scenario(
            "stale-while-revalidate with must-revalidate",
            ["Cache-Control: max-age=1, stale-while-revalidate=60, must-revalidate"], .network),
        Scenario(
            "max-age in the request", ["Cache-Control: max-age=60"], .network, second: ["Cache-Control: max-age=1"]),
        Scenario(
            "max-age in the request, with Age", ["Cache-Control: max-age=3600", "Age: 1800"], .network,
            second: ["Cache-Control: max-age=600"]),
        Scenario(
            "no-cache in the request", ["Cache-Control: max-age=60"], .network, second: ["Cache-Control: no-cache"]),
        Scenario("Pragma in the request", ["Cache-Control: max-age=60"], .network, second: ["Pragma: no-cache"]),
        Scenario(
            "Pragma in the request, with Cache-Control", ["Cache-Control: max-age=60"], .cache,
            second: ["Pragma: no-cache", "Cache-Control: max-age=60"]),
        Scenario(
            "no-store in the request", ["Cache-Control: max-age=60"], .network, first: ["Cache-Control: no-store"]),
        Scenario(
            "no-store in the second request", ["Cache-Control: max-age=60"], .cache,
            second: ["Cache-Control: no-store"]),
        Scenario(
            "max-stale", ["Cache-Control: max-age=1"], .stale, first: ["Cache-Control: max-stale"],
            second: ["Cache-Control: max-stale=5"]),
        Scenario(
            "max-stale with must-revalidate", ["Cache-Control: max-age=1, must-revalidate", "ETag: \"a\""], .validated,
            second: ["Cache-Control: max-stale"]),
        Scenario("min-fresh", ["Cache-Control: max-age=60"], .network, second: ["Cache-Control: min-fresh=59"]),
        Scenario(
            "Authorization", ["Cache-Control: max-age=60"], .cache, first: ["Authorization: Basic YTpi"],
            second: ["Authorization: Basic YTpi"]),
        Scenario(
            "another Authorization", ["Cache-Control: max-age=60"], .network, first: ["Authorization: Basic YTpi"],
            second: ["Authorization: Basic YTpj"]),
        Scenario("a range", ["Cache-Control: max-age=60"], .cache, second: ["Range: bytes=0-0"]),
        Scenario("several ranges", ["Cache-Control: max-age=60"], .network, second: ["Range: bytes=0-0,0-0"]),
        Scenario("an unknown unit of ranges", ["Cache-Control: max-age=60"], .network, second: ["Range: x=0-0"]),
        Scenario("If-Match", ["Cache-Control: max-age=60", "ETag: \"a\""], .network, second: ["If-Match: \"a\""]),
        Scenario(
            "If-None-Match", ["Cache-Control: max-age=60", "ETag: \"a\""], .cache, second: ["If-None-Match: \"a\""]),
    ]

    private static let variants: [Scenario] =
        [
            ("the same value", "Foo", ["Foo: 1"], ["Foo: 1"], true),
            ("another value", "Foo", ["Foo: 1"], ["Foo: 2"], false),
            ("a value of another case", "Foo", ["Foo: a"], ["Foo: A"], false), ("no value", "Foo", [], [], true),
            ("a missing value", "Foo", ["Foo: 1"], [], false), ("an added value", "Foo", [], ["Foo: 1"], false),
            ("two fields", "Foo, Bar", ["Foo: 1", "Bar: 2"], ["Foo: 1", "Bar: 2"], true),
            ("two fields, in another order", "Foo, Bar", ["Foo: 1", "Bar: 2"], ["Bar: 2", "Foo: 1"], true),
            ("two fields, one with another value", "Foo, Bar", ["Foo: 1", "Bar: 2"], ["Foo: 1", "Bar: 3"], false),
            ("the name in another case", "FOO", ["Foo: 1"], ["Foo: 2"], false),
            ("blanks around names", " Foo ,\tBar ,", ["Foo: 1", "Bar: 2"], ["Foo: 1", "Bar: 2"], true),
            ("several lines of a field", "Foo", ["Foo: 1", "Foo: 2"], ["Foo: 1, 2"], true),
            ("an asterisk", "*", [], [], false), ("an asterisk among names", "Foo, *", ["Foo: 1"], ["Foo: 1"], false),
            (
                "blanks in a list of languages", "Accept-Language", ["Accept-Language: en, de"],
                ["Accept-Language: en,de"], true
            ),
            (
                "the order of languages", "Accept-Language", ["Accept-Language: en, de"], ["Accept-Language: de, en"],
                false
            ),
        ].map { name, vary, first, second, isUsed in
            Scenario(
                "Vary: \(name)", ["Cache-Control: max-age=60", "Vary: \(vary)"], isUsed ? .cache : .network,
                first: first, second: second)
        } + [
            Scenario(
                "Vary: in two lines", ["Cache-Control: max-age=60", "Vary: Foo", "Vary: Bar"], .network,
                first: ["Foo: 1", "Bar: 1"], second: ["Foo: 1", "Bar: 2"])
        ]

    @Test(arguments: freshness + heuristics + directives + variants)
    func `the second of two requests is answered`(scenario: Scenario) async throws {
        let manager = origin.manager()
        let status = HTTPResponse.Status(code: scenario.status)
        let response = try Self.fields(scenario.response)
        origin.respond { request, _ in
            let isConditional = request.headers.contains(.ifNoneMatch) || request.headers.contains(.ifModifiedSince)
            if isConditional { return .status(.notModified, headers: response) }
            return MockResponse(status: status, headers: response, chunks: status.code == 204 ? [] : [Data("a".utf8)])
        }
        let first = try await origin.get(from: manager, Self.fields(scenario.first))
        #expect(first.hasSuffix(" \(scenario.status) network"))
        origin.advance(scenario.seconds)
        let second = try await origin.get(from: manager, Self.fields(scenario.second))
        #expect(second.hasSuffix(" \(scenario.source)"))
        await manager.shutdown()
    }

    private static func fields(_ lines: [String]) throws -> HTTPFields {
        var fields = HTTPFields()
        for line in lines {
            let parts = line.split(separator: ":", maxSplits: 1).map(String.init)
            let name = try #require(HTTPField.Name(parts[0]))
            fields.append(HTTPField(name: name, value: String(parts[1].drop { $0 == " " })))
        }
        return fields
    }

    // MARK: Later responses

    @Test func `a 304 changes the stored fields, except those that describe the body or the connection`() async throws {
        let manager = origin.manager()
        let names = ["Test", "Content-Type", "Content-Language", "X-Frame-Options", "Set-Cookie"]
        let excluded = [
            "Content-Encoding", "Content-Range", "Connection", "Keep-Alive", "Proxy-Authenticate", "Upgrade",
        ]
        origin.fields = try Self.fields(
            ["Cache-Control: max-age=1", "ETag: \"a\"", "Content-Length: 1"] + names.map { "\($0): old" })
        #expect(try await origin.get(from: manager) == "1 200 network")
        origin.advance(1)
        origin.notModified = true
        origin.fields = try Self.fields(
            ["Cache-Control: max-age=60", "ETag: \"a\"", "Content-Length: 7"] + (names + excluded).map { "\($0): new" })
        for _ in 0..<2 {
            let head = try await manager.data(for: try manager.request(.get, "x")).head
            for name in names { #expect(try head.headers[#require(HTTPField.Name(name))] == "new") }
            for name in excluded { #expect(try head.headers[#require(HTTPField.Name(name))] == nil) }
            #expect(head.headers[.contentLength] == "1")
            #expect(head.headers[.cacheControl] == "max-age=60")
        }
        #expect(origin.requests.count == 2)
    }

    @Test(
        arguments: [
            ("POST", 200, true), ("PUT", 204, true), ("DELETE", 200, true), ("PATCH", 303, true), ("FOO", 200, true),
            ("POST", 404, false), ("PUT", 500, false), ("OPTIONS", 200, false),
        ])
    func `a request with another method invalidates the target, Location and Content-Location`(
        method: String, status: Int, isInvalidating: Bool
    ) async throws {
        let manager = origin.manager { $0.redirectPolicy = .none }
        origin.fields = [.cacheControl: "max-age=60"]
        let paths = ["x", "created", "described", "other"]
        for path in paths { #expect(try await origin.get(path, from: manager).hasSuffix("network")) }
        origin.respond { request, number in
            request.method == .get
                ? .data(Data("\(number)".utf8), headers: [.cacheControl: "max-age=60"])
                : .status(
                    .init(code: status),
                    headers: [.location: "/v1/created", .contentLocation: "http://A.example:80/v1/described"])
        }
        let unsafe = try #require(HTTPRequest.Method(method))
        _ = try await manager.data(for: try manager.request(unsafe, "x"))
        for path in paths {
            let source = isInvalidating && path != "other" ? "network" : "cache"
            #expect(try await origin.get(path, from: manager).hasSuffix(source))
        }
    }
}
