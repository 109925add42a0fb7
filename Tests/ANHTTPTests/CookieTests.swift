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

    @Test(
        arguments: [
            ("TRUE", "0", true, nil), ("true", "0", true, nil), ("True", "0", true, nil), ("FALSE", "0", false, nil),
            ("1", "0", false, nil), ("", "0", false, nil), ("TRUE", "1900000000.5", true, 1_900_000_000),
            ("TRUE", " +19e9", true, 19), ("TRUE", "-5", true, -5),
        ] as [(String, String, Bool, Double?)])
    func `the columns of a cookie file are read as by curl`(flag: String, date: String, isSet: Bool, expires: Double?) {
        let cookie = Cookie(netscapeLine: "a.example\t\(flag)\t/\t\(flag)\t\(date)\tname\tvalue")
        #expect(cookie?.isSecure == isSet)
        #expect(cookie?.includesSubdomains == isSet)
        #expect(cookie?.expires == expires.map { Date(timeIntervalSince1970: $0) })
    }

    @Test func `a combining character after a separator is part of the next field`() {
        let line = "#HttpOnly_\u{301}a.example\tFALSE\t\u{2F}\u{301}\tFALSE\t0\t\u{301}name\t\u{301}value"
        let cookie = Cookie(netscapeLine: line)
        #expect(cookie?.name == "\u{301}name")
        #expect(cookie?.netscapeLine == line)
        #expect(Cookie(netscapeLine: "#\u{301}a.example\tFALSE\t/\tFALSE\t0\tname\tvalue") == nil)
    }

    @Test(arguments: [
        "", "# Netscape HTTP Cookie File", "#", "no tabs", "a\tb\tc", "example.com\tTRUE\t/\tTRUE\tsoon\tname\tvalue",
        "example.com\tTRUE\t/\tTRUE\t\tname\tvalue", "example.com\tTRUE\t/\tTRUE\t99999999999999999999\tname\tvalue",
        "\tTRUE\t/\tTRUE\t0\tname\tvalue",
    ])
    func `a line that is not a cookie is skipped`(line: String) {
        #expect(Cookie(netscapeLine: line) == nil)
    }

    @Test(arguments: [
        "http://a.example/", "http://A.Example/", "http://a%2Eexample/", "http://%41.example/",
    ])
    func `the spelling of a host makes no difference`(url: String) throws {
        let url = try #require(URL(string: url))
        #expect(Cookie(name: "name", value: "", domain: "a.example").matches(url))
        #expect(Cookie(setCookie: "name=value; Domain=example", from: url)?.domain == "a.example")
        #expect(!Cookie(name: "name", value: "", domain: "b.example", includesSubdomains: true).matches(url))
    }

    @Test(arguments: ["\u{85}", "\u{2028}", "\u{2029}"])
    func `a line break of Unicode is part of a value`(lineBreak: String) {
        let cookie = Cookie(name: "name", value: "a\(lineBreak)b", domain: "a.example")
        #expect(cookie.netscapeLine.flatMap { Cookie(netscapeLine: $0 + "\n") } == cookie)
    }

    @Test func `a line whose empty value was trimmed is parsed`() {
        #expect(Cookie(netscapeLine: "example.com\tFALSE\t/\tFALSE\t0\tname")?.value == "")
    }

    @Test(arguments: [
        Cookie(name: "", value: "x", domain: "a.example"), Cookie(name: "a=b", value: "x", domain: "a.example"),
        Cookie(name: "a", value: "x;y", domain: "a.example"), Cookie(name: "a", value: "x\ty", domain: "a.example"),
        // A character of two scalars, whose bytes a server takes for a semicolon and an accent.
        Cookie(name: "a", value: "x;\u{301}", domain: "a.example"),
        Cookie(name: "a=\u{301}", value: "x", domain: "a.example"),
        Cookie(name: "a", value: "x\r\nSet-Cookie: b", domain: "a.example"), Cookie(name: "a", value: "x", domain: ""),
        Cookie(name: "a", value: "x", domain: "a.example", path: "relative"),
        Cookie(name: "a", value: "x", domain: "#a.example"), Cookie(name: "a", value: "x", domain: "#\u{301}a.example"),
        Cookie(name: "a\0", value: "x", domain: "a.example"),
        Cookie(name: "__Secure-a", value: "x", domain: "a.example"),
        Cookie(name: "__secure-\u{301}", value: "x", domain: "a.example"),
        Cookie(name: "__Host-a", value: "x", domain: "a.example"),
        Cookie(name: "__HOST-a", value: "x", domain: "a.example", path: "/a", isSecure: true),
        Cookie(name: "__Host-a", value: "x", domain: "a.example", includesSubdomains: true, isSecure: true),
    ])
    func `a cookie that the file format cannot represent, or that libcurl does not store, has no line`(cookie: Cookie) {
        #expect(cookie.netscapeLine == nil)
    }

    @Test(arguments: [
        (
            Cookie(name: "a", value: "x", domain: "a.example"),
            ["a.example\tFALSE\t/\tTRUE\t1\ta\t", "a.example\tFALSE\t//\tTRUE\t1\ta\t"]
        ),
        (
            Cookie(name: "__secure-a", value: "x;y", domain: "a.example", path: "/\u{1}", isHTTPOnly: true),
            [
                "#HttpOnly_a.example\tFALSE\t/\u{1}\tTRUE\t1\t__secure-a\t",
                "#HttpOnly_a.example\tFALSE\t/\u{1}/\tTRUE\t1\t__secure-a\t",
            ]
        ),
        (
            Cookie(name: "", value: "x", domain: "a.example", includesSubdomains: true, path: "/a/"),
            [".a.example\tTRUE\t/a/\tTRUE\t1\t\t", ".a.example\tTRUE\t/a//\tTRUE\t1\t\t"]
        ),
        (Cookie(name: "a\tb", value: "", domain: "a.example"), []),
        (Cookie(name: "a", value: "", domain: "a.example\tTRUE"), []),
        (Cookie(name: "a", value: "", domain: "a.example", path: "x"), []),
        (Cookie(name: "a", value: "", domain: "a.example", path: "/\n"), []),
        (Cookie(name: "a\0", value: "", domain: "a.example"), []), (Cookie(name: "a", value: "", domain: ""), []),
    ])
    func `a cookie is removed by lines, unless they would be those of another one`(cookie: Cookie, lines: [String]) {
        #expect(cookie.endingLines == lines)
    }

    /// RFC 6265 §5.2.4 has no quotation marks, which libcurl removes.
    @Test(
        arguments: [
            ("/a", "/a", "/a"), ("/a/", "/a/", "/a"), ("/", "/", "/"), ("", "/", nil), ("x", "/", nil),
            ("//", "//", "/"),
            ("\"/a/\"", "/a", "/a"), ("\"/a", "/a", "/a"), ("/a\"", "/a\"", "/a"), ("\"", "/", nil), ("\"\"", "/", nil),
        ] as [(String, String, String?)])
    func `the path of a cookie is that by which it is sent`(path: String, read: String, compared: String?) throws {
        #expect(Cookie(netscapeLine: "a.example\tFALSE\t\(path)\tFALSE\t0\tname\t")?.path == read)
        let url = try #require(URL(string: "http://a.example/"))
        #expect(Cookie(setCookie: "name=value; Path=\(path)", from: url)?.path == read)
        #expect(Cookie.compared(path) == compared)
    }

    @Test(arguments: [
        Cookie(name: "__Secure-a", value: "x", domain: "a.example", path: "/a", isSecure: true),
        Cookie(name: "__Host-a", value: "x", domain: "a.example", isSecure: true),
        Cookie(name: "__Hosta", value: "x", domain: "a.example"),
    ])
    func `a cookie with the attributes that its prefix requires has a line`(cookie: Cookie) {
        #expect(cookie.netscapeLine != nil)
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
        #expect(cookie.matches(try .example("HTTPS://a.example/")))
        #expect(!cookie.matches(try .example("http://a.example/")))
    }

    @Test(arguments: ["localhost", "127.0.0.1", "[::1]"])
    func `a secure cookie is sent to the local host`(host: String) throws {
        let url = try #require(URL(string: "http://\(host)/"))
        #expect(Cookie(name: "a", value: "b", domain: HostName(url).text, isSecure: true).matches(url))
    }

    @Test func `a field has as many cookies as fit, those with longer paths first`() throws {
        let url = try URL.example("http://a.example/x/y")
        func cookie(_ name: String, path: String = "/", size: Int = 1) -> Cookie {
            Cookie(name: name, value: String(repeating: "v", count: size), domain: "a.example", path: path)
        }
        let cookies = [cookie("a"), cookie("b", path: "/x"), cookie("c"), cookie("d", path: "/z")]
        for (size, value, isComplete) in [
            (100, "b=v; a=v; c=v", true), (14, "b=v; a=v; c=v", true), (13, "b=v; a=v", false), (4, "b=v", false),
            (3, nil, false), (-1, nil, false),
        ] as [(Int, String?, Bool)] {
            #expect(Cookie.field(of: cookies, for: url, below: size) == (value, isComplete))
        }
        #expect(Cookie.field(of: [], for: url) == (nil, true))
        let many = (0..<200).map { cookie("n\($0)") }
        #expect(Cookie.field(of: many, for: url).value?.split(separator: "; ").count == 150)
        let large = [cookie("a", size: 4000), cookie("b", size: 4000), cookie("c", size: 4000)]
        #expect(Cookie.field(of: large, for: url).value?.utf8.count == 8006)
    }

    @Test func `a cookie of more than 4,096 bytes, or a line of more than 5,000, is ignored`() throws {
        let url = try URL.example("https://a.example/")
        func text(_ size: Int) -> String { String(repeating: "v", count: size) }
        for (field, isStored) in [
            ("a=" + text(4_095), true), ("a=" + text(4_096), false), (text(4_096) + "=", true),
            ("a=b; Path=/" + text(4_989), true), ("a=b; Path=/" + text(4_990), false),
        ] { #expect((Cookie(setCookie: field, from: url) != nil) == isStored) }
        #expect(Cookie(name: "a", value: text(4_095), domain: "a.example").netscapeLine != nil)
        #expect(Cookie(name: "a", value: text(4_096), domain: "a.example").netscapeLine == nil)
    }

    private static let now = Date(timeIntervalSince1970: 1_700_000_000)

    @Test(arguments: [
        ("a=b", Cookie(name: "a", value: "b", domain: "a.example", path: "/x")),
        ("  a =  b c  ; ", Cookie(name: "a", value: "b c", domain: "a.example", path: "/x")),
        ("a=", Cookie(name: "a", value: "", domain: "a.example", path: "/x")),
        ("a=b=c; path=/", Cookie(name: "a", value: "b=c", domain: "a.example")),
        ("a=b; Path=y", Cookie(name: "a", value: "b", domain: "a.example", path: "/x")),
        (
            "a=b; Path=/y/; SECURE; HttpOnly; SameSite=Lax",
            Cookie(name: "a", value: "b", domain: "a.example", path: "/y/", isSecure: true, isHTTPOnly: true)
        ),
        ("a=b; Path=/; Domain=.A.Example", Cookie(name: "a", value: "b", domain: "a.example")),
        ("a=b; Path=/; Domain=example", Cookie(name: "a", value: "b", domain: "a.example")),
        ("a=b; Path=/; Max-Age=60", Cookie(name: "a", value: "b", domain: "a.example", expires: now + 60)),
        ("a=b; Path=/; Max-Age=x", Cookie(name: "a", value: "b", domain: "a.example")),
        ("a=b; Path=/; Max-Age=-1", Cookie(name: "a", value: "b", domain: "a.example", expires: .distantPast)),
        (
            "a=b; Path=/; Max-Age=99999999999999999999",
            Cookie(name: "a", value: "b", domain: "a.example", expires: .distantFuture)
        ),
        (
            "a=b; Path=/; Expires=Tue, 14-Nov-2023 22:13:21 GMT",
            Cookie(name: "a", value: "b", domain: "a.example", expires: now + 1)
        ),
        (
            "a=b; Path=/; Max-Age=5; Expires=Tue, 14 Nov 2023 22:13:21 GMT",
            Cookie(name: "a", value: "b", domain: "a.example", expires: now + 5)
        ),
        (
            "a=b; Path=/; Expires=Thu, 01-Jan-70 00:00:01 GMT",
            Cookie(name: "a", value: "b", domain: "a.example", expires: Date(timeIntervalSince1970: 1))
        ),
        (
            "a=b; Path=/; Expires=Thu Jan 01 1970 0:00:01 UTC",
            Cookie(name: "a", value: "b", domain: "a.example", expires: Date(timeIntervalSince1970: 1))
        ),
        (
            "a=b; Path=/; Expires=23:59:59 31 december 69",
            Cookie(name: "a", value: "b", domain: "a.example", expires: Date(timeIntervalSince1970: 3_155_759_999))
        ),
        (
            "a=b; Path=/; Expires=Thu, 12:34:56:78 1 Jan 1970",
            Cookie(name: "a", value: "b", domain: "a.example", expires: Date(timeIntervalSince1970: 45_296))
        ),
        (
            "a=b; Path=/; Expires=1st JANUARY 70th 12:34:56.7",
            Cookie(name: "a", value: "b", domain: "a.example", expires: Date(timeIntervalSince1970: 45_296))
        ),
        ("a=b; Path=/; Expires=1 Jan 1970 1::2:3", Cookie(name: "a", value: "b", domain: "a.example")),
        ("a=b; Path=/; Expires=1 Jan 1970 12:34:60", Cookie(name: "a", value: "b", domain: "a.example")),
        ("a=b; Path=/; Expires=1 Jan 19700 12:34:56", Cookie(name: "a", value: "b", domain: "a.example")),
        // Separators followed by a combining character.
        (
            "a\u{301}=\u{301}b;\u{301} Secure; Path=/\u{301};HttpOnly",
            Cookie(name: "a\u{301}", value: "\u{301}b", domain: "a.example", path: "/\u{301}", isHTTPOnly: true)
        ),
        ("a=b;\u{301};Secure;Path=/", Cookie(name: "a", value: "b", domain: "a.example", isSecure: true)),
        // The last attribute counts.
        ("a=b; Path=/; Domain=b.example; Domain=a.example", Cookie(name: "a", value: "b", domain: "a.example")),
        ("a=b; Path=/x; Path=/", Cookie(name: "a", value: "b", domain: "a.example")),
        ("a=b; Path=/; Domain=b.example; Domain=.", Cookie(name: "a", value: "b", domain: "a.example")),
        ("a=b; Path=/; Expires=Fri, 31 Feb 2023 22:13:21 GMT", Cookie(name: "a", value: "b", domain: "a.example")),
        ("a=b; Path=/; Expires=soon", Cookie(name: "a", value: "b", domain: "a.example")),
        (
            "__Host-a=b; Path=/; Domain; Secure; Domain=",
            Cookie(name: "__Host-a", value: "b", domain: "a.example", isSecure: true)
        ),
        (
            "__Host-a=b; Path=/; Secure",
            Cookie(name: "__Host-a", value: "b", domain: "a.example", isSecure: true)
        ),
    ])
    func `a Set-Cookie field is parsed`(text: String, cookie: Cookie) throws {
        #expect(Cookie(setCookie: text, from: try .example("https://A.example/x/y?z"), now: Self.now) == cookie)
    }

    @Test(arguments: [
        ("", "https://a.example/"), ("a", "https://a.example/"), ("=b", "https://a.example/"),
        ("a=b\r\nc", "https://a.example/"), ("a=b; Domain=b.example", "https://a.example/"),
        ("a=b; Domain=x.a.example", "https://a.example/"), ("a=b; Domain=ample", "https://a.example/"),
        ("a=b; Domain=a.example; Domain=b.example", "https://a.example/"),
        ("a=b; Domain=b.example; Domain=", "https://a.example/"), ("a=b; Domain=..a.example", "https://a.example/"),
        ("a=b; Secure", "http://a.example/"), ("__Secure-a=b", "https://a.example/"),
        ("__Host-a=b; Secure; Path=/x", "https://a.example/"), ("__Host-a=b; Path=/", "https://a.example/"),
        ("__Host-a=b; Secure; Path=/; Domain=a.example", "https://a.example/"),
        ("a=b; Domain=0.0.1", "http://127.0.0.1/"),
    ])
    func `a Set-Cookie field that the server must not send is ignored`(text: String, url: String) throws {
        #expect(Cookie(setCookie: text, from: try .example(url), now: Self.now) == nil)
    }

    @Test(arguments: [
        ("a=c; Path=/p; Domain=example", "example"), ("a=c; Path=/p; Domain=.EXAMPLE", "example"),
        ("a=c; Path=/p/; Domain=example", "example"), ("a=; Path=/p; Domain=example; Max-Age=0", "example"),
        // One for another host or path, of another name, or that has expired is not replaced, and extends nothing.
        ("a=c; Path=/p", "a.example"), ("a=c; Path=/p; Domain=a.example", "a.example"),
        ("a=c; Path=/q; Domain=example", "a.example"), ("A=c; Path=/p; Domain=example", "a.example"),
        ("b=c; Path=/p; Domain=example", "a.example"), ("old=c; Path=/p; Domain=example", "a.example"),
    ])
    func `a Set-Cookie field may replace a cookie that includes subdomains`(text: String, domain: String) throws {
        let stored = [
            Cookie(name: "a", value: "b", domain: "example", includesSubdomains: true, path: "/p"),
            Cookie(name: "a", value: "b", domain: "a.example", path: "/p"),
            Cookie(name: "b", value: "b", domain: "example", path: "/p"),
            Cookie(name: "old", value: "b", domain: "example", includesSubdomains: true, path: "/p", expires: Self.now),
        ]
        let cookie = Cookie(setCookie: text, from: try .example("https://a.example/"), replacing: stored, now: Self.now)
        #expect(cookie?.domain == domain)
        #expect(cookie?.includesSubdomains == (domain == "example"))
    }

    @Test(arguments: [("", "/"), ("/", "/"), ("/x", "/"), ("/x/", "/x"), ("/x/y/z", "/x/y")])
    func `the default path is that of the directory`(path: String, expected: String) throws {
        #expect(Cookie(setCookie: "a=b", from: try .example("http://a.example\(path)"))?.path == expected)
    }

    @Test(arguments: [
        (Cookie(name: "a", value: "", domain: "x.example", path: "/p"), true),
        (Cookie(name: "a", value: "", domain: "x.example", path: "/p/q"), true),
        (Cookie(name: "a", value: "", domain: "y.x.example", path: "/p"), true),
        (Cookie(name: "a", value: "", domain: "example", includesSubdomains: true, path: "/p"), true),
        (Cookie(name: "A", value: "", domain: "x.example", path: "/P/q"), true),
        (Cookie(name: "b", value: "", domain: "x.example", path: "/p"), false),
        (Cookie(name: "a", value: "", domain: "x.example", path: "/"), false),
        (Cookie(name: "a", value: "", domain: "x.example", path: "/pq"), false),
        (Cookie(name: "a", value: "", domain: "yx.example", path: "/p"), false),
    ])
    func `a cookie overlays a secure one for a related host and the same path or one above it`(
        cookie: Cookie, isOverlay: Bool
    ) {
        var other = Cookie(name: "a", value: "b", domain: "x.example", path: "/p", isSecure: true)
        #expect(cookie.overlays(other) == isOverlay)
        other.isSecure = false
        #expect(!cookie.overlays(other))
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

    @Test(arguments: [
        ("Set-Cookie: id=x; Path=/\r\n", "id"), ("SET-COOKIE:id=x", "id"), ("set-cookie: ;; \t id\t =x=y; a=b", "id"),
        ("Set-Cookie: id", "id"), ("Set-Cookie: =x; id=y", "id"), ("Set-Cookie:\r\n", nil), ("Set-Cookie2: a=b", nil),
        ("X-Set-Cookie: a=b", nil), ("Set-Cookie", nil), ("", nil),
    ])
    func `the name of a cookie is read from its line`(line: String, name: String?) {
        #expect(Cookie.name(setBy: Array(line.utf8)) == name)
    }

    /// RFC 6265 §5.3: cookies `a1` to `a4` of one domain, and others.
    @Test(
        arguments: [
            (9, []), (8, ["old"]), (7, ["old", "a1"]), (6, ["old", "a1", "a2"]), (5, ["old", "a1", "a2", "soon"]),
            (4, ["old", "a1", "a2", "soon", "later"]), (3, ["old", "a1", "a2", "soon", "later", "a3"]),
        ] as [(Int, [String])])
    func `a store with too many cookies evicts expired ones, those above the limit of a domain, and others`(
        limit: Int, expected: [String]
    ) {
        let now = Date(timeIntervalSince1970: 1_000)
        func cookie(_ name: String, _ domain: String, in seconds: Double? = nil) -> Cookie {
            Cookie(name: name, value: "1", domain: domain, expires: seconds.map(now.addingTimeInterval))
        }
        let cookies = [
            cookie("a1", "a.test"), cookie("a2", "a.test", in: 9_000), cookie("a3", "a.test"), cookie("a4", "a.test"),
            cookie("later", "b.test", in: 60), cookie("old", "b.test", in: -1), cookie("soon", "c.test", in: 30),
            cookie("session", "c.test"), cookie("other", "d.test"),
        ]
        #expect(Cookie.excess(of: cookies, at: now, keeping: limit, perDomain: 2).map(\.name) == expected)
        // Of those above the limit, secure ones are the last.
        var secure = cookies
        for index in secure.indices where ["a1", "soon"].contains(secure[index].name) { secure[index].isSecure = true }
        #expect(
            Cookie.excess(of: secure, at: now, keeping: limit, perDomain: 2).map(\.name)
                == ["old", "a2", "a1", "soon", "later", "a3"].prefix(9 - limit).map(\.self))
    }
}
