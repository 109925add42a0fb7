// SPDX-License-Identifier: MIT

import ANHTTP
import ANSerialization
import FoundationEssentials
import Testing

@Suite struct ResponseValidationTests {
    private enum Result { case passes, status, mediaType, both }

    @Test(
        arguments: [
            // AFNetworking's algorithm: status × media type × body.
            (200, "application/json", "[]", .passes),
            (200, "Application/JSON; charset=utf-8", "[]", .passes),
            (200, "text/javascript", "[]", .passes),
            (200, "text/json", "[]", .passes),
            (200, "application/problem+json", "[]", .passes),
            (200, "text/html", "<p>", .mediaType),
            (200, "text/html", "", .passes),
            (200, "text/html", " ", .mediaType),
            (200, nil, "", .passes),
            (200, nil, "[]", .mediaType),
            (404, "application/json", "[]", .status),
            (500, "application/json", "", .status),
            (500, "text/html", "<p>", .both),
            (500, nil, "<p>", .both),
            (500, "text/html", "", .status),
            (299, "application/json", "[]", .passes),
            (300, "application/json", "[]", .status),
            (199, "application/json", "[]", .status),
            (204, "text/html", "", .passes),
            (205, nil, "", .passes),
        ] as [(Int, String?, String, Result)])
    private func `status and media type determine the result`(
        status: Int, type: String?, body: String, expected: Result
    ) {
        let rejection = ResponseValidation.json.rejection(
            of: makeHead(status: status, type: type), Data(body.utf8))
        let result: Result =
            switch (rejection?.rejectsStatus ?? false, rejection?.rejectsMediaType ?? false) {
            case (false, false): .passes
            case (true, false): .status
            case (false, true): .mediaType
            case (true, true): .both
            }
        #expect(result == expected)
        #expect((rejection == nil) == (expected == .passes))
    }

    @Test func `checks that are not set accept everything`() {
        #expect(
            ResponseValidation.anything.rejection(of: makeHead(status: 500, type: "x/y"), Data([1]))
                == nil)
        #expect(
            ResponseValidation.statusOnly.rejection(of: makeHead(status: 201, type: "x/y"), Data([1]))
                == nil)
        #expect(ResponseValidation.statusOnly.rejection(of: makeHead(status: 304), Data()) != nil)
        let types = ResponseValidation(statuses: nil, mediaTypes: ["image/*"])
        #expect(types.rejection(of: makeHead(status: 500, type: "image/png"), Data([1])) == nil)
    }

    @Test func `each check can be disabled`() {
        let head = makeHead(status: 404, type: "text/html")
        let body = Data([1])
        #expect(
            ResponseValidation.json.anyMediaType.rejection(of: head, body)?.rejectsMediaType == false)
        #expect(ResponseValidation.json.anyStatus.rejection(of: head, body)?.rejectsStatus == false)
        #expect(ResponseValidation.json.anyStatus.anyMediaType.rejection(of: head, body) == nil)
    }

    @Test(
        arguments: [
            (.propertyList, "application/x-plist", true), (.propertyList, "application/xml", false),
            (.xml, "application/xml", true), (.xml, "TEXT/XML; charset=utf-8", true),
            (.xml, "image/svg+xml", true),
            (.xml, "text/html", false), (.xml, "application/xml-dtd", false),
            (.json, "application/json-seq", false), (.json, "text/plain", false), (.json, "+json", true),
            (ResponseValidation(mediaTypes: ["text/*"]), "text/html", true),
            (ResponseValidation(mediaTypes: ["text/*"]), "texts/html", false),
            (ResponseValidation(mediaTypes: ["*/*"]), "x/y", true),
            (ResponseValidation(mediaTypes: ["*/*"]), nil, false),
            (ResponseValidation(mediaTypes: []), "x/y", false),
        ] as [(ResponseValidation, String?, Bool)])
    func `media types are matched by name and pattern`(
        validation: ResponseValidation, type: String?, passes: Bool
    ) {
        #expect((validation.rejection(of: makeHead(type: type), Data([1])) == nil) == passes)
        // Without a body the media type is not checked.
        #expect(validation.rejection(of: makeHead(type: type), Data()) == nil)
    }

    @Test func `statuses and media types can be added`() {
        var validation = ResponseValidation.json
        validation.acceptableStatuses?.insert(304)
        validation.acceptableMediaTypes?.append("text/html")
        #expect(validation.rejection(of: makeHead(status: 304, type: "text/html"), Data([1])) == nil)
    }
}
