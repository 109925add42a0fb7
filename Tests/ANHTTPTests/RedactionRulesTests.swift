// SPDX-License-Identifier: MIT

import ANHTTP
import FoundationEssentials
import HTTPTypes
import Testing

@Suite struct RedactionRulesTests {
    private let rules = Redaction.standard

    @Test(
        arguments: [
            "password", "PASSWORD", "new_password", "newPassword", "access_token", "accessToken", "Access-Token",
            "X-Auth-Token", "X-Amz-Security-Token", "api_key", "apiKey", "apikey", "X-Api-Key", "AWSAccessKeyId",
            "client_secret", "tokens", "user[password]", "JSESSIONID", "Authorization", "Set-Cookie", "sig",
            "X-Amz-Signature", "private.key", "refreshtoken", "accesstoken", "AUTHTOKEN", "sessiontokens",
            "clientsecret",
            "userpassword", "dbpasswd", "x-googapikey", "password1", "newPassword2", "token2", "X-Api-Key2",
            "api_key_2", "passwords2", "Ocp-Apim-Subscription-Key", "X-Functions-Key", "DD-APPLICATION-KEY",
            "X-Master-Key", "total_tokens",
        ])
    func `a name with a secret word is secret`(name: String) {
        #expect(rules.hides(name))
        #expect(!Redaction.none.hides(name))
    }

    @Test(
        arguments: [
            "name", "author", "authors", "shipping", "passenger", "compass", "tokenizer", "secretary", "signal", "key",
            "Idempotency-Key", "Sec-WebSocket-Key", "Content-Type", "monkey", "design", "inside", "", "-", "ä",
            "oauth2", "sha256", "1", "pinned1", "token_type",
        ])
    func `other names are not`(name: String) {
        #expect(!rules.hides(name))
    }

    @Test(
        arguments: [
            ("http://a.example/b", "http://a.example/b"), ("http://u:secret@a.example/", "http://…@a.example/"),
            ("http://secret@a.example:80", "http://…@a.example:80"),
            ("http://a.example/?x=secret", "http://a.example/?x=…"),
            ("http://a.example/?secret", "http://a.example/?…"),
            ("http://a.example/#secret", "http://a.example/"), ("/b?x=secret#secret", "/b?x=…"), ("", ""),
            ("http://a.example/b;jsessionid=secret/c;v=1?x=", "http://a.example/b;jsessionid=…/c;v=1?x=…"),
            ("http://a.example/#\u{301}secret", "http://a.example/"),
            ("http://u:secret@a.example/,http://u:secret@b.example/c", "http://…@a.example/,http://…@b.example/c"),
            ("http://a.example/@b", "http://a.example/@b"), ("//u:secret@a.example/", "//…@a.example/"),
            ("https:u:secret@a.example/b", "https:…@a.example/b"), ("HTTP:/u:secret@a.example/", "HTTP:…@a.example/"),
            ("https:a", "https:a"), ("/http:b@c", "/http:b@c"), ("mailto:a@b.example", "mailto:a@b.example"),
        ])
    func `URLs and references lose their secrets`(text: String, expected: String) {
        #expect(rules.url(text) == expected)
        #expect(Redaction.none.url(text) == text)
    }

    @Test func `a name of the program's is secret as it is, also with a number at its end`() {
        let rules = Redaction(names: ["oauth2"])
        #expect(rules.hides("oauth2"))
        #expect(!rules.hides("oauth"))
    }

