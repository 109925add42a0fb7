// SPDX-License-Identifier: MIT

import ANCache
import ANHTTP
import HTTPTypes
import Testing

/// RFC 9111 §3: which responses are stored, and with which fields.
@Suite struct StoringRulesTests {
    private func isStored(_ status: Int, _ lines: [String], _ request: CacheRequest = .get()) -> Bool {
        Storability.isStorable(ResponseHead(status, lines), to: request)
    }

    @Test(arguments: [
        ("GET", true), ("HEAD", false), ("POST", false), ("PUT", false), ("OPTIONS", false), ("BREW", false),
    ])
    func `§3 a response is not stored unless its method is understood`(method: String, isStored: Bool) throws {
        let method = try #require(HTTPRequest.Method(method))
        #expect(self.isStored(200, ["Cache-Control: max-age=60"], .get(method: method)) == isStored)
    }

    @Test func `§3 a response to a request with a body is not stored`() {
        #expect(!isStored(200, ["Cache-Control: max-age=60"], .get(hasBody: true)))
    }

    @Test(arguments: [100, 103, 199])
    func `§3 an interim response is not stored`(status: Int) {
        #expect(!isStored(status, ["Cache-Control: max-age=60"]))
    }

    @Test(arguments: [200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501])
    func `§3 §9110 15.1 a heuristically cacheable status is stored without further permission`(status: Int) {
        #expect(isStored(status, []))
    }

    @Test(arguments: [201, 202, 302, 303, 307, 400, 403, 412, 418, 451, 499, 500, 502, 503, 504, 599])
    func `§3 another status is stored only with explicit permission`(status: Int) {
        #expect(!isStored(status, ["Last-Modified: \(date(-100))"]))
        for permission in ["Cache-Control: public", "Cache-Control: private", "Cache-Control: max-age=1"] {
            #expect(isStored(status, [permission]))
        }
        #expect(isStored(status, ["Expires: \(date(60))"]))
        // Only shared caches obey s-maxage.
        #expect(!isStored(status, ["Cache-Control: s-maxage=60"]))
    }

    @Test(arguments: [206, 304, 416])
    func `§3 §3.3 responses about a part of the content, and 304, are not stored`(status: Int) {
        #expect(!isStored(status, ["Cache-Control: max-age=60"]))
    }

    @Test(arguments: [428, 429, 431, 511])
    func `§6585 3-6 a response about the request or the network is not stored`(status: Int) {
        #expect(!isStored(status, ["Cache-Control: max-age=60, public", "ETag: \"a\""]))
        #expect(!isStored(status, ["Cache-Control: must-understand, max-age=60"]))
    }

    @Test(arguments: ["If-Match: \"a\"", "If-Unmodified-Since: \(date(-100))"])
    func `§9110 13.1 the failure of a precondition is not stored`(line: String) {
        #expect(!isStored(412, ["Cache-Control: max-age=60"], .get(line)))
        #expect(isStored(200, ["Cache-Control: max-age=60"], .get(line)))
    }

    @Test(arguments: [
        "no-store", "NO-STORE", "max-age=60, no-store", "max-age=60,no-store", " no-store ", "no-store=x",
    ])
    func `§5.2.2.5 a response with no-store is not stored`(value: String) {
        #expect(!isStored(200, ["Cache-Control: \(value)"]))
    }

    @Test func `§5.2.2.5 no-store counts in any of several fields`() {
        #expect(!isStored(200, ["Cache-Control: max-age=60", "Cache-Control: no-store"]))
    }

    @Test(arguments: ["x=\"no-store\"", "x-no-store", "no-store-x", "x=\"a, no-store\"", "x=\"a\\\", no-store\""])
    func `§5.2.2.5 no-store within another directive does not count`(value: String) {
        #expect(isStored(200, ["Cache-Control: \(value)"]))
    }

    @Test func `§5.2.1.5 a response to a request with no-store is not stored`() {
        #expect(!isStored(200, ["Cache-Control: max-age=60"], .get("Cache-Control: no-store")))
    }

    @Test(arguments: [(200, true), (404, true), (418, false), (206, false), (304, false), (599, false)])
    func `§5.2.2.3 must-understand stores known statuses only, and overrides no-store`(status: Int, isStored: Bool) {
        #expect(self.isStored(status, ["Cache-Control: max-age=60, must-understand, no-store"]) == isStored)
        #expect(self.isStored(status, ["Cache-Control: max-age=60, must-understand"]) == isStored)
    }

