// SPDX-License-Identifier: MIT

import ANHTTP
import ANSerialization
import FoundationEssentials
import Testing

@Suite struct SerializationErrorTests {
    @Test func `descriptions of URLs contain no secrets`() {
        let url = "http://user:secret@h:x/p?token=secret#secret"
        expectFailure {
            try URLResolver(base: nil).resolve(url)
        } where: { error in
            "\(error)" == "“…@h:x/p” is not a URL: it does not follow RFC 3986."
        }
    }

    @Test(arguments: ["https://user:pa#ss@host/", "https://user:pa?ss@host/", "https://user:pass@\u{301}host/ "])
    func `descriptions of malformed URLs contain no part of a password`(url: String) {
        let description = SerializationError.url(.malformed(url, reason: "it is malformed")).description
        #expect(!description.contains("pa"), "\(description)")
        #expect(!description.contains("user"))
    }

    @Test func `descriptions say what to check`() {
        expectFailure {
            try URLResolver(base: nil).resolve("user:1")
        } where: { error in
            "\(error)" == "The scheme “user” of “user:1” is neither http nor https. If this is a relative path with a "
                + "colon in its first segment, write “./” in front."
        }
        expectFailure {
            try URLResolver(base: nil).resolve("users/7")
        } where: { error in
            "\(error)" == "“users/7” is relative, but there is no base URL; give one, or an absolute http or https URL."
        }
        expectFailure {
            try URLEncodedFormEncoder().encode(["a": Parameters.double(.nan)])
        } where: { error in
            "\(error)" == "The parameter “a” is NaN or infinite, which cannot be sent; check how it was computed."
        }
    }

    // MARK: The URL of a response

    /// Errors of each kind that a response can cause.
    private static func responseErrors() async throws -> [SerializationError] {
        let head = makeHead(type: "text/plain")
        func thrown(_ work: () async throws -> Void) async throws -> SerializationError {
            try #require(await #expect(throws: SerializationError.self) { try await work() })
        }
        let body = Data("x".utf8)
        let json = try await thrown { _ = try JSONResponseSerializer().serialize(head, body) }
        return [
            json, .rejected(try #require(ResponseValidation.json.rejection(of: head, body))),
            .emptyBody(status: 204, wanted: "User"), .text(.unknownCharset("utf-7")),
            .text(.invalidBytes(charset: "utf-8")),
            try await thrown { _ = try DecodableResponseSerializer(Int.self).serialize(head, Data("true".utf8)) },
            try await thrown { _ = try PropertyListResponseSerializer().serialize(head, body) },
            .xml(.init(.xml(.aborted), excerpt: "x")),
            try await thrown { for try await _ in ResponseBody(body).jsonLines(of: Int.self) {} },
            try await thrown { for try await _ in ResponseBody(body).jsonLines(of: Int.self, maximumSize: 0) {} },
            try await thrown { for try await _ in ResponseBody(body).jsonSequence(of: Int.self) {} },
            try await thrown { for try await _ in ResponseBody(Data("\u{1E}1".utf8)).jsonSequence(of: Int.self) {} },
            .parts(.notMultipart(contentType: "a/b")), .parts(.responseBoundary(nil)), .parts(.responseBoundary("é")),
            .parts(.unexpectedEnd), .parts(.partHeader("x")), .parts(.outOfTurn),
            .parts(.tooLarge(.header, limit: 1)), .parts(.tooLarge(.fields, limit: 1)),
            .parts(.tooLarge(.parts, limit: 1)),
            .parts(.tooLarge(.part, limit: 1)), .parts(.tooLarge(.preamble, limit: 1)),
            .compound([json, SerializationError.emptyBody(status: 200, wanted: "User")]),
        ]
    }

    /// The number of the kind among those that a response can cause, starting at 0; `nil` for those that only a request
    /// can cause.
    private static func kind(_ error: SerializationError) -> Int? {
        switch error {
        case .url, .parameters, .multipart: nil
        case .rejected: 0
        case .emptyBody: 1
        case .text: 2
        case .json: 3
        case .propertyList: 4
        case .xml: 5
        case .decoding: 6
        case .jsonStream: 7
        case .parts: 8
        case .compound: 9
        }
    }

    @Test func `each error that a response can cause names the URL of the response`() async throws {
        let errors = try await Self.responseErrors()
        #expect(Set(errors.compactMap(Self.kind)) == Set(0...9))
        for error in errors {
            let url = makeHead().url.redactedDescription
            let description = error.naming(url).description
            let count = if case .compound(let errors) = error { errors.count } else { 1 }
            #expect(description.ranges(of: url).count == count, "\(description)")
            #expect(description.contains(" of \(url)") && !description.contains("secret"), "\(description)")
        }
    }

    @Test func `hostile text is abbreviated and made printable`() {
        let url = "ftp://h/\u{202E}" + String(repeating: "x", count: 10_000)
        expectFailure {
            try URLResolver(base: nil).resolve(url)
        } where: { error in
            let text = "\(error)"
            return text.utf8.count < 400 && !text.unicodeScalars.contains("\u{202E}")
        }
    }
}
