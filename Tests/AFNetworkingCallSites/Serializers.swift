// SPDX-License-Identifier: MIT

import AFNetworking

/// A request serializer that signs requests, as in many apps.
class SigningSerializer: AFHTTPRequestSerializer, @unchecked Sendable {
    override func request(
        withMethod method: String, urlString URLString: String, parameters: Any?, error: NSErrorPointer
    ) -> NSMutableURLRequest {
        var signed = parameters as? [String: Any] ?? [:]
        signed["signature"] = "s\(signed.count)"
        let request = super.request(withMethod: method, urlString: URLString, parameters: signed, error: error)
        request.setValue("signed", forHTTPHeaderField: "X-Signed")
        return request
    }
}

/// A response serializer that converts the error responses of an API.
class APIResponseSerializer: AFJSONResponseSerializer, @unchecked Sendable {
    override init() {
        super.init()
        acceptableContentTypes = ["application/json", "text/json", "text/html"]
        var codes = acceptableStatusCodes
        codes?.insert(integersIn: 400...499)
        acceptableStatusCodes = codes
    }

    required init?(coder aDecoder: NSCoder) {
        super.init(coder: aDecoder)
    }

    override func responseObject(for response: URLResponse?, data: Data?, error: NSErrorPointer) -> Any? {
        let responseObject = super.responseObject(for: response, data: data, error: error)
        guard let httpResponse = response as? HTTPURLResponse, (400...499).contains(httpResponse.statusCode) else {
            return responseObject
        }
        let reason = (responseObject as? [String: Any])?["error"] as? String ?? "?"
        error?.pointee = NSError(domain: "API", code: httpResponse.statusCode, userInfo: ["reason": reason])
        return nil
    }
}

