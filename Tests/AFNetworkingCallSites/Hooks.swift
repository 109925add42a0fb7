// SPDX-License-Identifier: MIT

import AFNetworking

extension CallSite {
    static let hooks = [
        CallSite("bytes sent", "5 of 5") { server, report in
            let manager = AFHTTPSessionManager(baseURL: URL(string: server))
            var text = ""
            manager.setTaskDidSendBodyDataBlock({ (session: URLSession?, task: URLSessionTask?, bytesSent: Int64, totalBytesSent: Int64, totalBytesExpectedToSend: Int64) -> Void in
                text = "\(totalBytesSent) of \(totalBytesExpectedToSend)"
            })
            var request = URLRequest(url: URL(string: server + "post")!)
            request.httpMethod = "POST"
            manager.uploadTask(with: request, from: Data("12345".utf8), progress: nil) { _, _, _ in report(text) }.resume()
        },
        CallSite("bytes written", "100000 of 100000") { server, report in
            let manager = AFHTTPSessionManager()
            var text = ""
            manager.setDownloadTaskDidWriteDataBlock {
                (session, downloadTask, bytesWritten, totalBytesWritten, totalBytesExpectedToWrite) in
                text = "\(totalBytesWritten) of \(totalBytesExpectedToWrite)"
            }
            manager.downloadTask(
                with: URLRequest(url: URL(string: server + "report.bin")!), progress: nil, destination: nil
            ) { _, _, _ in report(text) }.resume()
        },
        CallSite("redirects that are not followed", "302") { server, report in
            let manager = AFHTTPSessionManager(baseURL: URL(string: server))
            manager.setTaskWillPerformHTTPRedirectionBlock { (_, _, _, request) -> URLRequest? in
                return nil
            }
            manager.get(
                "redirect", parameters: nil, headers: nil, progress: nil, success: nil,
                failure: { task, _ in report("\((task!.response as! HTTPURLResponse).statusCode)") })
        },
        CallSite("redirects with the token", "Bearer t") { server, report in
            let manager = AFHTTPSessionManager(baseURL: URL(string: server))
            manager.requestSerializer.setValue("Bearer t", forHTTPHeaderField: "Authorization")
            manager.setTaskWillPerformHTTPRedirectionBlock { (session, task, response, request) in
                var redirected = request
                redirected.setValue(
                    task.originalRequest?.value(forHTTPHeaderField: "Authorization"),
                    forHTTPHeaderField: "Authorization")
                return redirected
            }
            manager.get(
                "redirect", parameters: nil, headers: nil, progress: nil,
                success: { _, r in report(field("Authorization", r)) }, failure: { _, e in report("\(e)") })
        },
        CallSite("a credential for a challenge", "200") { server, report in
            let manager = AFHTTPSessionManager(baseURL: URL(string: server))
            manager.responseSerializer = AFHTTPResponseSerializer()
            manager.setAuthenticationChallengeHandler { (session, task, challenge, completionHandler) -> Any? in
                guard challenge.previousFailureCount == 0 else {
                    return URLSession.AuthChallengeDisposition.cancelAuthenticationChallenge
                }
                return URLCredential(user: "ada", password: "secret", persistence: .forSession)
            }
            manager.get(
                "private", parameters: nil, headers: nil, progress: nil,
                success: { task, _ in report("\((task.response as! HTTPURLResponse).statusCode)") },
                failure: { _, e in report("\(e)") })
        },
        CallSite("a challenge rejected with an error", "mine 7") { server, report in
            let manager = AFHTTPSessionManager(baseURL: URL(string: server))
            manager.setAuthenticationChallengeHandler { _, _, _, _ in NSError(domain: "mine", code: 7, userInfo: nil) }
            manager.get(
                "private", parameters: nil, headers: nil, progress: nil, success: nil,
                failure: { _, e in report("\((e as NSError).domain) \((e as NSError).code)") })
        },
        CallSite("a limit on the size of responses", "stopped") { server, report in
            let manager = AFHTTPSessionManager(baseURL: URL(string: server))
            manager.setDataTaskDidReceiveDataBlock { (_, task, _) in
                if task.countOfBytesReceived >= 1000 { task.cancel() }
            }
            manager.get(
                "report.bin", parameters: nil, headers: nil, progress: nil, success: { _, _ in report("all") },
                failure: { _, e in report((e as NSError).code == -999 ? "stopped" : "\(e)") })
        },
        CallSite("trust by a block", "GET /get") { server, report in
            let manager = AFHTTPSessionManager(baseURL: URL(string: server))
            manager.setSessionDidReceiveAuthenticationChallenge { (session, challenge, credential) -> URLSession.AuthChallengeDisposition in
                if challenge.protectionSpace.authenticationMethod == NSURLAuthenticationMethodServerTrust,
                    let trust = challenge.protectionSpace.serverTrust
                {
                    credential?.pointee = URLCredential(trust: trust)
                    return .useCredential
                }
                return .performDefaultHandling
            }
            manager.get(
                "get", parameters: nil, headers: nil, progress: nil, success: { _, r in report(line(r)) },
                failure: { _, e in report("\(e)") })
        },
        CallSite("the block for completed tasks, by its shortened Swift name", "complete") { server, report in
            let manager = AFURLSessionManager()
            var text = ""
            manager.setTaskDidComplete { _, _, _ in text = "complete" }
            manager.dataTask(with: URLRequest(url: URL(string: server + "get")!)) { _, _, _ in report(text) }.resume()
        },
        CallSite("a pinned certificate of the user", "no challenge") { server, report in
            let manager = AFHTTPSessionManager(baseURL: URL(string: server))
            manager.setAuthenticationChallengeHandler { session, task, challenge, completionHandler in
                if challenge.protectionSpace.authenticationMethod == NSURLAuthenticationMethodServerTrust {
                    return URLCredential(trust: challenge.protectionSpace.serverTrust!)
                }
                return NSNumber(value: URLSession.AuthChallengeDisposition.performDefaultHandling.rawValue)
            }
            manager.get("get", parameters: nil, headers: nil, progress: nil) { _, _ in
                report("no challenge")
            } failure: { _, _ in
                report("failed")
            }
        },
        CallSite("the block for completed tasks", "complete nil") { server, report in
            let manager = AFURLSessionManager()
            var text = ""
            manager.setTaskDidCompleteBlock { (session, task, error) in
                text = "complete \(error.map { "\($0)" } ?? "nil")"
            }
            manager.dataTask(with: URLRequest(url: URL(string: server + "get")!)) { _, _, _ in report(text) }.resume()
        },
    ]

