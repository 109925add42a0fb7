// SPDX-License-Identifier: MIT

import ANHTTP
import Testing

@Suite struct HostPatternTests {
    @Test(arguments: [
        ("example.com", "example.com", true), ("EXAMPLE.com", "example.com", true),
        ("example.com", "a.example.com", false),
        ("*.example.com", "a.example.com", true), ("*.example.com", "b.a.example.com", true),
        ("*.example.com", "example.com", false), ("*.example.com", "badexample.com", false),
        ("127.0.0.1", "127.0.0.1", true), ("*.0.0.1", "127.0.0.1", true),
    ])
    func `a pattern matches a host or all names below it`(pattern: String, host: String, expected: Bool) throws {
        #expect(try [HostPattern(pattern): 1].value(for: HostName(host)) == (expected ? 1 : nil))
    }

    @Test func `the most specific pattern wins`() {
        let values: [HostPattern: Int] = ["*.com": 1, "*.example.com": 2, "a.example.com": 3]
        #expect(values.value(for: HostName("other.com")) == 1)
        #expect(values.value(for: HostName("b.example.com")) == 2)
        #expect(values.value(for: HostName("a.example.com")) == 3)
        #expect(values.value(for: HostName("example.org")) == nil)
    }

    @Test(arguments: [
        ("a.example.test.", "A.example.test"), ("a.example.test", "a.example.test."), ("[::1]", "::1"),
        ("0:0:0:0:0:0:0:1", "::1"), ("::1", "[0:0::0001]"), ("[::FFFF:127.0.0.1]", "::ffff:7f00:1"),
        ("127.1", "127.0.0.1"), ("127.0.0.1", "0x7f.1"), ("127.0.0.1", "2130706433"), ("127.0.0.1", "0177.0.0.01"),
        ("*.example.test.", "b.example.test"), ("*.Example.test", "b.example.test."),
        ("xn--bcher-kva.example.test", "XN--BCHER-kva.example.test"), ("[fe80::1]", "fe80::1%eth0"),
        ("[fe80::1%25eth0]", "fe80::1%eth0"), ("a_b.test", "a_b.test"),
    ])
    func `a pattern matches all spellings of its host`(pattern: String, host: String) throws {
        #expect(try HostPattern(pattern).matches(HostName(host)))
    }

    @Test(arguments: [("[fe80::1%eth0]", "fe80::1%eth1"), ("::1", "::2"), ("127.1", "127.0.1.0")])
    func `a pattern does not match other addresses and zones`(pattern: String, host: String) throws {
        #expect(try !HostPattern(pattern).matches(HostName(host)))
    }

    @Test(arguments: [
        "", ".", "*", "*.", "*.*.test", "a.*.test", "*a.test", "a..test", ".a.test", "a.test..", "http://a.test",
        "a.test:443", "a.test/", "a b", "a%2Etest", "bücher.example.test", "*.bücher.test", "a。test", "[::1", "::1]",
        "[::1]:80", "::1::", "1:2:3", "%25:1", "1%25:1", "*.::1", "*.[::1]", "*.10.0.0.1", "*.01", "*.0x1",
        "a\u{0}.test", "1.2.3.4::1", "1.2.3.4::", "::1.2.3.4:1", "::-0", "::+0", "-0::", "::01.2.3.4", "::1.2.3.04",
        "::1.2.3.-0", "::1.2.3.+4", "::1.2.3.256", "::1.2.3", "::1.2.3.4.5", "1:2:3:4:5:6:7:1.2.3.4",
        "1:2:3:4:5:6:7::1.2.3.4", "::0x1", "::1_0",
    ])
    func `a text that can match no host is rejected`(text: String) {
        #expect(throws: SecurityPolicy.ConfigurationError.hostPattern(text)) { try HostPattern(text) }
        let literal = HostPattern(stringLiteral: text)
        #expect(throws: SecurityPolicy.ConfigurationError.hostPattern(text)) { try literal.check() }
        #expect(!literal.matches(HostName(text)))
        #expect(literal.description == text)
    }

    @Test(arguments: [
        ("1:2:3:4:5:6:0.7.0.8", "1:2:3:4:5:6:7:8"), ("A.test.", "a.test"), ("[0:0::1]", "::1"),
        ("*.A.test.", "*.a.test"), ("127.1", "127.0.0.1"),
    ])
    func `patterns for the same hosts are equal`(text: String, usual: String) throws {
        #expect(try HostPattern(text) == HostPattern(usual))
        #expect(try HostPattern(text).description == usual)
    }
}
