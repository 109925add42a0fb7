// SPDX-License-Identifier: MIT

import ANSerialization
import FoundationEssentials
import Testing

@Suite struct ParametersTests {
    @Test func `literals keep their order and types`() {
        let parameters: Parameters = ["b": 1, "a": ["x", 2.5, true, nil], "b": "again"]
        #expect(
            parameters
                == .dictionary([
                    .init("b", .integer(1)), .init("a", .array([.string("x"), .double(2.5), .bool(true), .null])),
                    .init("b", .string("again")),
                ]))
    }

    @Test func `a Swift dictionary is sorted by name`() {
        #expect(Parameters(["c": 1, "a": 2, "b": 3]) == ["a": 2, "b": 3, "c": 1])
    }

    @Test func `entries are read, replaced, added and removed by name`() {
        var parameters: Parameters = ["a": 1, "b": 2, "a": 3]
        #expect(parameters["a"] == 1)
        #expect(parameters["z"] == nil)
        parameters["b"] = "two"
        parameters["c"] = .null
        #expect(parameters == ["a": 1, "b": "two", "a": 3, "c": nil])
        parameters["a"] = nil
        #expect(parameters == ["b": "two", "c": nil])
        var text: Parameters = "text"
        text["a"] = 1
        #expect(text == "text")
    }
}
