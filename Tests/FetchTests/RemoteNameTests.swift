// SPDX-License-Identifier: MIT

import Fetch
import FoundationEssentials
import Testing

@Suite struct RemoteNameTests {
    @Test(arguments: [
        ("http://h/a/b.iso", "b.iso"), ("http://h/b.iso?x=/y", "b.iso"), ("http://h/na%20me.txt", "na me.txt"),
        ("http://h/a%2F..%2Fpasswd", "passwd"), ("http://h/..%2f..%2f.bashrc", "bashrc"), ("http://h/-rf", "rf"),
        ("http://h/a%5Cb", "a_b"), ("http://h/%1B%5B2Jx%0A", "_[2Jx_"), ("http://h/caf%C3%A9", "café"),
        // Slashes and a hyphen that combine with the mark after them.
        ("http://h/a%2F%CC%81b", "\u{301}b"), ("http://h/..%2F%CC%81x", "\u{301}x"),
        ("http://h/-%CC%81rf", "\u{301}rf"),
        ("http://h/", nil), ("http://h", nil), ("http://h/a/", nil), ("http://h/..", nil), ("http://h/%2E%2E", nil),
    ])
    func `the file name in a URL is made safe`(text: String, name: String?) throws {
        #expect(RemoteName.of(try #require(URL(string: text))) == name)
    }

    @Test func `a long name leaves room for that of the temporary file`() throws {
        let url = try #require(URL(string: "http://h/" + String(repeating: "%C3%A9", count: 300)))
        #expect(RemoteName.of(url) == String(repeating: "é", count: 100))
    }
}
