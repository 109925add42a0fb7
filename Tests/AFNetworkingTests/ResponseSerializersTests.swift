// SPDX-License-Identifier: MIT

import AFNetworking
import AsyncNetworkingTesting
import Testing

/// Validation, the table of JSON results, and compound serializers.
@Suite struct ResponseSerializersTests {
    private static let url = URL(string: "http://example.com/x") ?? URL(filePath: "/")

    private func response(_ status: Int, _ type: String? = "application/json") throws -> HTTPURLResponse {
        try #require(
            HTTPURLResponse(
                url: Self.url, statusCode: status, httpVersion: "HTTP/1.1",
                headerFields: type.map { ["Content-Type": $0] }))
    }

    private func outcome(
        _ serializer: any AFURLResponseSerialization, _ status: Int, _ type: String?, _ body: String?
    ) throws -> (object: Any?, error: NSError?) {
        var error: NSError?
        let object = serializer.responseObject(
            for: try response(status, type), data: body.map { Data($0.utf8) }, error: &error)
        return (object, error)
    }

    /// One row of the table of JSON results.
    struct Row: CustomTestStringConvertible, Sendable {
        let status: Int
        let type: String?
        let body: String
        let hasObject: Bool
        /// The last component of the domain and the code of each error, outermost first.
        let errors: [String]

        var testDescription: String { "\(status) \(type ?? "no type") \(body)" }

        init(_ status: Int, _ type: String?, _ body: String, object: Bool = false, _ errors: String...) {
            self.status = status
            self.type = type
            self.body = body
            hasObject = object
            self.errors = errors
        }
    }

    static let rows = [
        Row(200, "application/json", #"{"a": 1}"#, object: true),
        Row(200, "Application/JSON; charset=utf-8", #"[1]"#, object: true),
        Row(200, "text/javascript", #"[1]"#, object: true),
        Row(200, "application/json", "{invalid}", "NSCocoaErrorDomain 3840"),
        Row(200, "application/json", ""),
        Row(200, "application/json", " "),
        Row(200, "application/json", "  ", "NSCocoaErrorDomain 3840"),
        Row(200, "application/json", "1", "NSCocoaErrorDomain 3840"),
        Row(200, "text/html", "<p>", "com.alamofire.error.serialization.response -1016"),
        Row(200, "text/html", ""),
        Row(200, nil, ""),
        Row(200, nil, "{}", "com.alamofire.error.serialization.response -1016"),
        Row(404, "application/json", #"{"e": 1}"#, object: true, "com.alamofire.error.serialization.response -1011"),
        Row(
            500, "application/json", "{invalid}", "NSCocoaErrorDomain 3840",
            "com.alamofire.error.serialization.response -1011"),
        Row(400, "application/json", "", "com.alamofire.error.serialization.response -1011"),
        Row(400, "application/json", " ", "com.alamofire.error.serialization.response -1011"),
        Row(
            404, "text/html", "<p>", "com.alamofire.error.serialization.response -1011",
            "com.alamofire.error.serialization.response -1016"),
        Row(404, "text/html", "", "com.alamofire.error.serialization.response -1011"),
    ]

    @Test(arguments: rows)
    func `JSON results follow the table`(row: Row) throws {
        let (object, error) = try outcome(AFJSONResponseSerializer(), row.status, row.type, row.body)
        #expect((object != nil) == row.hasObject)
        var errors: [String] = []
        var next = error
        while let error = next {
            errors.append("\(error.domain) \(error.code)")
            next = error.userInfo[NSUnderlyingErrorKey] as? NSError
        }
        #expect(errors == row.errors)
    }

    @Test(arguments: [
        (404, "not found"), (500, "internal server error"), (411, "length required"), (415, "unsupported media type"),
        (599, "server error"), (299, "success"),
    ])
    func `an error contains status code, response and body`(status: Int, phrase: String) throws {
        let serializer = AFHTTPResponseSerializer()
        serializer.acceptableStatusCodes = IndexSet(integer: 200)
        let (object, error) = try outcome(serializer, status, "text/plain", "body")
        #expect(object as? Data == Data("body".utf8))
        let found = try #require(error)
        #expect(found.localizedDescription == "Request failed: \(phrase) (\(status))")
        #expect(found.userInfo[NSURLErrorFailingURLErrorKey] as? URL == Self.url)
        let response = found.userInfo[AFNetworkingOperationFailingURLResponseErrorKey] as? HTTPURLResponse
        #expect(response?.statusCode == status)
        #expect(found.userInfo[AFNetworkingOperationFailingURLResponseDataErrorKey] as? Data == Data("body".utf8))
    }

    /// The encodings that Foundation detects, by a byte order mark or by zeros.
    @Test(arguments: [
        String.Encoding.utf8, .utf16, .utf16LittleEndian, .utf16BigEndian, .utf32, .utf32LittleEndian, .utf32BigEndian,
    ])
    func `JSON with text that takes too long to compare is an error in each encoding`(encoding: String.Encoding) throws
    {
        for (count, isRejected) in [(1, false), (100, false), (500, true)] {
            let text = "{\"e\(String(repeating: "\u{301}\u{316}", count: count))\": 1}"
            var error: NSError?
            let object = AFJSONResponseSerializer().responseObject(
                for: try response(200), data: text.data(using: encoding), error: &error)
            #expect((object == nil) == isRejected)
            #expect(error.map { "\($0.domain) \($0.code)" } == (isRejected ? "NSCocoaErrorDomain 3840" : nil))
        }
    }

    @Test(arguments: [[0xEF, 0xBB, 0xBF], [0xFE, 0xFF]] as [[UInt8]])
    func `JSON in one encoding after the mark of another one is an error`(mark: [UInt8]) throws {
        let text = "{\"e\": 1}".data(using: .utf16LittleEndian) ?? Data()
        var error: NSError?
        let object = AFJSONResponseSerializer().responseObject(
            for: try response(200), data: Data(mark) + text, error: &error)
        #expect(object == nil)
        #expect(error.map { "\($0.domain) \($0.code)" } == "NSCocoaErrorDomain 3840")
    }

    @Test(arguments: [(199, -1011), (200, nil), (299, nil), (300, -1011), (304, -1011)] as [(Int, Int?)])
    func `the status codes 200 to 299 are acceptable`(status: Int, code: Int?) throws {
        for serializer in [AFHTTPResponseSerializer(), AFJSONResponseSerializer(), AFCompoundResponseSerializer()] {
            try #expect(outcome(serializer, status, "application/json", "[]").error?.code == code)
        }
    }

    @Test(arguments: [("text/html", true), ("Text/HTML; charset=utf-8", true), ("text/htm", false), (nil, false)])
    func `media types are compared regardless of case`(type: String?, isAcceptable: Bool) throws {
        for accepted in ["text/html", "TEXT/html"] {
            let serializer = AFHTTPResponseSerializer()
            serializer.acceptableContentTypes = [accepted]
            try #expect((outcome(serializer, 200, type, "x").error == nil) == isAcceptable)
        }
    }

    @Test func `validation without an error pointer throws the unnamed error for an unacceptable type without a body`()
        throws
    {
        let serializer = AFJSONResponseSerializer()
        #expect(throws: AFUnnamedError.self) {
            try serializer.validate(response(200, "text/html"), data: Data())
        }
        try serializer.validate(nil, data: nil)
        try serializer.validate(response(200, nil), data: nil)
        #expect(throws: NSError.self) { try serializer.validate(response(200, nil), data: Data([1])) }
    }

    @Test func `an unacceptable content type is named in the error`() throws {
        let html = try outcome(AFJSONResponseSerializer(), 200, "text/html", "x").error
        #expect(html?.localizedDescription == "Request failed: unacceptable content-type: text/html")
        let none = try outcome(AFJSONResponseSerializer(), 200, nil, "x").error
        #expect(none?.localizedDescription == "Request failed: unacceptable content-type: (null)")
    }

    @Test func `nil accepts everything, and types can be added`() throws {
        let serializer = AFJSONResponseSerializer()
        serializer.acceptableContentTypes?.insert("text/html")
        try #expect(outcome(serializer, 200, "text/html", "[]").error == nil)
        serializer.acceptableContentTypes = nil
        serializer.acceptableStatusCodes = nil
        let (object, error) = try outcome(serializer, 500, "image/png", "[]")
        #expect(object is [Any] && error == nil)
    }

    @Test func `an overridden validation is called`() throws {
        final class Strict: AFJSONResponseSerializer, @unchecked Sendable {
            override func validate(_ response: HTTPURLResponse?, data: Data?) throws {
                // Only in AFNetworking's own domain this code means that the body is not parsed.
                throw NSError(domain: "strict", code: NSURLErrorCannotDecodeContentData)
            }
        }
        let (object, error) = try outcome(Strict(), 200, "application/json", "[]")
        #expect(object is [Any])
        #expect(error?.domain == "strict")
    }

    @Test func `nulls are removed at any depth if the option is set`() throws {
        let serializer = AFJSONResponseSerializer()
        serializer.removesKeysWithNullValues = true
        let text = #"{"a": null, "b": [1, null, {"c": null}], "d": {"e": null, "f": 2}}"#
        let object = try outcome(serializer, 200, "application/json", text).object as? NSDictionary
        #expect(object == ["b": [1, [String: Any]()], "d": ["f": 2]] as NSDictionary)
        serializer.readingOptions = .fragmentsAllowed
        try #expect(outcome(serializer, 200, "application/json", "null").object is NSNull)
    }

    @Test func `property lists are read in any format, and an empty body is an error`() throws {
        let serializer = AFPropertyListResponseSerializer()
        let list = try PropertyListSerialization.data(fromPropertyList: ["a": 1], format: .xml, options: 0)
        let read = try outcome(serializer, 200, "application/x-plist", String(decoding: list, as: UTF8.self))
        #expect((read.object as? [String: Int]) == ["a": 1])
        try #expect(outcome(serializer, 200, "application/x-plist", "").error?.code == 3840)
        let deep = String(repeating: "<array>", count: 100_000)
        try #expect(outcome(serializer, 200, "application/x-plist", "<plist>\(deep)").error?.code == 3840)
        let nothing = try outcome(serializer, 200, "application/x-plist", nil)
        #expect(nothing.object == nil && nothing.error == nil)
    }

    @Test func `XML is returned as a parser or a document`() throws {
        let parser = try outcome(AFXMLParserResponseSerializer(), 200, "application/xml", "<a>x</a>").object
        #expect((parser as? XMLParser)?.parse() == true)
        try #expect(outcome(AFXMLParserResponseSerializer(), 200, "text/xml", "").object is XMLParser)
        let document = try outcome(AFXMLDocumentResponseSerializer(), 200, "text/xml", "<a>x</a>").object
        #expect((document as? XMLDocument)?.rootElement()?.stringValue == "x")
        let broken = try outcome(AFXMLDocumentResponseSerializer(), 500, "text/xml", "")
        #expect(broken.object == nil)
        #expect((broken.error?.userInfo[NSUnderlyingErrorKey] as? NSError)?.code == -1011)
        try #expect(outcome(AFXMLDocumentResponseSerializer(), 200, "text/xml", "").error != nil)
    }

    @Test(arguments: [
        #"<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><a>&b;</a>"#,
        #"<!DOCTYPE a [<!ENTITY b "bb"><!ENTITY c "&b;&b;">]><a>&c;</a>"#,
    ])
    func `XML with entities is neither read nor expanded`(text: String) throws {
        for serializer in [AFXMLParserResponseSerializer(), AFXMLDocumentResponseSerializer()] {
            let refused = try outcome(serializer, 200, "text/xml", text)
            #expect(refused.object == nil)
            #expect(refused.error?.domain == XMLParser.errorDomain)
            #expect(refused.error?.localizedDescription.contains("ENTITY") == true)
        }
    }

    @Test func `a truncated document is an error`() throws {
        let broken = try outcome(AFXMLDocumentResponseSerializer(), 200, "text/xml", "<a><b>x</b>")
        #expect(broken.object == nil)
        #expect(broken.error?.domain == XMLParser.errorDomain)
    }

    @Test(arguments: [
        ("<a><b>x</b>", 5), ("", 5), ("<a></b>", 76), (#"<a b="1"c="2"/>"#, 65), (#"<a b="1" b="2"/>"#, 42),
        (#"<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>"#, 89), (String(repeating: "<a>", count: 1_000), 1),
        (#"<?xml version="1.0" encoding="x-none"?><a/>"#, 9),
    ])
    func `XML errors have the codes of Apple's systems`(text: String, code: Int) throws {
        let (object, error) = try outcome(AFXMLDocumentResponseSerializer(), 200, "text/xml", text)
        #expect(object == nil)
        #expect(error?.domain == XMLParser.errorDomain)
        #expect(error?.code == code)
    }

    @Test(arguments: [
        ("application/json", "[]"), ("application/x-plist", "<plist><array/></plist>"), ("text/xml", "<a/>"),
        ("application/xml", "<a/>"),
    ])
    func `without an error pointer a rejected status gives no object`(type: String, body: String) throws {
        let serializer: AFHTTPResponseSerializer =
            switch type {
            case "application/json": AFJSONResponseSerializer()
            case "application/x-plist": AFPropertyListResponseSerializer()
            case "text/xml": AFXMLParserResponseSerializer()
            default: AFXMLDocumentResponseSerializer()
            }
        for (status, hasObject) in [(200, true), (500, false)] {
            let object = serializer.responseObject(
                for: try response(status, type), data: Data(body.utf8), error: nil)
            #expect((object != nil) == hasObject)
        }
        try #expect(outcome(serializer, 500, type, body).object != nil)
    }

    @Test func `the first serializer with an object determines the result, otherwise it is the body`() throws {
        let serializer = AFCompoundResponseSerializer.compoundSerializer(withResponseSerializers: [
            AFJSONResponseSerializer(), AFPropertyListResponseSerializer(),
        ])
        try #expect(outcome(serializer, 200, "application/json", "[]").object is [Any])
        let failed = try outcome(serializer, 500, "application/json", "[]")
        #expect(failed.object is [Any])
        #expect(failed.error?.code == -1011)
        let html = try outcome(serializer, 200, "text/html", "<p>")
        #expect(html.object as? Data == Data("<p>".utf8))
        #expect(html.error == nil)
        try #expect(outcome(serializer, 404, "text/html", "<p>").error?.code == -1011)
    }

    @Test func `copies have the same acceptable responses`() throws {
        let serializer = AFJSONResponseSerializer(readingOptions: .fragmentsAllowed)
        serializer.acceptableContentTypes = nil
        serializer.acceptableStatusCodes = IndexSet(integer: 201)
        serializer.removesKeysWithNullValues = true
        let copy = try #require(serializer.copy() as? AFJSONResponseSerializer)
        #expect(copy.acceptableContentTypes == nil)
        #expect(copy.acceptableStatusCodes == IndexSet(integer: 201))
        #expect(copy.readingOptions == .fragmentsAllowed)
        #expect(copy.removesKeysWithNullValues)
    }

    @Test func `constants have the values of AFNetworking`() {
        #expect(AFURLResponseSerializationErrorDomain == "com.alamofire.error.serialization.response")
        #expect(
            AFNetworkingOperationFailingURLResponseErrorKey == "com.alamofire.serialization.response.error.response")
        #expect(
            AFNetworkingOperationFailingURLResponseDataErrorKey == "com.alamofire.serialization.response.error.data")
    }

    @Test(arguments: ["json", "plist", "xml", "document"])
    func `the error for an unreadable body contains the response and the body`(kind: String) throws {
        let serializer: AFHTTPResponseSerializer =
            switch kind {
            case "json": AFJSONResponseSerializer()
            case "plist": AFPropertyListResponseSerializer()
            case "xml": AFXMLParserResponseSerializer()
            default: AFXMLDocumentResponseSerializer()
            }
        serializer.acceptableContentTypes = nil
        let body = kind == "xml" ? #"<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>"# : "<a"
        let (object, error) = try outcome(serializer, 200, "text/x", body)
        #expect(object == nil)
        let userInfo = try #require(error).userInfo
        let response = userInfo[AFNetworkingOperationFailingURLResponseErrorKey] as? HTTPURLResponse
        #expect(response?.statusCode == 200)
        #expect(userInfo[AFNetworkingOperationFailingURLResponseDataErrorKey] as? Data == Data(body.utf8))
        #expect(userInfo[NSURLErrorFailingURLErrorKey] as? URL == Self.url)
    }

    @Test(arguments: ["/broken", "/missing"])
    func `the error of a task contains its request`(path: String) async throws {
        try await StubServer.with { server in
            server.route("/broken", .reply(headers: ["Content-Type": "application/json"], body: .string("{invalid}")))
            server.route("/missing", .json("{}", status: 404))
            let manager = AFHTTPSessionManager(for: server)
            let error = try #require(await manager.fetch(path).error)
            let request = error.userInfo[AFNetworkingOperationFailingURLRequestErrorKey] as? URLRequest
            #expect(request?.url == server.url(path))
            let response = error.userInfo[AFNetworkingOperationFailingURLResponseErrorKey] as? HTTPURLResponse
            #expect(response?.url == server.url(path))
        }
    }
}
