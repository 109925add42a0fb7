// SPDX-License-Identifier: MIT

import AFNetworking

/// Managers without code of their own have the initializers of their superclass.
final class PlainManager: AFURLSessionManager, @unchecked Sendable {}
final class PlainClient: AFHTTPSessionManager, @unchecked Sendable {}

/// The other classes that programs subclass.
final class PlainRequests: AFHTTPRequestSerializer, @unchecked Sendable {}
final class PlainJSONRequests: AFJSONRequestSerializer, @unchecked Sendable {}
final class PlainListRequests: AFPropertyListRequestSerializer, @unchecked Sendable {}
final class PlainResponses: AFHTTPResponseSerializer, @unchecked Sendable {}
final class PlainJSONResponses: AFJSONResponseSerializer, @unchecked Sendable {}
final class PlainListResponses: AFPropertyListResponseSerializer, @unchecked Sendable {}
final class PlainXMLResponses: AFXMLParserResponseSerializer, @unchecked Sendable {}
final class PlainImageResponses: AFImageResponseSerializer, @unchecked Sendable {}
final class PlainCompoundResponses: AFCompoundResponseSerializer, @unchecked Sendable {}
final class PlainPolicy: AFSecurityPolicy, @unchecked Sendable {}
final class PlainReachability: AFNetworkReachabilityManager, @unchecked Sendable {}
final class PlainDownloader: AFImageDownloader, @unchecked Sendable {}
final class PlainCache: AFAutoPurgingImageCache, @unchecked Sendable {}
final class PlainIndicator: AFNetworkActivityIndicatorManager, @unchecked Sendable {}

/// A manager that overrides methods with the signatures of AFNetworking 2 and 3, which had no header fields.
class TokenClient: AFHTTPSessionManager, @unchecked Sendable {
    var calls: [String] = []

    override func get(
        _ URLString: String, parameters: Any?, progress downloadProgress: ((Progress) -> Void)?,
        success: ((URLSessionDataTask, Any?) -> Void)?, failure: ((URLSessionDataTask?, Error) -> Void)?
    ) -> URLSessionDataTask? {
        calls.append("get")
        return super.get(
            URLString + "?token=t", parameters: parameters, progress: downloadProgress, success: success,
            failure: failure)
    }

    override func post(
        _ URLString: String, parameters: Any?, success: ((URLSessionDataTask, Any?) -> Void)?,
        failure: ((URLSessionDataTask?, Error) -> Void)?
    ) -> URLSessionDataTask? {
        calls.append("post")
        return super.post(URLString, parameters: ["wrapped": 1], success: success, failure: failure)
    }

    override func delete(
        _ URLString: String, parameters: Any?, success: ((URLSessionDataTask, Any?) -> Void)?,
        failure: ((URLSessionDataTask?, Error) -> Void)?
    ) -> URLSessionDataTask? {
        calls.append("delete")
        return super.delete(URLString, parameters: parameters, success: success, failure: failure)
    }

    override func dataTask(
        with request: URLRequest, completionHandler: ((URLResponse, Any?, Error?) -> Void)?
    ) -> URLSessionDataTask {
        calls.append("dataTask")
        return super.dataTask(with: request, completionHandler: completionHandler)
    }
}

/// A manager that repeats a request once after a login, as many programs do.
class RenewingClient: AFHTTPSessionManager, @unchecked Sendable {
    override func dataTask(
        with request: URLRequest, uploadProgress: ((Progress) -> Void)?, downloadProgress: ((Progress) -> Void)?,
        completionHandler: ((URLResponse, Any?, Error?) -> Void)?
    ) -> URLSessionDataTask {
        return super.dataTask(
            with: request, uploadProgress: uploadProgress, downloadProgress: downloadProgress
        ) { response, object, error in
            guard (response as? HTTPURLResponse)?.statusCode == 401 else {
                completionHandler?(response, object, error)
                return
            }
            var again = request
            again.setValue("Basic YWRhOnNlY3JldA==", forHTTPHeaderField: "Authorization")
            super.dataTask(
                with: again, uploadProgress: nil, downloadProgress: nil, completionHandler: completionHandler
            ).resume()
        }
    }
}

