// SPDX-License-Identifier: MIT

import ANSerialization
import FoundationEssentials
import Testing

@Suite struct DecodableResponseSerializerTests {
    private struct User: Decodable, Equatable, Sendable {
        var name: String
        var lastSeen: Int?
    }

    private func decode<Value: Decodable & Sendable>(
        _ type: Value.Type, _ json: String, decoder: JSONDecoder = JSONDecoder()
    ) throws -> Value {
        try value(of: .decodable(type, decoder: decoder), type: "application/json", Array(json.utf8))
    }

    @Test func `JSON is decoded as a type`() throws {
        #expect(try decode([User].self, #"[{"name":"Ada"}]"#) == [User(name: "Ada")])
    }

    @Test func `a custom decoder is used`() throws {
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        #expect(
            try decode(User.self, #"{"name":"Ada","last_seen":3}"#, decoder: decoder)
                == User(name: "Ada", lastSeen: 3))
    }

    @Test(arguments: ["", " "])
    func `an empty body is decoded as nil and EmptyResponse`(body: String) throws {
        #expect(try decode(User?.self, body) == nil)
        #expect(try decode(EmptyResponse.self, body) == EmptyResponse())
        #expect(try decode(EmptyResponse.self, "[1]") == EmptyResponse())
        expectFailure {
            try decode(User.self, body)
        } where: { error in
            if case .emptyBody(200, "User", nil) = error { true } else { false }
        }
    }

    @Test func `a type mismatch is reported with its path and text`() {
        let json =
            #"{"users":[{"name":"Ada"},{"name":"Grace"},{"name":"Joan, the third of them","x":1},{"name":17}]}"#
        expectFailure {
            try decode([String: [User]].self, json)
        } where: { error in
            guard case .decoding(let failure) = error else { return false }
            return failure.path == "users[3].name" && failure.description.contains("Dictionary<String, Array<User>>")
                && failure.excerpt == #"…Joan, the third of them","x":1},{"name":17}]}"#
                && error.description.hasPrefix(
                    "The body does not fit Dictionary<String, Array<User>> at “users[3].name”: ")
        }
    }

    @Test func `the reason that a type gives is reported, also at the root`() {
        struct Even: Decodable, Sendable {
            init(from decoder: any Decoder) throws {
                throw DecodingError.dataCorrupted(
                    .init(codingPath: decoder.codingPath, debugDescription: "the number is odd."))
            }
        }
        expectFailure {
            try decode(Even.self, "1")
        } where: { error in
            if case .decoding(let failure) = error { failure.description.contains("the number is odd.") } else { false }
        }
    }

    @Test func `integer keys are followed in paths`() {
        let others = (10..<40).map { "\"\($0)\":\"another value\"," }.joined()
        expectFailure {
            try decode([String: [Int: String]].self, "{\"names\":{\(others)\"7\":17}}")
        } where: { error in
            guard case .decoding(let failure) = error else { return false }
            return failure.path == "names[7]" && failure.excerpt?.hasSuffix("another value\",\"7\":17}}") == true
        }
    }

    /// A coding key with any name or index.
    private enum Step: CodingKey {
        case name(String), index(Int)

        var stringValue: String {
            switch self {
            case .name(let name): name
            case .index(let index): "\(index)"
            }
        }
        var intValue: Int? { if case .index(let index) = self { index } else { nil } }

        init?(stringValue: String) { self = .name(stringValue) }
        init?(intValue: Int) { self = .index(intValue) }
    }

    @Test(
        arguments: [
            ([], 0), ([.name("a")], 6), ([.name("a"), .index(0)], 7), ([.name("a"), .index(1), .index(0)], 11),
            ([.name("a"), .index(-1)], 6), ([.name("a"), .index(.min)], 6), ([.name("a"), .index(2)], 6),
            ([.name("a"), .index(.max)], 6), ([.name("a"), .index(1), .index(1)], 10), ([.name("a"), .name("b")], 6),
            ([.name("b")], 0), ([.index(0)], 0),
        ] as [([Step], Int)])
    private func `a coding path that leads nowhere ends at the last value on it`(path: [Step], offset: Int) {
        #expect(JSONDecoder().offset(of: path, in: Data(#"{"a": [1, [2]]}"#.utf8)) == offset)
    }

