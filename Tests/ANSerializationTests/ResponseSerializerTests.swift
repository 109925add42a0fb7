// SPDX-License-Identifier: MIT

import ANHTTP
import ANSerialization
import FoundationEssentials
import HTTPTypes
import Testing

@Suite struct ResponseSerializerTests {
    private struct Length: ResponseSerializer {
        func serialize(_ head: ResponseHead, _ body: Data) -> Int { body.count }
    }

    @Test func `the data serializer returns the body`() throws {
        #expect(try value(of: .data, type: "x/y", [1, 2]) == Data([1, 2]))
        #expect(try value(of: .data, type: nil, []) == Data())
    }

    @Test func `the empty serializer ignores the body`() throws {
        #expect(try value(of: .empty, type: "x/y", [1, 2]) == EmptyResponse())
    }

    @Test func `a custom serializer accepts status 2xx with any media type`() throws {
        #expect(try value(of: Length(), type: "x/y", [1, 2, 3]) == 3)
        expectFailure {
            try value(of: Length(), status: 404, type: "x/y", [1])
        } where: {
            $0.rejection?.status == 404
        }
    }

    @Test func `the validation of a call replaces that of the serializer`() throws {
        let head = makeHead(status: 404, type: "text/html")
        #expect(
            try JSONResponseSerializer().value(of: head, Data("[1]".utf8), validation: .anything)
                == .array([.integer(1)]))
    }

    @Test func `an optional serializer returns nil only for an empty body`() throws {
        #expect(try value(of: .optional(.json), status: 204, type: nil, []) == nil)
        #expect(try value(of: .optional(.json), type: "application/json", Array("[5]".utf8)) == JSONValue.array([5]))
        #expect(
            try value(of: .optional(.json(allowsFragments: true)), type: "application/json", Array("null".utf8))
                == .some(.null))
        #expect(try value(of: .json, status: 204, type: nil, []) == .null)
        #expect(try value(of: .optional(Length()), type: nil, []) == 0)
        #expect(try value(of: .optional(.string), type: nil, []) == "")
        expectFailure {
            try value(of: .optional(.json), type: "application/json", Array("[".utf8)) as Any
        } where: { error in
            if case .json = error { true } else { false }
        }
    }
}

@Suite struct AdjustableResponseSerializerTests {
    private let body = Array("[1]".utf8)
    private let list: JSONValue = [1]

    @Test func `each check can be disabled`() throws {
        #expect(try value(of: .json.anyMediaType, type: "text/html", body) == list)
        #expect(try value(of: .json.anyStatus, status: 404, type: "text/json", body) == list)
        #expect(try value(of: .json.unvalidated, status: 404, type: nil, body) == list)
        expectFailure {
            try value(of: .json.anyMediaType, status: 404, type: nil, body)
        } where: {
            $0.rejection?.rejectsStatus == true && $0.rejection?.rejectsMediaType == false
        }
        expectFailure {
            try value(of: .json.anyStatus, status: 404, type: nil, body)
        } where: {
            $0.rejection?.rejectsStatus == false && $0.rejection?.rejectsMediaType == true
        }
    }

    @Test func `accepted statuses and media types can be replaced and extended`() throws {
        #expect(try value(of: .json.accepting(statuses: [404]), status: 404, type: "text/json", body) == list)
        #expect(try value(of: .json.accepting(mediaTypes: ["text/*"]), type: "text/html", body) == list)
        #expect(try value(of: .json.alsoAccepting("text/html"), type: "text/html", body) == list)
        #expect(try value(of: .json.alsoAccepting("text/html"), type: "application/json", body) == list)
        #expect(throws: SerializationError.self) {
            try value(of: .json.accepting(mediaTypes: ["text/html"]), type: "application/json", body)
        }
        #expect(throws: SerializationError.self) {
            try value(of: .string.validated(by: .xml), type: "application/json", body)
        }
    }

    @Test func `extending the media types has no effect if all are accepted`() {
        #expect(DataResponseSerializer().alsoAccepting("text/html").validation.acceptableMediaTypes == nil)
    }
}

func makeHead(status: Int = 200, type: String? = nil) -> ResponseHead {
    var head = ResponseHead(
        status: HTTPResponse.Status(code: status), url: URL(filePath: "/"))
    head.url = URL(string: "http://user:secret@example.com/v1?token=secret") ?? head.url
    if let type { head.headers.append(HTTPField(name: .contentType, value: type)) }
    return head
}

/// Validates and serializes a response.
func value<Serializer: ResponseSerializer>(
    of serializer: Serializer, status: Int = 200, type: String?, _ body: [UInt8]
) throws -> Serializer.Output {
    try serializer.value(of: makeHead(status: status, type: type), Data(body))
}