    static let others = [
        CallSite("a configured pinning policy", "certificate false 0") { _, report in
            let policy = AFSecurityPolicy(pinningMode: .certificate, withPinnedCertificates: Set<Data>())
            policy.allowInvalidCertificates = true
            policy.validatesDomainName = false
            let manager = AFHTTPSessionManager(baseURL: URL(string: "https://example.com"))
            manager.securityPolicy = policy
            switch manager.securityPolicy.sslPinningMode {
            case .none: report("none")
            case .publicKey: report("publicKey")
            case .certificate:
                report("certificate \(policy.validatesDomainName) \(policy.pinnedCertificates?.count ?? -1)")
            @unknown default: report("unknown")
            }
        },
        CallSite("all certificates allowed", "GET /get") { server, report in
            let manager = AFHTTPSessionManager(baseURL: URL(string: server))
            let policy = AFSecurityPolicy(pinningMode: AFSSLPinningMode.none)
            policy.allowInvalidCertificates = true
            policy.validatesDomainName = false
            manager.securityPolicy = policy
            manager.get(
                "get", parameters: nil, headers: nil, progress: nil, success: { _, r in report(line(r)) },
                failure: { _, e in report("\(e)") })
        },
        CallSite("certificates of the bundle", "true") { _, report in
            let policy = AFSecurityPolicy.default()
            policy.pinnedCertificates = AFSecurityPolicy.certificates(in: Bundle.main)
            report("\(policy.pinnedCertificates!.isEmpty)")
        },
        CallSite("reachability by a block", "known") { _, report in
            let manager = AFNetworkReachabilityManager.shared()
            manager.setReachabilityStatusChange { (status: AFNetworkReachabilityStatus) in
                switch status {
                case .unknown: report("unknown")
                case .notReachable, .reachableViaWWAN, .reachableViaWiFi: report("known")
                @unknown default: report("?")
                }
                manager.stopMonitoring()
            }
            manager.startMonitoring()
        },
        CallSite("reachability by a notification", "AFNetworkingReachabilityNotificationStatusItem") { _, report in
            let manager = AFNetworkReachabilityManager(forDomain: "127.0.0.1")
            let observer = NotificationToken()
            observer.token = NotificationCenter.default.addObserver(
                forName: NSNotification.Name.AFNetworkingReachabilityDidChange, object: manager, queue: nil
            ) { notification in
                let status = notification.userInfo?[AFNetworkingReachabilityNotificationStatusItem] as? Int
                report(status == nil ? "none" : AFNetworkingReachabilityNotificationStatusItem)
                NotificationCenter.default.removeObserver(observer.token!)
                manager.stopMonitoring()
            }
            manager.startMonitoring()
        },
        CallSite("a separate reachability manager", "known") { _, report in
            let manager = AFNetworkReachabilityManager()
            manager.setReachabilityStatusChange { status in
                report(status == .unknown ? "unknown" : "known")
                manager.stopMonitoring()
            }
            manager.startMonitoring()
        },
        CallSite("a client certificate from a block", "no challenge") { server, report in
            let manager = AFHTTPSessionManager(baseURL: URL(string: server))
            manager.setSessionDidReceiveAuthenticationChallenge { (session, challenge, credential) -> URLSession.AuthChallengeDisposition in
                guard challenge.protectionSpace.authenticationMethod == NSURLAuthenticationMethodClientCertificate else {
                    return .performDefaultHandling
                }
                let identity: SecIdentity = .pkcs12(.file("client.p12"), passphrase: "secret")
                credential?.pointee = URLCredential(identity: identity, certificates: nil, persistence: .forSession)
                return .useCredential
            }
            manager.get(
                "get", parameters: nil, headers: nil, progress: nil, success: { _, _ in report("no challenge") },
                failure: { _, e in report("\(e)") })
        },
        CallSite("the version", "4 true") { _, report in
            let number: Double = AFNetworkingVersionNumber
            report("\(Int(number)) \(AFNetworkingVersionString.hasPrefix("4."))")
        },
        CallSite("a subclass restored from an archive", "https://example.com/ 7") { _, report in
            let client = try! NSKeyedUnarchiver.unarchivedObject(
                ofClass: APIClient.self,
                from: NSKeyedArchiver.archivedData(
                    withRootObject: APIClient(baseURL: URL(string: "https://example.com/")!, version: 7),
                    requiringSecureCoding: true))
            report("\(client!.baseURL!) \(client!.version)")
        },
        CallSite("raw values of reachability", "-1 0 1 2 Reachable via WiFi") { _, report in
            let all: [AFNetworkReachabilityStatus] = [.unknown, .notReachable, .reachableViaWWAN, .reachableViaWiFi]
            let text = AFStringFromNetworkReachabilityStatus(.reachableViaWiFi)
            report(all.map { "\($0.rawValue)" }.joined(separator: " ") + " " + text)
        },
        CallSite("an invalidated manager", "cancelled") { server, report in
            let manager = AFHTTPSessionManager(baseURL: URL(string: server))
            manager.get(
                "hang", parameters: nil, headers: nil, progress: nil, success: nil,
                failure: { _, e in report((e as NSError).code == NSURLErrorCancelled ? "cancelled" : "\(e)") })
            manager.invalidateSessionCancelingTasks(true, resetSession: false)
        },
        CallSite("all tasks cancelled", "1 cancelled") { server, report in
            let manager = AFHTTPSessionManager(baseURL: URL(string: server))
            manager.get(
                "hang", parameters: nil, headers: nil, progress: nil, success: nil,
                failure: { _, e in report("1 \((e as NSError).code == -999 ? "cancelled" : "\(e)")") })
            for task in manager.tasks { task.cancel() }
        },
        CallSite("tasks of the session", "1") { server, report in
            let manager = AFHTTPSessionManager(baseURL: URL(string: server))
            manager.get("hang", parameters: nil, headers: nil, progress: nil, success: nil, failure: nil)
            manager.session.getTasksWithCompletionHandler { (dataTasks, uploadTasks, downloadTasks) in
                report("\(dataTasks.count)")
                dataTasks.forEach { $0.cancel() }
            }
        },
        CallSite("a completion queue", "not main") { server, report in
            let manager = AFHTTPSessionManager(baseURL: URL(string: server))
            let queue = DispatchQueue(label: "mine")
            let key = DispatchSpecificKey<String>()
            queue.setSpecific(key: key, value: "not main")
            manager.completionQueue = queue
            manager.completionGroup = DispatchGroup()
            manager.get(
                "get", parameters: nil, headers: nil, progress: nil,
                success: { _, _ in report(DispatchQueue.getSpecific(key: key) ?? "another") },
                failure: { _, e in report("\(e)") })
        },
        CallSite("the completion of a task by its notification", "GET /get") { server, report in
            let manager = AFHTTPSessionManager(baseURL: URL(string: server))
            let task = manager.dataTask(with: URLRequest(url: URL(string: server + "get")!)) { _, _, _ in }
            let observer = NotificationToken()
            observer.token = NotificationCenter.default.addObserver(
                forName: .AFNetworkingTaskDidComplete, object: task, queue: nil
            ) { note in
                report(line(note.userInfo?[AFNetworkingTaskDidCompleteSerializedResponseKey]))
                NotificationCenter.default.removeObserver(observer.token!)
            }
            task.resume()
        },
    ]
}
