// SPDX-License-Identifier: MIT

import ANCurl
import ANHTTP
import Testing

/// Requests of Amazon's test suite for signature version 4, and what its documentation says about S3.
@Suite struct CanonicalRequestTests {
    private static let emptyHash = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    private static let time = "20150830T123600Z"

    struct Vector: Sendable, CustomTestStringConvertible {
        var name: String
        var method = "GET"
        var path = "/"
        var query = ""
        var fields: [(name: String, value: String)] = []
        var signature: String

        var testDescription: String { name }
    }

    private static let unreserved = "-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

    private static let vectors = [
        Vector(name: "vanilla", signature: "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"),
        Vector(
            name: "post", method: "POST",
            signature: "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"),
        Vector(
            name: "query order", query: "Param2=value2&Param1=value1",
            signature: "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"),
        Vector(
            name: "query", query: "Param1=value1",
            signature: "a67d582fa61cc504c4bae71f336f98b97f1ea3c7a6bfe1b6e45aec72011b9aeb"),
        Vector(
            name: "query in UTF-8", query: "ሴ=bar",
            signature: "2cdec8eed098649ff3a119c94853b13c643bcf08f8b0a1d91e12c9027818dd04"),
        Vector(
            name: "path in UTF-8", path: "/ሴ",
            signature: "8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85"),
        Vector(
            name: "path with a space", path: "/example space/",
            signature: "652487583200325589f1fba4c7e578f72c47cb61beeca81406b39ddec1366741"),
        Vector(
            name: "unreserved path", path: "/\(unreserved)",
            signature: "07ef7494c76fa4850883e2b006601f940f8a34d404d0cfa977f52a65bbf5f24f"),
        Vector(
            name: "slashes", path: "//example//",
            signature: "9a624bd73a37c9a373b5312afbebe7a714a789de108f0bdfe846570885f57e84"),
        Vector(
            name: "dots", path: "/./example/foo/../",
            signature: "9a624bd73a37c9a373b5312afbebe7a714a789de108f0bdfe846570885f57e84"),
        Vector(
            name: "relative", path: "/example1/example2/../..",
            signature: "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"),
        Vector(
            name: "spaces of values", fields: [("My-Header1", " value1"), ("My-Header2", " \"a   b   c\"")],
            signature: "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736"),
        Vector(
            name: "several values",
            fields: ["value4", "value1", "value3", "value2"].map { ("My-Header1", $0) },
            signature: "08c7e5a9acfcfeb3ab6b2185e75ce8b1deb5e634ec47601a50643f830c755c01"),
        Vector(
            name: "repeated values", fields: ["value2", "value2", "value1"].map { ("My-Header1", $0) },
            signature: "c9d5ea9f3f72853aea855b47ea873832890dbdd183b4468f858259531a5138ea"),
    ]

    @Test(arguments: vectors)
    func `the signatures are those of Amazon's test suite`(vector: Vector) throws {
        let fields = [(name: "Host", value: "example.amazonaws.com"), (name: "X-Amz-Date", value: Self.time)]
        let request = CanonicalRequest(
            method: vector.method, path: vector.path, query: vector.query, fields: fields + vector.fields,
            isStorage: false)
        let signature = AWSSignature(
            accessKeyID: "AKIDEXAMPLE", secretAccessKey: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
            region: "us-east-1", service: "service")
        let field = try #require(signature.authorization(for: request, bodyHash: Self.emptyHash, time: Self.time))
        #expect(
            field == "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, "
                + "SignedHeaders=\(request.signedHeaders), Signature=\(vector.signature)")
    }

    @Test(arguments: [
        ("", ""), ("a", "a="), ("b=2&a=1&a=0", "a=0&a=1&b=2"), ("a=b=c", "a=b%3Dc"), ("&a=1&", "a=1"),
        ("InstanceId.1=a&InstanceId.12=c&InstanceId.2=b", "InstanceId.1=a&InstanceId.12=c&InstanceId.2=b"),
        ("a-b=1&a=2", "a=2&a-b=1"), ("prefix=photos/2026/", "prefix=photos%2F2026%2F"),
        ("a=/:@*'()+!", "a=%2F%3A%40%2A%27%28%29%20%21"), ("a=%2f%c3%a9%7e%41", "a=%2F%C3%A9~A"),
        ("a=%20%2B", "a=%20%2B"), ("a+b=c+d%2Be", "a%20b=c%20d%2Be"), ("a=\u{301}b", "a=%CC%81b"),
        ("a=%&b=%4", "a=%25&b=%254"),
    ])
    func `parameters are sorted by name, and encoded in one way`(query: String, expected: String) {
        #expect(CanonicalRequest.query(query) == expected)
        #expect(CanonicalRequest.query(expected) == expected)
    }

    @Test(arguments: [
        ("", "/"), ("/", "/"), ("/a/b/", "/a/b/"), ("//a", "//a"),
        ("/a+b:c*(d)$,;=@", "/a%2Bb%3Ac%2A%28d%29%24%2C%3B%3D%40"),
        ("/a%20b%2fc%2Fd", "/a%20b%2Fc%2Fd"), ("/%7Ea%C3%A9", "/~a%C3%A9"),
    ])
    func `the segments of a path are encoded in one way, and for other services than S3 twice`(
        path: String, expected: String
    ) {
        #expect(CanonicalRequest.path(path) == expected)
        func line(isStorage: Bool) -> Substring {
            CanonicalRequest(method: "GET", path: expected, query: "", fields: [], isStorage: isStorage).text
                .split(separator: "\n")[1]
        }
        #expect(line(isStorage: true) == expected)
        let once = expected == "//a" ? "/a" : expected
        #expect(line(isStorage: false) == once.replacing("%", with: "%25"))
    }
}
