// SPDX-License-Identifier: MIT

import ANCache
import ANHTTP
import HTTPTypes
import Testing

/// RFC 9111 §4.2: lifetime and age, and the use of stale responses.
@Suite struct FreshnessRulesTests {
    /// Returns the whole seconds for which a response is fresh; -1 if it never is.
    @Test(arguments: [
        ("Thu, 18 Aug 2050 02:01:18 GMT", true), ("Thu Aug 18 02:01:18 2050", true), ("Mon Aug  8 02:01:18 2050", true),
        ("Friday, 18-Aug-95 02:01:18 GMT", true),
        ("Thu, 18 Aug 50 02:01:18 GMT", false), ("Thu 18 Aug 2050 02:01:18 GMT", false),
        ("Thu,  18 Aug 2050 02:01:18 GMT", false), ("Thu, 18  Aug 2050 02:01:18 GMT", false),
        ("Thu, 18-Aug-2050 02:01:18 GMT", false), ("Thu, 8 Aug 2050 02:01:18 GMT", false),
        ("Thu, 18 Aug 2050 2:01:18 GMT", false), ("0", false), ("", false),
    ])
    func `only the exact forms of a date are a time until which a response is fresh`(text: String, isFresh: Bool) {
        let stored = StoredResponse.of("Expires: \(text)", "Date: \(date(0))")
        #expect((stored.rules.lifetime ?? .zero > .zero) == isFresh)
    }

    private func lastFreshSecond(_ stored: StoredResponse) -> Int64 {
        guard let lifetime = stored.rules.lifetime else { return -1 }
        let end = lifetime - stored.rules.initialAge
        guard end > .zero else { return -1 }
        let last = end.milliseconds % 1_000 == 0 ? end.seconds - 1 : end.seconds
        #expect(decide(.get(), stored, at: last).name == "fresh")
        #expect(decide(.get(), stored, at: last + 1).name != "fresh")
        return last
    }

    @Test(
        arguments: [
            (["Cache-Control: max-age=60"], 59),
            (["cache-control: MAX-AGE=60"], 59),
            (["Cache-Control: max-age=\"60\""], 59),
            (["Cache-Control: public, max-age=60, foo"], 59),
            (["Cache-Control: foo", "Cache-Control: max-age=60"], 59),
            (["Cache-Control: x=\"max-age=9\", max-age=60"], 59),
            (["Cache-Control: max-age=60", "Expires: \(date(-60))"], 59),
            (["Cache-Control: max-age=60", "Expires: 0"], 59),
            (["Cache-Control: max-age=060"], 59),
            (["Cache-Control: s-maxage=0, max-age=60"], 59),
            (["Cache-Control: max-age=60, max-age=60"], 59),
            (["Expires: \(date(60))", "Date: \(date(0))"], 59),
            (["Expires: \(date(60))"], 59),
            (["Expires: Sunday, 06-Nov-94 08:50:37 GMT"], 59),
            (["Expires: Sun Nov  6 08:50:37 1994"], 59),
            (["Expires: sun, 06 nov 1994 08:50:37 gmt"], 59),
            (["Expires: \(date(60))", "Expires: \(date(60))"], 59),
        ] as [([String], Int64)])
    func `§4.2.1 the lifetime is max-age, else Expires minus Date`(lines: [String], last: Int64) {
        #expect(lastFreshSecond(.from(lines)) == last)
    }

    @Test(arguments: [
        "max-age", "max-age=", "max-age=x", "max-age=-1", "max-age=1.5", "max-age='60'", "max-age=60s", "max-age=0",
        "max-age=60, max-age=61", "max-age=+60", "max-age=0x60", "max-age=1e2",
    ])
    func `§4.2.1 an invalid or contradictory max-age makes the response stale`(value: String) {
        let stored = StoredResponse.of("Cache-Control: \(value)", "Expires: \(date(600))")
        #expect(lastFreshSecond(stored) == -1)
        #expect(stored.rules.lifetime == .zero)
    }

    @Test(arguments: [
        "0", "-1", "", "x", "never", "Sun, 06 Nov 1994 09:49:37 PST", "Sun, 06 Nov 1994 09:49:37 +0000",
        "Sun, 06 Nov 1994 09:49:37", "06 Nov 2094", "Sun, 31 Feb 2094 00:00:00 GMT",
    ])
    func `§5.3 an invalid Expires is in the past`(value: String) {
        #expect(lastFreshSecond(.of("Expires: \(value)", "Last-Modified: \(date(-80_000))")) == -1)
    }

    @Test func `§5.3 contradictory Expires fields make the response stale`() {
        #expect(lastFreshSecond(.of("Expires: \(date(60))", "Expires: \(date(600))")) == -1)
    }