extension CallSite {
    static let requestSerializers = [
        CallSite("JSON bodies", #"POST /post {"name":"ada"} application/json"#) { server, report in
            let manager = AFHTTPSessionManager(baseURL: URL(string: server))
            manager.requestSerializer = AFJSONRequestSerializer()
            manager.post(
                "post", parameters: ["name": "ada"], headers: nil, progress: nil,
                success: { _, r in report("\(line(r)) \(field("Content-Type", r))") }, failure: { _, e in report("\(e)") })
        },
        CallSite("pretty JSON", "true") { server, report in
            let manager = AFHTTPSessionManager(baseURL: URL(string: server))
            manager.requestSerializer = AFJSONRequestSerializer(writingOptions: .prettyPrinted)
            manager.post(
                "post", parameters: ["name": "ada"], headers: nil, progress: nil,
                success: { _, r in report("\(((r as? [String: Any])?["body"] as? String ?? "").contains("\n"))") },
                failure: { _, e in report("\(e)") })
        },
        CallSite("header fields, timeout and cache policy of a serializer", "application/vnd.api+json de 12.0") {
            server, report in
            let manager = AFHTTPSessionManager(baseURL: URL(string: server))
            manager.requestSerializer.setValue("application/vnd.api+json", forHTTPHeaderField: "Accept")
            manager.requestSerializer.setValue("de", forHTTPHeaderField: "Accept-Language")
            manager.requestSerializer.timeoutInterval = 12
            manager.requestSerializer.cachePolicy = .reloadIgnoringLocalCacheData
            manager.get(
                "get", parameters: nil, headers: nil, progress: nil,
                success: { task, r in
                    let timeout = task.originalRequest?.timeoutInterval ?? 0
                    report("\(field("Accept", r)) \(field("Accept-Language", r)) \(timeout)")
                }, failure: { _, e in report("\(e)") })
        },
        CallSite("basic authentication", "Basic YWRhOnNlY3JldA==") { server, report in
            let manager = AFHTTPSessionManager(baseURL: URL(string: server))
            manager.requestSerializer.setAuthorizationHeaderFieldWithUsername("ada", password: "secret")
            manager.get(
                "get", parameters: nil, headers: nil, progress: nil,
                success: { _, r in report(field("Authorization", r)) }, failure: { _, e in report("\(e)") })
        },
        CallSite("parameters of DELETE in the body", "DELETE /x id=1") { server, report in
            let manager = AFHTTPSessionManager(baseURL: URL(string: server))
            manager.requestSerializer.httpMethodsEncodingParametersInURI = Set(["GET", "HEAD"])
            manager.delete(
                "x", parameters: ["id": 1], headers: nil, success: { _, r in report(line(r)) },
                failure: { _, e in report("\(e)") })
        },
        CallSite("a custom query encoding", "GET /get?custom") { server, report in
            let manager = AFHTTPSessionManager(baseURL: URL(string: server))
            manager.requestSerializer.setQueryStringSerializationWith { (request, parameters, error) -> String in
                return "custom"
            }
            manager.get(
                "get", parameters: ["a": 1], headers: nil, progress: nil, success: { _, r in report(line(r)) },
                failure: { _, e in report("\(e)") })
        },
        CallSite("a request from the serializer, with nil for the error", "POST /post a=1") { server, report in
            let request = AFHTTPRequestSerializer().request(
                withMethod: "POST", urlString: server + "post", parameters: ["a": 1], error: nil)
            request.timeoutInterval = 15
            request.setValue("1", forHTTPHeaderField: "X-One")
            let manager = AFURLSessionManager(sessionConfiguration: .default)
            manager.dataTask(with: request as URLRequest, uploadProgress: nil, downloadProgress: nil) { _, object, _ in
                report(line(object))
            }.resume()
        },
        CallSite("a request from the serializer, with a variable for the error", "GET /get?a=1 nil") { server, report in
            var serializationError: NSError?
            let manager = AFHTTPSessionManager()
            let request = manager.requestSerializer.request(
                withMethod: "GET", urlString: server + "get", parameters: ["a": 1], error: &serializationError)
            if let error = serializationError { return report("\(error)") }
            manager.dataTask(with: request as URLRequest, uploadProgress: nil, downloadProgress: nil) { _, object, error in
                report("\(line(object)) \(error.map { "\($0)" } ?? "nil")")
            }.resume()
        },
        CallSite("a request based on another one, with a variable for the error", "POST /post a=1 nil") { server, report in
            var request = URLRequest(url: URL(string: server + "post")!)
            request.httpMethod = "POST"
            var error: NSError?
            let serializer: AFURLRequestSerialization = AFHTTPRequestSerializer()
            guard let serialized = serializer.request(bySerializingRequest: request, withParameters: ["a": 1], error: &error)
            else { return report("\(String(describing: error))") }
            let failed = AFJSONRequestSerializer().request(bySerializingRequest: request, withParameters: ["a": Date()], error: &error)
            AFURLSessionManager().dataTask(with: serialized, uploadProgress: nil, downloadProgress: nil) { _, object, _ in
                report("\(line(object)) \(failed.map { "\($0)" } ?? "nil")")
            }.resume()
        },
        CallSite("a request from the serializer, with try", "GET /get") { server, report in
            do {
                let request = try AFJSONRequestSerializer().request(
                    withMethod: "GET", urlString: server + "get", parameters: nil)
                AFURLSessionManager().dataTask(
                    with: request as URLRequest, uploadProgress: nil, downloadProgress: nil,
                    completionHandler: { _, object, _ in report(line(object)) }
                ).resume()
            } catch {
                report("\(error)")
            }
        },
        CallSite("parameters that are not valid JSON", "-1016 The `parameters` argument is not valid JSON.") { server, report in
            let manager = AFHTTPSessionManager(baseURL: URL(string: server))
            manager.requestSerializer = AFJSONRequestSerializer()
            manager.post(
                "post", parameters: ["date": Date()], headers: nil, progress: nil, success: nil,
                failure: { task, error in
                    let error = error as NSError
                    report("\(error.code) \(error.localizedFailureReason ?? "")")
                })
        },
        CallSite("a serializer that signs", "GET /get?a=1&signature=s1 signed") { server, report in
            let manager = AFHTTPSessionManager(baseURL: URL(string: server))
            manager.requestSerializer = SigningSerializer()
            manager.get(
                "get", parameters: ["a": 1], headers: nil, progress: nil,
                success: { _, r in report("\(line(r)) \(field("X-Signed", r))") }, failure: { _, e in report("\(e)") })
        },
        CallSite("a cast of the serializer", "GET /get") { server, report in
            let manager = AFHTTPSessionManager(baseURL: URL(string: server))
            let serializer = manager.requestSerializer as AFHTTPRequestSerializer
            serializer.setValue("x", forHTTPHeaderField: "X")
            manager.get(
                "get", parameters: nil, headers: nil, progress: nil, success: { _, r in report(line(r)) },
                failure: { _, e in report("\(e)") })
        },
    ]

