// SPDX-License-Identifier: MIT

import AFNetworking
import AsyncNetworking
import AsyncNetworkingTesting
import Dispatch
import HTTPTypes
import TestSupport
import Testing

/// The settings that a manager's core session takes from a Foundation configuration, and the manager's `URLSession`.
@Suite(.timeLimit(.minutes(5))) struct ConfigurationsTests {
    /// Returns the configuration of the core session.
    private func core(_ change: (URLSessionConfiguration) -> Void) -> SessionConfiguration {
        let configuration = URLSessionConfiguration.default
        change(configuration)
        return AFURLSessionManager(sessionConfiguration: configuration).coreSession.configuration
    }

    @Test(
        arguments: [
            (30, .seconds(30)), (0.5, .milliseconds(500)), (0, nil), (-1, nil), (999_999_999, .seconds(999_999_999)),
            (1_000_000_000, nil), (.infinity, nil), (.nan, nil),
        ] as [(TimeInterval, Duration?)])
    func `the timeout for requests is the idle timeout`(seconds: TimeInterval, limit: Duration?) {
        #expect(core { $0.timeoutIntervalForRequest = seconds }.timeouts.idle == limit)
    }

    @Test(
        arguments: [
            (604_799, .seconds(604_799)), (604_800, nil), (1_000_000, nil), (10, .seconds(10)), (0, nil),
        ] as [(TimeInterval, Duration?)])
    func `the timeout for resources is the total timeout, and none from a week on`(
        seconds: TimeInterval, limit: Duration?
    ) {
        #expect(core { $0.timeoutIntervalForResource = seconds }.timeouts.total == limit)
    }

    @Test(
        arguments: [
            (true, .always, true), (true, .onlyFromMainDocumentDomain, true), (true, .never, false),
            (false, .always, false), (false, .never, false),
        ] as [(Bool, HTTPCookie.AcceptPolicy, Bool)])
    func `cookies are handled if they are sent and accepted`(
        isSending: Bool, policy: HTTPCookie.AcceptPolicy, isHandling: Bool
    ) {
        let found = core { configuration in
            configuration.httpShouldSetCookies = isSending
            configuration.httpCookieAcceptPolicy = policy
        }
        #expect(found.handlesCookies == isHandling)
    }

    @Test func `header fields whose names are not valid are ignored`() throws {
        let found = core { $0.httpAdditionalHeaders = ["a b": "1", "X-A": 5, "": "2"] }
        #expect(found.headers[try #require(HTTPField.Name("X-A"))] == "5")
        #expect(core { $0.httpMaximumConnectionsPerHost = 3 }.connectionLimits.maximumConnectionsPerHost == 3)
    }

    struct ProxySample: CustomTestStringConvertible, @unchecked Sendable {
        let dictionary: [AnyHashable: Any]?
        let policy: ProxyPolicy
        var testDescription: String { "\(dictionary ?? [:])" }

        init(_ dictionary: [AnyHashable: Any]?, _ policy: ProxyPolicy) {
            self.dictionary = dictionary
            self.policy = policy
        }
    }

    static let proxies = [
        ProxySample(nil, .environment), ProxySample([:], .environment),
        ProxySample(["HTTPProxy": "a", "HTTPPort": 80], .proxy(Proxy(.http, host: "a", port: 80))),
        ProxySample(["HTTPProxy": "a", "HTTPPort": "80"], .proxy(Proxy(.http, host: "a", port: 80))),
        ProxySample(["SOCKSProxy": "s", "SOCKSPort": 1080], .proxy(Proxy(.socks5, host: "s", port: 1080))),
        ProxySample(
            ["HTTPProxy": "a", "HTTPPort": 80, "HTTPSProxy": "b", "HTTPSPort": 443, "SOCKSProxy": "s", "SOCKSPort": 1],
            .proxy(Proxy(.http, host: "b", port: 443))),
        ProxySample(
            ["HTTPProxy": "a", "HTTPPort": 80, "HTTPSProxy": "b", "HTTPSPort": 443, "HTTPSEnable": 0],
            .proxy(Proxy(.http, host: "a", port: 80))),
        ProxySample(["HTTPProxy": "a", "HTTPPort": 80, "HTTPEnable": 0], .environment),
        ProxySample(["HTTPProxy": "a", "HTTPPort": 80, "HTTPEnable": false], .environment),
        ProxySample(["HTTPProxy": "a", "HTTPPort": 80, "HTTPEnable": 1], .proxy(Proxy(.http, host: "a", port: 80))),
        ProxySample(["HTTPProxy": "a"], .environment), ProxySample(["HTTPPort": 80], .environment),
        ProxySample(["HTTPProxy": "a", "HTTPPort": "x"], .environment),
    ]

    @Test(arguments: proxies)
    func `the first proxy that is enabled and complete is used`(sample: ProxySample) {
        #expect(core { $0.connectionProxyDictionary = sample.dictionary }.proxy == sample.policy)
    }

    @Test func `the session lists the manager's tasks by kind`() async throws {
        let manager = AFURLSessionManager()
        let request = URLRequest(url: try #require(URL(string: "http://127.0.0.1:1/")))
        let data = manager.session.dataTask(with: request)
        let upload = manager.session.uploadTask(with: request, from: Data())
        let streamed = manager.session.uploadTask(withStreamedRequest: request)
        let download = manager.session.downloadTask(with: try #require(request.url))
        let resumed = manager.session.downloadTask(withResumeData: Data())
        let uploads = [upload, streamed].map(\.taskIdentifier)
        let downloads = [download, resumed].map(\.taskIdentifier)
        let all = await withCheckedContinuation { waiter in
            manager.session.getAllTasks { tasks in waiter.resume(returning: tasks.map(\.taskIdentifier)) }
        }
        #expect(all == [data.taskIdentifier] + uploads + downloads)
        let kinds = await withCheckedContinuation { waiter in
            manager.session.getTasksWithCompletionHandler { data, upload, download in
                let lists: [[URLSessionTask]] = [data, upload, download]
                waiter.resume(returning: lists.map { $0.map(\.taskIdentifier) })
            }
        }
        #expect(kinds == [[data.taskIdentifier], uploads, downloads])
        manager.invalidateSessionCancelingTasks(true)
        try await eventually { manager.tasks.isEmpty }
    }

    @Test(arguments: [true, false])
    func `invalidating the session ends the manager's tasks or lets them finish`(cancels: Bool) async throws {
        try await StubServer.with { server in
            server.fallback { _ in .json("{}") }
            let manager = AFHTTPSessionManager(for: server)
            let result = await callback { done in
                let task = manager.dataTask(with: URLRequest(url: server.url("/"))) {
                    done(Callback(response: $0, object: $1, error: $2 as NSError?))
                }
                if cancels { manager.session.invalidateAndCancel() } else { manager.session.finishTasksAndInvalidate() }
                task.resume()
            }
            #expect(result.error?.code == (cancels ? NSURLErrorCancelled : nil))
            #expect(await manager.fetch("").error != nil)
        }
    }

    @Test func `a session whose manager was freed has no tasks`() async {
        let session = AFURLSessionManager().session
        let count = await withCheckedContinuation { waiter in
            session.getAllTasks { tasks in
                session.getTasksWithCompletionHandler { data, upload, download in
                    waiter.resume(returning: tasks.count + data.count + upload.count + download.count)
                }
            }
        }
        #expect(count == 0)
        session.invalidateAndCancel()
        session.finishTasksAndInvalidate()
    }

    @Test func `a session whose manager was freed or invalidated lets Foundation perform tasks`() async throws {
        try await StubServer.with { server in
            server.fallback { _ in .text("x") }
            weak var freed: URLSession?
            do {
                let orphan = AFURLSessionManager().session
                let manager = AFURLSessionManager()
                let session = manager.session
                _ = await callback { done in
                    manager.setSessionDidBecomeInvalidBlock { _, _ in done(Callback()) }
                    manager.invalidateSessionCancelingTasks(true)
                }
                #expect(orphan.dataTask(with: server.url("/")).state == .suspended)
                #expect(orphan.uploadTask(with: URLRequest(url: server.url("/")), from: Data()).state == .suspended)
                #expect(orphan.downloadTask(with: server.url("/")).state == .suspended)
                for session in [orphan, session] {
                    let result = await callback { done in
                        session.dataTask(with: server.url("/")) { data, _, _ in done(Callback(object: data)) }.resume()
                    }
                    #expect(result.object as? Data == Data("x".utf8))
                }
                freed = session
            }
            try await eventually { freed == nil }
        }
    }

    @Test func `delegate methods take the default decision if no block is set, and that of the block otherwise`() throws
    {
        let manager = AFURLSessionManager()
        let url = try #require(URL(string: "http://127.0.0.1:1/"))
        let task = manager.dataTask(with: URLRequest(url: url), completionHandler: nil)
        let response = try #require(HTTPURLResponse(url: url, statusCode: 302, httpVersion: nil, headerFields: nil))
        let other = URLRequest(url: url.appending(path: "other"))
        let cached = CachedURLResponse(response: response, data: Data("a".utf8))
        let decisions = Log<String>()
        func ask() {
            manager.urlSession(manager.session, task: task, willPerformHTTPRedirection: response, newRequest: other) {
                decisions.add($0?.url?.path ?? "none")
            }
            manager.urlSession(manager.session, dataTask: task, didReceive: response) {
                decisions.add("\($0.rawValue)")
            }
            manager.urlSession(manager.session, dataTask: task, willCacheResponse: cached) {
                decisions.add($0.map { String(decoding: $0.data, as: UTF8.self) } ?? "none")
            }
            manager.urlSession(manager.session, task: task) { decisions.add($0 == nil ? "none" : "stream") }
        }
        ask()
        manager.setTaskWillPerformHTTPRedirectionBlock { _, _, _, _ in nil }
        manager.setDataTaskDidReceiveResponseBlock { _, _, _ in .cancel }
        manager.setDataTaskWillCacheResponseBlock { _, _, _ in nil }
        manager.setTaskNeedNewBodyStreamBlock { _, _ in InputStream(data: Data()) }
        ask()
        #expect(decisions.entries == ["/other", "1", "a", "none", "none", "0", "none", "stream"])
        manager.invalidateSessionCancelingTasks(true)
    }
}