    @Test func `§1.2.2 a number of seconds that is too large counts as 2³¹`() {
        for value in ["2147483649", "99999999999", "99999999999999999999999999"] {
            #expect(StoredResponse.of("Cache-Control: max-age=\(value)").rules.lifetime?.seconds == 1 << 31)
        }
    }

    @Test func `§4.2 max-age=0 is never fresh, not even at once`() {
        #expect(decide(.get(), .of("Cache-Control: max-age=0", "ETag: \"a\""), at: 0).name == "validate")
    }

    // MARK: Heuristics

    @Test func `§4.2.2 without an explicit lifetime it is a tenth of the time since the modification`() {
        #expect(lastFreshSecond(.of("Last-Modified: \(date(-1_000))")) == 99)
    }

    @Test func `§4.2.2 a heuristic lifetime is at most a day`() {
        #expect(
            StoredResponse.of("Last-Modified: Sun, 06 Nov 1983 08:49:37 GMT").rules.lifetime
                == CacheTime(seconds: 86_400))
    }

    @Test(arguments: [
        ["Cache-Control: max-age=0"], ["Expires: 0"], ["Expires: \(date(0))"], ["Cache-Control: max-age=x"],
    ])
    func `§4.2.2 no heuristic is used with an explicit expiration`(explicit: [String]) {
        #expect(lastFreshSecond(.from(explicit + ["Last-Modified: \(date(-10_000))"])) == -1)
    }

    @Test func `§4.2.2 a heuristic requires a cacheable status or public`() {
        let line = "Last-Modified: \(date(-1_000))"
        #expect(lastFreshSecond(.of(line, "Cache-Control: private", status: 302)) == -1)
        #expect(lastFreshSecond(.of(line, "Cache-Control: public", status: 302)) == 99)
        #expect(lastFreshSecond(.of(line, status: 404)) == 99)
    }

    @Test(arguments: ["Last-Modified: \(date(100))", "Last-Modified: x", "Last-Modified: \(date(0))"])
    func `§4.2.2 a modification that is invalid or not in the past gives no lifetime`(line: String) {
        #expect(StoredResponse.of(line).rules.lifetime == nil)
    }

    // MARK: Age

    @Test(
        arguments: [
            (["Age: 20"], 0, 39), (["Age: 60"], 0, -1), (["Age: 20"], 5, 34), ([], 5, 54),
            (["Age: 20, 50"], 0, 39), (["Age: , 20"], 0, 39), (["Age: 20", "Age: 50"], 0, 39), (["Age: x"], 0, 59),
            (["Age: -20"], 0, 59),
            (["Age: 1.5"], 0, 59), (["Age: 99999999999999999999"], 0, -1), (["Date: \(date(-20))"], 0, 39),
            (["Date: \(date(-20))", "Age: 30"], 0, 29), (["Date: \(date(50))"], 0, 59), (["Date: x"], 0, 59),
            (["Date: \(date(-20))", "Age: 10"], 15, 34),
        ] as [([String], Int64, Int64)])
    func `§4.2.3 the age is the greater of Date's and Age plus the delay`(
        lines: [String], delay: Int64, last: Int64
    ) {
        #expect(lastFreshSecond(.from(lines + ["Cache-Control: max-age=60"], delay: delay)) == last)
    }

    @Test func `§4 a response used without validation has an Age, which replaces the received one`() throws {
        let stored = StoredResponse.of("Age: 20", "Cache-Control: max-age=60")
        let use = try #require(decide(.get(), stored, at: 15).use)
        #expect(stored.head(for: use, isValidated: false, at: url).headers[.age] == "35")
    }

    @Test func `a clock that was set back makes the age unknown, and the response is validated`() {
        let stored = StoredResponse.of("Cache-Control: max-age=60, stale-while-revalidate=600", "ETag: \"a\"")
        #expect(decide(.get(), stored, at: -1).name == "validate")
        #expect(decide(.get(mode: .acceptStale), stored, at: -1).name == "validate")
    }

    @Test func `extreme times and lifetimes do not overflow`() {
        let stored = StoredResponse.of("Age: 9999999999", "Cache-Control: max-age=9999999999")
        let end = CacheTime(milliseconds: .max)
        #expect(CacheDecision(for: .get(), stored: [stored], now: end).name == "validate")
        let early = CacheTime(milliseconds: .min)
        #expect(CacheDecision(for: .get(), stored: [stored], now: early).name == "validate")
        let odd = StoredResponse.of("Expires: Fri, 31 Dec 9999 23:59:59 GMT", "Date: Thu, 01 Jan 0001 00:00:00 GMT")
        #expect(CacheDecision(for: .get(), stored: [odd], now: end).name == "validate")
    }

    // MARK: Stale responses

    @Test(arguments: [
        ("max-age=60", "Cache-Control: max-stale", "stale"),
        ("max-age=60", "Cache-Control: max-stale=40", "stale"),
        ("max-age=60", "Cache-Control: max-stale=39", "validate"),
        ("max-age=60", "Cache-Control: max-stale=x", "validate"),
        ("max-age=60", "Cache-Control: max-stale, max-age=100", "stale"),
        ("max-age=60", "Cache-Control: max-stale, max-age=99", "validate"),
        ("max-age=60", "Cache-Control: max-stale, min-fresh=1", "validate"),
        ("max-age=60", "Cache-Control: max-stale, no-cache", "validate"),
        ("max-age=60", "X: y", "validate"),
        ("max-age=60, must-revalidate", "Cache-Control: max-stale", "validate"),
        ("no-cache, max-age=600", "Cache-Control: max-stale", "validate"),
        ("max-age=60, proxy-revalidate", "Cache-Control: max-stale", "stale"),
        ("max-age=60, s-maxage=60", "Cache-Control: max-stale", "stale"),
        ("max-age=60, stale-while-revalidate=40", "X: y", "background"),
        ("max-age=60, stale-while-revalidate=39", "X: y", "validate"),
        ("max-age=60, stale-while-revalidate=x", "X: y", "validate"),
        ("max-age=60, stale-while-revalidate=40, must-revalidate", "X: y", "validate"),
        ("max-age=60, stale-while-revalidate=40, no-cache", "X: y", "validate"),
        ("max-age=60, stale-while-revalidate=40", "Cache-Control: no-cache", "validate"),
        ("max-age=60, stale-while-revalidate=40", "Cache-Control: max-age=50", "validate"),
        ("max-age=60, stale-while-revalidate=40", "Cache-Control: only-if-cached", "stale"),
    ])
    func `§4.2.4 a stale response is used only if the client or the server permits it`(
        response: String, request: String, expected: String
    ) {
        let stored = StoredResponse.of("Cache-Control: \(response)", "ETag: \"a\"")
        #expect(decide(.get(request), stored, at: 100).name == expected)
    }

    @Test(arguments: [(100 as Int64, true), (101, false)])
    func `RFC 5861 §3 if it is validated before, the response may be used as long if the server fails`(
        seconds: Int64, isPermitted: Bool
    ) {
        let stored = StoredResponse.of("Cache-Control: max-age=60, stale-while-revalidate=40", "ETag: \"a\"")
        let decision = CacheDecision(
            for: .get(), stored: [stored], now: after(seconds), validatesInBackground: false)
        guard case .validate(let fields, let fallback) = decision else {
            Issue.record("not validated")
            return
        }
        #expect(fields == [.ifNoneMatch: "\"a\""])
        #expect(fallback?.isStale == (isPermitted ? true : nil))
    }

    @Test(arguments: [
        ("max-age=60, stale-if-error=40", "X: y", true), ("max-age=60, stale-if-error=39", "X: y", false),
        ("max-age=60", "Cache-Control: stale-if-error=40", true),
        ("max-age=60, stale-if-error=10", "Cache-Control: stale-if-error=40", true),
        ("max-age=60, stale-if-error=40, must-revalidate", "X: y", false),
        ("max-age=60, stale-if-error=40, no-cache", "X: y", false), ("max-age=60", "X: y", false),
    ])
    func `RFC 5861 §4 stale-if-error permits a stale response if the server fails`(
        response: String, request: String, isPermitted: Bool
    ) {
        let stored = StoredResponse.of("Cache-Control: \(response)", "ETag: \"a\"")
        guard case .validate(_, let fallback) = decide(.get(request), stored, at: 100) else {
            Issue.record("not validated")
            return
        }
        #expect((fallback != nil) == isPermitted)
        for status in [500, 502, 503, 504] {
            let outcome = ValidationOutcome(
                of: .of(status), to: .get(request), stored: [stored], ifFailing: fallback)
            #expect(outcome == (fallback.map { .failed($0) } ?? .replaced))
        }
        let outcome = ValidationOutcome(of: .of(404), to: .get(), stored: [stored], ifFailing: fallback)
        #expect(outcome == .replaced)
    }

    // MARK: Dates

    @Test(
        arguments: [
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"), (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"),
            (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"), (4_107_542_399, "Sun, 28 Feb 2100 23:59:59 GMT"),
            (-1, "Wed, 31 Dec 1969 23:59:59 GMT"),
        ] as [(Int64, String)])
    func `a time is written as an IMF-fixdate`(seconds: Int64, text: String) {
        let stored = StoredResponse.of(at: CacheTime(seconds: seconds))
        #expect(stored.headers[.date] == text)
    }
}

extension StoredResponse {
    /// Stores a response with `Name: value` lines, received at ``start``.
    static func from(_ lines: [String], delay: Int64 = 0) -> StoredResponse {
        StoredResponse(
            ResponseHead(200, lines), trailers: [:], bodyLength: 10, to: .get(),
            requestTime: start - CacheTime(seconds: delay), responseTime: start, owner: 0)
    }
}
