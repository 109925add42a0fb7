// SPDX-License-Identifier: MIT

import AsyncNetworking
import Testing

@testable import AFNetworking

/// Percent encoding and query strings.
@Suite struct QueryStringTests {
    @Test func `68 characters are not escaped, all others are percent-encoded as UTF-8`() {
        let ascii = (0..<128).map { String(UnicodeScalar(UInt8($0))) }
        let kept = ascii.filter { AFPercentEscapedStringFromString($0) == $0 }
        #expect(kept.count == 68)
        #expect(kept.joined() == "-./0123456789?ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz~")
    }

    @Test(arguments: [
        ("a b", "a%20b"), ("%20", "%2520"), ("ü", "%C3%BC"),
        ("👴🏿👷🏻👮🏽", "%F0%9F%91%B4%F0%9F%8F%BF%F0%9F%91%B7%F0%9F%8F%BB%F0%9F%91%AE%F0%9F%8F%BD"),
        (":#[]@!$&'()*+,;=", "%3A%23%5B%5D%40%21%24%26%27%28%29%2A%2B%2C%3B%3D"), ("", ""),
    ])
    func `text is escaped`(text: String, escaped: String) {
        #expect(AFPercentEscapedStringFromString(text) == escaped)
    }

    struct Sample: CustomTestStringConvertible, @unchecked Sendable {
        let parameters: [AnyHashable: Any]
        let query: String
        var testDescription: String { query }

        init(_ parameters: [AnyHashable: Any], _ query: String) {
            self.parameters = parameters
            self.query = query
        }
    }

    static let samples = [
        Sample([:], ""),
        Sample(["key": "value"], "key=value"),
        Sample(["b": 1, "a": "x y"], "a=x%20y&b=1"),
        Sample(["B": 1, "a": 2, "A": 3, "b": 4, "_": 5, "1": 6], "1=6&A=3&B=1&_=5&a=2&b=4"),
        Sample(["a": ["x": 1, "y": ["z": 2]]], "a%5Bx%5D=1&a%5By%5D%5Bz%5D=2"),
        Sample(["baz": [1, 2, 3]], "baz%5B%5D=1&baz%5B%5D=2&baz%5B%5D=3"),
        Sample(["a": [[1], [2]]], "a%5B%5D%5B%5D=1&a%5B%5D%5B%5D=2"),
        Sample(["a": [["k": 1]]], "a%5B%5D%5Bk%5D=1"),
        Sample(["a": Set([3, 1, 2])], "a=1&a=2&a=3"),
        Sample(["a": NSNull()], "a"),
        Sample(["a": Int?.none as Any], "a"),
        Sample(["a": ""], "a="),
        Sample(["a": true, "b": false], "a=1&b=0"),
        Sample(["a": 1.0, "b": 0.1, "c": -2.5], "a=1&b=0.1&c=-2.5"),
        Sample(["w": CGFloat(2), "h": CGFloat(0.5)], "h=0.5&w=2"),
        Sample(["a": [Int](), "b": [String: Int](), "c": Set<Int>(), "d": 1], "d=1"),
        Sample(["a": Date(timeIntervalSince1970: 0)], "a=1970-01-01%2000%3A00%3A00%20%2B0000"),
        Sample(["a": Date.distantPast], "a=0001-01-01%2000%3A00%3A00%20%2B0000"),
        Sample(["a": Date(timeIntervalSince1970: 253_402_300_800)], "a=10000-01-01%2000%3A00%3A00%20%2B0000"),
        Sample(["a": Date(timeIntervalSince1970: .nan), "b": Date(timeIntervalSince1970: .infinity)], "a=&b="),
        Sample(
            ["a": [Double.nan], "b": Float.infinity, "c": -CGFloat.infinity, "d": NSNumber(value: Double.nan)],
            "a%5B%5D=nan&b=inf&c=-inf&d=nan"),
        Sample(["u": URL(filePath: "/x")], "u=file%3A///x"),
        Sample([1: "one"], "1=one"),
        Sample(
            ["a": Int.max, "b": UInt64.max, "c": NSNumber(value: Int64.min), "d": NSNumber(value: UInt64.max)],
            "a=9223372036854775807&b=18446744073709551615&c=-9223372036854775808&d=18446744073709551615"),
        Sample(
            ["a": Float(0.1), "b": NSNumber(value: Float(0.1)), "c": Decimal(string: "0.12345678901234567891") as Any],
            "a=0.1&b=0.1&c=0.12345678901234567891"),
        Sample(["n": NSNumber(value: true), "m": NSNumber(value: 7), "s": NSString(string: "t")], "m=7&n=1&s=t"),
        Sample(
            ["a": NSArray(array: [1, "b"]), "d": NSDictionary(dictionary: ["k": "v"])], "a%5B%5D=1&a%5B%5D=b&d%5Bk%5D=v"
        ),
    ]

    @Test(arguments: samples)
    func `parameters are encoded as a query`(sample: Sample) {
        #expect(AFQueryStringFromParameters(sample.parameters) == sample.query)
    }

    // MARK: Parameters of the core

    @Test func `a dictionary of any values makes parameters of the core with their types`() throws {
        let json = try JSONSerialization.jsonObject(
            with: Data(#"{"yes": true, "count": 1, "half": 0.5, "none": null, "large": 12345678901234567890}"#.utf8))
        let values: [String: Any] = [
            "bool": true, "integer": 7, "double": 1.5, "cg": CGFloat(2.5), "text": "a b",
            "trend": nil as String? as Any,
            "null": NSNull(), "list": [1, "x"] as [Any], "url": URL(string: "http://h.example/")! as Any,
            "decimal": Decimal(12.25),
            "nested": ["a": ["b": 1]], "json": json,
        ]
        let parameters = Parameters(values)
        var request = try JSONRequestSerializer().serialize(
            Request(method: .post, url: URL(filePath: "/")), parameters: parameters)
        try request.encodeBody(with: JSONEncoder())
        guard case .bytes(let sent) = request.body.content else {
            Issue.record("There is no body.")
            return
        }
        let body = try JSONSerialization.jsonObject(with: sent) as? NSDictionary
        let expected: NSDictionary = [
            "bool": true, "integer": 7, "double": 1.5, "cg": 2.5, "text": "a b", "trend": NSNull(), "null": NSNull(),
            "list": [1, "x"] as [Any], "url": "http://h.example/", "decimal": 12.25, "nested": ["a": ["b": 1]],
            "json": [
                "yes": true, "count": 1, "half": 0.5, "none": NSNull(), "large": 12_345_678_901_234_567_890 as UInt64,
            ] as [String: Any],
        ]
        #expect(body == expected)
        #expect(try URLEncodedFormEncoder().encode(parameters) == AFQueryStringFromParameters(values))
    }

    @Test func `nil in an optional is sent without a value, and is omitted from a literal of the core`() throws {
        let trend: String? = nil
        let values: [String: Any] = ["q": "x", "trend": trend as Any]
        #expect(AFQueryStringFromParameters(values) == "q=x&trend")
        #expect(try URLEncodedFormEncoder().encode(Parameters(values)) == "q=x&trend")
        #expect(try URLEncodedFormEncoder().encode(["q": "x", "trend": trend]) == "q=x")
    }
}
