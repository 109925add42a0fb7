// SPDX-License-Identifier: MIT

import ANSerialization
import Testing

@Suite struct JSONValueDescriptionTests {
    @Test(
        arguments: [
            (["b": [1, 2.5, .null], "a": "x\ny"], #"{"a":"x\ny","b":[1,2.5,null]}"#),
            ("text", #""text""#), (true, "true"), ([:], "{}"), (.double(.infinity), "null"),
        ] as [(JSONValue, String)])
    func `a value is described by its JSON text`(value: JSONValue, text: String) {
        #expect("\(value)" == text)
    }
}