    @Test func `a missing key is reported with its object`() {
        expectFailure {
            try decode([User].self, #"[{"name":"Ada"},{"nam":"Grace"}]"#)
        } where: { error in
            "\(error)"
                == "The body does not fit Array<User> at “[1]”: there is no value for “name”. Near “"
                + #"[{"name":"Ada"},{"nam":"Grace"}]"# + "”."
        }
    }

    @Test(arguments: ["{\"name\":", "{\"name\":\"\u{1}\"}", "<html>"])
    func `malformed JSON is reported as such`(json: String) {
        expectFailure {
            try decode(User.self, json)
        } where: { error in
            if case .json = error { true } else { false }
        }
    }

    @Test func `a number out of range for its type is a decoding error`() {
        expectFailure {
            try decode([Int8].self, "[1,300]")
        } where: { error in
            if case .decoding(let failure) = error { failure.excerpt == "[1,300]" } else { false }
        }
    }

    @Test(arguments: ["[", "{\"a\":"])
    func `2 MB of nested values fail with a limit`(opening: String) {
        let body = Array(String(repeating: opening, count: 2_000_000 / opening.utf8.count).utf8)
        expectFailure {
            try value(of: .decodable([Int].self), type: "application/json", body)
        } where: { error in
            if case .json(let failure) = error { failure.reason == .json(.tooDeep(limit: 512)) } else { false }
        }
    }

    @Test(arguments: [
        Data("[1,]".utf8), Data("{\"k\":[1, \n]}".utf8), Data("{\"k\":1,\t}".utf8), Data("[[1,],\",\"]".utf8),
        Data("[1]".utf16.flatMap { [UInt8($0), 0] }), Data("[1]".utf16.flatMap { [0, UInt8($0)] }),
        Data([0xFF, 0xFE] + "[1]".utf16.flatMap { [UInt8($0), 0] }), Data("[1]".utf8.flatMap { [$0, 0, 0, 0] }),
    ])
    func `what is not JSON for one serializer is not for the other`(body: Data) {
        let type = "application/json"
        for serialize in [
            { try value(of: .json, type: type, Array(body)) as Any },
            { try value(of: .decodable([[Int]].self), type: type, Array(body)) as Any },
        ] {
            expectFailure {
                try serialize()
            } where: { error in
                if case .json = error { true } else { false }
            }
        }
    }

    @Test(arguments: [
        (#"{"a":1,"a":2}"#, 1), ("{\"\u{E9}\":1,\"e\u{301}\":2}", 1), (#"{"b":",] ,}","a":3}"#, 3),
        ("\u{FEFF}{\"a\":4}", 4),
    ])
    func `what is JSON has the same value for both serializers`(body: String, value: Int) throws {
        struct Partial: Decodable {
            var a: Int?
            var é: Int?
        }
        let type = "application/json"
        let partial = try ANSerializationTests.value(of: .decodable(Partial.self), type: type, Array(body.utf8))
        #expect(partial.a ?? partial.é == value)
        let json = try ANSerializationTests.value(of: .json, type: type, Array(body.utf8))
        #expect((json["a"] ?? json["é"])?.int == value)
    }

    @Test(arguments: ["[1e400]", "[-1E+400]"])
    func `numbers beyond the range are errors for both serializers`(body: String) {
        let type = "application/json"
        #expect(throws: SerializationError.self) {
            try value(of: .decodable([Double].self), type: type, Array(body.utf8))
        }
        #expect(throws: SerializationError.self) { try value(of: .json, type: type, Array(body.utf8)) }
    }

    @Test func `invalid UTF-8 is reported as such`() {
        expectFailure {
            try value(
                of: .decodable([String].self), type: "application/json",
                Array("[\"".utf8) + [0xFF] + Array("\"]".utf8))
        } where: { error in
            if case .json(let failure) = error { failure.reason == .json(.invalidUTF8) } else { false }
        }
    }

    // MARK: Other decoders

    /// A decoder for numbers separated by commas.
    private struct NumbersDecoder: ResponseDecoder {
        struct NotANumber: Error {}

        func decode<Value: Decodable>(_ type: Value.Type, from data: Data) throws -> Value {
            let numbers = try String(decoding: data, as: UTF8.self).split(separator: ",").map { text in
                guard let number = Int(text) else { throw NotANumber() }
                return number
            }
            guard let value = numbers as? Value else {
                throw DecodingError.typeMismatch(
                    type, .init(codingPath: [], debugDescription: "There are numbers only."))
            }
            return value
        }
    }

    @Test func `a custom decoder's errors are kept`() throws {
        #expect(
            try value(
                of: .decodable([Int].self, decoder: NumbersDecoder(), mediaTypes: ["text/csv"]),
                type: "text/csv",
                Array("1,2".utf8)) == [1, 2])
        expectFailure {
            try value(
                of: .decodable([Int].self, decoder: NumbersDecoder(), mediaTypes: nil), type: nil,
                Array("1,x".utf8))
        } where: { error in
            guard case .decoding(let failure) = error else { return false }
            return failure.underlying is NumbersDecoder.NotANumber && failure.excerpt == "1,x"
                && failure.path?.isEmpty == true
        }
        expectFailure {
            try value(
                of: .decodable([String].self, decoder: NumbersDecoder(), mediaTypes: nil), type: nil, [0x31]
            )
        } where: { error in
            if case .decoding(let failure) = error {
                failure.description.contains("There are numbers only.")
            } else {
                false
            }
        }
        expectFailure {
            try value(
                of: .decodable([Int].self, decoder: NumbersDecoder(), mediaTypes: ["text/csv"]),
                type: "text/html", [0x31])
        } where: {
            $0.rejection?.rejectsMediaType == true
        }
    }

    // MARK: Missing bodies

    @Test(
        arguments: [
            (.json, 200, "", true), (.json, 204, " ", true), (.anyStatus, 200, "", true),
            (.noContent, 204, "", true),
            (.noContent, 205, "", true), (.noContent, 200, "", false), (.never, 204, "", false),
            (EmptyResponseRules(statuses: [202]), 202, "", true),
            (EmptyResponseRules(statuses: [202]), 204, "", false),
        ] as [(EmptyResponseRules, Int, String, Bool)])
    func `the rules determine when the body may be empty`(
        rules: EmptyResponseRules, status: Int, body: String, isAllowed: Bool
    ) throws {
        let serializer = DecodableResponseSerializer(User?.self, emptyResponses: rules)
        let head = makeHead(status: status, type: "text/json")
        #expect(serializer.isEmpty(head, Data(body.utf8)) == isAllowed)
        guard !isAllowed else {
            #expect(try serializer.value(of: head, Data(body.utf8)) == nil)
            return
        }
        expectFailure {
            try serializer.value(of: head, Data(body.utf8)) as Any
        } where: { error in
            if case .emptyBody(status, _, _) = error { true } else { false }
        }
    }

    @Test func `a space is a body unless the rules count it as empty`() {
        expectFailure {
            try value(
                of: DecodableResponseSerializer(User?.self, emptyResponses: .anyStatus), type: "text/json",
                [0x20])
                as Any
        } where: { error in
            if case .json = error { true } else { false }
        }
    }
}
