// SPDX-License-Identifier: MIT

import ANHTTP
import FoundationEssentials
import HTTPTypes
import Testing

@Suite struct URLReferenceTests {
    private static let cases: [(reference: String, url: String?)] = [
        ("/echo/a%2Fb[1].zip", "http://a.example/echo/a%2Fb%5B1%5D.zip"),
        ("?u=http%3A%2F%2Fa.b%2F&v=<x>", "http://a.example/v1/x?u=http%3A%2F%2Fa.b%2F&v=%3Cx%3E"),
        ("/%E4%BD%A0\u{597D}", "http://a.example/%E4%BD%A0%E5%A5%BD"),
        ("/x%20y?q=%26|a", "http://a.example/x%20y?q=%26%7Ca"),
        ("/100%", "http://a.example/100%25"), ("/%zz%41", "http://a.example/%25zz%41"),
        ("b c", "http://a.example/v1/b%20c"), (" /b\t", "http://a.example/b"),
        ("", "http://a.example/v1/x?q=1"), ("#top", "http://a.example/v1/x?q=1#top"),
        ("http://b.example/a/../c/./d", "http://b.example/c/d"), ("//b.example/a/../c", "http://b.example/c"),
        ("../../b", "http://a.example/b"), ("http://[::1]:80/[x]", "http://[::1]:80/%5Bx%5D"),
        ("https://b.example/?a=../b", "https://b.example/?a=../b"), ("/a/%2e%2E/b", "http://a.example/b"),
        ("/a\nb", nil), ("/a\u{7F}", nil), ("/a\0", nil),
    ]

    @Test(
        arguments: [
            ("http://[::1]:9000/b", "[::1]:9000"), ("http://[::1]/", "[::1]"), ("https://a.example:443/", "a.example"),
            ("http://a.example:443/", "a.example:443"), ("http://u:p@a.example/", "a.example"),
            ("http://A.Example./", "A.Example."), ("http://ex%61mple.test:81/", "example.test:81"),
            ("http://127.1/", "127.0.0.1"), ("http://0x7f.1:81/", "127.0.0.1:81"), ("http://127.0.0.1./", "127.0.0.1."),
            ("http://[fe80::1%25eth0]/", "[fe80::1]"), ("http://[fe80:0::1%25eth0]:81/", "[fe80::1]:81"),
            ("http://[0:0:0:0:0:0:0:1]:81/", "[::1]:81"),
        ])
    func `the authority is that of Host`(url: String, expected: String) throws {
        #expect(try #require(URL(string: url)).authority == expected)
    }

    @Test(
        arguments: [
            ("/", "/"), ("/a/../b", "/b"), ("/a/./b/.", "/a/b/"), ("/a/b/..", "/a/"), ("/../..", "/"), ("//..", "/"),
            ("//a/.././/b", "///b"), ("/a/.b/..c/...", "/a/.b/..c/..."), ("/a/%2e%2E/b/%2e", "/b/"),
            ("/a/b/.%2e", "/a/"), ("/a/b/%2E./", "/a/"), ("/%2ea/%2e%2e%2e/%252e", "/%2ea/%2e%2e%2e/%252e"),
            ("/a%2f..", "/a%2f.."),
        ] as [(path: String, expected: String)])
    func `dot segments are removed from a path, whether their dots are encoded or not`(
        path: String, expected: String
    ) throws {
        #expect(path.withoutDotSegments == expected)
        #expect(path.hasDotSegments == (path != expected))
        let url = try #require(URL(string: "http://u:p@a.example:81\(path)?q=/../%2e#/."))
        #expect(url.withoutDotSegments.absoluteString == "http://u:p@a.example:81\(expected)?q=/../%2e#/.")
    }

    @Test(arguments: cases.indices)
    func `a reference keeps its escapes, and gets those that are missing`(index: Int) throws {
        let base = try #require(URL(string: "http://a.example/v1/x?q=1#old"))
        let (reference, expected) = Self.cases[index]
        #expect(URL(reference: reference, relativeTo: base)?.absoluteString == expected)
    }

    @Test(
        arguments: [
            ("/caf\u{E9}", "http://a.example/caf%E9"),
            ("/\u{E9}\u{FF}?\u{80}#\u{A0}", "http://a.example/%E9%FF?%80#%A0"),
            // UTF-8 beside another byte.
            ("/\u{C3}\u{A9}/\u{E9}", "http://a.example/%C3%A9/%E9"), ("/\u{C3}\u{A9}", "http://a.example/%C3%A9"),
            ("/%E9\u{E9} x", "http://a.example/%E9%E9%20x"),
            // U+FFFD itself.
            ("/\u{EF}\u{BF}\u{BD}", "http://a.example/%EF%BF%BD"),
        ] as [(bytes: String, url: String)])
    func `each byte of a field that is not UTF-8 is encoded`(bytes: String, url: String) throws {
        let base = try #require(URL(string: "http://a.example/v1/x"))
        let field = HTTPField(name: .location, value: bytes.unicodeScalars.map { UInt8($0.value) })
        #expect(URL(reference: field.reference, relativeTo: base)?.absoluteString == url)
    }
}