    @Test func `§3 private and Authorization do not prevent storage in a private cache`() {
        #expect(isStored(200, ["Cache-Control: private, max-age=60"], .get("Authorization: Basic QQ==")))
        #expect(isStored(200, ["Cache-Control: private=\"set-cookie\""], .get()))
    }

    @Test func `a refusal by a proxy is not stored, with a challenge or without`() {
        #expect(!isStored(407, ["Cache-Control: max-age=60"]))
        #expect(!isStored(407, ["Cache-Control: max-age=60", "Proxy-Authenticate: Basic realm=x"]))
    }

    @Test func `§7.3 Set-Cookie does not prevent storage`() {
        #expect(isStored(200, ["Cache-Control: max-age=60", "Set-Cookie: a=b"]))
    }

    @Test func `§5.2.3 unknown directives are ignored`() {
        #expect(isStored(200, ["Cache-Control: max-age=60, community=\"UCI\", frob, =, ,;"]))
    }

    // MARK: Fields

    @Test func `§3.1 all fields are stored, including unknown ones and repeated names`() {
        let lines = ["Date: \(date(0))", "X-A: 1", "Set-Cookie: a", "X-A: 2", "Frob: "]
        #expect(StoredResponse.of("Date: \(date(0))", "X-A: 1", "Set-Cookie: a", "X-A: 2", "Frob: ").lines == lines)
    }

    @Test func `§3.1 fields of the connection are not stored`() {
        let stored = StoredResponse.of(
            "Date: \(date(0))", "Connection: x-hop, close", "Connection: x-other", "X-Hop: 1", "X-Other: 1",
            "Keep-Alive: timeout=5", "Transfer-Encoding: chunked", "Upgrade: h2c", "TE: trailers", "X-End: 1")
        #expect(stored.lines == ["Date: \(date(0))", "X-End: 1"])
    }

    @Test func `§3.1 fields of a proxy are not stored`() {
        let stored = StoredResponse.of(
            "Date: \(date(0))", "Proxy-Authenticate: Basic", "Proxy-Authorization: x", "Proxy-Authentication-Info: x",
            "Proxy-Connection: close")
        #expect(stored.lines == ["Date: \(date(0))"])
    }

    @Test func `§5.2.2.4 fields listed by no-cache are not stored, and the rest is reused`() {
        let stored = StoredResponse.of(
            "Date: \(date(0))", "Cache-Control: max-age=60, no-cache=\"set-cookie, X-Private\"", "Set-Cookie: a",
            "x-private: b", "X-Public: c")
        #expect(stored.lines.suffix(1) == ["X-Public: c"])
        #expect(decide(.get(), stored, at: 1).name == "fresh")
    }

    @Test func `§3.1 trailer fields are kept apart from header fields`() {
        let stored = StoredResponse(
            ResponseHead(200, ["Date: \(date(0))"]), trailers: [.eTag: "\"t\""], bodyLength: 0, to: .get(),
            requestTime: start, responseTime: start, owner: 0)
        #expect(stored.lines == ["Date: \(date(0))"])
        #expect(stored.trailers[.eTag] == "\"t\"")
    }

    @Test func `§9110 6.6.1 a missing Date becomes the time of receipt`() {
        #expect(StoredResponse.of("X-A: 1").lines == ["X-A: 1", "Date: Sun, 06 Nov 1994 08:49:37 GMT"])
    }

    // MARK: Usefulness

    @Test(
        arguments: [
            (["Cache-Control: max-age=60"], true), (["ETag: \"a\""], true), (["Last-Modified: \(date(-60))"], true),
            (["Cache-Control: max-age=0, stale-if-error=60"], true), (["Cache-Control: max-age=0"], false), ([], false),
            (["Cache-Control: no-cache"], false), (["Cache-Control: max-age=60", "Vary: *"], false),
            (["Cache-Control: max-age=60", "Vary: *", "ETag: \"a\""], true),
        ] as [([String], Bool)])
    func `a response without lifetime and validator is stored only for requests that accept stale ones`(
        lines: [String], isUseful: Bool
    ) {
        let stored = StoredResponse(
            ResponseHead(200, lines), trailers: [:], bodyLength: 0, to: .get(), requestTime: start,
            responseTime: start, owner: 0)
        #expect(Storability.isUseful(stored, acceptsStale: false) == isUseful)
        if lines.isEmpty { #expect(Storability.isUseful(stored, acceptsStale: true)) }
    }
}

extension StoredResponse {
    /// `Name: value` for each field in order.
    var lines: [String] { headers.map { "\($0.name.rawName): \($0.value)" } }
}