/// An image cache that counts what is added and looked up.
class CountingCache: AFAutoPurgingImageCache, @unchecked Sendable {
    var identifiers: [String] = []

    override func add(_ image: UIImage, withIdentifier identifier: String) {
        identifiers.append("+\(identifier)")
        super.add(image, withIdentifier: identifier)
    }

    override func image(withIdentifier identifier: String) -> UIImage? {
        identifiers.append("?\(identifier)")
        return super.image(withIdentifier: identifier)
    }

    override func removeImage(withIdentifier identifier: String) -> Bool {
        identifiers.append("-\(identifier)")
        return super.removeImage(withIdentifier: identifier)
    }
}

/// The members of versions 2 and 3 that are deprecated. They are used through a protocol, so that there is no warning.
protocol DeprecatedUse {
    func text(_ manager: AFHTTPSessionManager) -> String
}

struct DeprecatedMembers: DeprecatedUse {
    @available(*, deprecated)
    func text(_ manager: AFHTTPSessionManager) -> String {
        let before = manager.operationQueue.maxConcurrentOperationCount
        manager.operationQueue.maxConcurrentOperationCount = 5
        manager.attemptsToRecreateUploadTasksForBackgroundSessions = true
        manager.setDidFinishEventsForBackgroundURLSessionBlock { _ in }
        manager.reachabilityManager.setReachabilityStatusChange { status in
            manager.operationQueue.isSuspended = status == .notReachable
        }
        manager.operationQueue.cancelAllOperations()
        return "\(before) \(manager.operationQueue.maxConcurrentOperationCount) "
            + "\(manager.attemptsToRecreateUploadTasksForBackgroundSessions) \(manager.tasks.count)"
    }
}

/// An object whose methods and variables are blocks.
final class Handler {
    typealias Success = (URLSessionDataTask, Any?) -> Void
    var report: (String) -> Void

    init(_ report: @escaping (String) -> Void) {
        self.report = report
    }

    func handle(_ task: URLSessionDataTask, _ object: Any?) {
        report(line(object))
    }

    func load(_ manager: AFHTTPSessionManager, _ success: Success?, _ failure: ((URLSessionDataTask?, Error) -> Void)!) {
        let get = manager.get(_:parameters:headers:progress:success:failure:)
        _ = get("get", nil, nil, nil, success, failure)
    }
}

