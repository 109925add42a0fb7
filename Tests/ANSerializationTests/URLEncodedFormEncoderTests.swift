// SPDX-License-Identifier: MIT

import ANSerialization
import FoundationEssentials
import Testing

@Suite struct URLEncodedFormEncoderTests {
    private let encoder = URLEncodedFormEncoder()

    @Test func `exactly 68 ASCII characters are not escaped`() {
        let kept = (0..<128).map { String(UnicodeScalar(UInt8($0))) }.filter { URLEncodedFormEncoder.escape($0) == $0 }
        #expect(kept.count == 68)
        #expect(
            kept.joined() == "-./0123456789?ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz~")
    }

    @Test(arguments: [
        (" ", "%20"), ("+", "%2B"), ("%20", "%2520"), ("é", "%C3%A9"), ("👴🏿", "%F0%9F%91%B4%F0%9F%8F%BF"),
        (":#[]@!$&'()*+,;=", "%3A%23%5B%5D%40%21%24%26%27%28%29%2A%2B%2C%3B%3D"), ("\r\n\0", "%0D%0A%00"), ("", ""),
    ])
    func `other bytes are escaped in upper case`(text: String, escaped: String) {
        #expect(URLEncodedFormEncoder.escape(text) == escaped)
    }

    @Test(
        arguments: [
            ([:], ""),
            (["a": 1], "a=1"),
            (["b": 1, "a": "x y"], "a=x%20y&b=1"),
            (
                ["B": 1, "a": 2, "A": 3, "b": 4, "_": 5, "1": 6, "a[": 7, "aa": 8],
                "1=6&A=3&B=1&_=5&a=2&a%5B=7&aa=8&b=4"
            ),
            (["baz": ["a", 1]], "baz%5B%5D=a&baz%5B%5D=1"),
            (["a": [[1], [2]]], "a%5B%5D%5B%5D=1&a%5B%5D%5B%5D=2"),
            (["a": ["y": 2, "x": ["z": 1]]], "a%5Bx%5D%5Bz%5D=1&a%5By%5D=2"),
            (["a": [["k": 1], ["k": 2]]], "a%5B%5D%5Bk%5D=1&a%5B%5D%5Bk%5D=2"),
            (["a": Parameters.set(["q", "b", "c"])], "a=b&a=c&a=q"),
            (["a": Parameters.null, "b": "", "c": nil], "a&b="),
            (["a": true, "b": false], "a=1&b=0"),
            (["a": 1.0, "b": -2.5, "c": 0.1, "d": 1e21], "a=1&b=-2.5&c=0.1&d=1e%2B21"),
            (
                ["a": Parameters.integer(.min), "b": Parameters.unsigned(.max)],
                "a=-9223372036854775808&b=18446744073709551615"
            ),
            (["a": [], "b": [:], "c": Parameters.set([]), "d": 1], "d=1"),
            (["d": Parameters.date(Date(timeIntervalSince1970: 0))], "d=1970-01-01%2000%3A00%3A00%20%2B0000"),
            (["url": "http://h/p?q"], "url=http%3A//h/p?q"),
            (
                [
                    "a": Parameters.date(Date(timeIntervalSince1970: -62_135_596_800)),
                    "b": Parameters.date(Date(timeIntervalSince1970: 253_402_300_799)),
                ],
                "a=0001-01-01%2000%3A00%3A00%20%2B0000&b=9999-12-31%2023%3A59%3A59%20%2B0000"
            ),
        ] as [(Parameters, String)])
    func `parameters are encoded as by AFNetworking`(parameters: Parameters, text: String) throws {
        #expect(try encoder.encode(parameters) == text)
    }

    @Test(arguments: [
        ("http://h/p", "http://h/p?a=1"),
        ("http://h/p?x=%20y", "http://h/p?x=%20y&a=1"),
        ("http://h/p?", "http://h/p?a=1"),
        ("http://h/p?x&", "http://h/p?x&a=1"), ("http://h/p?q=what?", "http://h/p?q=what?&a=1"),
        ("http://h/p??", "http://h/p??&a=1"), ("http://h/p?x&?#f", "http://h/p?x&?&a=1#f"),
        ("http://h/p#f", "http://h/p?a=1#f"),
        ("http://h/p?x#f?g", "http://h/p?x&a=1#f?g"),
        ("http://h", "http://h?a=1"),
    ])
    func `parameters are appended to a query, before the fragment`(url: String, expected: String) throws {
        let url = try #require(URL(string: url))
        #expect(try encoder.append(["a": 1], to: url).absoluteString == expected)
    }

    @Test(arguments: ["http://h/p?", "http://h/p#f", "http://h/p"])
    func `empty parameters leave the URL unchanged`(text: String) throws {
        let url = try #require(URL(string: text))
        #expect(try encoder.append([:], to: url).absoluteString == text)
        #expect(try encoder.append(["a": []], to: url).absoluteString == text)
    }

    @Test(arguments: ["text", 1, [1], nil, .set([1])] as [Parameters])
    func `a value without a name fails`(parameters: Parameters) {
        expectFailure {
            try encoder.encode(parameters)
        } where: { error in
            if case .parameters(.notADictionary) = error { true } else { false }
        }
    }

    @Test(arguments: [Double.nan, .infinity, -.infinity])
    func `a number that is not finite fails with its path`(number: Double) {
        expectFailure {
            try encoder.encode(["a": ["b": Parameters.double(number)]])
        } where: { error in
            if case .parameters(.notFinite(path: "a[b]")) = error { true } else { false }
        }
    }

    @Test(arguments: [Double.nan, .infinity, 253_402_300_800, -62_135_596_801])
    func `a date outside of the years 1 to 9999 fails`(seconds: Double) {
        expectFailure {
            try encoder.encode(["d": Parameters.date(Date(timeIntervalSince1970: seconds))])
        } where: { error in
            if case .parameters(.dateOutOfRange(path: "d")) = error { true } else { false }
        }
    }

    @Test func `the nesting depth is limited`() throws {
        #expect(try encoder.encode(["a": nested(levels: 511)]).hasSuffix("=1"))
        expectFailure {
            try encoder.encode(["a": nested(levels: 5_000)])
        } where: { error in
            if case .parameters(.tooDeep(limit: 512)) = error { true } else { false }
        }
    }
}

/// Returns `1` within nested arrays.
func nested(levels: Int) -> Parameters {
    (0..<levels).reduce(1) { value, _ in [value] }
}
