// SPDX-License-Identifier: MIT

import ANCurl
import Testing

@Suite struct RecentValuesTests {
    @Test func `a value that is used remains, whatever else is added`() {
        var values = RecentValues<Int, Int>(size: 4)
        values[0] = 7
        var found: [Int?] = []
        for key in 1...1000 {
            values[key] = key
            if key % 3 == 0 { found.append(values[0]) }
            if values.count > 8 { Issue.record("There are \(values.count) values.") }
        }
        #expect(found == Array(repeating: 7, count: 333))
    }

    @Test func `the values that were used last are kept`() {
        var values = RecentValues<Int, Int>(size: 4)
        for key in 0..<100 { values[key] = key }
        #expect((96..<100).map { values[$0] } == [96, 97, 98, 99])
        #expect((0..<92).allSatisfy { values[$0] == nil })
    }

    @Test func `a value is replaced or removed wherever it is`() {
        var values = RecentValues<String, Int>(size: 1)
        values["a"] = 1
        values["b"] = 2
        values["a"] = 3
        #expect(values["a"] == 3)
        #expect(values.count == 2)
        values["a"] = nil
        values["b"] = nil
        #expect(values.count == 0)
    }
}
