// SPDX-License-Identifier: MIT

import ANHTTP
import FoundationEssentials
import Testing

@Suite struct CookieTests {
    @Test(arguments: [
        (
            ".example.com\tTRUE\t/a\tTRUE\t1700000000\tname\tvalue",
            Cookie(
                name: "name", value: "value", domain: "example.com", includesSubdomains: true, path: "/a",
                isSecure: true, expires: Date(timeIntervalSince1970: 1_700_000_000))
        ),
        ("example.com\tFALSE\t/\tFALSE\t0\tname\t", Cookie(name: "name", value: "", domain: "example.com")),
        (
            "#HttpOnly_127.0.0.1\tFALSE\t/\tFALSE\t0\tname\ta=b \"c\"",
            Cookie(name: "name", value: "a=b \"c\"", domain: "127.0.0.1", isHTTPOnly: true)
        ),
    ])
    func `a line of a cookie file is parsed and written`(line: String, cookie: Cookie) {
        #expect(Cookie(netscapeLine: line) == cookie)
        #expect(Cookie(netscapeLine: line + "\r\n") == cookie)
        #expect(cookie.netscapeLine == line)
    }

    @Test(arguments: [
        "", "# Netscape HTTP Cookie File", "#", "no tabs", "a\tb\tc", "example.com\tTRUE\t/\tTRUE\tsoon\tname\tvalue",
        "\tTRUE\t/\tTRUE\t0\tname\tvalue", "example.com\tTRUE\t/\tTRUE\t0\t\tvalue",
    ])
    func `a line that is not a cookie is skipped`(line: String) {
        #expect(Cookie(netscapeLine: line) == nil)
    }

    @Test func `a line whose empty value was trimmed is parsed`() {
        #expect(Cookie(netscapeLine: "example.com\tFALSE\t/\tFALSE\t0\tname")?.value == "")
    }

    @Test(arguments: [
        Cookie(name: "", value: "x", domain: "a.example"), Cookie(name: "a=b", value: "x", domain: "a.example"),
        Cookie(name: "a", value: "x;y", domain: "a.example"), Cookie(name: "a", value: "x\ty", domain: "a.example"),
        Cookie(name: "a", value: "x\r\nSet-Cookie: b", domain: "a.example"), Cookie(name: "a", value: "x", domain: ""),
        Cookie(name: "a", value: "x", domain: "a.example", path: "relative"),
        Cookie(name: "a", value: "x", domain: "#a.example"), Cookie(name: "a\0", value: "x", domain: "a.example"),
    ])
    func `a cookie that the file format cannot represent has no line`(cookie: Cookie) {
        #expect(cookie.netscapeLine == nil)
    }

    @Test(arguments: [
        ("a.example", false, "/", "http://a.example/x", true), ("a.example", false, "/", "http://A.EXAMPLE:8080", true),
        ("a.example", false, "/", "http://b.a.example/", false), ("a.example", true, "/", "http://b.a.example/", true),
        ("a.example", true, "/", "http://ba.example/", false), ("0.0.1", true, "/", "http://127.0.0.1/", false),
        ("a.example", false, "/x", "http://a.example/x", true),
        ("a.example", false, "/x", "http://a.example/x/y", true),
        ("a.example", false, "/x", "http://a.example/xy", false),
        ("a.example", false, "/x/", "http://a.example/x/y", true),
        ("a.example", false, "/x/", "http://a.example/x", false),
    ])
    func `domain and path determine where a cookie is sent`(
        domain: String, below: Bool, path: String, url: String, isSent: Bool
    ) throws {
        let cookie = Cookie(name: "a", value: "b", domain: domain, includesSubdomains: below, path: path)
        #expect(cookie.matches(try .example(url)) == isSent)
    }

    @Test func `a secure cookie is sent over https only`() throws {
        let cookie = Cookie(name: "a", value: "b", domain: ".A.example", isSecure: true)
        #expect(cookie.matches(try .example("https://a.example/")))
        #expect(!cookie.matches(try .example("http://a.example/")))
    }

    @Test func `the value of a cookie is never printed`() {
        let cookie = Cookie(name: "session", value: "s3cret", domain: "a.example", includesSubdomains: true)
        #expect("\(cookie)" == "Cookie(session=… for *.a.example/)")
        for value in [cookie, [cookie], Optional(cookie) as Any] as [Any] {
            var text = "\(value)" + String(reflecting: value)
            dump(value, to: &text)
            #expect(!text.contains("s3cret"))
        }
    }
}
