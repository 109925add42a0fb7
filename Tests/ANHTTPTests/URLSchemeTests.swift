// SPDX-License-Identifier: MIT

import ANHTTP
import FoundationEssentials
import Testing

@Suite struct URLSchemeTests {
    @Test(
        arguments: [
            ("http://example.com", true, false), ("HTTP://example.com", true, false), ("hTtP:", true, false),
            ("https://example.com", false, true), ("HTTPS://example.com", false, true), ("httpS://[::1]", false, true),
            ("httpss://example.com", false, false), ("htt://example.com", false, false), ("h", false, false),
            ("https", false, false), ("//example.com", false, false), ("/http://example.com", false, false),
            ("ws://http:80", false, false), ("ftp://example.com", false, false),
        ] as [(String, Bool, Bool)])
    func `a scheme is compared whole, and without regard to case`(text: String, isPlain: Bool, isSecure: Bool) throws {
        let url = try #require(URL(string: text))
        #expect(url.isPlainHTTP == isPlain)
        #expect(url.isHTTPS == isSecure)
    }

    @Test func `the scheme of a relative URL is that of its base`() throws {
        let base = try #require(URL(string: "https://example.com/a/"))
        let url = try #require(URL(string: "b", relativeTo: base))
        #expect(url.isHTTPS)
        #expect(!url.isPlainHTTP)
    }
}
