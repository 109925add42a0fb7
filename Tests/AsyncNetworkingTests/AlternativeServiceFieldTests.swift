// SPDX-License-Identifier: MIT

import AsyncNetworking
import Testing

@Suite struct AlternativeServiceFieldTests {
    @Test(
        arguments: [
            (#"h3=":443""#, ["h3 :443 86400"]),
            (#"h3=":443"; ma=3600"#, ["h3 :443 3600"]),
            (#"h3=":443"; ma="60"; persist=1"#, ["h3 :443 60 persists"]),
            (#"h3=":443"; Persist=1;MA=7"#, ["h3 :443 7 persists"]),
            (#"h3=":443"; persist=2; v="1, 2;""#, ["h3 :443 86400"]),
            (#"h3=":443"; ma=99999999999999999999"#, ["h3 :443 9223372036854775807"]),
            (#"h2="alt.example:8000", h3=":50781""#, ["h2 alt.example:8000 86400", "h3 :50781 86400"]),
            (#"  h3="[::1]:65535" ,, h3-29=":1","#, ["h3 ::1:65535 86400", "h3-29 :1 86400"]),
            (#"h3="al\t.example:2""#, ["h3 alt.example:2 86400"]),
            // Percent-encoding (§3).
            (#"w%3Dx%3Ay#z=":443""#, ["w=x:y#z :443 86400"]), (#"x%25y=":443""#, ["x%y :443 86400"]),
            // What cannot be used is left out.
            (#"h3%4=":443", h2=":443""#, ["h2 :443 86400"]), (#"h3%+1=":443""#, []), (#"%FF=":443""#, []),
            (#"h3=":0""#, []), (#"h3=":65536""#, []), (#"h3=":+443""#, []), (#"h3="443""#, []), (#"h3="""#, []),
            (#"h3=":443"; ma=x, h3=":444""#, ["h3 :444 86400"]), (#"h3=":443"; ma=-1"#, []),
        ] as [(String, [String])])
    func `alternatives are parsed`(value: String, expected: [String]) throws {
        guard case .alternatives(let alternatives) = try #require(AlternativeServiceField(value)) else {
            Issue.record("All alternatives were withdrawn.")
            return
        }
        let texts = alternatives.map {
            "\($0.protocolID) \($0.host):\($0.port) \($0.maximumAge)\($0.persists ? " persists" : "")"
        }
        #expect(texts == expected)
    }

    @Test(arguments: ["clear", " clear\t"])
    func `all alternatives can be withdrawn`(value: String) {
        #expect(AlternativeServiceField(value) == .clear)
    }

    @Test(
        arguments: [
            "", " ", ",", "Clear", "clear, h3=\":443\"", "h3", "h3=", "h3=:443", "h3 =\":443\"", "=\":443\"",
            "h3=\":443\" ma=1", "h3=\":443\"; ma", "h3=\":443\"; =1", "h3=\":443\" h2=\":443\"", "h3=\":443\";",
            "h3=\":443\"; ma=1 2",
        ])
    func `a malformed value is refused`(value: String) {
        #expect(AlternativeServiceField(value) == nil)
    }

    @Test func `the number of alternatives and the length are limited`() throws {
        let many = (1...100).map { "h3=\":\($0)\"" }.joined(separator: ", ")
        guard case .alternatives(let alternatives) = try #require(AlternativeServiceField(many)) else { return }
        #expect(alternatives.map(\.port) == Array(1...16))
        let padding = String(repeating: " ", count: 8_192 - 9)
        #expect(AlternativeServiceField("h3=\":443\"" + padding) != nil)
        #expect(AlternativeServiceField("h3=\":443\" " + padding) == nil)
    }
}
