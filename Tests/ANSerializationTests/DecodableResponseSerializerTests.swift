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

    @Test func `JSON becomes a value`() throws {
        #expect(try decode([User].self, #"[{"name":"Ada"}]"#) == [User(name: "Ada")])
    }

    @Test func `the decoder can be one's own`() throws {
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        #expect(
            try decode(User.self, #"{"name":"Ada","last_seen":3}"#, decoder: decoder) == User(name: "Ada", lastSeen: 3))
    }

    @Test(arguments: ["", " "])
    func `an empty body is nil for an optional, and EmptyResponse`(body: String) throws {
        #expect(try decode(User?.self, body) == nil)
        #expect(try decode(EmptyResponse.self, body) == EmptyResponse())
        #expect(try decode(EmptyResponse.self, "[1]") == EmptyResponse())
        expectFailure {
            try decode(User.self, body)
        } where: { error in
            if case .emptyBody(200, "User") = error { true } else { false }
        }
    }

    @Test func `a value of another type is named with its path and text`() {
        let json = #"{"users":[{"name":"Ada"},{"name":"Grace"},{"name":"Joan, the third of them","x":1},{"name":17}]}"#
        expectFailure {
            try decode([String: [User]].self, json)
        } where: { error in
            guard case .decoding(let problem) = error else { return false }
            return problem.path == "users[3].name" && problem.type == "Dictionary<String, Array<User>>"
                && problem.excerpt == #"…Joan, the third of them","x":1},{"name":17}]}"#
                && error.description.hasPrefix(
                    "The body does not fit Dictionary<String, Array<User>> at “users[3].name”: ")
        }
    }

    @Test func `a missing key is named with the object that lacks it`() {
        expectFailure {
            try decode([User].self, #"[{"name":"Ada"},{"nam":"Grace"}]"#)
        } where: { error in
            "\(error)" == "The body does not fit Array<User> at “[1]”: there is no value for “name”. Near “"
                + #"[{"name":"Ada"},{"nam":"Grace"}]"# + "”."
        }
    }

    @Test(arguments: ["{\"name\":", "{\"name\":\"\u{1}\"}", "<html>"])
    func `what is not JSON is said to be so, at its byte`(json: String) {
        expectFailure {
            try decode(User.self, json)
        } where: { error in
            if case .json = error { true } else { false }
        }
    }

    @Test func `a value too large for its type is a fault of the type`() {
        expectFailure {
            try decode([Int8].self, "[1,300]")
        } where: { error in
            if case .decoding(let problem) = error { problem.excerpt == "[1,300]" } else { false }
        }
    }
}
