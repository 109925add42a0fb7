// SPDX-License-Identifier: MIT

import ANCurl
import ANHTTP
import FoundationEssentials
import HTTPTypes
import Testing

/// The hashes are those of RFC 7616 §3.9.1, or computed with Python's hashlib.
@Suite struct DigestAnswerTests {
    private static let rest = #"realm="http-auth@example.org", nonce="7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v""#
    private static let mufasa = Credential(user: "Mufasa", password: "Circle of Life")

    private static func answer(_ challenges: [String], method: String = "GET", body: Data? = Data()) -> String? {
        guard let challenge = DigestChallenge.first(in: challenges, knowsBody: body != nil) else { return nil }
        return DigestAnswer(
            to: challenge, with: mufasa, method: method, target: "/dir/index.html", body: body,
            clientNonce: "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ")?.field.value
    }

    @Test(
        arguments: [
            ("", "7b2cc3b30e75b4777ea31027084363fd"),
            (#", qop="auth""#, "8ca523f5e9506fed4657c9700eebdbec"),
            (#", qop="""#, "7b2cc3b30e75b4777ea31027084363fd"),
            (", qop=auth, algorithm=MD5", "8ca523f5e9506fed4657c9700eebdbec"),
            (#", qop="auth-int , AUTH", algorithm="md5""#, "8ca523f5e9506fed4657c9700eebdbec"),
            (", qop=auth-int,auth, algorithm=MD5", "8ca523f5e9506fed4657c9700eebdbec"),
            (", qop=auth, algorithm=MD5-sess", "e783283f46242139c486a698fec7211d"),
            (", qop=auth, algorithm=SHA-256", "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1"),
            (", qop=auth, algorithm=SHA-256-sess", "2fd51b3a77ad75bad6afad6003e818d767133c46d9e2749e7f5232ae1ea3efd7"),
            (", qop=auth, algorithm=SHA-512-256", "430d05014cecc49cab6fbe03176d41a1da86cbfe24a16580e22aaad928d960d0"),
            (
                ", qop=auth, algorithm=SHA-512-256-sess",
                "3f2a34f923c38b0fb26dce2fdfc2ce326c23cecf86fbb1444f3e51fbbc2cb92e"
            ),
        ])
    func `the answer depends on the algorithm and the protection`(parameters: String, response: String) throws {
        let field = try #require(Self.answer(["Digest \(Self.rest)\(parameters)"]))
        #expect(field.contains(#", response="\#(response)""#))
        #expect(field.hasPrefix(#"Digest username="Mufasa", \#(Self.rest), uri="/dir/index.html", "#))
        #expect(field.contains("nc=00000001") == parameters.contains("auth"))
        #expect(field.contains("algorithm=") == parameters.contains("algorithm"))
    }

    @Test func `the body is protected if only that is offered and it is in memory`() throws {
        let challenge = #"Digest \#(Self.rest), qop="auth-int", algorithm=SHA-256"#
        let field = try #require(Self.answer([challenge], method: "POST", body: Data("body".utf8)))
        #expect(field.contains("329dcaaa9ce45c3ea5f919f438118f338057e9104aa58ecd51368264e88ced0c"))
        #expect(field.contains("qop=auth-int"))
        #expect(Self.answer([challenge], method: "POST", body: nil) == nil)
    }

    /// RFC 7616 §3.7: the server lists its challenges in the order of its preference.
    @Test(
        arguments: [
            ([#"Digest \#(rest), algorithm=SHA-3-512, qop=auth, Digest \#(rest), algorithm=MD5, qop=auth"#], "MD5"),
            (["Digest \(rest), algorithm=SHA-256, qop=auth", "Digest \(rest), algorithm=MD5, qop=auth"], "SHA-256"),
            (["Basic realm=x", "Digest realm=x", "Digest \(rest), qop=other", "digest \(rest), algorithm=MD5"], "MD5"),
            (["Basic realm=x"], nil), (["Digest realm=x"], nil), (["Digest \(rest), algorithm=SHA-1"], nil), ([], nil),
        ] as [([String], String?)])
    func `the first challenge that can be answered is answered`(challenges: [String], algorithm: String?) {
        let field = Self.answer(challenges)
        #expect(field?.contains("algorithm=\(algorithm ?? "")") == algorithm.map { _ in true })
    }

    /// RFC 7616 §3.9.2, with the hashes of SHA-512/256 (erratum 4897).
    @Test func `a user name is hidden if the server asks for that`() throws {
        let challenge =
            #"Digest realm="api@example.org", qop="auth", algorithm=SHA-512-256, userhash=true, charset=UTF-8, "#
            + #"nonce="5TsQWLVdgBdmrQ0XsxbDODV+57QdFR34I9HAbC/RVvkK", opaque="HRPCssKJSGjCrkzDg8OhwpzCiGPChXYjwrI2QmXDnsOS""#
        let parsed = try #require(DigestChallenge.first(in: [challenge], knowsBody: false))
        let field = try #require(
            DigestAnswer(
                to: parsed, with: Credential(user: "Jäsøn Doe", password: "Secret, or not?"), method: "GET",
                target: "/doe.json", body: nil, clientNonce: "NTg6RKcb9boFIAS3KrFK9BGeh+niz/sm")
        ).field.value
        #expect(field.contains(#"username="793263caabb707a56211940d90411ea4a575adeccb7e360aeb624ed06ece9b0b""#))
        #expect(field.contains(#"response="7a4e1192babbba02e91182d2895bfdbf7adafc6e48d4e517ca301974843d840c""#))
        #expect(field.contains("userhash=true"))
        #expect(field.contains(#"opaque="HRPCssKJSGjCrkzDg8OhwpzCiGPChXYjwrI2QmXDnsOS""#))
    }

    /// RFC 7616 §3.4: a name that is not in ASCII is sent by `username*` to a server that reads UTF-8.
    @Test(
        arguments: [
            ("charset=UTF-8", "Jäsøn Doe", "username*=UTF-8''J%C3%A4s%C3%B8n%20Doe, "),
            ("charset=\"utf-8\"", "Mufasa", #"username="Mufasa", "#),
            ("algorithm=MD5", "Jäsøn", #"username="Jäsøn", "#),
        ])
    func `a name outside of ASCII is sent as the server reads it`(parameter: String, user: String, start: String) throws
    {
        let challenge = try #require(
            DigestChallenge.first(in: [#"Digest realm="r", nonce="n", qop="auth", \#(parameter)"#], knowsBody: false))
        let answer = DigestAnswer(
            to: challenge, with: Credential(user: user, password: "x"), method: "GET", target: "/", body: nil)
        #expect(try #require(answer).field.value.hasPrefix("Digest " + start))
    }

    @Test(arguments: [
        (Array("B\u{FC}ro".unicodeScalars), "46db7801abd6363280efa94bc1ddbfd3"),
        (Array(String(byteText: "Büro".utf8).unicodeScalars), "72e266ab12b9eac5932a1d95c244059a"),
    ])
    func `the bytes of a challenge are hashed and sent back`(realm: [Unicode.Scalar], response: String) throws {
        var text = ""
        text.unicodeScalars.append(contentsOf: realm)
        let challenge = try #require(
            DigestChallenge.first(in: ["Digest realm=\"\(text)\", nonce=\"n\u{E9}\""], knowsBody: false))
        let answer = try #require(
            DigestAnswer(to: challenge, with: Self.mufasa, method: "GET", target: "/dir/index.html", body: nil))
        let bytes = realm.map { UInt8($0.value) }
        #expect(answer.field.valueBytes.contains(Array("realm=\"".utf8) + bytes + Array("\", nonce=\"n".utf8) + [0xE9]))
        #expect(answer.field.value.contains("response=\"\(response)\""))
    }

    @Test func `quotes and backslashes are escaped, and each answer has its own nonce`() throws {
        func field(_ user: String = #"a"\b"#) throws -> String {
            let challenge = try #require(
                DigestChallenge.first(in: [#"Digest realm="a\"b\\", nonce="n", qop="auth""#], knowsBody: false))
            return try #require(
                DigestAnswer(
                    to: challenge,
                    with: Credential(user: user, password: "x"), method: "GET", target: "/", body: nil)
            ).field.value
        }
        #expect(try field().hasPrefix(#"Digest username="a\"\\b", realm="a\"b\\", nonce="n", uri="/", "#))
        #expect(try field() != field())
        // With the mark, the quotation mark is one character to `String`.
        #expect(try field("a\"\u{301}, b").hasPrefix(#"Digest username="a\"\#u{301}, b", realm="#))
    }
}
