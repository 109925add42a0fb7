// SPDX-License-Identifier: MIT

import AFNetworking

extension CallSite {
    static let verbs = [
        CallSite("get with an absolute URL", "GET /get") { server, report in
            let manager = AFHTTPSessionManager()
            manager.get(
                server + "get", parameters: nil, headers: nil, progress: nil,
                success: { (task, response) in
                    report(line(response))
                }
            ) { (task, error) in
                report(error.localizedDescription)
            }
        },
        CallSite("get with typed closures", "GET /get?page=1&size=20") { server, report in
            let manager = AFHTTPSessionManager(baseURL: URL(string: server))
            manager.get(
                "get", parameters: ["page": 1, "size": 20], headers: nil, progress: nil,
                success: { (task: URLSessionDataTask, responseObject: Any?) in
                    report(line(responseObject))
                },
                failure: { (task: URLSessionDataTask?, error: Error) in
                    report("failed")
                })
        },
        CallSite("get with implicitly unwrapped arguments", "GET /get") { server, report in
            AFHTTPSessionManager(baseURL: URL(string: server)!).get(
                "get", parameters: nil, headers: nil, progress: { (progress: Progress) in },
                success: { (task: URLSessionDataTask!, response: Any!) -> Void in report(line(response)) },
                failure: { (task: URLSessionDataTask!, error: Error!) -> Void in report("failed") })
        },
        CallSite("a singleton that subclasses the manager", "GET /get?a=1") { server, report in
            NetworkTools.shared.request(type: .GET, url: server + "get", parameters: ["a": 1]) { (json, error) in
                report(line(json))
            }
        },
        CallSite("a singleton that posts", "POST /post a=1") { server, report in
            NetworkTools.shared.request(type: .POST, url: server + "post", parameters: ["a": 1]) { json, error in
                report(error == nil ? line(json) : "failed")
            }
        },
        CallSite("post with a dictionary of many types", "POST /post a=1&b=text&c%5B%5D=1&c%5B%5D=2&d=1") { server, report in
            let parameters: [String: Any] = ["a": 1, "b": "text", "c": [1, 2], "d": true]
            AFHTTPSessionManager(baseURL: URL(string: server)).post(
                "post", parameters: parameters, headers: nil, progress: nil
            ) { task, response in
                report(line(response))
            } failure: { task, error in
                report("failed")
            }
        },
        CallSite("post with NSMutableDictionary", "POST /post user=ada") { server, report in
            let parameters = NSMutableDictionary()
            parameters.setObject("ada", forKey: "user" as NSString)
            AFHTTPSessionManager(baseURL: URL(string: server)).post(
                "post", parameters: parameters, headers: nil, progress: nil, success: { _, r in report(line(r)) },
                failure: { _, e in report("\(e)") })
        },
        CallSite("put", "PUT /put name=x") { server, report in
            AFHTTPSessionManager(baseURL: URL(string: server)).put(
                "put", parameters: ["name": "x"], headers: nil, success: { _, r in report(line(r)) },
                failure: { _, e in report("\(e)") })
        },
        CallSite("patch", "PATCH /patch name=x") { server, report in
            AFHTTPSessionManager(baseURL: URL(string: server)).patch(
                "patch", parameters: ["name": "x"], headers: nil, success: { _, r in report(line(r)) },
                failure: { _, e in report("\(e)") })
        },
        CallSite("delete", "DELETE /users/7?force=1") { server, report in
            AFHTTPSessionManager(baseURL: URL(string: server)).delete(
                "users/7", parameters: ["force": true], headers: nil, success: { _, r in report(line(r)) },
                failure: { _, e in report("\(e)") })
        },
        CallSite("head", "200 text/plain") { server, report in
            AFHTTPSessionManager(baseURL: URL(string: server)).head(
                "text", parameters: nil, headers: nil,
                success: { task in
                    let response = task.response as! HTTPURLResponse
                    report("\(response.statusCode) \(response.mimeType ?? "")")
                }, failure: { _, e in report("\(e)") })
        },
        CallSite("headers of one call", "Bearer abc") { server, report in
            AFHTTPSessionManager(baseURL: URL(string: server)).get(
                "get", parameters: nil, headers: ["Authorization": "Bearer abc"], progress: nil,
                success: { _, r in report(field("Authorization", r)) }, failure: { _, e in report("\(e)") })
        },
        CallSite("the status code in success", "201") { server, report in
            AFHTTPSessionManager(baseURL: URL(string: server)).post(
                "created", parameters: nil, headers: nil, progress: nil,
                success: { task, _ in
                    if let response = task.response as? HTTPURLResponse { report("\(response.statusCode)") }
                }, failure: nil)
        },
        CallSite("the status code in failure", "404") { server, report in
            AFHTTPSessionManager(baseURL: URL(string: server)).get(
                "missing", parameters: nil, headers: nil, progress: nil, success: nil,
                failure: { task, error in
                    let response = task?.response as? HTTPURLResponse
                    report("\(response?.statusCode ?? 0)")
                })
        },
        CallSite("the body of an error", "no such user") { server, report in
            AFHTTPSessionManager(baseURL: URL(string: server)).get(
                "missing", parameters: nil, headers: nil, progress: nil, success: nil,
                failure: { task, error in
                    let userInfo = (error as NSError).userInfo
                    if let data = userInfo[AFNetworkingOperationFailingURLResponseDataErrorKey] as? Data,
                        let json = try? JSONSerialization.jsonObject(with: data) as? [String: Any]
                    {
                        report(json["error"] as? String ?? "?")
                    }
                })
        },
        CallSite("the response of an error", "404 not found") { server, report in
            AFHTTPSessionManager(baseURL: URL(string: server)).get(
                "missing", parameters: nil, headers: nil, progress: nil, success: nil,
                failure: { _, error in
                    let error = error as NSError
                    let response =
                        error.userInfo[AFNetworkingOperationFailingURLResponseErrorKey] as! HTTPURLResponse
                    report("\(response.statusCode) \(error.localizedDescription.contains("not found") ? "not found" : "")")
                })
        },
        CallSite("cancelling the task that a verb returns", "cancelled -999") { server, report in
            let task = AFHTTPSessionManager(baseURL: URL(string: server)).get(
                "hang", parameters: nil, headers: nil, progress: nil, success: { _, _ in report("success") },
                failure: { _, error in
                    let code = (error as NSError).code
                    report(code == NSURLErrorCancelled ? "cancelled \(code)" : "\(error)")
                })
            task?.cancel()
        },
        CallSite("an error as a URLError", "cancelled") { server, report in
            AFHTTPSessionManager(baseURL: URL(string: server)).get(
                "hang", parameters: nil, headers: nil, progress: nil, success: nil,
                failure: { _, error in
                    report((error as? URLError)?.code == .cancelled ? "cancelled" : "\(error)")
                })?.cancel()
        },
        CallSite("a request for any method", "PROPFIND /dav") { server, report in
            let manager = AFHTTPSessionManager(baseURL: URL(string: server))
            let task = manager.dataTask(
                withHTTPMethod: "PROPFIND", urlString: "dav", parameters: nil, headers: nil, uploadProgress: nil,
                downloadProgress: nil, success: { _, r in report(line(r)) }, failure: { _, e in report("\(e)") })
            task?.resume()
        },
        CallSite("a manager with a configuration", "GET /get mine") { server, report in
            let configuration = URLSessionConfiguration.default
            configuration.timeoutIntervalForRequest = 20
            configuration.timeoutIntervalForResource = 60
            configuration.httpMaximumConnectionsPerHost = 2
            configuration.requestCachePolicy = .reloadIgnoringLocalCacheData
            configuration.httpShouldSetCookies = false
            configuration.httpAdditionalHeaders = ["X-Client": "mine"]
            let manager = AFHTTPSessionManager(baseURL: URL(string: server)!, sessionConfiguration: configuration)
            manager.get(
                "get", parameters: nil, headers: nil, progress: nil,
                success: { _, r in report("\(line(r)) \(field("X-Client", r))") }, failure: { _, e in report("\(e)") })
        },
    ]

