// SPDX-License-Identifier: MIT

import ANSerialization
import FoundationEssentials
import Testing

/// Each option of the encoder with each of its values.
@Suite struct URLEncodedFormOptionsTests {
    private func text(
        _ parameters: Parameters, _ change: (inout URLEncodedFormEncoder) -> Void
    ) throws -> String {
        try URLEncodedFormEncoder().with(change).encode(parameters).replacing("%5B", with: "[").replacing(
            "%5D", with: "]")
    }

    @Test(
        arguments: [
            (.brackets, "a[]=1&a[]=2"), (.bare, "a=1&a=2"), (.indexed, "a[0]=1&a[1]=2"),
            (.custom { name, index in "\(name)-\(index)" }, "a-0=1&a-1=2"),
        ] as [(URLEncodedFormEncoder.ArrayEncoding, String)])
    func `array element names are configurable`(arrays: URLEncodedFormEncoder.ArrayEncoding, expected: String) throws {
        #expect(try text(["a": [1, 2]]) { $0.arrays = arrays } == expected)
    }

    @Test func `arrays of dictionaries can be distinguished by indices`() throws {
        let parameters: Parameters = ["a": [["k": 1, "l": 2], ["k": 3]]]
        #expect(try text(parameters) { $0.arrays = .indexed } == "a[0][k]=1&a[0][l]=2&a[1][k]=3")
        #expect(
            try text(parameters) {
                $0.arrays = .custom { name, index in "\(name).\(index)" }
                $0.keyPaths = .dots
            } == "a.0.k=1&a.0.l=2&a.1.k=3")
    }

    @Test(
        arguments: [(false, "f=0&t=1"), (true, "f=false&t=true")])
    func `Boolean values are configurable`(usesWords: Bool, expected: String) throws {
        #expect(try text(["t": true, "f": false]) { $0.usesBooleanWords = usesWords } == expected)
    }

    @Test(
        arguments: [
            (.description, "d=1970-01-02%2000%3A00%3A01%20%2B0000"), (.deferred, "d=-978220798.5"),
            (.seconds, "d=86401.5"), (.milliseconds, "d=86401500"), (.iso8601, "d=1970-01-02T00%3A00%3A01Z"),
            (.formatted(Date.ISO8601FormatStyle().year().month().day()), "d=1970-01-02"),
            (.custom { date in .integer(Int64(date.timeIntervalSince1970)) }, "d=86401"),
            (.custom { _ in .null }, "d"), (.custom { _ in ["x": 1] }, "d[x]=1"),
        ] as [(Parameters.DateEncoding, String)])
    func `dates are configurable`(dates: Parameters.DateEncoding, expected: String) throws {
        #expect(
            try text(["d": Parameters.date(Date(timeIntervalSince1970: 86_401.5))]) { $0.dates = dates } == expected)
    }

    @Test(
        arguments: [
            (.base64, "d=AP8%3D"), (.deferred, "d[]=0&d[]=255"), (.custom { .integer(Int64($0.count)) }, "d=2"),
        ] as [(Parameters.DataEncoding, String)])
    func `bytes are configurable`(data: Parameters.DataEncoding, expected: String) throws {
        #expect(try text(["d": Parameters.data(Data([0, 255]))]) { $0.data = data } == expected)
    }

    @Test func `a failing closure is reported with its path, and an endless one fails`() {
        struct Refusal: Error {}
        expectFailure {
            try text(["a": ["b": Parameters.data(Data())]]) { $0.data = .custom { _ in throw Refusal() } }
        } where: { error in
            if case .parameters(let failure) = error, failure.path == "a[b]" {
                failure.underlying is Refusal
            } else {
                false
            }
        }
        expectFailure {
            try text(["a": Parameters.date(Date(timeIntervalSince1970: 0))]) { $0.dates = .custom { .date($0) } }
        } where: { error in
            if case .parameters(.tooDeep(limit: 512)) = error { true } else { false }
        }
    }

    @Test(
        arguments: [
            (.asIs, "createdAt=1"), (.snakeCase, "created_at=1"), (.kebabCase, "created-at=1"),
            (.custom { $0.uppercased() }, "CREATEDAT=1"), (.custom { String($0.reversed()) }, "tAdetaerc=1"),
        ] as [(URLEncodedFormEncoder.KeyEncoding, String)])
    func `name transformation is configurable`(keys: URLEncodedFormEncoder.KeyEncoding, expected: String) throws {
        #expect(try text(["createdAt": 1]) { $0.keys = keys } == expected)
    }

    @Test(arguments: [
        ("a", "a"), ("", ""), ("A", "a"), ("aB", "a_b"), ("parseHTTPBody", "parse_http_body"), ("URL", "url"),
        ("myURL", "my_url"), ("is2FAOn", "is2_fa_on"), ("already_snake", "already_snake"), ("éÀ", "é_à"),
        ("aBC", "a_bc"), ("_B", "_b"),
    ])
    func `words begin at capital letters`(name: String, expected: String) throws {
        let encoder = URLEncodedFormEncoder().with { $0.keys = .snakeCase }
        #expect(try encoder.pairs(.dictionary([.init(name, 1)])).map(\.name) == [expected])
    }

    @Test(
        arguments: [
            (.brackets, "a[b][c]=1"), (.dots, "a.b.c=1"), (.custom { "->\($0)" }, "a-%3Eb-%3Ec=1"),
        ] as [(URLEncodedFormEncoder.KeyPathEncoding, String)])
    func `nested names are configurable`(keyPaths: URLEncodedFormEncoder.KeyPathEncoding, expected: String) throws {
        #expect(try text(["a": ["b": ["c": 1]]]) { $0.keyPaths = keyPaths } == expected)
    }

    @Test(
        arguments: [
            (.dropKey, "b=1"), (.text(""), "a=&b=1"), (.bareKey, "a&b=1"), (.text("null"), "a=null&b=1"),
            (.text("x y"), "a=x%20y&b=1"),
        ] as [(URLEncodedFormEncoder.NullEncoding, String)])
    func `null is configurable`(nulls: URLEncodedFormEncoder.NullEncoding, expected: String) throws {
        #expect(try text(["a": Parameters.null, "b": 1]) { $0.nulls = nulls } == expected)
    }

    private struct Person: Encodable {
        var name = "Ada"
        var manager: String?
        var boss: Boss? = Boss()

        struct Boss: Encodable {
            var age: Int?
        }
    }

    @Test(arguments: [.dropKey, .bareKey, .text("null")] as [URLEncodedFormEncoder.NullEncoding])
    func `an optional that is nil is omitted, unlike null`(nulls: URLEncodedFormEncoder.NullEncoding) throws {
        let manager: String? = nil
        #expect(try text(Parameters(encoding: Person())) { $0.nulls = nulls } == "name=Ada")
        #expect(try text(["name": "Ada", "manager": manager]) { $0.nulls = nulls } == "name=Ada")
    }

    @Test(
        arguments: [
            (false, "a=1&b=-3&c=0.1&d=1e%2B16&e=5"), (true, "a=1.0&b=-3.0&c=0.1&d=1e%2B16&e=5"),
        ])
    func `whole floating-point numbers are configurable`(keepsZero: Bool, expected: String) throws {
        #expect(
            try text(["a": 1.0, "b": -3.0, "c": 0.1, "d": 1e16, "e": 5]) { $0.keepsZeroFractions = keepsZero }
                == expected)
    }

    @Test(
        arguments: [(false, "a%20b=c%20%2B"), (true, "a+b=c+%2B")])
    func `spaces are configurable`(isPlus: Bool, expected: String) throws {
        #expect(try text(["a b": "c +"]) { $0.encodesSpacesAsPlus = isPlus } == expected)
    }

    @Test func `a plus sign is escaped if it means a space, even if it is allowed`() throws {
        #expect(
            try text(["a": "b+ c"]) {
                $0.encodesSpacesAsPlus = true
                $0.allowedCharacters = .query
            } == "a=b%2B+c")
    }

    @Test func `the order is configurable`() throws {
        let parameters: Parameters = ["b": ["d": 1, "c": 2] as Parameters, "a": Parameters.set([2, 1])]
        #expect(try text(parameters) { $0.sortsNames = true } == "a=1&a=2&b[c]=2&b[d]=1")
        #expect(try text(parameters) { $0.sortsNames = false } == "b[d]=1&b[c]=2&a=2&a=1")
    }

    @Test func `names are sorted after their transformation`() throws {
        let parameters: Parameters = ["aB": 1, "a_a": 2]
        #expect(try text(parameters) { $0.keys = .snakeCase } == "a_a=2&a_b=1")
    }

    @Test(
        arguments: [
            (.standard, "a/?=%3A%3D/?"), (.unreserved, "a%2F%3F=%3A%3D%2F%3F"), (.query, "a/?=:=/?"),
            (.init(":%&=# \"<>\u{7F}ü"), "%61%2F%3F=:=%2F%3F"),
        ] as [(URLEncodedFormEncoder.AllowedCharacters, String)])
    func `the characters that are not escaped are configurable`(
        characters: URLEncodedFormEncoder.AllowedCharacters, expected: String
    ) throws {
        #expect(try text(["a/?": ":=/?"]) { $0.allowedCharacters = characters } == expected)
    }

    @Test func `characters that would change the meaning are always escaped`() throws {
        let all = String(decoding: 0..<0x80 as Range<UInt8>, as: UTF8.self)
        let text = try URLEncodedFormEncoder().with { $0.allowedCharacters = .init(all) }.encode(
            .dictionary([.init(all, .string(all))]))
        let halves = text.split(separator: "=", maxSplits: 1)
        let name = try #require(halves.first)
        let value = try #require(halves.last)
        for half in [name, value] {
            #expect(!half.contains { "\"#&<> \u{7F}".contains($0) })
            #expect(half.count { $0 == "%" } == (half == name ? 41 : 40))
        }
        #expect(value.contains("="))
    }

    @Test func `raw text is sent unchanged`() throws {
        #expect(try text(.raw("a=b&c[]=%20")) { _ in } == "a=b&c[]=%20")
        #expect(
            try text([
                "a b": Parameters.raw("%20+"), "b": [Parameters.raw("&")], "c": Parameters.set([Parameters.raw("%3D")]),
            ]) { _ in }
                == "a%20b=%20+&b[]=&&c=%3D")
    }

    @Test func `an empty name without a value is a pair`() throws {
        #expect(try text(["": Parameters.null, "a": 1]) { _ in } == "&a=1")
    }
}
