// SPDX-License-Identifier: MIT

import ANHTTP
import FoundationEssentials
import Testing

@Suite struct RedactionTests {
    @Test(arguments: [
        ("http://example.com/", "http://example.com/"),
        ("http://example.com", "http://example.com"),
        ("https://example.com:8443/a/b%20c?x", "https://example.com:8443/a/b%20c?…"),
        ("https://example.com/?secret", "https://example.com/?…"),
        ("https://example.com/?secret&&secret", "https://example.com/?…&&…"),
        ("https://user:secret@example.com/a", "https://example.com/a"),
        ("https://secret@example.com/a", "https://example.com/a"),
        ("https://:secret@example.com/a", "https://example.com/a"),
        ("https://se%40cret:sec%3Aret@example.com/", "https://example.com/"),
        ("https://user:secret@[::1]:80/", "https://[::1]:80/"),
        ("https://example.com/?key=secret", "https://example.com/?key=…"),
        ("https://example.com/?a=secret&b=secret&c", "https://example.com/?a=…&b=…&…"),
        ("https://example.com/?a=secret=secret&", "https://example.com/?a=…&"),
        ("https://example.com/?=secret", "https://example.com/?=…"),
        ("https://example.com/?a=", "https://example.com/?a=…"),
        ("https://example.com/?a=secret;b=secret", "https://example.com/?a=…"),
        ("https://example.com/?", "https://example.com/?"),
        ("https://example.com/?a%5B0%5D=secret&b%20c=secret", "https://example.com/?a%5B0%5D=…&b%20c=…"),
        ("https://example.com/?a[0]=secret", "https://example.com/?a%5B0%5D=…"),
        ("https://example.com/?a=secret?b=secret", "https://example.com/?a=…"),
        ("https://example.com/?a=%E2%80%A6secret", "https://example.com/?a=…"),
        ("https://example.com/?a=se%zzcret", "https://example.com/?a=…"),
        ("https://example.com/?a=s e c r e t secret", "https://example.com/?a=…"),
        ("https://example.com/?ä=secret", "https://example.com/?%C3%A4=…"),
        ("https://example.com/#access_token=secret", "https://example.com/"),
        ("https://example.com/?a=secret#secret", "https://example.com/?a=…"),
        ("https://example.com/a;jsessionid=secret/b;v=1", "https://example.com/a;jsessionid=…/b;v=1"),
        ("https://example.com/a;v=1;token=secret?b=secret", "https://example.com/a;v=1;token=…?b=…"),
    ])
    func `user information, query values, secret parameters and fragments are removed`(text: String, redacted: String)
        throws
    {
        let url = try URL.example(text)
        #expect(url.redactedDescription == redacted)
        #expect(!url.redactedDescription.contains("secret"))
        #expect(try Request(url: .example(text)).description == "GET \(redacted)")
    }

    @Test func `a relative URL is described with its base`() throws {
        let base = try URL.example("https://user:secret@example.com/v1/")
        let url = try #require(URL(string: "users?key=secret", relativeTo: base))
        #expect(url.redactedDescription == "https://example.com/v1/users?key=…")
    }

    @Test(arguments: [
        ("http:user:secret@example.com/", "http:…"), ("http:/user:secret@example.com/", "http:…"), ("http:", "http:…"),
        ("file:///secret", "file:…"), ("mailto:secret@example.com", "mailto:…"), ("secret", "…"),
    ])
    func `a URL without a host is reduced to its scheme`(text: String, redacted: String) throws {
        #expect(try URL.example(text).redactedDescription == redacted)
    }

    @Test(
        arguments: [
            (
                "Unsupported proxy scheme for 'ftp://user:s3cret@proxy:1'",
                "Unsupported proxy scheme for '…@proxy:1'"
            ),
            ("in 'http://user:s3@cret@[::1'", "in '…@[::1'"),
            ("in 'ada:s#cret@proxy:3128': bad", "in '…@proxy:3128': bad"),
            ("in 'http://ada:s'cret s@proxy'", "in '…@proxy'"), ("in 'a.b': it can't", "in 'a.b': it can't"),
            ("http://a:b@c and http://d:e@f/g", "http://…@c and http://…@f/g"), ("http://a:b/@c", "http://…@c"),
            ("Could not resolve host: a@b", "Could not resolve host: a@b"), ("see http://host/", "see http://host/"),
            ("", ""), ("//", "//"), ("//@", "//…@"),
        ])
    func `a message contains no user information of a URL`(text: String, expected: String) {
        #expect(text.withoutUserInformation == expected)
    }
}
