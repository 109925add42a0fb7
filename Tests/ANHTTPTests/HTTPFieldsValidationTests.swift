// SPDX-License-Identifier: MIT

import ANHTTP
import HTTPTypes
import Testing

@Suite struct HTTPFieldsValidationTests {
    @Test func `valid fields keep their order, case and repetitions`() throws {
        let fields = try HTTPFields(validating: [
            ("X-B", "2"), ("x-a", "1"), ("X-B", "3"), ("Empty", ""), ("Text", "ä \t €"), ("!#$%&'*+-.^_`|~09", "x"),
        ])
        #expect(fields.map(\.name.rawName) == ["X-B", "x-a", "X-B", "Empty", "Text", "!#$%&'*+-.^_`|~09"])
        #expect(fields.map(\.value) == ["2", "1", "3", "", "ä \t €", "x"])
    }

    @Test(arguments: [
        "", " ", "a b", "a:", ":a", ":status", "a\r\nb", "a\n", "a\0", "ä", "a\t", "(a)", "a/b", "\"a\"", "a,b", "a;b",
        "a=b", "a@b", "[a]", "{a}", "a\\b", "a\u{7F}", "\u{1F600}",
    ])
    func `a name that is not a token is rejected`(name: String) {
        let error = #expect(throws: TransportError.self) { try HTTPFields(validating: [("ok", "1"), (name, "x")]) }
        #expect(error?.reason == .invalidRequest(.headerName(name)))
    }

    @Test(arguments: [
        "a\r\nInjected: b", "a\nb", "a\rb", "\n", "\0", "a\0b", "a\u{01}b", "a\u{0B}b", "a\u{7F}", "a\u{1B}[31m",
    ])
    func `a value with a control character is rejected`(value: String) {
        let error = #expect(throws: TransportError.self) { try HTTPFields(validating: [("X-Name", value)]) }
        #expect(error?.reason == .invalidRequest(.headerValue(name: "X-Name")))
    }

    @Test func `first returns the first field with a name, ignoring case`() throws {
        let fields = try HTTPFields(validating: [("X-A", "1"), ("x-b", "2"), ("X-B", "3")])
        let name = try #require(HTTPField.Name("X-b"))
        #expect(fields.first(name) == "2")
        #expect(fields.first(.accept) == nil)
    }

    @Test func `more fields than a message may have are an error`() {
        #expect(throws: TransportError.self) {
            try HTTPFields(validating: Array(repeating: ("a", "b"), count: 70_000))
        }
    }
}
