// SPDX-License-Identifier: MIT

import ANHTTP
import Testing

@Suite struct ChallengeParserTests {
    @Test(arguments: [
        (#"Basic realm="users""#, ["Basic realm=users"]),
        (#"basic Realm = users , charset="UTF-8""#, ["basic charset=UTF-8 realm=users"]),
        (
            #"Digest realm="a, b", qop="auth,auth-int", nonce="n==", Basic realm="c""#,
            ["Digest nonce=n== qop=auth,auth-int realm=a, b", "Basic realm=c"]
        ),
        ("NTLM", ["NTLM"]),
        ("NTLM TlRMTVNTUAAC+/==", ["NTLM"]),
        ("Negotiate YII=, NTLM, Basic realm=x", ["Negotiate", "NTLM", "Basic realm=x"]),
        (
            #"Newauth realm="apps", type=1, title="Login to \"apps\"", Basic realm="simple""#,
            [#"Newauth realm=apps title=Login to "apps" type=1"#, "Basic realm=simple"]
        ),
        (",, Basic ,,realm=x,,", ["Basic realm=x"]),
        ("", []),
    ])
    func `schemes and parameters are distinguished`(value: String, expected: [String]) {
        #expect(Self.read(value) == expected)
    }

    @Test(arguments: [
        (#"realm="x""#, []),
        (#"Basic realm="no end"#, ["Basic realm=no end"]),
        (#"Basic realm="end\"#, [#"Basic realm=end\"#]),
        (#"Basic "stray" realm=x"#, ["Basic realm=x"]),
        (#"Basic realm=a, realm=b"#, ["Basic realm=a"]),
        (#"@@@ Basic realm="#, ["Basic"]),
        ("a/b, c /d", ["a", "b", "c"]),
        ("Basic realm==", ["Basic"]),
        ("=== , = x", ["x"]),
    ])
    func `malformed text is skipped`(value: String, expected: [String]) {
        #expect(Self.read(value) == expected)
    }

    @Test func `challenges beyond the maximum are ignored`() {
        let schemes = (1...65).map { "S\($0)" }
        #expect(Self.read(schemes.joined(separator: ", ")) == Array(schemes.prefix(64)))
        #expect(Self.read("\(schemes.joined(separator: ", ")), realm=x") == Array(schemes.prefix(64)))
        let last = schemes.prefix(64).joined(separator: ", ")
        #expect(Self.read("\(last) realm=x") == Array(schemes.prefix(63)) + ["S64 realm=x"])
    }

    @Test(.timeLimit(.minutes(1)), arguments: ["a/", "a /", "a  ", "a=\"", "a=", "\\\"", "a(", "a ,", "a b/"])
    func `malformed text is read in linear time`(unit: String) {
        let value = String(repeating: unit, count: 100_000) + "("
        #expect(ChallengeParser.challenges(in: value).count <= 64)
    }

    @Test func `a list without quotes is read in linear time`() {
        let value = "Digest nonce=x, qop=auth" + String(repeating: ", auth", count: 50_000)
        #expect(Self.read(value) == ["Digest nonce=x qop=auth" + String(repeating: ", auth", count: 50_000)])
    }

    @Test func `parsing arbitrary bytes terminates`() {
        let alphabet = Array("aB1 ,=\"\\/\t;@é")
        var generator = SystemRandomNumberGenerator()
        for _ in 0..<2000 {
            let text = String((0..<40).map { _ in alphabet.randomElement(using: &generator) ?? "a" })
            #expect(ChallengeParser.challenges(in: text).count <= 40, "\(text)")
        }
    }

    private static func read(_ value: String) -> [String] {
        ChallengeParser.challenges(in: value).map { challenge in
            let parameters = challenge.parameters.sorted { $0.key < $1.key }.map {
                "\($0.key)=\($0.value)"
            }
            return ([challenge.scheme] + parameters).joined(separator: " ")
        }
    }
}