extension CallSite {
    static let subclasses = [
        CallSite("blocks in variables and methods", "GET /get GET /get GET /get") { server, report in
            let manager = AFHTTPSessionManager(baseURL: URL(string: server))
            var lines: [String] = []
            let handler = Handler { text in
                lines.append(text)
                if lines.count == 3 { report(lines.joined(separator: " ")) }
            }
            let blocks: [Handler.Success] = [handler.handle]
            manager.get("get", parameters: nil, progress: nil, success: blocks[0], failure: nil)
            manager.get("get", parameters: nil, headers: nil, progress: nil, success: handler.handle(_:_:), failure: nil)
            handler.load(manager, handler.handle, { _, error in report("\(error)") })
        },
        CallSite("a challenge that is answered later", "secret") { server, report in
            let manager = AFHTTPSessionManager(baseURL: URL(string: server))
            manager.responseSerializer = AFHTTPResponseSerializer()
            let credential = URLCredential(user: "ada", password: "secret", persistence: .none)
            manager.setAuthenticationChallengeHandler {
                (
                    session: URLSession, task: URLSessionTask, challenge: URLAuthenticationChallenge,
                    done: @escaping (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
                ) -> Any? in
                DispatchQueue.global().async { done(.useCredential, credential) }
                return nil
            }
            manager.get(
                "private", parameters: nil, headers: nil, progress: nil,
                success: { _, body in report(String(data: body as! Data, encoding: .utf8)!) },
                failure: { _, e in report("\(e)") })
        },
        CallSite("subclasses without code", "GET /get") { server, report in
            let manager = PlainManager()
            let others = [
                PlainManager(sessionConfiguration: nil), PlainManager(session: manager.coreSession), PlainClient(),
                PlainClient(session: manager.coreSession), PlainClient(sessionConfiguration: .ephemeral),
            ]
            let client = PlainClient(baseURL: URL(string: server))
            client.get(
                "get", parameters: nil, headers: nil, progress: nil,
                success: { _, json in report(others.count == 5 ? line(json) : "") }, failure: { _, e in report("\(e)") })
        },
        CallSite("other subclasses without code", "24 true 2") { _, report in
            let objects: [NSObject] = [
                PlainRequests(), PlainJSONRequests(), PlainJSONRequests(writingOptions: .prettyPrinted), PlainListRequests(),
                PlainListRequests(format: .binary, writeOptions: 0), PlainResponses(), PlainJSONResponses(),
                PlainJSONResponses(readingOptions: .allowFragments), PlainListResponses(),
                PlainListResponses(format: .xml, readOptions: []), PlainXMLResponses(), PlainImageResponses(),
                PlainCompoundResponses(responseSerializers: []), PlainPolicy(), PlainPolicy(pinningMode: .none),
                PlainPolicy(pinningMode: .none, withPinnedCertificates: []), PlainReachability(),
                PlainReachability(forDomain: "h.example"), PlainDownloader(), PlainDownloader(sessionConfiguration: .ephemeral),
                PlainCache(), PlainCache(memoryCapacity: 2, preferredMemoryCapacity: 1), PlainIndicator(),
                PlainReachability(forAddress: "127.0.0.1"),
            ]
            let cache = objects[21] as! PlainCache
            report("\(objects.count) \(objects[0] is AFHTTPRequestSerializer) \(cache.memoryCapacity)")
        },
        CallSite("overrides without header fields", "GET /x?token=t get post delete dataTask") { server, report in
            let client = TokenClient(baseURL: URL(string: server))
            _ = client.post("post", parameters: nil, success: nil, failure: nil)
            _ = client.delete("delete", parameters: nil, success: nil, failure: nil)
            client.get(
                "x", parameters: nil,
                success: { _, json in
                    let first = client.calls.sorted { $0 == "get" || ($0, $1) == ("post", "delete") }
                    client.dataTask(with: URLRequest(url: URL(string: server + "get")!)) { _, _, _ in
                        report("\(line(json)) \(first.joined(separator: " ")) \(client.calls.last!)")
                    }.resume()
                }, failure: { _, e in report("\(e)") })
        },
        CallSite("an override that repeats a request after a login", "secret") { server, report in
            let client = RenewingClient(baseURL: URL(string: server))
            client.responseSerializer = AFHTTPResponseSerializer()
            client.get(
                "private", parameters: nil, headers: nil, progress: nil,
                success: { _, body in report(String(data: body as! Data, encoding: .utf8)!) },
                failure: { _, e in report("\(e)") })
        },
        CallSite("a copy of a subclass", "7 https://example.com/ APIClient mine") { _, report in
            let client = APIClient(baseURL: URL(string: "https://example.com/")!, version: 7)
            client.requestSerializer.setValue("mine", forHTTPHeaderField: "X-Client")
            let copy = client.copy() as! APIClient
            let field = copy.requestSerializer.value(forHTTPHeaderField: "X-Client") ?? "none"
            report("\(copy.version) \(copy.baseURL!) \(type(of: copy)) \(field)")
        },
        CallSite("a copy of a manager that is a subclass", "UploadManager PlainManager PlainClient true") { _, report in
            let copies = [UploadManager(), PlainManager(), PlainClient()].map { $0.copy() }
            let manager = PlainManager(session: AFURLSessionManager().coreSession)
            let isShared = (manager.copy() as! PlainManager).coreSession === manager.coreSession
            report(copies.map { "\(type(of: $0))" }.joined(separator: " ") + " \(isShared)")
        },
        CallSite("the last block left out", "GET /get 404") { server, report in
            let manager = AFHTTPSessionManager(baseURL: URL(string: server))
            manager.head("text", parameters: nil, headers: nil, success: { _ in })
            manager.put("put", parameters: nil, headers: nil, success: { _, _ in })
            manager.patch("patch", parameters: nil, headers: nil, success: { _, _ in })
            manager.delete("delete", parameters: nil, success: { _, _ in })
            manager.post("post", parameters: nil, headers: nil, progress: nil, success: nil)
            manager.post(
                "post", parameters: nil, headers: nil, constructingBodyWith: { _ in }, progress: nil, success: { _, _ in })
            let request = URLRequest(url: URL(string: server + "missing")!)
            let tasks = [
                manager.dataTask(with: request), manager.dataTask(with: request, uploadProgress: nil, downloadProgress: nil),
                manager.uploadTask(with: request, from: Data(), progress: nil),
                manager.uploadTask(with: request, fromFile: URL(fileURLWithPath: "/dev/null"), progress: nil),
                manager.uploadTask(withStreamedRequest: request, progress: nil),
            ]
            let download = manager.downloadTask(with: request, progress: nil, destination: nil)
            manager.setTaskDidCompleteBlock { _, task, _ in
                guard task == tasks[1] else { return }
                let status = (task.response as? HTTPURLResponse)?.statusCode ?? 0
                manager.get(
                    "get", parameters: nil, headers: nil, progress: nil,
                    success: { _, json in
                        report("\(line(json)) \(status)")
                    })
            }
            tasks[1].resume()
            for task in tasks + [download] where task != tasks[1] { task.cancel() }
        },
        CallSite("deprecated members", "1 5 true 0") { _, report in
            report((DeprecatedMembers() as DeprecatedUse).text(AFHTTPSessionManager()))
        },
        CallSite("an image cache that overrides the methods for identifiers", "?u +u ?u ?u round +u round -u") { server, report in
            let cache = CountingCache()
            let downloader = AFImageDownloader(
                sessionManager: AFHTTPSessionManager(baseURL: nil), downloadPrioritization: .fifo,
                maximumActiveDownloads: 1, imageCache: cache)
            downloader.sessionManager.responseSerializer = AFImageResponseSerializer()
            let url = server + "picture.png"
            let request = URLRequest(url: URL(string: url)!)
            downloader.downloadImage(
                for: request,
                success: { _, _, image in
                    downloader.downloadImage(
                        for: request,
                        success: { _, _, _ in
                            _ = cache.imageforRequest(request, withAdditionalIdentifier: "round")
                            cache.add(image, for: request, withAdditionalIdentifier: "round")
                            cache.removeImageforRequest(request, withAdditionalIdentifier: nil)
                            report(cache.identifiers.joined(separator: " ").replacingOccurrences(of: url, with: "u"))
                        })
                })
        },
        CallSite("a request repeated in its failure block", "GET /get named") { server, report in
            let manager = AFHTTPSessionManager(baseURL: URL(string: server))
            manager.get(
                "missing", parameters: nil, headers: nil, progress: nil, success: nil,
                failure: { task, error in
                    var request = task!.originalRequest!
                    request.url = URL(string: server + "get")
                    let again = manager.dataTask(with: request) { _, json, _ in
                        report("\(line(json)) \(manager.tasks.first?.taskDescription ?? "named")")
                    }
                    again.taskDescription = "named"
                    again.resume()
                })
        },
        CallSite("the underlying error and the error in a catch", "-1004 true -1003 offline") { server, report in
            let manager = AFHTTPSessionManager()
            manager.get(
                "http://127.0.0.1:1/", parameters: nil, headers: nil, progress: nil, success: nil,
                failure: { task, error in
                    let any: Any = error
                    let object = any as! NSError
                    let cause = object.userInfo[NSUnderlyingErrorKey] as? NSError
                    do {
                        throw URLError(.cannotFindHost)
                    } catch let caught as NSError {
                        let text = object.localizedDescription == "Could not connect to the server." ? "offline" : "?"
                        report("\(object.code) \(cause != nil) \(caught.code) \(text)")
                    }
                })
        },
    ]
}
