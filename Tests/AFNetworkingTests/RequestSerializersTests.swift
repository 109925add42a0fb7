// SPDX-License-Identifier: MIT

import AFNetworking
import AsyncNetworking
import AsyncNetworkingTesting
import Dispatch
import Testing

/// Bodies and header field precedence of the request serializers.
@Suite struct RequestSerializersTests {
    private let url = "http://example.com/path"

    private func request(
        _ serializer: AFHTTPRequestSerializer, _ method: String, _ parameters: Any?, url: String? = nil
    ) throws -> NSMutableURLRequest {
        try serializer.request(withMethod: method, urlString: url ?? self.url, parameters: parameters)
    }

    @Test(arguments: ["GET", "HEAD", "DELETE"])
    func `parameters are encoded into the query for GET, HEAD and DELETE`(method: String) throws {
        for serializer in [
            AFHTTPRequestSerializer(), AFJSONRequestSerializer(), AFPropertyListRequestSerializer(),
        ] {
            let request = try request(serializer, method, ["a": 1])
            #expect(request.url?.absoluteString == url + "?a=1")
            #expect(request.httpMethod == method)
            #expect(request.httpBody == nil)
            #expect(request.value(forHTTPHeaderField: "Content-Type") == nil)
        }
    }

    @Test(arguments: [
        ("http://h/p?x=1", "http://h/p?x=1&a=1"), ("http://h/p?", "http://h/p?a=1"),
        ("http://h/p#f", "http://h/p?a=1#f"), ("http://h", "http://h?a=1"),
    ])
    func `the query is appended to that of the URL`(url: String, result: String) throws {
        try #expect(request(AFHTTPRequestSerializer(), "GET", ["a": 1], url: url).url?.absoluteString == result)
        try #expect(request(AFHTTPRequestSerializer(), "GET", [String: Any](), url: url).url?.absoluteString == url)
    }

    private typealias Body = (serializer: AFHTTPRequestSerializer, parameters: Any?, body: String?, type: String?)

