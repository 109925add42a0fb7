// SPDX-License-Identifier: MIT

import ANSerialization
import Testing

@Suite struct JSONValueTests {
    private let document = JSONValue.object([
        "user": .object(["names": .array([.string("Ada")])]), "n": .integer(5), "u": .unsigned(.max), "d": .double(2),
        "f": .double(2.5), "b": .bool(true), "z": .null,
    ])

    @Test func `values are accessed by name and index`() {
        #expect(document["user"]?["names"]?[0]?.string == "Ada")
        #expect(document["user"]?["names"]?[1] == nil)
        #expect(document["user"]?["names"]?[-1] == nil)
        #expect(document["missing"]?["names"] == nil)
        #expect(document[0] == nil)
        #expect(document["n"]?["x"] == nil)
    }

    @Test func `an accessor for another type is nil`() {
        #expect(document["n"]?.int == 5)
        #expect(document["u"]?.int == nil)
        #expect(document["u"]?.double == 0x1p64)
        #expect(document["d"]?.int == 2)
        #expect(document["f"]?.int == nil)
        #expect(document["n"]?.double == 5)
        #expect(document["b"]?.bool == true)
        #expect(document["b"]?.int == nil)
        #expect(document["n"]?.string == nil)
        #expect(document["z"]?.isNull == true)
        #expect(document["n"]?.array == nil)
        #expect(JSONValue.double(.infinity).int == nil)
    }
}
