// SPDX-License-Identifier: MIT

import ANSerialization
import Testing

@Suite struct MediaTypePatternTests {
    @Test(arguments: [
        ("application/json", "application/json", true), ("Application/JSON", "application/json", true),
        ("application/json", "application/jsonl", false), ("text/*", "text/html", true), ("text/*", "text", false),
        ("text/*", "textual/html", false), ("*/*", "x/y", true), ("+json", "application/problem+json", true),
        ("+json", "application/json", false), ("+JSON", "a/b+Json", true), ("+json", "a/b+json2", false),
    ])
    func `patterns match exactly, by type or by suffix`(pattern: String, type: String, matches: Bool) {
        #expect(ResponseValidation.matches(pattern, type) == matches)
    }
}
