// SPDX-License-Identifier: MIT

import ANSerialization
import FoundationEssentials
import Testing

@Suite struct URLResolverTests {
    private func resolve(
        _ string: String, _ base: String?, mode: URLResolver.Mode = .reference
    ) throws -> String {
        let base = try base.map { try #require(URL(string: $0)) }
        return try URLResolver(base: base, mode: mode).resolve(string).absoluteString
    }

    @Test(arguments: [
        ("foo", "http://example.com/v1/foo"), ("foo?bar=baz", "http://example.com/v1/foo?bar=baz"),
        ("/foo", "http://example.com/foo"), ("foo/", "http://example.com/v1/foo/"),
        ("/foo/", "http://example.com/foo/"), ("http://example2.com/", "http://example2.com/"),
        ("../x", "http://example.com/x"), ("?a=b", "http://example.com/v1/?a=b"), ("", "http://example.com/v1/"),
        ("#f", "http://example.com/v1/#f"), ("./a:b", "http://example.com/v1/a:b"), ("..", "http://example.com/"),
        ("../../../x", "http://example.com/x"), ("//other.example/x", "http://other.example/x"),
        ("HTTPS://Example2.com/x", "HTTPS://Example2.com/x"), ("a//b/", "http://example.com/v1/a//b/"),
        ("a/../b", "http://example.com/v1/b"), ("a/./b", "http://example.com/v1/a/b"),
        ("a/..", "http://example.com/v1/"),
        (".well-known/x", "http://example.com/v1/.well-known/x"), ("a.b", "http://example.com/v1/a.b"),
        ("x?y=a/../b", "http://example.com/v1/x?y=a/../b"), ("a/b:c", "http://example.com/v1/a/b:c"),
    ])
    func `strings are resolved as references to the base`(string: String, url: String) throws {
        #expect(try resolve(string, "http://example.com/v1/") == url)
    }

    @Test(arguments: [
        ("http://example.com/v1", "http://example.com/v1/"), ("http://x.com/api?x=1", "http://x.com/api/?x=1"),
        ("http://x.com/p#f", "http://x.com/p/#f"), ("http://example.com", "http://example.com"),
        ("http://x.com/?", "http://x.com/?"), ("http://x.com/", "http://x.com/"),
        ("http://x.com/a%2Fb", "http://x.com/a%2Fb/"),
    ])
    func `a slash is added to the path of the base, before query and fragment`(base: String, url: String) throws {
        #expect(URLResolver(base: URL(string: base)).base?.absoluteString == url)
        #expect(try resolve("", base) == url)
    }

    @Test(arguments: [
        ("http://example.com/v1", "foo", "http://example.com/v1/foo"),
        ("http://example.com", "foo", "http://example.com/foo"),
        ("http://example.com", "?a=b", "http://example.com?a=b"),
        ("http://x.com/api?x=1", "foo", "http://x.com/api/foo"),
        ("http://x.com:8080/api", "/foo", "http://x.com:8080/foo"), ("http://x.com/a/../b/", "c", "http://x.com/b/c"),
        ("http://x.com/api/?x=1", "c", "http://x.com/api/c"),
        ("http://x.com/api/#f", "c?d=e", "http://x.com/api/c?d=e"),
    ])
    func `a base without a trailing slash keeps its last component`(base: String, string: String, url: String) throws {
        #expect(try resolve(string, base) == url)
    }

    @Test(arguments: [
        ("foo", "http://example.com/v1/foo"), ("/foo", "http://example.com/v1/foo"),
        ("//foo", "http://example.com/v1/foo"), ("/foo/?a=b#f", "http://example.com/v1/foo/?a=b#f"),
        ("a:b", "http://example.com/v1/a:b"), ("?a=b", "http://example.com/v1/?a=b"), ("", "http://example.com/v1/"),
        ("/", "http://example.com/v1/"), ("https://example2.com/x", "https://example2.com/x"),
        ("HTTPS://Example2.com/x", "HTTPS://Example2.com/x"), ("Http://example2.com/x", "Http://example2.com/x"),
        ("//a[0]", "http://example.com/v1/a%5B0%5D"), ("//[::1]/a", "http://example.com/v1/%5B::1%5D/a"),
        ("https:x", "http://example.com/v1/https:x"), ("https/x", "http://example.com/v1/https/x"),
    ])
    func `appending keeps the path of the base`(string: String, url: String) throws {
        #expect(try resolve(string, "http://example.com/v1", mode: .appendingPath) == url)
    }

    @Test(arguments: [
        ("a b", "http://h/a%20b"), ("a b%20c", "http://h/a%20b%20c"),
        ("é?ü=ß#ñ", "http://h/%C3%A9?%C3%BC=%C3%9F#%C3%B1"),
        ("100%", "http://h/100%25"), ("%zz%4a", "http://h/%25zz%4a"), ("x?a[]=1", "http://h/x?a%5B%5D=1"),
        ("<\"\\^`{|}>", "http://h/%3C%22%5C%5E%60%7B%7C%7D%3E"), ("http://[::1]:80/a[b]", "http://[::1]:80/a%5Bb%5D"),
        ("//[::1]/a[b]", "http://[::1]/a%5Bb%5D"), ("a#b#c##", "http://h/a#b%23c%23%23"), ("##", "http://h/#%23"),
    ])
    func `invalid characters are escaped once`(string: String, url: String) throws {
        #expect(try resolve(string, "http://h/") == url)
    }

    @Test(arguments: [
        ("http://x.com/a/../b", "http://x.com/b"), ("http://x.com/a/./b/..", "http://x.com/a/"),
        ("http://x.com/../..//a/.", "http://x.com//a/"),
        ("http://x.com/a/..?b=/../c#/../d", "http://x.com/?b=/../c#/../d"),
        ("http://x.com/a/.b/c../...", "http://x.com/a/.b/c../..."),
        ("http://x.com/a/%2E%2E/b", "http://x.com/b"), ("http://x.com/%2Ea/b%2e", "http://x.com/%2Ea/b%2e"),
        ("https://u@x.com:1/a b/../é", "https://u@x.com:1/%C3%A9"),
    ])
    func `dot segments of absolute URLs are removed`(string: String, url: String) throws {
        #expect(try resolve(string, nil) == url)
        #expect(try resolve(string, "http://h/v1/", mode: .appendingPath) == url)
    }

    @Test(arguments: [
        "a\r\nb", "a\0", "\u{7F}", "http://h\t/", "1:2:3", "http://h:port/", "http://[::1/", "http://bücher.example/",
    ])
    func `malformed URLs fail`(string: String) {
        expectFailure {
            try resolve(string, "http://h/")
        } where: { error in
            if case .url(let failure) = error { failure.description.contains("” is not a URL: it") } else { false }
        }
    }

    @Test(arguments: ["ftp://h/x", "file:///etc/passwd", "user:1", "javascript:alert(1)", "data:,x"])
    func `schemes other than http and https fail`(string: String) {
        for base in ["http://h/", nil] {
            expectFailure {
                try resolve(string, base)
            } where: { error in
                if case .url(let failure) = error {
                    failure.scheme == string.split(separator: ":").first.map(String.init)
                } else {
                    false
                }
            }
        }
    }

    @Test(arguments: ["http://", "http:///x", "https:x", "http://:80/"])
    func `a URL without a host fails`(string: String) {
        expectFailure {
            try resolve(string, nil)
        } where: { error in
            if case .url(.noHost(string)) = error { true } else { false }
        }
    }

    @Test(arguments: ["", "foo", "/foo", "?a", "//h/x"])
    func `a relative string without a base fails`(string: String) {
        expectFailure {
            try resolve(string, nil)
        } where: { error in
            if case .url(.noBase(string)) = error { true } else { false }
        }
    }

    @Test func `a base with another scheme fails when it is used`() {
        expectFailure {
            try resolve("x", "file:///tmp/")
        } where: { error in
            if case .url(let failure) = error, failure.scheme == "file" { true } else { false }
        }
    }
}