    static let versionThree = [
        CallSite("get as in version 3", "GET /get?a=1") { server, report in
            AFHTTPSessionManager(baseURL: URL(string: server)).get(
                "get", parameters: ["a": 1], progress: nil, success: { (task, json) in report(line(json)) },
                failure: { (task, error) in report("\(error)") })
        },
        CallSite("get without progress", "GET /get") { server, report in
            AFHTTPSessionManager(baseURL: URL(string: server)).get(
                "get", parameters: nil, success: { _, json in report(line(json)) }, failure: { _, _ in })
        },
        CallSite("post as in version 3, with trailing closures", "POST /post a=1") { server, report in
            AFHTTPSessionManager(baseURL: URL(string: server)).post(
                "post", parameters: ["a": 1], progress: nil,
                success: { (_, json) in
                    report(line(json))
                }
            ) { (_, error) in
                report("\(error)")
            }
        },
        CallSite("put as in version 3", "PUT /put") { server, report in
            AFHTTPSessionManager(baseURL: URL(string: server)).put(
                "put", parameters: nil, success: { _, json in report(line(json)) }, failure: { _, _ in })
        },
        CallSite("patch as in version 3", "PATCH /patch") { server, report in
            AFHTTPSessionManager(baseURL: URL(string: server)).patch(
                "patch", parameters: nil, success: { _, json in report(line(json)) }, failure: { _, _ in })
        },
        CallSite("delete as in version 3", "DELETE /x") { server, report in
            AFHTTPSessionManager(baseURL: URL(string: server)).delete(
                "x", parameters: nil, success: { _, json in report(line(json)) }, failure: { _, _ in })
        },
        CallSite("head as in version 3", "200") { server, report in
            AFHTTPSessionManager(baseURL: URL(string: server)).head(
                "text", parameters: nil,
                success: { report("\(($0.response as! HTTPURLResponse).statusCode)") }, failure: { _, _ in })
        },
        CallSite("a form as in version 3", "POST /post 1") { server, report in
            AFHTTPSessionManager(baseURL: URL(string: server)).post(
                "post", parameters: nil,
                constructingBodyWith: { (formData: AFMultipartFormData) in
                    formData.appendPart(withForm: Data("v".utf8), name: "k")
                }, progress: nil,
                success: { _, json in
                    let body = (json as? [String: Any])?["body"] as? String ?? ""
                    report("POST /post \(body.components(separatedBy: "name=\"k\"").count - 1)")
                }, failure: { _, error in report("\(error)") })
        },
        CallSite("a data task as in version 3", "GET /get") { server, report in
            let manager = AFURLSessionManager(sessionConfiguration: URLSessionConfiguration.default)
            let request = URLRequest(url: URL(string: server + "get")!)
            let dataTask = manager.dataTask(with: request) { (response, responseObject, error) in
                report(line(responseObject))
            }
            dataTask.resume()
        },
    ]
}
