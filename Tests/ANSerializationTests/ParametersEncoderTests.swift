// SPDX-License-Identifier: MIT

import ANSerialization
import FoundationEssentials
import Testing

@Suite struct ParametersEncoderTests {
    private struct Repeating: Encodable {
        enum Key: String, CodingKey { case a, b, c }

        func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: Key.self)
            try container.encode(1, forKey: .a)
            var first = container.nestedContainer(keyedBy: Key.self, forKey: .b)
            try first.encode(1, forKey: .a)
            var list = container.nestedUnkeyedContainer(forKey: .c)
            try list.encode(1)
            var second = container.nestedContainer(keyedBy: Key.self, forKey: .b)
            try second.encode(2, forKey: .b)
            try second.encode(3, forKey: .a)
            var again = container.nestedUnkeyedContainer(forKey: .c)
            try again.encode(again.count)
            try container.encode("x", forKey: .a)
        }
    }

    private class Base: Encodable {
        var id = 1
    }

    private final class Derived: Base {
        var other = 2

        private enum Key: String, CodingKey { case id, other }

        override func encode(to encoder: any Encoder) throws {
            try super.encode(to: encoder)
            var container = encoder.container(keyedBy: Key.self)
            try container.encode(other, forKey: .other)
            try container.encode(3, forKey: .id)
        }
    }

    private struct Many: Encodable {
        let count: Int

        func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: Name.self)
            for round in 1...2 {
                for index in 0..<count { try container.encode(round * index, forKey: Name(stringValue: "n\(index)")) }
            }
        }

        private struct Name: CodingKey {
            let stringValue: String
            var intValue: Int? { nil }

            init(stringValue: String) { self.stringValue = stringValue }
            init?(intValue: Int) { nil }
        }
    }

    @Test(arguments: [1, 15, 16, 17, 18, 100])
    func `the last value with a key counts among any number of keys`(count: Int) throws {
        let expected = (0..<count).map { Parameters.Entry("n\($0)", .integer(Int64(2 * $0))) }
        #expect(try Parameters(encoding: Many(count: count)) == .dictionary(expected))
    }

    @Test func `nested containers with one key are merged, and the last value with a key counts`() throws {
        let parameters = try Parameters(encoding: Repeating())
        #expect(parameters == ["a": "x", "b": ["a": 3, "b": 2] as Parameters, "c": [1, 1]])
        #expect(try Parameters(encoding: Derived()) == ["id": 3, "other": 2])
        #expect(try URLEncodedFormEncoder().encode(Parameters(encoding: Derived())) == "id=3&other=2")
        let list = PropertyListRequestSerializer()
        #expect(throws: Never.self) { try list.serialize(makeRequest("POST"), parameters: parameters) }
    }

    private struct User: Encodable {
        var name = "Ada"
        var id: UInt64 = .max
        var age: Int8 = -36
        var ratio: Float = 0.1
        var active = true
        var manager: String?
        var born = Date(timeIntervalSince1970: 0)
        var key = Data([0, 255])
        var home: URL?
        var tags = ["x", "y"]
        var inner = Inner()
    }

    private struct Inner: Encodable {
        var scores = [[1, 2], []]
        var price: Decimal = 12.5
    }

    private enum Color: String, Encodable { case red }

    @Test func `an encodable value is encoded in the order of its properties`() throws {
        let user = User(home: URL(string: "http://h/"))
        let expected: Parameters = [
            "name": "Ada", "id": UInt64.max, "age": -36, "ratio": 0.1, "active": true, "manager": nil,
            "born": Date(timeIntervalSince1970: 0), "key": Data([0, 255]), "home": "http://h/", "tags": ["x", "y"],
            "inner": ["scores": [[1, 2], []], "price": 12.5] as Parameters,
        ]
        #expect(try Parameters(encoding: user) == expected)
    }

    /// Optional properties of every type with a function of its own in the protocol, and of other types.
    private struct Options: Encodable {
        var bool: Bool?
        var string: String?
        var double: Double?
        var float: Float?
        var int: Int?
        var int8: Int8?
        var int16: Int16?
        var int32: Int32?
        var int64: Int64?
        var int128: Int128?
        var uint: UInt?
        var uint8: UInt8?
        var uint16: UInt16?
        var uint32: UInt32?
        var uint64: UInt64?
        var uint128: UInt128?
        var date: Date?
        var list: [Int]?
        var user: Color?
    }

    @Test func `an optional property that is nil is absent, for every type`() throws {
        guard case .dictionary(let entries) = try Parameters(encoding: Options()) else {
            Issue.record("not a dictionary")
            return
        }
        #expect(entries.count == 19)
        #expect(entries.allSatisfy { $0.value == .absent })
        #expect(try Parameters(encoding: Options(bool: true, int: 1, list: [2]))["bool"] == true)
    }

    private struct Wide: Encodable {
        var signed: Int128 = -5
        var unsigned: UInt128 = 5
        var list: [Int128] = [1]
        var tooLarge: UInt128?
    }

    @Test func `integers of 128 bits that fit into 64 are encoded`() throws {
        #expect(try Parameters(encoding: Wide())["signed"] == -5)
        #expect(try Parameters(encoding: Wide())["unsigned"] == 5)
        #expect(try Parameters(encoding: Wide())["list"] == [1])
        #expect(throws: SerializationError.self) { try Parameters(encoding: Wide(tooLarge: .max)) }
    }

    private struct ExplicitNull: Encodable {
        enum CodingKeys: CodingKey { case manager }

        func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encodeNil(forKey: .manager)
        }
    }

    @Test func `an explicitly encoded nil is null`() throws {
        #expect(try Parameters(encoding: ExplicitNull()) == ["manager": Parameters.null])
    }

    @Test func `scalars, optionals and raw values are encoded as their values`() throws {
        #expect(try Parameters(encoding: 5) == 5)
        #expect(try Parameters(encoding: Color.red) == "red")
        #expect(try Parameters(encoding: [1, nil] as [Int?]) == [1, nil])
        #expect(try Parameters(encoding: ["a": Color.red]) == ["a": "red"])
        #expect(try Parameters(encoding: Int?.none) == .null)
        #expect(
            try Parameters(encoding: Parametric(value: ["b": 1, "a": 2])) == ["value": ["b": 1, "a": 2] as Parameters])
    }

    private struct Parametric: Encodable {
        var value: Parameters

        enum CodingKeys: CodingKey { case value }

        func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            var list = container.nestedContainer(keyedBy: AnyKey.self, forKey: .value)
            guard case .dictionary(let entries) = value else { return }
            for entry in entries {
                guard case .integer(let integer) = entry.value else { continue }
                try list.encode(integer, forKey: AnyKey(stringValue: entry.name))
            }
        }
    }

    private struct AnyKey: CodingKey {
        var stringValue: String
        var intValue: Int? { nil }
        init(stringValue: String) { self.stringValue = stringValue }
        init?(intValue: Int) { nil }
    }

    private final class Cycle: Encodable, Sendable {
        func encode(to encoder: any Encoder) throws {
            var container = encoder.singleValueContainer()
            try container.encode(self)
        }
    }

    private final class Chain: Encodable, Sendable {
        func encode(to encoder: any Encoder) throws {
            var container = encoder.unkeyedContainer()
            try container.encode(self)
        }
    }

    @Test func `a cycle fails without exhausting the stack`() {
        for work in [{ try Parameters(encoding: Cycle()) }, { try Parameters(encoding: Chain()) }] {
            expectFailure(work) { error in
                if case .parameters(.tooDeep(limit: 512)) = error { true } else { false }
            }
        }
    }

    /// A cycle through encoders for superclasses, which encodes a value before.
    private final class SuperCycle: Encodable, Sendable {
        let isKeyed: Bool

        init(isKeyed: Bool) {
            self.isKeyed = isKeyed
        }

        func encode(to encoder: any Encoder) throws {
            if isKeyed {
                var container = encoder.container(keyedBy: AnyKey.self)
                try container.encodeNil(forKey: AnyKey(stringValue: "nil"))
                try encode(to: container.superEncoder(forKey: AnyKey(stringValue: "next")))
            } else {
                var container = encoder.unkeyedContainer()
                try container.encodeNil()
                try encode(to: container.superEncoder())
            }
        }
    }

    @Test(arguments: [true, false])
    func `a cycle through encoders for superclasses fails`(isKeyed: Bool) {
        expectFailure {
            try Parameters(encoding: SuperCycle(isKeyed: isKeyed))
        } where: { error in
            if case .parameters(.tooDeep(limit: 512)) = error { true } else { false }
        }
    }

    /// Nested containers, of which the innermost is empty.
    private struct Nest: Encodable {
        let levels: Int
        let isKeyed: Bool

        func encode(to encoder: any Encoder) throws {
            if isKeyed {
                var container = encoder.container(keyedBy: AnyKey.self)
                for _ in 1..<levels {
                    container = container.nestedContainer(keyedBy: AnyKey.self, forKey: AnyKey(stringValue: "a"))
                }
            } else {
                var container = encoder.unkeyedContainer()
                for _ in 1..<levels { container = container.nestedUnkeyedContainer() }
            }
        }
    }

    /// A list in which each element contains the next one.
    private final class Link: Encodable, Sendable {
        let next: [Link?]

        init(levels: Int) {
            next = levels > 1 ? [Link(levels: levels - 1)] : []
        }

        func encode(to encoder: any Encoder) throws {
            var container = encoder.unkeyedContainer()
            for link in next { try container.encode(link) }
        }
    }

    /// Returns the number of nested arrays and dictionaries.
    private func levels(of parameters: Parameters) -> Int {
        var levels = 0
        var current: Parameters? = parameters
        while let value = current {
            switch value {
            case .dictionary(let entries): current = entries.first?.value
            case .array(let elements): current = elements.first
            default: return levels
            }
            levels += 1
        }
        return levels
    }

    private static let makers: [@Sendable (Int) throws -> Parameters] = [
        { try Parameters(encoding: Link(levels: $0)) }, { try Parameters(encoding: Nest(levels: $0, isKeyed: true)) },
        { try Parameters(encoding: Nest(levels: $0, isKeyed: false)) },
    ]

    @Test(arguments: makers.indices)
    func `each level counts once, up to the limit`(index: Int) throws {
        // The innermost container is a value within 512 others.
        #expect(try levels(of: Self.makers[index](513)) == 513)
        for count in [514, 1_000, 100_000] {
            guard index > 0 || count <= 1_000 else { continue }
            expectFailure {
                try Self.makers[index](count)
            } where: { error in
                if case .parameters(.tooDeep(limit: 512)) = error { true } else { false }
            }
        }
    }

    private struct Failing: Encodable {
        func encode(to encoder: any Encoder) throws {
            throw EncodingError.invalidValue(
                self, .init(codingPath: encoder.codingPath, debugDescription: "No form for this."))
        }
    }

    @Test func `the path of a value that cannot encode itself is reported`() {
        expectFailure {
            try Parameters(encoding: ["list": [Failing()]])
        } where: { error in
            guard case .parameters(let failure) = error, failure.path == "list[0]" else {
                return false
            }
            return "\(error)" == "A value at “list[0]” could not be encoded: No form for this."
        }
    }
}
