// SPDX-License-Identifier: MIT

import AsyncNetworking
import HTTPTypes
import Testing

@Suite struct RetryAfterTests {
    /// Sun, 06 Nov 1994 08:49:37 GMT.
    private static let now: Int64 = 784_111_777

    private func wait(_ value: String?, date: String? = nil) throws -> Duration? {
        var head = try ResponseHead(status: .serviceUnavailable, url: url("http://a.example/"))
        head.headers[.retryAfter] = value
        head.headers[.date] = date
        return head.retryAfter(now: Self.now)
    }

    @Test func `without the field, the result is nil`() throws {
        #expect(try wait(nil) == nil)
    }

    @Test(arguments: [("0", 0), ("1", 1), ("120", 120), ("007", 7)])
    func `a number is a number of seconds`(value: String, seconds: Int) throws {
        #expect(try wait(value) == .seconds(seconds))
    }

    @Test(arguments: [
        ("1.5", 1500), ("0.25", 250), ("2.0", 2000), ("0.0019", 1), ("3.125999999999999999999999", 3125),
    ])
    func `a fraction of a second is read to the millisecond`(value: String, milliseconds: Int) throws {
        #expect(try wait(value) == .milliseconds(milliseconds))
    }

    @Test(arguments: [
        ("Sun, 06 Nov 1994 08:49:47 GMT", 10), ("Sunday, 06-Nov-94 08:50:37 GMT", 60),
        ("Sun Nov  6 08:49:38 1994", 1), ("Sun, 06 Nov 1994 08:49:37 GMT", 0), ("Sat, 05 Nov 1994 08:49:37 GMT", 0),
    ])
    func `a date is the time until then, and zero if it has passed`(value: String, seconds: Int) throws {
        #expect(try wait(value) == .seconds(seconds))
    }

    @Test func `a date is relative to the server's clock`() throws {
        let (date, later) = ("Sun, 06 Nov 2033 08:00:00 GMT", "Sun, 06 Nov 2033 08:00:05 GMT")
        #expect(try wait(later, date: date) == .seconds(5))
        #expect(try wait("Sun, 06 Nov 1994 08:49:47 GMT", date: "nonsense") == .seconds(10))
    }

    @Test(arguments: [
        "", "soon", "-1", "+1", ".5", "1.", "1.5.5", "1. 5", "1e3", "1 s", "0x10", "١٢", "NaN", "Sun, 06 Nov",
        "1994-11-06",
    ])
    func `a malformed value is ignored`(value: String) throws {
        #expect(try wait(value) == nil)
    }

    @Test(arguments: ["9223372036854775807", "9223372036854775808", "99999999999999999999999999"])
    func `a very large number is the longest wait`(value: String) throws {
        #expect(try wait(value) == .seconds(Int64.max))
    }
}
