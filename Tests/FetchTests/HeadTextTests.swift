// SPDX-License-Identifier: MIT

import AsyncNetworking
import Fetch
import FoundationEssentials
import Testing

@Suite struct HeadTextTests {
    @Test func `a request is printed without its credentials`() throws {
        let url = try #require(URL(string: "http://u:p@h:8080/a%20b?c=d&token=s"))
        let request = Request(
            method: .post, url: url, headers: [.authorization: "Basic eA==", .cookie: "a=s", .accept: "x/y"])
        #expect(
            HeadText.of(request) == "POST /a%20b?c=d&token=…\nHost: h:8080\nAuthorization: Basic …\nCookie: a=…\n"
                + "Accept: x/y\n\n")
    }

    @Test func `a response is printed as it was received`() throws {
        let url = try #require(URL(string: "http://h/"))
        let head = ResponseHead(
            status: .init(code: 299, reasonPhrase: "Sure"), headers: [.setCookie: "a=1", .setCookie: "b=2"], url: url)
        #expect(HeadText.of(head) == "HTTP/1.1 299 Sure\nSet-Cookie: a=1\nSet-Cookie: b=2\n\n")
    }

    @Test func `characters that control a terminal are printed as spaces`() throws {
        let url = try #require(URL(string: "http://h/"))
        let head = ResponseHead(
            status: .init(code: 200), headers: [.server: "a\u{9B}2J\u{202E}b", .eTag: "\u{2066}é"], url: url)
        #expect(HeadText.of(head) == "HTTP/1.1 200\nServer: a 2J b\nETag:  é\n\n")
    }
}
