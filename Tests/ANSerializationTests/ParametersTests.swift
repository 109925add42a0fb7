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

    private enum Color: String, Encodable, ParameterValue { case red }

    private struct Opaque {}

    @Test func `a literal contains variables of every type`() throws {
        let (int, tiny, huge): (Int, Int8, UInt64) = (-1, 2, .max)
        let (double, float) = (0.5, Float(0.1))
        let (text, part, isOn) = ("x", "xyz".suffix(2), true)
        let (date, data) = (Date(timeIntervalSince1970: 0), Data([1]))
        let (none, some): (Int?, String?) = (nil, "y")
        let url = try #require(URL(string: "http://h/"))
        let (list, table, group) = ([1, 2], ["b": 2, "a": 1], Set(["only"]))
        let (options, anything): ([Int?], [String: Any]) = ([1, nil], ["n": 1, "s": "x", "none": none as Any])
        let parameters: Parameters = [
            "int": int, "tiny": tiny, "huge": huge, "double": double, "float": float, "text": text, "part": part,
            "isOn": isOn, "date": date, "data": data, "none": none, "some": some, "url": url, "list": list,
            "table": table, "group": group, "options": options, "anything": anything, "color": Color.red,
            "json": JSONValue.array([1, .null]), "nested": ["page": int, "name": text], "decimal": Decimal(1.5),
        ]
        #expect(
            parameters
                == .dictionary([
                    .init("int", .integer(-1)), .init("tiny", .integer(2)), .init("huge", .unsigned(.max)),
                    .init("double", .double(0.5)), .init("float", .double(0.1)), .init("text", .string("x")),
                    .init("part", .string("yz")), .init("isOn", .bool(true)), .init("date", .date(date)),
                    .init("data", .data(data)), .init("none", .absent), .init("some", .string("y")),
                    .init("url", .string("http://h/")), .init("list", .array([.integer(1), .integer(2)])),
                    .init("table", .dictionary([.init("a", .integer(1)), .init("b", .integer(2))])),
                    .init("group", .set([.string("only")])), .init("options", .array([.integer(1), .null])),
                    .init(
                        "anything",
                        .dictionary([.init("n", .integer(1)), .init("none", .absent), .init("s", .string("x"))])),
                    .init("color", .string("red")), .init("json", .array([.integer(1), .null])),
                    .init("nested", .dictionary([.init("name", .string("x")), .init("page", .integer(-1))])),
                    .init("decimal", .double(1.5)),
                ]))
    }

    @Test func `a literal within a literal keeps its order as parameters only`() {
        let parameters: Parameters = ["a": ["y": 1, "x": 2], "b": ["y": 1, "x": 2] as Parameters]
        #expect(parameters["a"] == .dictionary([.init("x", .integer(2)), .init("y", .integer(1))]))
        #expect(parameters["b"] == .dictionary([.init("y", .integer(1)), .init("x", .integer(2))]))
    }

    @Test func `a value of an unknown type fails when it is encoded, with its path`() throws {
        let list: [Any] = [1, Opaque()]
        let parameters: Parameters = ["a": list]
        for serializer in [.http, .json, .propertyList] as [any RequestSerializer] {
            expectFailure {
                try serializer.encode(makeRequest("POST"), parameters: parameters)
            } where: { error in
                guard case .parameters(let failure) = error else { return false }
                return failure.path?.hasPrefix("a[") == true && failure.description.contains("Opaque is not Encodable")
            }
        }
    }

    @Test func `a list that is nested too deeply fails when it is encoded`() {
        var list: [Any] = []
        for _ in 0..<100_000 { list = [list] }
        expectFailure {
            try JSONRequestSerializer().encode(makeRequest("POST"), parameters: Parameters(list))
        } where: { error in
            if case .parameters(.tooDeep(limit: 512)) = error { true } else { false }
        }
        // Released from outside inwards, because a recursive release would overflow the stack.
        while let inner = list.first as? [Any] { list = inner }
    }

    @Test func `entries are read, replaced, added and removed by name`() {
        var parameters: Parameters = ["a": 1, "b": 2, "a": 3]
        #expect(parameters["a"] == 1)
        #expect(parameters["z"] == nil)
        parameters["b"] = "two"
        parameters["c"] = .null
        #expect(parameters == ["a": 1, "b": "two", "a": 3, "c": Parameters.null])
        parameters["a"] = nil
        #expect(parameters == ["b": "two", "c": Parameters.null])
        var text: Parameters = "text"
        text["a"] = 1
        #expect(text == "text")
    }
}
