// SPDX-License-Identifier: MIT

import ANHTTP
import FoundationEssentials
import HTTPTypes
import Testing

@Suite struct ResponseHeadTests {
    @Test(
        arguments: [
            ("text/html", "text/html"),
            ("Text/HTML", "text/html"),
            ("application/json; charset=utf-8", "application/json"),
            ("application/json;charset=utf-8", "application/json"),
            ("  application/json \t ; charset=utf-8", "application/json"),
            ("application/problem+json", "application/problem+json"),
            ("multipart/mixed; boundary=\"a;b\"", "multipart/mixed"),
            ("text/html;", "text/html"),
            ("image", "image"),
            (";", nil),
            ("; charset=utf-8", nil),
            ("", nil),
            ("   ", nil),
        ] as [(String, String?)])
    func `the media type is in lower case and without parameters`(value: String, type: String?) throws {
        let head = try ResponseHead(status: .ok, headers: [.contentType: value], url: .example("http://a/"))
        #expect(head.mediaType == type)
    }

    @Test func `without Content-Type there is no media type`() throws {
        #expect(try ResponseHead(status: .ok, url: .example("http://a/")).mediaType == nil)
    }

    @Test func `the first of two Content-Type fields is used`() throws {
        var headers: HTTPFields = [:]
        headers.append(HTTPField(name: .contentType, value: "text/plain"))
        headers.append(HTTPField(name: .contentType, value: "text/html"))
        #expect(try ResponseHead(status: .ok, headers: headers, url: .example("http://a/")).mediaType == "text/plain")
    }

    @Test(arguments: [
        (HTTPVersion.http1_0, "HTTP/1.0"), (.http1_1, "HTTP/1.1"), (.http2, "HTTP/2"), (.http3, "HTTP/3"),
    ])
    func `the name of a version is that of a status line`(version: HTTPVersion, name: String) {
        #expect(version.description == name)
        #expect("\(version)" == name)
    }
}

extension URL {
    /// Returns the URL of a text.
    static func example(_ text: String) throws -> URL {
        try #require(URL(string: text))
    }
}
