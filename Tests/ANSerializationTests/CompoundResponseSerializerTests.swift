// SPDX-License-Identifier: MIT

import ANHTTP
import ANSerialization
import FoundationEssentials
import Testing

@Suite struct CompoundResponseSerializerTests {
    private enum Reply: Equatable, Sendable {
        case json(JSONValue)
        case list(PropertyListValue)
        case text(String)
        case data(Int)
    }

    private static let json: some ResponseSerializer<Reply> = JSONResponseSerializer().map { Reply.json($0) }
    private static let list: some ResponseSerializer<Reply> = PropertyListResponseSerializer().map { Reply.list($0) }
    private static let text: some ResponseSerializer<Reply> = StringResponseSerializer().accepting(mediaTypes: [
        "text/*"
    ]).map { Reply.text($0) }
    private static let data: some ResponseSerializer<Reply> = DataResponseSerializer().map { Reply.data($0.count) }
    private static let plist = #"<plist><dict><key>a</key><string>b</string></dict></plist>"#

    private let serializer = CompoundResponseSerializer<Reply>([json, list, text])

    @Test(
        arguments: [
            ("application/json", "[1]", .json([1])),
            ("application/x-plist", plist, .list(.dictionary(["a": .string("b")]))),
            ("text/html", "<p>", .text("<p>")),
            // Both accept text/json, and the first one is used.
            ("text/json", "[1]", .json([1])),
            ("text/json", "[", .text("[")),
            // An empty body is null for the first child that permits it to be missing.
            (nil, "", .text("")),
        ] as [(String?, String, Reply)])
    private func `the first child that can read the body is used`(type: String?, body: String, expected: Reply) throws {
        #expect(try value(of: serializer, type: type, Array(body.utf8)) == expected)
    }

    @Test func `an empty body that no child reads gives the first empty value`() throws {
        let serializer = CompoundResponseSerializer<Reply>([Self.json, Self.list])
        #expect(try value(of: serializer, status: 204, type: nil, []) == .json(.null))
        #expect(try value(of: .optional(serializer), status: 204, type: nil, []) == nil)
    }

    @Test func `a nested compound serializer has the same value for a missing body as on its own`() throws {
        struct Failing: ResponseSerializer {
            func serialize(_ head: ResponseHead, _ body: Data) throws -> Reply { throw CancellationError() }
        }
        let nested = CompoundResponseSerializer<Reply>([Self.json, Failing()])
        for serializer in [nested, CompoundResponseSerializer<Reply>([nested])] {
            #expect(try value(of: serializer, status: 204, type: nil, []) == .json(.null))
        }
    }

    @Test(arguments: [404, 500])
    func `an empty body with a status that no child accepts is rejected`(status: Int) throws {
        let serializer = CompoundResponseSerializer<Reply>([Self.json, Self.list])
        expectFailure {
            try value(of: .optional(serializer), status: status, type: nil, []) as Any
        } where: { error in
            error.rejection?.status == status
        }
        #expect(serializer.isEmpty(makeHead(status: status), Data()) == false)
    }

    @Test func `an empty body is permitted by the child that accepts the status`() throws {
        let list = PropertyListResponseSerializer().anyStatus.map { Reply.list($0) }
        let serializer = CompoundResponseSerializer<Reply>([Self.json, list])
        #expect(try value(of: .optional(serializer), status: 404, type: nil, []) == nil)
        #expect(try value(of: serializer, status: 404, type: nil, []) == .list(.dictionary([:])))
    }

    @Test func `data of a rejected media type is left to the next child`() throws {
        let image = DataResponseSerializer().accepting(mediaTypes: ["image/*"])
        let text = StringResponseSerializer().map { Data($0.uppercased().utf8) }
        let serializer = CompoundResponseSerializer<Data>([image, text])
        #expect(try value(of: serializer, type: "image/png", Array("a".utf8)) == Data("a".utf8))
        #expect(try value(of: serializer, type: "text/plain", Array("a".utf8)) == Data("A".utf8))
        expectFailure {
            try value(of: CompoundResponseSerializer<Data>([image, image]), type: "text/plain", [1])
        } where: { error in
            if case .compound(let errors) = error { errors.count == 2 } else { false }
        }
        // A child that rejects only the status has read the body.
        #expect(serializer.outcome(of: makeHead(status: 404, type: "image/png"), Data([1])).value == Data([1]))
    }

    @Test func `adjusting a compound serializer does not affect the children`() {
        for changed in [serializer.anyMediaType, serializer.anyStatus, serializer.unvalidated] {
            #expect(throws: SerializationError.self) {
                try value(of: changed, status: 404, type: "application/json", Array("[1]".utf8))
            }
        }
    }

    @Test func `the errors of all children are kept in order`() {
        let serializer = CompoundResponseSerializer<Reply>([Self.json, Self.list])
        expectFailure {
            try value(of: serializer, type: "application/json", Array("{".utf8))
        } where: { error in
            guard case .compound(let errors) = error, errors.count == 2 else { return false }
            guard case .json? = errors[0] as? SerializationError else { return false }
            return (errors[1] as? SerializationError)?.rejection?.rejectsMediaType == true
                && "\(error)".contains("not JSON") && "\(error)".contains("expected application/x-plist")
        }
    }

    @Test func `a child that reads the body of a rejected status is used`() {
        expectFailure {
            try value(of: serializer, status: 500, type: "application/json", Array("[1]".utf8))
        } where: { error in
            if case .rejected(let rejection) = error { rejection.status == 500 } else { false }
        }
        let outcome = serializer.outcome(
            of: makeHead(status: 500, type: "application/json"), Data("[1]".utf8))
        #expect(outcome.value == .json([1]))
        #expect(outcome.rejection?.status == 500)
    }

    @Test func `the error has the status that no child accepts`() {
        expectFailure {
            try value(of: serializer, status: 502, type: "image/png", [1])
        } where: { error in
            error.rejection?.status == 502 && error.rejection?.rejectsStatus == true
        }
    }

    @Test func `a data serializer as the last child accepts everything else`() throws {
        let serializer = CompoundResponseSerializer<Reply>([Self.json, Self.data])
        #expect(try value(of: serializer, type: "image/png", [1, 2]) == .data(2))
        #expect(try value(of: .compound(Self.json, Self.data), type: "image/png", [1]) == .data(1))
    }

    @Test func `a common validation applies in addition to those of the children`() {
        expectFailure {
            try value(of: serializer.validated(by: .statusOnly), status: 404, type: "text/html", [1])
        } where: { error in
            if case .rejected = error { true } else { false }
        }
    }

    @Test func `a compound serializer without children fails`() {
        #expect(throws: SerializationError.self) {
            try value(of: CompoundResponseSerializer<Reply>([]), type: nil, [])
        }
    }
}