    @Test(.timeLimit(.minutes(1))) func `the time for long texts grows with their length`() {
        let slashes = String(repeating: "/", count: 1_000_000)
        #expect(rules.url("/?" + slashes) == "/?…")
        #expect(Redaction.byName.url("/?" + slashes) == "/?" + slashes)
        #expect((slashes + "@" + slashes).withoutUserInformation == "//…@" + slashes)
        let text = String(repeating: "a", count: 100_000)
        let body = Data("\"\(text)\"\(String(repeating: ":", count: 100_000))".utf8)
        #expect(rules.body(body, contentType: "application/json") == body)
        for part in ["/* ", "/*/ ", "// ", "' ", "'\\',", "a ", "/"] {
            let body = Data("[\(String(repeating: part, count: 100_000))".utf8)
            #expect(rules.body(body, contentType: "application/json") == body)
        }
        let dashes = String(repeating: "-", count: 32_000)
        let parts = Data(String(repeating: "-", count: 1 << 16).utf8)
        #expect(rules.body(parts, contentType: "multipart/x; boundary=\"\(dashes)x\"") == Data("…".utf8))
        let head = "--b\r\nA: b\r\n" + String(repeating: " x\r\n", count: 200_000) + "\r\nc\r\n--b--"
        #expect(rules.body(Data(head.utf8), contentType: "multipart/x; boundary=b") == Data(head.utf8))
        #expect(
            rules.hides("e" + String(repeating: "\u{301}", count: 50_000) + String(repeating: "\u{316}", count: 50_000))
        )
    }

    @Test func `values of the query can be kept if their names are not secret`() {
        var rules = Redaction.standard
        rules.hidesQueryValues = false
        #expect(rules.url("/?a=1&access%5Ftoken=secret&b&to+do=2") == "/?a=1&access%5Ftoken=…&b&to+do=2")
        #expect(rules.url("/?key=secret&keys=1") == "/?key=…&keys=1")
    }

    @Test(
        arguments: [
            ("Authorization", "Bearer secret", "Bearer …"), ("authorization", "secret", "…"),
            ("Proxy-Authorization", "Basic c2VjcmV0", "Basic …"), ("Cookie", "a=secret; b=secret", "a=…; b=…"),
            ("Cookie", "secret", "…"), ("Set-Cookie", "a=secret; Path=/; Secure", "a=…; Path=/; Secure"),
            ("X-Api-Key", "secret", "…"), ("Location", "/b?code=secret", "/b?code=…"),
            ("Referer", "http://u:secret@a.example/", "http://…@a.example/"),
            ("Link", "<http://a.example/?page=secret>; rel=next", "<http://a.example/?page=…>; rel=next"),
            ("Link", "</b?page=secret>; rel=next,<c?page=secret>", "</b?page=…>; rel=next,<c?page=…>"),
            ("Link", "<?secret>; rel=next, </b#secret>", "<?…>; rel=next, </b>"),
            ("Link", "<b?secret>; rel=next, <b#secret>", "<b?…>; rel=next, <b>"),
            ("Link", "<b;jsessionid=secret>; rel=next", "<b;jsessionid=…>; rel=next"),
            ("Link", "<b;sid=secret/c?secret#secret>", "<b;sid=…/c?…>"), ("X-Text", "a <b", "a <b"),
            ("Refresh", "5; url=b;jsessionid=secret", "5; url=b;jsessionid=…"),
            ("Content-Type", "text/html;charset=utf-8;", "text/html;charset=utf-8;"),
            ("Refresh", "5; url=/b?code=secret", "5; url=/b?code=…"),
            ("Refresh", "5;url='b;sid=1?code=secret'", "5;url='b;sid=…?code=…'"),
            ("X-Original-URL", "/b;jsessionid=secret/c?secret", "/b;jsessionid=…/c?…"),
            ("Digest", "uri=\"/b?code=secret\", qop=auth", "uri=\"/b?code=…\", qop=auth"),
            ("Accept", "text/html;q=0.8, */*", "text/html;q=0.8, */*"), ("X-Text", "who? a=b / c", "who? a=b / c"),
            ("Accept", "text/html", "text/html"), ("Authorization", "", ""),
            ("Authorization", "apikey=secret, client=7", "…"), ("Authorization", "Bearer\tsecret secret", "…"),
            ("Authorization", "secret: secret", "…"), ("Authorization", "Bearer  secret", "Bearer …"),
            ("Authorization", " secret secret", "…"), ("Proxy-Authorization", "\"secret\" secret", "…"),
        ])
    func `header fields lose their secrets`(name: String, value: String, expected: String) {
        #expect(rules.value(value, of: name) == expected)
        #expect(Redaction.none.value(value, of: name) == value)
    }

    @Test(
        arguments: [
            (#"{"password": "secret", "name": "Ada"}"#, #"{"password": "…", "name": "Ada"}"#),
            (#"{"a":[{"accessToken":"sec\"ret"}]}"#, #"{"a":[{"accessToken":"…"}]}"#),
            (#"{"pass\u0077ord":"secret"}"#, #"{"pass\u0077ord":"…"}"#),
            (#"{"token" : 12345 , "b":1}"#, #"{"token" : 0 , "b":1}"#),
            (#"{"pin":-1.5e3,"auth":true,"otp":null,"b":1}"#, #"{"pin":0,"auth":true,"otp":null,"b":1}"#),
            (
                #"{"credentials":{"a":["secret","}",7,{"d":"secret"}],"b":{}},"c":2}"#,
                #"{"credentials":{"a":["…","…",0,{"d":"…"}],"b":{}},"c":2}"#
            ),
            (#"{"secret":["secret"],"c":"secret"}"#, #"{"secret":["…"],"c":"secret"}"#),
            (#"{"secret":[["secret"],"secret"],"c":"secret"}"#, #"{"secret":[["…"],"…"],"c":"secret"}"#),
            (#"{"secret":{"a":"secret"},"c":["d"]}"#, #"{"secret":{"a":"…"},"c":["d"]}"#),
            (#"{"token":secret,"b":1}"#, #"{"token":"…","b":1}"#), (#"{"token":tru"#, #"{"token":"…""#),
            (#"{"token":12secret}"#, #"{"token":"…"}"#), (#"{"token":,"b":"c"}"#, #"{"token":,"b":"c"}"#),
            (#"{"credentials":{"secret"}}"#, #"{"credentials":{"…"}}"#),
            (#"{"credentials":["secr"#, #"{"credentials":["…""#), (#"{"token":}["b"]"#, #"{"token":}["b"]"#),
            ("{\"token\":\"secret\"}\n{\"token\":\"secret\"}\n", "{\"token\":\"…\"}\n{\"token\":\"…\"}\n"),
            (#"{"a":1,"token":"secr"#, #"{"a":1,"token":"…""#), (#"{"a":1,"token":"#, #"{"a":1,"token":"#),
            (#"{"a":1,"token"#, #"{"a":1,"token"#), (#"["token",":"]"#, #"["token",":"]"#), ("{", "{"),
            (#"{"a":"\"#, #"{"a":"\"#),
            (
                #"{"sessions":{"4fd1":{"user_id":7},"c2Vj-cmV0":true},"d":{"4fd1":1}}"#,
                #"{"sessions":{"…1":{"user_id":0},"…2":true},"d":{"4fd1":1}}"#
            ),
            (
                #"{"tokens":{"b2":"y"},"passwords":{"a1":"x"}}"#,
                #"{"tokens":{"…1":"…"},"passwords":{"…1":"…"}}"#
            ),
            (#"{"tokens":[{"aaaaaaaaaaaaaaaaaaaaaaaaa":1,"":2}]}"#, #"{"tokens":[{"…1":0,"":0}]}"#),
            (#"{"token":"secret":"secret","b":"c"}"#, #"{"token":"…":"…","b":"c"}"#),
            (#"{"token":"secret":{"secret":1}"secret"},{"b":"c"}"#, #"{"token":"…":{"secret":0}"…"},{"b":"c"}"#),
            (#"{"token":/*c*/"secret","b":"c"}"#, #"{"token":"…","b":"c"}"#),
            (#"{"token"/*c*/:"secret","b":"c"}"#, #"{"token"/*c*/:"…","b":"c"}"#),
            (#"{"token":b"secret","b":"c"}"#, #"{"token":"…""…","b":"c"}"#),
            (#"{"token":"a" "secret"}{"b":"c"}"#, #"{"token":"…" "…"}{"b":"c"}"#),
            (
                #"{"next":"https://a.example/?access_token=secret&after=2#b","c":"?token=d"}"#,
                #"{"next":"https://a.example/?access_token=…&after=2#b","c":"?token=d"}"#
            ), (#"["http:\/\/a.example?token=secret"#, #"["http:\/\/a.example?token=…"#),
        ])
    func `members of JSON lose their secrets, also if it is cut off`(text: String, expected: String) {
        for type in ["application/json", "application/vnd.api+json; charset=utf-8", "text/plain", nil] {
            let body = rules.body(Data(text.utf8), contentType: type)
            #expect(String(decoding: body, as: UTF8.self) == expected)
        }
        #expect(Redaction.none.body(Data(text.utf8), contentType: nil) == Data(text.utf8))
    }

    @Test(arguments: [
        (#"{token:"secret",b:1}"#, #"{token:"…",b:1}"#),
        ("{'token':'secret','b':'c'}", "{'token':\"…\",'b':'c'}"),
        (#"{'t\x6Fken':'sec\'ret','b':'c'}"#, #"{'t\x6Fken':"…",'b':'c'}"#),
        (#"{t\u006Fken:'sec"ret',b:'"'}"#, #"{t\u006Fken:"…",b:'"'}"#),
        (#"{token/*it's*/:/*my*/'secret',b:'c'}"#, #"{token/*it's*/:"…",b:'c'}"#),
        (#"{token /* of: a, b */ : "secret", b: 'c'}"#, #"{token /* of: a, b */ : "…", b: 'c'}"#),
        ("{\"token\" // it's \"\n : \"secret\", b: 'c'}", "{\"token\" // it's \"\n : \"…\", b: 'c'}"),
        (#"{/* "token":"secret" */b:'c'}"#, #"{/* "token":"…" */b:'c'}"#),
        ("{// token:'secret'\rb:'c'}// pin:1", "{// token:\"…\"\rb:'c'}// pin:0"),
        ("{tokens:{id:7,4fd1:+0x1F,'a-b':-Infinity,'a':NaN,b:0xG}}", "{tokens:{id:0,\"…1\":0,\"…2\":0,'a':0,b:\"…\"}}"),
        // What does not end, and other texts in the place of a name.
        ("{'token':'secr", "{'token':\"…\""), ("{'token':'secr'", "{'token':\"…\""),
        (#"{a:'x, "token":"secret"}"#, #"{a:'x, "token":"…"}"#),
        (#"{a:1/* "token":"secret"}"#, #"{a:1/* "token":"…"}"#),
        (#"{'token':'secr, et"#, #"{'token':"…""#),
        (")]}'\n{\"token\":\"secret\",\"b\":\"it's\"}", ")]}'\n{\"token\":\"…\",\"b\":\"it's\"}"),
        (#"{"token" x:"secret"}"#, #"{"token" x:"…"}"#), ("{a:it's,b:it's,pin:1}", "{a:it's,b:it's,pin:0}"),
        // A message that quotes JSON.
        (#"[WARN] the body was '{"user":"a","token":"secret"}'"#, #"[WARN] the body was '{"user":"a","token":"…"}'"#),
        (#"[ERROR] body: '{"token":"secret"}'"#, #"[ERROR] body: '{"token":"…"}'"#),
        (#"{"note":rock 'n roll,"token":"secret","b":"it's"}"#, #"{"note":rock 'n roll,"token":"…","b":"it's"}"#),
        (
            "[ERROR] \"bob\"'s session expired, token: abc, it isn't",
            "[ERROR] \"bob\"'s session expired, token: \"…\", it isn't"
        ),
        ("[1,2] 5 'n x, token: abc, it's", "[1,2] 5 'n x, token: \"…\", it's"),
        ("{'format':'{token: it','b':1}", "{'format':'{token: \"…\"','b':1}"),
        // After a word, what looks like a string is none.
        ("{\"a\":b 'c'\n 'token':'secret'}", "{\"a\":b 'c'\n 'token':\"…\"}"),
        ("{\"a\":b \"c\"\n 'token':'secret'}", "{\"a\":b \"c\"\n 'token':\"…\"}"),
        ("{'user':'a'\n 'token':'secret'}", "{'user':'a'\n 'token':\"…\"}"),
        ("{\"user\":\"a\" 'token':'secret','b':1}", "{\"user\":\"a\" 'token':\"…\",'b':1}"),
        ("{'a':{'b':1}\n 'token':'secret'}", "{'a':{'b':1}\n 'token':\"…\"}"),
        ("{token:'a' + 'secret,secret',b:1}", "{token:\"…\" 0 \"…\",b:1}"),
        ("{'token':'se''cr,et','b':1}", "{'token':\"…\"\"…\",'b':1}"),
        ("{token:{a:1} 'se,cret','b':1}", "{token:{a:0} \"…\",'b':1}"),
    ])
    func `members of JSON5 lose their secrets`(text: String, expected: String) {
        for type in ["application/json5", "text/plain"] {
            let body = rules.body(Data(text.utf8), contentType: type)
            #expect(String(decoding: body, as: UTF8.self) == expected)
        }
    }

    @Test(arguments: [1, 2, 4], [false, true])
    func `JSON in a Unicode encoding loses its secrets`(width: Int, isLittleEndian: Bool) {
        func encoded(_ text: String) -> Data {
            let units = width == 2 ? text.utf16.map(UInt32.init) : text.unicodeScalars.map(\.value)
            guard width > 1 else { return Data(text.utf8) }
            return Data(
                units.flatMap { unit in
                    let bytes = (0..<width).map { UInt8(unit >> (8 * $0) & 0xFF) }
                    return isLittleEndian ? bytes : bytes.reversed()
                })
        }
        for mark in ["", "\u{FEFF}"] {
            for type in ["application/json", "text/plain"] {
                let body = encoded(mark + #"{"é😀":"a","token":"secret","b":"c"}"#)
                let expected = encoded(mark + #"{"é😀":"a","token":"…","b":"c"}"#)
                #expect(rules.body(body, contentType: type) == expected)
                // One that is cut off within a character.
                let cut = rules.body(body.dropLast(3), contentType: type)
                #expect(cut.starts(with: encoded(mark + #"{"é😀":"a","token":"…","#)))
            }
            let text = encoded(mark + #"no {"token":"json"}"#)
            #expect(rules.body(text, contentType: "text/plain") == text)
        }
    }

    @Test(arguments: [
        ("a=1&password=secret&b", "a=1&password=…&b"), ("user%5Bpassword%5D=secret", "user%5Bpassword%5D=…"),
        ("pass%77ord=secret", "pass%77ord=…"), ("=1", "=1"), ("", ""),
    ])
    func `forms lose their secrets`(text: String, expected: String) {
        let body = rules.body(Data(text.utf8), contentType: "application/x-www-form-urlencoded; charset=utf-8")
        #expect(String(decoding: body, as: UTF8.self) == expected)
    }

    @Test func `multipart forms lose their secrets`() {
        func form(_ password: String) -> Data {
            Data("--b\r\nContent-Disposition: form-data; name=\"password\"\r\n\r\n\(password)\r\n".utf8)
                + Data("--b\r\nContent-Disposition: form-data; name=\"f\"; filename=\"token\"\r\n\r\n".utf8)
                + Data([0xFF, 0x00]) + Data("\r\n--b--\r\n".utf8)
        }
        #expect(rules.body(form("secret"), contentType: "multipart/form-data; boundary=\"b\"") == form("…"))
    }

    @Test func `parts within parts are hidden at a depth that nobody uses`() {
        var body = Data("{\"password\":\"secret\"}".utf8)
        for level in (0..<2000).reversed() {
            let type = level == 1999 ? "application/json" : "multipart/mixed; boundary=b\(level + 1)"
            body = Data("--b\(level)\r\nContent-Type: \(type)\r\n\r\n".utf8) + body + Data("\r\n--b\(level)--\r\n".utf8)
        }
        let text = String(decoding: rules.body(body, contentType: "multipart/mixed; boundary=b0"), as: UTF8.self)
        #expect(text.contains("…") && !text.contains("secret"))
    }

    @Test func `parts of a form are looked into by their types`() {
        func form(_ password: String) -> Data {
            let head = "Content-Disposition: form-data; name=meta\r\nContent-Type: application/json"
            return Data("--b\r\n\(head)\r\n\r\n{\"password\":\"\(password)\"}\r\n--b--\r\n".utf8)
        }
        #expect(rules.body(form("secret"), contentType: "multipart/form-data; boundary=b") == form("…"))
    }

    @Test(
        arguments: [
            "Content-Disposition: form-data; name=password\r\n\r\n",
            "content-disposition: form-data; NAME=\"password\"\r\n\r\n",
            "Content-Type: text/plain\r\nContent-Disposition: form-data;\tname=\"password\"\r\n\r\n",
            "Content-Disposition: form-data; name=\"password\"\n\n",
            "Content-Disposition: form-data;\r\n name=\"password\"\r\n\r\n",
            "Content-Disposition:\r\n\tform-data;\r\n\tname=password\r\n\r\n",
        ])
    func `fields of forms are recognized however they are written`(head: String) {
        let body = Data("--b\r\n\(head)secret\r\n--b--\r\n".utf8)
        #expect(
            rules.body(body, contentType: "multipart/form-data; boundary=b")
                == Data("--b\r\n\(head)…\r\n--b--\r\n".utf8))
    }

    @Test(arguments: ["my--bsecret", "my--b--secret", "--bsecret", "a\r\n--bsecret"])
    func `a delimiter in a secret is a part of it`(secret: String) {
        func form(_ password: String) -> Data {
            Data("--b\r\nContent-Disposition: form-data; name=password\r\n\r\n\(password)\r\n--b--\r\n".utf8)
        }
        #expect(rules.body(form(secret), contentType: "multipart/form-data; boundary=b") == form("…"))
    }

    @Test func `a part without a head is hidden`() {
        let text = String(
            decoding: rules.body(
                Data("--b\r\nsecret\r\n--b--\r\nend".utf8), contentType: "multipart/mixed; boundary=b"),
            as: UTF8.self)
        #expect(text == "--b\r\n…\r\n--b--\r\nend")
    }

    @Test func `a form that is not UTF-8 loses its secrets, and keeps its bytes`() {
        let (name, rest) = (Data("name=J\u{F6}rg".unicodeScalars.map { UInt8($0.value) }), Data("&password=".utf8))
        let body = name + rest + Data("secret&a=1".utf8)
        #expect(
            rules.body(body, contentType: "application/x-www-form-urlencoded")
                == name + rest + Data("…&a=1".utf8))
    }

    @Test(
        arguments: [
            ("\u{1E}{\"token\":\"secret\"}\n", "application/json-seq", "\u{1E}{\"token\":\"…\"}\n"),
            ("1\n{\"token\":\"secret\"}\n", "application/jsonl", "1\n{\"token\":\"…\"}\n"),
            ("\u{1E}{\"token\":\"secret\"}\n", "text/plain", "\u{1E}{\"token\":\"…\"}\n"),
            ("password=\u{301}secret&a=1", "application/x-www-form-urlencoded", "password=…&a=1"),
        ])
    func `sequences and forms with combining marks lose their secrets`(text: String, type: String, expected: String) {
        #expect(rules.body(Data(text.utf8), contentType: type) == Data(expected.utf8))
    }

    @Test(arguments: [
        ("plain secret", "text/plain", "plain secret"), ("<a>secret</a>", "application/xml", "<a>secret</a>"),
    ])
    func `other bodies are unchanged`(text: String, type: String, expected: String) {
        #expect(rules.body(Data(text.utf8), contentType: type) == Data(expected.utf8))
    }

    @Test func `errors lose the secrets of URLs`() {
        #expect(rules.text("see \u{600}//u:secret@\u{301}a.example now") == "see \u{600}//…@\u{301}a.example now")
        #expect(
            rules.text("cannot connect to http://u:secret@a.example/?x=secret because")
                == "cannot connect to http://…@a.example/?x=… because")
    }

    @Test(
        arguments: [
            ([], .none, .kept(Data(#"{"token":"…"}"#.utf8)), nil),
            (["gzip"], true, .decoded(Data(#"{"pin":"…"}"#.utf8), isComplete: true), nil),
            (
                ["gzip"], false, .decoded(Data(#"{"pin":"…"}"#.utf8), isComplete: false),
                "the first 13 bytes, after decompression"
            ),
            (["br"], nil, .hidden(["br"]), "a body in the coding br, which is not recorded"),
            (["br", "gzip"], true, .hidden(["br", "gzip"]), "a body in the coding br, gzip, which is not recorded"),
        ] as [([String], Bool?, RedactedBody, String?)])
    func `a body in a coding is decoded, or hidden`(
        codings: [String], decoding: Bool?, expected: RedactedBody, comment: String?
    ) {
        let body = Data(#"{"token":"secret"}"#.utf8)
        func shown(by rules: Redaction) -> RedactedBody {
            rules.body(body, contentType: "application/json", codings: codings) { _, coding in
                coding == "gzip" ? decoding.map { (Array(#"{"pin":"secret"}"#.utf8), $0) } : nil
            }
        }
        #expect(shown(by: rules) == expected)
        #expect(shown(by: rules).comment(recording: body.count, of: Int64(body.count)) == comment)
        #expect(shown(by: .none) == .kept(body))
    }
}