    static let responseSerializers = [
        CallSite("text/html as an acceptable type", "ok") { server, report in
            let manager = AFHTTPSessionManager(baseURL: URL(string: server))
            manager.responseSerializer.acceptableContentTypes?.insert("text/html")
            manager.get(
                "html-json", parameters: nil, headers: nil, progress: nil,
                success: { _, r in report((r as? [String: Any])?["status"] as? String ?? "?") },
                failure: { _, e in report("\(e)") })
        },
        CallSite("acceptable types from NSSet", "ok") { server, report in
            let manager = AFHTTPSessionManager(baseURL: URL(string: server))
            manager.responseSerializer.acceptableContentTypes =
                NSSet(objects: "application/json", "text/html", "text/plain") as? Set<String>
            manager.get(
                "html-json", parameters: nil, headers: nil, progress: nil,
                success: { _, r in report((r as? [String: Any])?["status"] as? String ?? "?") },
                failure: { _, e in report("\(e)") })
        },
        CallSite("the error for an unacceptable type", "Request failed: unacceptable content-type: text/html") { server, report in
            AFHTTPSessionManager(baseURL: URL(string: server)).get(
                "html-json", parameters: nil, headers: nil, progress: nil, success: nil,
                failure: { _, error in report(error.localizedDescription) })
        },
        CallSite("bytes", "hello") { server, report in
            let manager = AFHTTPSessionManager(baseURL: URL(string: server))
            manager.responseSerializer = AFHTTPResponseSerializer()
            manager.get(
                "text", parameters: nil, headers: nil, progress: nil,
                success: { _, r in report(String(data: r as! Data, encoding: .utf8)!) },
                failure: { _, e in report("\(e)") })
        },
        CallSite("JSON with options", "ada") { server, report in
            let manager = AFURLSessionManager(sessionConfiguration: .default)
            let serializer = AFJSONResponseSerializer(readingOptions: .mutableContainers)
            serializer.acceptableContentTypes = Set(["application/json", "text/html"])
            serializer.removesKeysWithNullValues = true
            manager.responseSerializer = serializer
            let request = URLRequest(url: URL(string: server + "user")!)
            manager.dataTask(with: request, uploadProgress: nil, downloadProgress: nil) { _, object, error in
                let user = object as? NSDictionary
                report(user?["nickname"] == nil ? user?["name"] as? String ?? "?" : "null")
            }.resume()
        },
        CallSite("a serializer with custom errors", "API 404 no such user") { server, report in
            let manager = AFHTTPSessionManager(baseURL: URL(string: server))
            manager.responseSerializer = APIResponseSerializer()
            manager.get(
                "missing", parameters: nil, headers: nil, progress: nil, success: { _, _ in report("success") },
                failure: { _, error in
                    let error = error as NSError
                    report("\(error.domain) \(error.code) \(error.userInfo["reason"] ?? "")")
                })
        },
        CallSite("XML", "note") { server, report in
            final class Names: NSObject, XMLParserDelegate {
                var names: [String] = []
                func parser(
                    _ parser: XMLParser, didStartElement elementName: String, namespaceURI: String?,
                    qualifiedName qName: String?, attributes attributeDict: [String: String]
                ) {
                    names.append(elementName)
                }
            }
            let manager = AFHTTPSessionManager(baseURL: URL(string: server))
            manager.responseSerializer = AFXMLParserResponseSerializer()
            manager.get(
                "xml", parameters: nil, headers: nil, progress: nil,
                success: { _, response in
                    let parser = response as! XMLParser
                    let names = Names()
                    parser.delegate = names
                    _ = parser.parse()
                    report(names.names.joined(separator: " "))
                }, failure: { _, e in report("\(e)") })
        },
        CallSite("an XML document with options", "note") { server, report in
            let manager = AFHTTPSessionManager(baseURL: URL(string: server))
            let options: UInt = XMLNode.Options.nodePreserveWhitespace.rawValue
            manager.responseSerializer = AFXMLDocumentResponseSerializer(xmlDocumentOptions: options)
            manager.get(
                "xml", parameters: nil, headers: nil, progress: nil,
                success: { _, r in report((r as! XMLDocument).rootElement()?.name ?? "?") },
                failure: { _, e in report("\(e)") })
        },
        CallSite("several serializers", "hello") { server, report in
            let manager = AFHTTPSessionManager(baseURL: URL(string: server))
            manager.responseSerializer = AFCompoundResponseSerializer.compoundSerializer(withResponseSerializers: [
                AFJSONResponseSerializer(), AFHTTPResponseSerializer(),
            ])
            manager.get(
                "text", parameters: nil, headers: nil, progress: nil,
                success: { _, r in report(String(decoding: r as? Data ?? Data(), as: UTF8.self)) },
                failure: { _, e in report("\(e)") })
        },
        CallSite("acceptable status codes from NSIndexSet", "418") { server, report in
            let manager = AFHTTPSessionManager(baseURL: URL(string: server))
            let codes = NSMutableIndexSet(indexesIn: NSRange(location: 200, length: 100))
            codes.add(418)
            manager.responseSerializer.acceptableStatusCodes = codes as IndexSet
            manager.get(
                "teapot", parameters: nil, headers: nil, progress: nil,
                success: { task, _ in report("\((task.response as! HTTPURLResponse).statusCode)") },
                failure: { _, e in report("\(e)") })
        },
    ]
}