    @Test func `each serializer encodes the body in its format`() throws {
        let form = "application/x-www-form-urlencoded"
        let bodies: [Body] = [
            (AFHTTPRequestSerializer(), nil, "", form),
            (AFHTTPRequestSerializer(), [String: Any](), "", form),
            (AFHTTPRequestSerializer(), ["a": "ü b"], "a=%C3%BC%20b", form),
            (AFJSONRequestSerializer(), nil, nil, nil),
            (AFJSONRequestSerializer(), [String: Any](), "{}", "application/json"),
            (AFJSONRequestSerializer(), ["a": [1, NSNull()]], #"{"a":[1,null]}"#, "application/json"),
            (AFJSONRequestSerializer(), [1, 2], "[1,2]", "application/json"),
            (AFPropertyListRequestSerializer(), nil, nil, nil),
        ]
        for (serializer, parameters, body, type) in bodies {
            let request = try request(serializer, "POST", parameters)
            #expect(request.httpBody.map { String(decoding: $0, as: UTF8.self) } == body)
            #expect(request.value(forHTTPHeaderField: "Content-Type") == type)
        }
        let list = try request(AFPropertyListRequestSerializer(), "PUT", ["a": 1])
        #expect(list.value(forHTTPHeaderField: "Content-Type") == "application/x-plist")
        let decoded = try PropertyListDecoder().decode([String: Int].self, from: #require(list.httpBody))
        #expect(decoded == ["a": 1])
    }

    @Test func `only properties that were set are applied to requests`() throws {
        let serializer = AFHTTPRequestSerializer()
        #expect(serializer.timeoutInterval == 0)
        #expect(!serializer.httpShouldHandleCookies)
        #expect(!serializer.allowsCellularAccess)
        let untouched = try request(serializer, "GET", nil)
        #expect(untouched.timeoutInterval == 60)
        #expect(untouched.httpShouldHandleCookies)
        #expect(untouched.allowsCellularAccess)
        serializer.timeoutInterval = 5
        serializer.httpShouldHandleCookies = false
        serializer.allowsCellularAccess = false
        serializer.cachePolicy = .reloadIgnoringLocalCacheData
        let touched = try request(serializer, "GET", nil)
        #expect(touched.timeoutInterval == 5)
        #expect(!touched.httpShouldHandleCookies)
        #expect(!touched.allowsCellularAccess)
        #expect(touched.cachePolicy == .reloadIgnoringLocalCacheData)
    }

    @Test func `header fields are set, found and removed regardless of case`() {
        let serializer = AFHTTPRequestSerializer()
        #expect(serializer.value(forHTTPHeaderField: "user-agent") != nil)
        serializer.setValue("1", forHTTPHeaderField: "X-One")
        serializer.setValue("2", forHTTPHeaderField: "x-one")
        #expect(serializer.httpRequestHeaders.filter { $0.key.lowercased() == "x-one" }.map(\.value) == ["2"])
        serializer.setValue(nil, forHTTPHeaderField: "X-ONE")
        #expect(serializer.value(forHTTPHeaderField: "X-One") == nil)
        serializer.setAuthorizationHeaderFieldWithUsername("user", password: "password")
        #expect(serializer.value(forHTTPHeaderField: "Authorization") == "Basic dXNlcjpwYXNzd29yZA==")
        serializer.clearAuthorizationHeader()
        #expect(serializer.value(forHTTPHeaderField: "Authorization") == nil)
    }

    @Test func `header fields of the request are kept, and a default Content-Type, too`() throws {
        let serializer = AFJSONRequestSerializer()
        serializer.setValue("default", forHTTPHeaderField: "X-A")
        serializer.setValue("application/vnd.api+json", forHTTPHeaderField: "Content-Type")
        var original = URLRequest(url: try #require(URL(string: url)))
        original.httpMethod = "POST"
        original.setValue("own", forHTTPHeaderField: "x-a")
        let request = try serializer.request(bySerializingRequest: original, withParameters: ["a": 1])
        #expect(request.value(forHTTPHeaderField: "X-A") == "own")
        #expect(request.value(forHTTPHeaderField: "Content-Type") == "application/vnd.api+json")
        #expect(original.httpBody == nil)
    }

    @Test func `a block encodes queries and bodies for every method until a style is set`() throws {
        let serializer = AFHTTPRequestSerializer()
        serializer.setQueryStringSerializationWith { request, parameters, _ in
            "raw(\((parameters as? [String: Int])?.count ?? -1))"
        }
        try #expect(request(serializer, "GET", [String: Int]()).url?.query == "raw(0)")
        try #expect(request(serializer, "POST", ["a": 1]).httpBody == Data("raw(1)".utf8))
        try #expect(request(serializer, "GET", nil).url?.query == nil)
        serializer.setQueryStringSerializationWith(.httpRequestQueryStringDefaultStyle)
        try #expect(request(serializer, "GET", ["a": 1]).url?.query == "a=1")
    }

    @Test func `an error from the block becomes the error of the request`() {
        let serializer = AFHTTPRequestSerializer()
        serializer.setQueryStringSerializationWith { _, _, error in
            error?.pointee = NSError(domain: "mine", code: 7)
            return "ignored"
        }
        let request = URLRequest(url: URL(filePath: "/"))
        var error: NSError?
        let pointer = AutoreleasingUnsafeMutablePointer<NSError?>(nil)
        #expect(serializer.request(bySerializingRequest: request, withParameters: ["a": 1], error: pointer) == nil)
        #expect(pointer.pointee?.domain == "mine")
        _ = serializer.request(withMethod: "GET", urlString: url, parameters: ["a": 1], error: &error)
        #expect(error?.code == 7)
    }

    @Test func `parameters that are not valid JSON fail with -1016 and a reason`() throws {
        for parameters: Any in ["text", Double.nan, [1: 2], ["a": Data()], ["a": Double.infinity], ["a": CGFloat.nan]] {
            let error = #expect(throws: NSError.self) { try request(AFJSONRequestSerializer(), "POST", parameters) }
            #expect(error?.domain == "com.alamofire.error.serialization.request")
            #expect(error?.code == -1016)
            #expect(error?.localizedFailureReason == "The `parameters` argument is not valid JSON.")
        }
    }

    @Test func `a CGFloat is a number in JSON and in property lists`() throws {
        let parameters: [String: Any] = ["w": CGFloat(2.5), "a": [["x": CGFloat(1)]], "o": CGFloat?.some(0) as Any]
        let json = try request(AFJSONRequestSerializer(writingOptions: .sortedKeys), "POST", parameters)
        #expect(json.httpBody.map { String(decoding: $0, as: UTF8.self) } == #"{"a":[{"x":1}],"o":0,"w":2.5}"#)
        let list = try request(AFPropertyListRequestSerializer(), "POST", ["w": CGFloat(2.5), "h": [CGFloat(1)]])
        let body = try unsafe PropertyListSerialization.propertyList(from: #require(list.httpBody), format: nil)
        #expect(body as? NSDictionary == ["w": 2.5, "h": [1.0]])
    }

    @Test func `parameters that are not a property list fail with Foundation's error`() {
        #expect(throws: (any Error).self) { try request(AFPropertyListRequestSerializer(), "POST", ["a": NSNull()]) }
    }

    @Test func `a copy has the same header fields, style and block, and otherwise defaults`() throws {
        let serializer = AFJSONRequestSerializer(writingOptions: .sortedKeys)
        serializer.setValue("v", forHTTPHeaderField: "X-A")
        serializer.setQueryStringSerializationWith { _, _, _ in "block" }
        serializer.timeoutInterval = 9
        serializer.stringEncoding = String.Encoding.utf16.rawValue
        serializer.httpMethodsEncodingParametersInURI = ["POST"]
        let copy = try #require(serializer.copy() as? AFJSONRequestSerializer)
        #expect(copy.writingOptions == .sortedKeys)
        #expect(copy.value(forHTTPHeaderField: "X-A") == "v")
        try #expect(request(copy, "GET", ["a": 1]).url?.query == "block")
        #expect(copy.timeoutInterval == 0)
        #expect(copy.stringEncoding == String.Encoding.utf8.rawValue)
        #expect(copy.httpMethodsEncodingParametersInURI == ["GET", "HEAD", "DELETE"])
    }

    @Test func `an archive keeps header fields and options`() throws {
        let serializer = AFJSONRequestSerializer(writingOptions: .prettyPrinted)
        serializer.setValue("v", forHTTPHeaderField: "X-A")
        serializer.timeoutInterval = 9
        let data = try NSKeyedArchiver.archivedData(withRootObject: serializer, requiringSecureCoding: true)
        let restored = try #require(
            try NSKeyedUnarchiver.unarchivedObject(ofClass: AFJSONRequestSerializer.self, from: data))
        #expect(restored.httpRequestHeaders["X-A"] == "v")
        #expect(restored.writingOptions == .prettyPrinted)
        #expect(restored.timeoutInterval == 0)
    }

    @Test func `the methods with parameters in the query can be set`() throws {
        for serializer in [AFHTTPRequestSerializer(), AFJSONRequestSerializer()] {
            serializer.httpMethodsEncodingParametersInURI = ["POST"]
            let post = try request(serializer, "POST", ["a": 1])
            #expect(post.url?.query == "a=1")
            #expect(post.httpBody == nil)
            #expect(try request(serializer, "GET", ["a": 1]).httpBody?.isEmpty == false)
        }
    }

    @Test func `bodies and form values are encoded in the serializer's text encoding`() async throws {
        let serializer = AFHTTPRequestSerializer()
        serializer.stringEncoding = String.Encoding.utf16BigEndian.rawValue
        #expect(try request(serializer, "POST", ["a": "b"]).httpBody == Data([0, 97, 0, 61, 0, 98]))
        let form = try serializer.multipartFormRequest(
            withMethod: "POST", urlString: url, parameters: ["a": "b"], constructingBodyWith: nil)
        let plain = try AFHTTPRequestSerializer().multipartFormRequest(
            withMethod: "POST", urlString: url, parameters: ["a": "bc"], constructingBodyWith: nil)
        // "b" in UTF-16 and "bc" in UTF-8 both take two bytes.
        let lengths = [form, plain].map { $0.value(forHTTPHeaderField: "Content-Length") }
        #expect(lengths[0] == lengths[1])
    }

    @Test func `header field names keep their spelling`() async throws {
        let names = ["x-api-KEY", "ETag-thing", "X-ID"]
        let serializer = AFHTTPRequestSerializer()
        for name in names { serializer.setValue("1", forHTTPHeaderField: name) }
        let plain = try request(serializer, "GET", nil) as URLRequest
        let given = try serializer.request(
            bySerializingRequest: URLRequest(url: #require(URL(string: url))), withParameters: nil)
        let form = try serializer.multipartFormRequest(
            withMethod: "POST", urlString: url, parameters: ["a": 1], constructingBodyWith: nil)
        for request in [plain, given, form as URLRequest] {
            #expect(Set(names).subtracting(request.allHTTPHeaderFields?.keys.map(\.self) ?? []) == [])
        }
    }

    @Test(arguments: [true, false])
    func `header field names are sent as they were spelled`(isForm: Bool) async throws {
        try await StubServer.with { server in
            server.route("/", .json("{}"))
            let manager = AFHTTPSessionManager(for: server)
            manager.requestSerializer.setValue("1", forHTTPHeaderField: "x-api-KEY")
            manager.requestSerializer.setValue("1", forHTTPHeaderField: "CONTENT-type")
            let headers = ["x-call-ID": "2", "X-API-key": "3"]
            let result = await manager.call {
                isForm
                    ? manager.post(
                        "", parameters: ["a": 1], headers: headers, constructingBodyWith: nil, progress: nil,
                        success: $0, failure: $1)
                    : manager.post("", parameters: ["a": 1], headers: headers, progress: nil, success: $0, failure: $1)
            }
            #expect(result.error == nil)
            let sent = try await server.requests(count: 1)[0].headers
            let names = sent.map(\.name).filter { $0.lowercased().hasPrefix("x-") }
            #expect(names.sorted() == ["X-API-key", "x-call-ID"])
            let types = sent.filter { $0.name.lowercased() == "content-type" }
            #expect(types.count == 1)
            #expect(types.first?.value.hasPrefix(isForm ? "multipart/form-data; boundary=" : "1") == true)
            #expect(result.task?.originalRequest?.allHTTPHeaderFields?["x-call-ID"] == "2")
        }
    }

    /// A serializer that returns no request, with or without an error.
    private final class Refusing: AFHTTPRequestSerializer, @unchecked Sendable {
        override func request(
            bySerializingRequest request: URLRequest, withParameters parameters: Any?, error: NSErrorPointer
        ) -> URLRequest? { nil }
    }

    @Test func `a request that cannot be created is an error, in every way to create one`() async throws {
        #expect(throws: NSError.self) { try request(Refusing(), "POST", ["a": 1]) }
        #expect(throws: NSError.self) {
            try Refusing().multipartFormRequest(
                withMethod: "POST", urlString: url, parameters: ["a": 1], constructingBodyWith: nil)
        }
        let error = #expect(throws: NSError.self) {
            try request(AFHTTPRequestSerializer(), "GET", nil, url: "http://[")
        }
        #expect(error?.domain == AFURLRequestSerializationErrorDomain)
        #expect(error?.code == -1000)
        #expect(error?.localizedFailureReason == "“http://[” is not a URL.")
        // If the error is ignored, the returned request cannot be sent: it would lack its parameters.
        let ignored: [NSMutableURLRequest] = [
            AFJSONRequestSerializer().request(
                withMethod: "POST", urlString: url, parameters: ["a": Double.nan], error: nil),
            Refusing().request(withMethod: "POST", urlString: url, parameters: ["a": 1], error: nil),
            AFHTTPRequestSerializer().request(withMethod: "GET", urlString: "http://[", parameters: nil, error: nil),
            AFHTTPRequestSerializer().multipartFormRequest(
                withMethod: "POST", urlString: url, parameters: ["a": 1],
                constructingBodyWith: {
                    $0.appendPart(withHeaders: ["X\r\nY": ""], body: Data())
                }, error: nil),
        ]
        let manager = AFURLSessionManager()
        manager.completionQueue = DispatchQueue(label: "completion")
        for request in ignored {
            #expect(request.url?.host == nil)
            let result = await callback { done in
                manager.dataTask(with: request as URLRequest) {
                    done(Callback(response: $0, object: $1, error: $2 as NSError?))
                }.resume()
            }
            #expect(result.error?.domain == NSURLErrorDomain)
        }
    }

    @Test(arguments: [
        ("GET", "a b", "“a b” is not a valid header field name."), ("a b", "X-A", "“a b” is not a valid method."),
    ])
    func `an invalid method or header field name fails the request`(
        method: String, field: String, reason: String
    ) async throws {
        try await StubServer.with { server in
            server.fallback { _ in .json("{}") }
            let manager = AFHTTPSessionManager(for: server)
            var request = URLRequest(url: server.url("/"))
            request.httpMethod = method
            request.allHTTPHeaderFields = [field: "1"]
            let result = await callback { [request] done in
                manager.dataTask(with: request) {
                    done(Callback(response: $0, object: $1, error: $2 as NSError?))
                }.resume()
            }
            #expect(result.error?.domain == NSURLErrorDomain)
            #expect(result.error?.code == -1000)
            let cause = result.error?.userInfo[NSUnderlyingErrorKey] as? NSError
            #expect(cause?.localizedDescription == "The request cannot be sent: \(reason)")
            #expect(server.activity.requests.isEmpty)
        }
    }

    @Test func `text that the encoding cannot represent is an error`() {
        let serializer = AFHTTPRequestSerializer()
        serializer.stringEncoding = String.Encoding.ascii.rawValue
        serializer.setQueryStringSerializationWith { _, _, _ in "ü" }
        #expect(throws: NSError.self) { try request(serializer, "POST", ["a": 1]) }
        serializer.setQueryStringSerializationWith(nil)
        #expect(throws: NSError.self) {
            try serializer.multipartFormRequest(
                withMethod: "POST", urlString: url, parameters: ["a": "ü"], constructingBodyWith: nil)
        }
    }

    @Test func `an error contains its request`() throws {
        let error = #expect(throws: NSError.self) { try request(AFJSONRequestSerializer(), "POST", ["a": Date()]) }
        let about = error?.userInfo[AFNetworkingOperationFailingURLRequestErrorKey] as? URLRequest
        #expect(about?.url?.absoluteString == url)
        #expect(about?.httpMethod == "POST")
        let list = #expect(throws: NSError.self) {
            try request(AFPropertyListRequestSerializer(), "PUT", ["a": NSNull()])
        }
        #expect(list?.userInfo[AFNetworkingOperationFailingURLRequestErrorKey] is URLRequest)
    }

    @Test func `a property list in a format that Foundation does not write is an error`() throws {
        let serializer = AFPropertyListRequestSerializer(format: .openStep, writeOptions: 0)
        let error = #expect(throws: NSError.self) { try request(serializer, "POST", ["a": 1]) }
        #expect(error?.domain == NSCocoaErrorDomain)
        #expect(error?.code == CocoaError.propertyListWriteInvalid.rawValue)
        try #expect(request(serializer, "GET", ["a": 1]).url?.query == "a=1")
    }

    @Test func `a colon in a user name is sent unchanged, and a control character removes the field`() {
        let serializer = AFHTTPRequestSerializer()
        serializer.setAuthorizationHeaderFieldWithUsername("a:b", password: "c:ü")
        let field = serializer.value(forHTTPHeaderField: "Authorization")
        #expect(field == "Basic " + Data("a:b:c:ü".utf8).base64EncodedString())
        serializer.setAuthorizationHeaderFieldWithUsername("", password: "")
        #expect(serializer.value(forHTTPHeaderField: "Authorization") == "Basic Og==")
        serializer.setAuthorizationHeaderFieldWithUsername("a", password: "b\n")
        #expect(serializer.value(forHTTPHeaderField: "Authorization") == nil)
    }

    @Test func `parameters that are not a dictionary get the name that AFNetworking gives them`() throws {
        let samples: [(Any, String?)] = [
            ("Test String", "=Test%20String"), (5, "=5"), (["a", "b"], "%28null%29%5B%5D=a&%28null%29%5B%5D=b"),
            (Set(["b", "a"]), "=a&=b"), (NSNull(), nil), ([Any](), nil), (Data([1, 2, 3]), "=AQID"),
        ]
        for (parameters, query) in samples {
            try #expect(request(AFHTTPRequestSerializer(), "GET", parameters).url?.query == query)
        }
    }

    @Test func `parameters may be nested 512 levels deep`() throws {
        func nested(_ levels: Int) -> [String: Any] { ["a": (0..<levels).reduce(1 as Any) { value, _ in [value] }] }
        try #expect(request(AFHTTPRequestSerializer(), "POST", nested(511)).httpBody?.isEmpty == false)
        for method in ["GET", "POST"] {
            let error = #expect(throws: NSError.self) { try request(AFHTTPRequestSerializer(), method, nested(512)) }
            #expect(error?.domain == AFURLRequestSerializationErrorDomain)
            #expect(error?.code == -1016)
            #expect(error?.userInfo[NSUnderlyingErrorKey] is SerializationError)
        }
        #expect(AFQueryStringFromParameters(nested(512)) == "")
    }

    @Test func `constants have the values of AFNetworking`() {
        #expect(AFURLRequestSerializationErrorDomain == "com.alamofire.error.serialization.request")
        #expect(AFNetworkingOperationFailingURLRequestErrorKey == "com.alamofire.serialization.request.error.response")
        #expect(kAFUploadStream3GSuggestedPacketSize == 16384)
        #expect(kAFUploadStream3GSuggestedDelay == 0.2)
    }
}
