// SPDX-License-Identifier: MIT

import ANSerialization
import FoundationEssentials
import Testing

@Suite struct RejectionTests {
    @Test(
        arguments: [
            ([-1, .max], "-1, 9223372036854775807"), ([.min, .min + 1, .max - 1, .max], ""),
            ([200, 201, 204], "200–201, 204"),
        ] as [(Set<Int>, String)])
    func `any statuses are described`(statuses: Set<Int>, text: String) throws {
        let rejection = ResponseValidation(statuses: statuses).rejection(of: makeHead(status: 404, type: nil), Data())
        #expect(try #require(rejection).description.contains("expected \(text)"))
    }

    private struct Problem: Decodable, Equatable, Sendable {
        var title: String
    }

    private func rejection(
        _ status: Int, _ type: String?, _ body: String, _ validation: ResponseValidation = .json
    ) throws -> Rejection {
        try #require(validation.rejection(of: makeHead(status: status, type: type), Data(body.utf8)))
    }

    @Test func `a rejection contains the response and decodes the error document`() throws {
        let rejection = try rejection(422, "text/plain", #"{"title":"no"}"#)
        #expect(rejection.status == 422)
        #expect(rejection.mediaType == "text/plain")
        #expect(rejection.body == Data(#"{"title":"no"}"#.utf8))
        #expect(try rejection.decoded(as: Problem.self) == Problem(title: "no"))
        expectFailure {
            try rejection.decoded(as: Int.self)
        } where: { error in
            if case .decoding = error { true } else { false }
        }
    }

    @Test func `the description contains the accepted values, and no secrets`() throws {
        #expect(
            try rejection(404, "text/html", "<p>no</p>").description
                == "The response of http://example.com/v1?token=… was rejected: status 404, expected "
                + "200–299; and media type text/html, expected application/json, text/json, text/javascript, +json. "
                + "The body begins with “<p>no</p>”.")
        #expect(
            try rejection(200, nil, "x").description
                == "The response of http://example.com/v1?token=… was rejected: no media type, expected application/json, "
                + "text/json, text/javascript, +json. The body begins with “x”.")
        #expect(
            try rejection(500, nil, "", ResponseValidation(statuses: [200, 201, 204, 304])).description.contains(
                "expected 200–201, 204, 304. The body is empty."))
    }

    @Test func `a long or binary body is abbreviated in the description`() throws {
        let text = try rejection(500, nil, "\u{1B}[31m\n" + String(repeating: "é", count: 1_000)).description
        #expect(text.utf8.count < 500)
        #expect(text.unicodeScalars.allSatisfy { $0.value >= 0x20 })
        #expect(text.hasSuffix("…”."))
    }
}
