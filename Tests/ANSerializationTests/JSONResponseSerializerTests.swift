// SPDX-License-Identifier: MIT

import ANSerialization
import AsyncNetworkingTesting
import FoundationEssentials
import Testing

@Suite struct JSONResponseSerializerTests {
    /// The arguments that AFNetworking passes to its completion handler: an object, an error, both or neither.
    private struct Handed: Equatable {
        var value: JSONValue?
        var error: Problem?
        var underlying: Problem?
    }

    private enum Problem { case status, mediaType, json }

    /// The twelve rows of AFNetworking's table, and their edge cases.
    private static let table: [(Int, String?, String, Handed)] = [
        (200, "application/json", "[1]", Handed(value: [1])),
        (200, "application/json", "{", Handed(error: .json)),
        (200, "application/json", "", Handed()),
        (200, "application/json", " ", Handed()),
        (200, "text/html", "[1]", Handed(error: .mediaType)),
        (200, "text/html", "", Handed()),
        (200, nil, "", Handed()),
        (200, nil, "[1]", Handed(error: .mediaType)),
        (404, "application/json", "[1]", Handed(value: [1], error: .status)),
        (500, "application/json", "[1]", Handed(value: [1], error: .status)),
        (404, "application/json", "{", Handed(error: .json, underlying: .status)),
        (404, "application/json", "", Handed(error: .status)),
        (404, "application/json", " ", Handed(error: .status)),
        (404, "text/html", "[1]", Handed(error: .status, underlying: .mediaType)),
        (404, nil, "[1]", Handed(error: .status, underlying: .mediaType)),
        (404, "text/html", "", Handed(error: .status)),
        (503, nil, "", Handed(error: .status)),
        // Two spaces or a line break do not count as an empty body.
        (200, "application/json", "  ", Handed(error: .json)),
        (200, "application/json", "\n", Handed(error: .json)),
        // A single space is a body for the validation of the media type.
        (200, "text/html", " ", Handed(error: .mediaType)),
    ]

    @Test(arguments: table.indices)
    func `status, media type and body determine the value and the error`(row: Int) {
        let (status, type, body, expected) = Self.table[row]
        let outcome = JSONResponseSerializer().outcome(of: makeHead(status: status, type: type), Data(body.utf8))
        #expect(Self.handed(outcome) == expected, "\(status) \(type ?? "–") “\(body)”")
    }

    /// Returns an outcome in AFNetworking's order: the error of the body contains that of the response.
    private static func handed(_ outcome: SerializationOutcome<JSONValue>) -> Handed {
        var problems: [Problem] = []
        if case .json? = outcome.failure as? SerializationError { problems.append(.json) }
        if outcome.rejection?.rejectsStatus == true { problems.append(.status) }
        if outcome.rejection?.rejectsMediaType == true { problems.append(.mediaType) }
        return Handed(value: outcome.value, error: problems.first, underlying: problems.dropFirst().first)
    }

    private enum Result: Equatable { case value(JSONValue), missing, invalid, rejected(status: Bool, type: Bool) }

    /// Tests the same rows for the throwing function: where AFNetworking passes an object and an error, the error
    /// contains the body.
    @Test(arguments: table.indices)
    func `status, media type and body determine the thrown error`(row: Int) throws {
        let (status, type, body, handed) = Self.table[row]
        let expected: Result =
            switch (handed.error, handed.underlying) {
            case (nil, _): .value(handed.value ?? .null)
            case (.json, nil): .invalid
            case (.json, _), (.status, nil): .rejected(status: true, type: false)
            case (.status, _): .rejected(status: true, type: true)
            case (.mediaType, _): .rejected(status: false, type: true)
            }
        #expect(try result(status, type, body) == expected)
    }

    private func result(_ status: Int, _ type: String?, _ body: String) throws -> Result {
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

    @Test func `the document of a rejected response is available`() throws {
        let outcome = JSONResponseSerializer().outcome(
            of: makeHead(status: 422, type: "application/problem+json"), Data(#"{"title":"no"}"#.utf8))
        #expect(outcome.value?["title"]?.string == "no")
        #expect((outcome.error as? SerializationError)?.rejection?.status == 422)
        #expect(try outcome.rejection?.value(as: .json)["title"]?.string == "no")
    }

    @Test(arguments: ["1", "null", "\"x\"", "true"])
    func `fragments are rejected unless they are allowed`(json: String) throws {
        #expect(throws: Never.self) { try value(of: .json(allowsFragments: true), type: "text/json", Array(json.utf8)) }
        expectFailure {
            try value(of: .json, type: "text/json", Array(json.utf8))
        } where: { error in
            if case .json(let failure) = error { failure.reason == .json(.fragment) } else { false }
        }
    }

    @Test func `the error for an empty body describes the remedy`() {
        let serializer = JSONResponseSerializer(emptyResponses: .noContent)
        #expect(throws: Never.self) { try value(of: serializer, status: 204, type: nil, []) }
        expectFailure {
            try value(of: serializer, status: 200, type: nil, [])
        } where: { error in
            "\(error)"
                == "The response with status 200 has no body, but a value of type JSONValue was requested. If that may "
                + "happen, request an optional: `.optional(…)` or `.decodable(Value?.self)`."
        }
        #expect(
            (serializer.outcome(of: makeHead(status: 200), Data()).failure as? SerializationError)?.isEmptyBody == true)
    }
}

extension SerializationError {
    fileprivate var isEmptyBody: Bool {
        if case .emptyBody = self { true } else { false }
    }
}
