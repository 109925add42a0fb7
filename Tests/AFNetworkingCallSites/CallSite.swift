// SPDX-License-Identifier: MIT

// Swift code as users of AFNetworking write it. The target has language mode 5 and none of this package's settings, so
// code that compiles here also compiles for them.

import AFNetworking

/// A call site, which uses AFNetworking against a server and reports the result as text.
public struct CallSite: @unchecked Sendable, CustomStringConvertible {
    public let description: String
    public let expected: String
    public let run: (_ server: String, _ report: @escaping (String) -> Void) -> Void

    init(
        _ description: String, _ expected: String,
        _ run: @escaping (_ server: String, _ report: @escaping (String) -> Void) -> Void
    ) {
        self.description = description
        self.expected = expected
        self.run = run
    }

    public static let all =
        verbs + versionThree + requestSerializers + responseSerializers + uploads + downloads + hooks
        + images + subclasses + others
}

/// The most common form: a singleton that subclasses the session manager.
class NetworkTools: AFHTTPSessionManager, @unchecked Sendable {
    static let shared: NetworkTools = {
        let tools = NetworkTools()
        tools.responseSerializer.acceptableContentTypes?.insert("text/html")
        tools.responseSerializer.acceptableContentTypes?.insert("text/plain")
        return tools
    }()

    enum RequestType {
        case GET, POST
    }

    func request(
        type: RequestType, url: String, parameters: [String: Any]?,
        resultBlock: @escaping ([String: Any]?, Error?) -> Void
    ) {
        let successBlock = { (task: URLSessionDataTask, responseObj: Any?) in
            resultBlock(responseObj as? [String: Any], nil)
        }
        let failureBlock = { (task: URLSessionDataTask?, error: Error) in
            resultBlock(nil, error)
        }
        if type == .GET {
            get(url, parameters: parameters, headers: nil, progress: nil, success: successBlock, failure: failureBlock)
        } else {
            post(url, parameters: parameters, headers: nil, progress: nil, success: successBlock, failure: failureBlock)
        }
    }
}

/// A manager with its own initializer. Swift then requires it to implement `init(coder:)`.
class APIClient: AFHTTPSessionManager, @unchecked Sendable {
    let version: Int

    init(baseURL: URL, version: Int) {
        self.version = version
        super.init(baseURL: baseURL, sessionConfiguration: nil)
    }

    required init?(coder: NSCoder) {
        version = coder.decodeInteger(forKey: "version")
        super.init(coder: coder)
    }

    override func encode(with coder: NSCoder) {
        super.encode(with: coder)
        coder.encode(version, forKey: "version")
    }
}

/// A manager without archived properties.
class UploadManager: AFURLSessionManager, @unchecked Sendable {
    override init(sessionConfiguration configuration: URLSessionConfiguration?) {
        super.init(sessionConfiguration: configuration)
    }

    required init?(coder aDecoder: NSCoder) {
        super.init(coder: aDecoder)
    }
}

/// Returns the request line and the body in a response of the echo server.
func line(_ json: Any?) -> String {
    guard let dictionary = json as? [String: Any] else { return "\(String(describing: json))" }
    return "\(dictionary["method"] as? String ?? "?") \(dictionary["target"] as? String ?? "?") \(dictionary["body"] as? String ?? "")"
        .trimmingCharacters(in: .whitespaces)
}

/// Returns a header field of the request in a response of the echo server.
func field(_ name: String, _ json: Any?) -> String {
    let headers = (json as? [String: Any])?["headers"] as? [[String]] ?? []
    return headers.first { $0[0].lowercased() == name.lowercased() }?[1] ?? "none"
}

/// The token with which an observer is removed.
final class NotificationToken: @unchecked Sendable {
    var token: NSObjectProtocol?
}
