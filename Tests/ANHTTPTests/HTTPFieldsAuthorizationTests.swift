// SPDX-License-Identifier: MIT

import ANHTTP
import HTTPTypes
import Testing

@Suite struct HTTPFieldsAuthorizationTests {
    @Test(arguments: [
        ("user", "password", "Basic dXNlcjpwYXNzd29yZA=="), ("", "", "Basic Og=="),
        ("Aladdin", "open:sesame", "Basic QWxhZGRpbjpvcGVuOnNlc2FtZQ=="), ("test", "123£", "Basic dGVzdDoxMjPCow=="),
        (String(repeating: "u", count: 60), "p", "Basic " + String(repeating: "dXV1", count: 20) + "OnA="),
    ])
    func `a user name and password become one line of Base64`(user: String, password: String, value: String) throws {
        var headers: HTTPFields = [.authorization: "old", .accept: "a/b"]
        try headers.setBasicAuthorization(Credential(user: user, password: password))
        #expect(headers[values: .authorization] == [value])
        #expect(headers[.accept] == "a/b")
        headers[.authorization] = nil
        #expect(headers == [.accept: "a/b"])
    }

    @Test(arguments: [("a:b", "c"), ("a\n", "c"), ("a", "c\0"), ("a\u{7F}", "c")])
    func `user names with colons and control characters are rejected`(user: String, password: String) {
        var headers: HTTPFields = [.authorization: "old"]
        #expect(throws: TransportError.self) {
            try headers.setBasicAuthorization(Credential(user: user, password: password))
        }
        #expect(headers[.authorization] == "old")
    }

    @Test func `a bearer token is sent unchanged`() throws {
        var headers: HTTPFields = [.authorization: "old"]
        try headers.setBearerAuthorization("mF_9.B5f-4.1JqM==")
        #expect(headers[values: .authorization] == ["Bearer mF_9.B5f-4.1JqM=="])
    }

    @Test(arguments: ["", "a b", "a\r\nX: y", "ä"])
    func `a malformed bearer token is rejected`(token: String) {
        var headers = HTTPFields()
        #expect(throws: TransportError.self) { try headers.setBearerAuthorization(token) }
        #expect(headers.isEmpty)
    }
}
