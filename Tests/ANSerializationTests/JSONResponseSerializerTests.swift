// SPDX-License-Identifier: MIT

import ANSerialization
import FoundationEssentials
import Testing

@Suite struct JSONResponseSerializerTests {
    private enum Outcome: Equatable { case value(JSONValue), missing, invalid, rejected(status: Bool, type: Bool) }

    /// The twelve rows of AFNetworking's table; where it has an object and an error, the error carries the body here.
    @Test(
        arguments: [
            (200, "application/json", "[1]", .value(.array([.integer(1)]))),
            (200, "application/json", "{", .invalid),
            (200, "application/json", "", .missing),
            (200, "application/json", " ", .missing),
            (200, "text/html", "[1]", .rejected(status: false, type: true)),
            (200, "text/html", "", .missing),
            (200, nil, "", .missing),
            (200, nil, "[1]", .rejected(status: false, type: true)),
            (404, "application/json", "[1]", .rejected(status: true, type: false)),
            (404, "application/json", "{", .rejected(status: true, type: false)),
            (404, "application/json", " ", .rejected(status: true, type: false)),
            (404, "text/html", "[1]", .rejected(status: true, type: true)),
            (404, "text/html", "", .rejected(status: true, type: false)),
            (200, "application/json", "  ", .invalid),
            (200, "application/json", "\n", .invalid),
        ] as [(Int, String?, String, Outcome)])
    private func `status, type and body decide`(status: Int, type: String?, body: String, expected: Outcome) throws {
        #expect(try outcome(status, type, body) == expected)
    }

    private func outcome(_ status: Int, _ type: String?, _ body: String) throws -> Outcome {
        do {
            return .value(try value(of: .json, status: status, type: type, Array(body.utf8)))
        } catch SerializationError.emptyBody {
            return .missing
        } catch SerializationError.json {
            return .invalid
        } catch SerializationError.rejected(let rejection) {
            return .rejected(status: rejection.rejectsStatus, type: rejection.rejectsMediaType)
        }
    }

    @Test(arguments: ["1", "null", "\"x\"", "true"])
    func `fragments are values unless refused`(json: String) throws {
        #expect(throws: Never.self) { try value(of: .json, type: "text/json", Array(json.utf8)) }
        let strict = JSONResponseSerializer(allowsFragments: false)
        expectFailure {
            try value(of: strict, type: "text/json", Array(json.utf8))
        } where: { error in
            if case .json(let problem) = error { problem.reason == .fragment } else { false }
        }
    }

    @Test func `a missing body says what to do`() {
        expectFailure {
            try value(of: .json, status: 204, type: nil, [])
        } where: { error in
            "\(error)" == "The response with status 204 has no body, but a JSON value was asked for. Where that may "
                + "happen, ask for an optional: `.optional(…)` or `.decodable(Value?.self)`."
        }
    }
}
