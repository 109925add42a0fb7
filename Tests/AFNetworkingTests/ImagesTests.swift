// SPDX-License-Identifier: MIT

import AFNetworking
import ANSystem
import AsyncNetworking
import AsyncNetworkingImages
import AsyncNetworkingTesting
import TestSupport
import Testing

/// The beginning of a PNG of a size.
private func png(_ width: UInt32 = 850, _ height: UInt32 = 300) -> Data {
    func bytes(_ value: UInt32) -> [UInt8] { (0..<4).map { UInt8(truncatingIfNeeded: value >> (24 - 8 * $0)) } }
    return Data([0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A, 0, 0, 0, 13]) + Data("IHDR".utf8)
        + Data(bytes(width) + bytes(height)) + Data([8, 2, 0, 0, 0])
}

@Suite struct AFImageResponseSerializerTests {
    private let serializer = AFImageResponseSerializer()

    private func object(_ data: Data?, type: String) throws -> (Any?, NSError?) {
        let url = try #require(URL(string: "http://localhost/"))
        let response = HTTPURLResponse(
            url: url, statusCode: 200, httpVersion: "HTTP/1.1", headerFields: ["Content-Type": type])
        var error: NSError?
        let object = serializer.responseObject(for: response, data: data, error: &error)
        return (object, error)
    }

    @Test func `the media types are those of AFNetworking`() {
        #expect(
            serializer.acceptableContentTypes == [
                "image/tiff", "image/jpeg", "image/gif", "image/png", "image/ico", "image/x-icon", "image/bmp",
                "image/x-bmp", "image/x-xbitmap", "image/x-win-bitmap",
            ])
    }

    @Test func `an image has a size in points`() throws {
        serializer.imageScale = 2
        let image = try #require(try object(png(), type: "image/png").0 as? UIImage)
        #expect(image.size == CGSize(width: 425, height: 150))
        #expect(image.scale == 2)
        #expect(image.content.header.format == .png)
        #expect(image.description == "<AFImage: png, 850 × 300>")
        #expect(UIImage(data: png())?.size.width == 850)
        #expect(UIImage(data: Data("x".utf8)) == nil)
    }

    @Test func `an unacceptable media type, data that are no image, and an empty body have different results`() throws {
        let rejected = try object(png(), type: "image/webp")
        #expect(rejected.0 == nil)
        #expect(rejected.1?.code == URLError.Code.cannotDecodeContentData.rawValue)
        let damaged = try object(Data("<html>".utf8), type: "image/png")
        #expect(damaged.0 == nil)
        #expect(damaged.1?.domain == AFURLResponseSerializationErrorDomain)
        #expect(damaged.1?.code == URLError.Code.cannotDecodeContentData.rawValue)
        #expect(damaged.1?.userInfo[NSUnderlyingErrorKey] as? ImageError == .unknownFormat)
        let bomb = try object(png(50_000, 50_000), type: "image/png")
        #expect(bomb.0 == nil && bomb.1 != nil)
        let empty = try object(Data(), type: "image/png")
        #expect(empty.0 == nil && empty.1 == nil)
    }

    @Test func `copies and archives keep the scale and the inflation`() throws {
        #expect(serializer.automaticallyInflatesResponseImage)
        #expect(serializer.imageScale == 1)
        serializer.imageScale = 3
        serializer.automaticallyInflatesResponseImage = false
        let copy = try #require(serializer.copy() as? AFImageResponseSerializer)
        let data = try JSONEncoder().encode(AFArchived(serializer))
        let restored = try JSONDecoder().decode(AFArchived<AFImageResponseSerializer>.self, from: data).object
        for other in [copy, restored] {
            #expect(other.imageScale == 3)
            #expect(!other.automaticallyInflatesResponseImage)
            #expect(other.acceptableContentTypes == serializer.acceptableContentTypes)
        }
    }
}

@Suite struct AFAutoPurgingImageCacheTests {
    @Test func `limits and costs are those of AFNetworking`() throws {
        let cache = AFAutoPurgingImageCache()
        #expect(cache.memoryCapacity == 104_857_600)
        #expect(cache.preferredMemoryUsageAfterPurge == 62_914_560)
        let image = try #require(UIImage(data: png()))
        cache.add(image, withIdentifier: "logo")
        #expect(cache.memoryUsage == 1_020_000)
        #expect(cache.image(withIdentifier: "logo") === image)
        #expect(cache.removeImage(withIdentifier: "logo"))
        #expect(!cache.removeImage(withIdentifier: "logo"))
        #expect(!cache.removeAllImages())
        #expect(cache.memoryUsage == 0)
        // Of a tiny image, the key and the header take more memory.
        cache.add(try #require(UIImage(data: png(1, 1))), withIdentifier: "dot")
        #expect(cache.memoryUsage == 1_024)
    }

    @Test func `the eleventh image purges down to six`() throws {
        let cache = AFAutoPurgingImageCache(memoryCapacity: 10_200_000, preferredMemoryCapacity: 6_120_000)
        let image = try #require(UIImage(data: png()))
        for index in 0..<10 { cache.add(image, withIdentifier: "\(index)") }
        #expect(cache.memoryUsage == 10_200_000)
        _ = cache.image(withIdentifier: "0")
        cache.add(image, withIdentifier: "10")
        #expect(cache.memoryUsage == 6_120_000)
        #expect((0...10).filter { cache.image(withIdentifier: "\($0)") != nil } == [0, 6, 7, 8, 9, 10])
        cache.memoryCapacity = .max
        cache.preferredMemoryUsageAfterPurge = .max
        #expect(cache.memoryCapacity == UInt64(Int.max))
        #expect(cache.preferredMemoryUsageAfterPurge == UInt64(Int.max))
    }

    @Test func `a request is identified by its URL and the additional identifier`() throws {
        let cache = AFAutoPurgingImageCache()
        let image = try #require(UIImage(data: png()))
        let request = URLRequest(url: try #require(URL(string: "https://example.com/b")))
        #expect(cache.shouldCache(image, for: request, withAdditionalIdentifier: nil))
        cache.add(image, for: request, withAdditionalIdentifier: nil)
        #expect(cache.image(withIdentifier: "https://example.com/b") === image)
        #expect(cache.imageforRequest(request, withAdditionalIdentifier: "c") == nil)
        cache.add(image, for: request, withAdditionalIdentifier: "c")
        #expect(cache.imageforRequest(request, withAdditionalIdentifier: "c") === image)
        // AFNetworking appended the identifier to the URL.
        #expect(cache.image(withIdentifier: "https://example.com/bc") == nil)
        #expect(cache.removeImageforRequest(request, withAdditionalIdentifier: nil))
        #expect(cache.imageforRequest(request, withAdditionalIdentifier: nil) == nil)
        #expect(cache.removeAllImages())
        #expect(cache.imageforRequest(request, withAdditionalIdentifier: "c") == nil)
    }
}

@Suite(.timeLimit(.minutes(5))) struct AFImageDownloaderTests {
    /// Creates a downloader, and a cache that does not observe the machine.
    private func downloader(maximum: Int = 4, cached: Bool = true) -> AFImageDownloader {
        let manager = AFHTTPSessionManager(sessionConfiguration: nil)
        manager.responseSerializer = AFImageResponseSerializer()
        return AFImageDownloader(
            sessionManager: manager, downloadPrioritization: .fifo, maximumActiveDownloads: maximum,
            imageCache: cached ? AFAutoPurgingImageCache() : nil)
    }

    private func start(
        _ downloader: AFImageDownloader, _ request: URLRequest, _ done: @escaping @Sendable (Callback) -> Void
    ) -> AFImageDownloadReceipt? {
        downloader.downloadImage(
            for: request, success: { _, response, image in done(Callback(response: response, object: image)) },
            failure: { _, response, error in done(Callback(response: response, error: error as NSError)) })
    }

    @Test func `defaults are those of AFNetworking`() {
        let configuration = AFImageDownloader.defaultURLSessionConfiguration()
        #expect(configuration.requestCachePolicy == .useProtocolCachePolicy)
        #expect(configuration.timeoutIntervalForRequest == 60)
        #expect(configuration.urlCache?.memoryCapacity == 20_971_520)
        #expect(configuration.urlCache?.diskCapacity == 157_286_400)
        let downloader = AFImageDownloader.defaultInstance()
        #expect(downloader === AFImageDownloader.defaultInstance())
        #expect(downloader.downloadPrioritization == .fifo)
        #expect(downloader.imageCache is AFAutoPurgingImageCache)
        #expect(downloader.sessionManager.responseSerializer is AFImageResponseSerializer)
        #expect(AFImageDownloadPrioritization.fifo.rawValue == 0)
        #expect(AFImageDownloadPrioritization.lifo.rawValue == 1)
    }

    @Test func `a request without a URL fails with -1000 and has no receipt`() async throws {
        var request = URLRequest(url: URL(filePath: "/"))
        request.url = nil
        let result = await callback { done in #expect(start(downloader(), request, done) == nil) }
        #expect(result.error?.domain == NSURLErrorDomain)
        #expect(result.error?.localizedDescription == "bad URL")
        #expect(result.error?.code == -1_000)
        #expect(result.response == nil)
        #expect(result.isOnMainQueue)
    }

    @Test func `the second time an image comes from the cache, without a receipt and a response`() async throws {
        try await StubServer.with { server in
            server.route("/a", .data(png(), headers: ["Content-Type": "image/png"]))
            let downloader = downloader()
            let first = await callback { done in
                let receipt = start(downloader, URLRequest(url: server.url("/a")), done)
                #expect(receipt?.task.originalRequest?.url == server.url("/a"))
            }
            #expect((first.response as? HTTPURLResponse)?.statusCode == 200)
            #expect((first.object as? UIImage)?.size.width == 850)
            #expect(first.isOnMainQueue)
            let second = await callback { done in
                #expect(start(downloader, URLRequest(url: server.url("/a")), done) == nil)
            }
            #expect(second.response == nil)
            #expect(second.object as? UIImage === first.object as? UIImage)
            // A reload does not use the cache.
            let third = await callback { done in
                let reload = URLRequest(url: server.url("/a"), cachePolicy: .reloadIgnoringLocalCacheData)
                #expect(start(downloader, reload, done) != nil)
            }
            #expect(third.response != nil)
            #expect(server.activity.requests.count == 2)
        }
    }

    @Test func `equal requests share a task, and each is cancelled by its own receipt`() async throws {
        try await StubServer.with { server in
            let gate = try ScriptGate()
            server.route(
                "/a", Script([.wait(gate), .reply(Reply(headers: ["Content-Type": "image/png"], body: .bytes(png())))]))
            let downloader = downloader()
            let request = URLRequest(url: server.url("/a"))
            let cancelled = await callback { done in
                let receipt = start(downloader, request, done)
                let other = start(downloader, request) { _ in }
                #expect(receipt?.task === other?.task)
                #expect(receipt?.receiptID != other?.receiptID)
                if let receipt { downloader.cancelTask(for: receipt) }
                if let receipt { downloader.cancelTask(for: receipt) }
            }
            #expect(cancelled.error?.domain == NSURLErrorDomain)
            #expect(cancelled.error?.code == -999)
            #expect(
                cancelled.error?.localizedFailureReason
                    == "ImageDownloader cancelled URL request: \(server.url("/a").absoluteString)")
            let shared = await callback { done in
                #expect(start(downloader, request, done)?.task.state == .running)
                gate.open()
            }
            #expect((shared.object as? UIImage)?.size.height == 300)
            #expect(server.activity.requests.count == 1)
        }
    }

    @Test func `requests that differ in header fields, method or body do not share a task`() async throws {
        try await StubServer.with { server in
            server.fallback { _ in .hang }
            let downloader = downloader(maximum: 9)
            var requests = (0..<5).map { _ in URLRequest(url: server.url("/a")) }
            requests[1].setValue("a", forHTTPHeaderField: "X-User")
            requests[2].setValue("b", forHTTPHeaderField: "X-User")
            requests[3].httpMethod = "POST"
            requests[4].httpMethod = "POST"
            requests[4].httpBody = Data("a".utf8)
            let tasks = (requests + requests).compactMap { start(downloader, $0, { _ in })?.task }
            #expect(tasks.prefix(5) == tasks.suffix(5))
            #expect(Set(tasks.map { ObjectIdentifier($0) }).count == 5)
            downloader.sessionManager.invalidateSessionCancelingTasks(true)
        }
    }

    @Test func `cancelling a waiting request does not start another one`() async throws {
        try await StubServer.with { server in
            let gate = try ScriptGate()
            server.fallback { _ in
                Script([.wait(gate), .reply(Reply(headers: ["Content-Type": "image/png"], body: .bytes(png())))])
            }
            let downloader = downloader(maximum: 1, cached: false)
            let receipts = (0..<4).map { start(downloader, URLRequest(url: server.url("/\($0)"))) { _ in } }
            #expect(receipts.map { $0?.task.state } == [.running, .suspended, .suspended, .suspended])
            if let receipt = receipts[1] { downloader.cancelTask(for: receipt) }
            #expect(receipts[2]?.task.state == .suspended)
            let last = await callback { done in
                _ = start(downloader, URLRequest(url: server.url("/last")), done)
                gate.open()
            }
            #expect(last.object is UIImage)
            #expect(server.activity.requests.map(\.target) == ["/0", "/2", "/3", "/last"])
        }
    }

    @Test func `a waiting request whose task is cancelled fails, and others take its turn`() async throws {
        try await StubServer.with { server in
            let gate = try ScriptGate()
            server.fallback { _ in
                Script([.wait(gate), .reply(Reply(headers: ["Content-Type": "image/png"], body: .bytes(png())))])
            }
            let downloader = downloader(maximum: 1, cached: false)
            _ = start(downloader, URLRequest(url: server.url("/0"))) { _ in }
            let cancelled = await callback { done in
                start(downloader, URLRequest(url: server.url("/1")), done)?.task.cancel()
            }
            #expect(cancelled.error?.code == NSURLErrorCancelled)
            let last = await callback { done in
                _ = start(downloader, URLRequest(url: server.url("/1")), done)
                gate.open()
            }
            #expect(last.object is UIImage)
        }
    }

    @Test func `a manager may end a download while it makes the task`() async throws {
        final class Eager: AFHTTPSessionManager, @unchecked Sendable {
            override func dataTask(
                with request: URLRequest, uploadProgress: (@Sendable (Progress) -> Void)?,
                downloadProgress: (@Sendable (Progress) -> Void)?,
                completionHandler: (@Sendable (URLResponse, Any?, (any Error)?) -> Void)?
            ) -> URLSessionDataTask {
                let url = request.url ?? URL(filePath: "/")
                let response = URLResponse(
                    url: url, mimeType: nil, expectedContentLength: 0, textEncodingName: nil)
                completionHandler?(response, UIImage(data: png()), nil)
                return super.dataTask(
                    with: request, uploadProgress: nil, downloadProgress: nil, completionHandler: nil)
            }
        }
        let downloader = downloader(maximum: 1)
        downloader.sessionManager = Eager(sessionConfiguration: nil)
        let url = try #require(URL(string: "http://a.invalid/"))
        let first = await callback { done in #expect(start(downloader, URLRequest(url: url), done) != nil) }
        #expect((first.object as? UIImage)?.size.width == 850)
        let second = await callback { done in #expect(start(downloader, URLRequest(url: url), done) == nil) }
        #expect(second.object as? UIImage === first.object as? UIImage)
    }

    @Test func `a response that is not an image is a failure`() async throws {
        try await StubServer.with { server in
            server.route("/a", .data(Data("<html>".utf8), headers: ["Content-Type": "image/png"]))
            server.route("/empty", .data(Data(), headers: ["Content-Type": "image/png"]))
            server.route("/missing", .status(404))
            let downloader = downloader()
            for (path, code) in [("/a", -1_016), ("/empty", -1_016), ("/missing", -1_011)] {
                let result = await callback { _ = start(downloader, URLRequest(url: server.url(path)), $0) }
                #expect(result.object == nil)
                #expect(result.error?.code == code, "\(path)")
            }
        }
    }
}

@Suite(.timeLimit(.minutes(5)), .serialized) struct AFNetworkActivityIndicatorManagerTests {
    private static func manager() -> (AFNetworkActivityIndicatorManager, AsyncStream<Bool>.Iterator) {
        let manager = AFNetworkActivityIndicatorManager()
        let (stream, continuation) = AsyncStream.makeStream(of: Bool.self)
        manager.setNetworkingActivityActionWith { continuation.yield($0) }
        return (manager, stream.makeAsyncIterator())
    }

    @Test func `defaults are those of AFNetworking`() {
        let manager = AFNetworkActivityIndicatorManager()
        #expect(!manager.isEnabled)
        #expect(!manager.isNetworkActivityIndicatorVisible)
        #expect(manager.activationDelay == 1)
        #expect(manager.completionDelay == 0.17)
        #expect(AFNetworkActivityIndicatorManager.shared() === AFNetworkActivityIndicatorManager.shared())
        for delay in [-1, .nan, .infinity, 1e300] { manager.activationDelay = delay }
        #expect(manager.activationDelay == 1e9)
    }

    /// In a process of its own, because the tasks of other tests count, too.
    @Test(.exitTest) func `the indicator disappears after a data task that became a download`() async {
        await #expect(processExitsWith: .success) {
            try await StubServer.with { server in
                server.route("/", .text("x"))
                var (manager, visibility) = Self.manager()
                (manager.activationDelay, manager.completionDelay) = (0, 0)
                manager.isEnabled = true
                let session = AFHTTPSessionManager(for: server)
                // Foundation deprecates `.becomeDownload` (raw value 2), because its own sessions do not support it.
                session.setDataTaskDidReceiveResponseBlock { _, _, _ in .init(rawValue: 2) ?? .cancel }
                session.dataTask(with: URLRequest(url: server.url("/"))) { _, _, _ in }.resume()
                try #require(await visibility.next() == true)
                try #require(await visibility.next() == false)
            }
        }
    }

    /// In a process of its own, because the tasks of other tests count, too.
    @Test(.exitTest) func `the block is called when the indicator appears and disappears`() async {
        await #expect(processExitsWith: .success) {
            var (manager, visibility) = Self.manager()
            (manager.activationDelay, manager.completionDelay) = (0, 0)
            manager.isEnabled = true
            manager.incrementActivityCount()
            try #require(await visibility.next() == true)
            try #require(manager.isNetworkActivityIndicatorVisible)
            manager.incrementActivityCount()
            manager.decrementActivityCount()
            manager.decrementActivityCount()
            try #require(await visibility.next() == false)
            // More ends than beginnings do not count.
            manager.decrementActivityCount()
            manager.incrementActivityCount()
            try #require(await visibility.next() == true)
            manager.isEnabled = false
            try #require(await visibility.next() == false)
            try #require(!manager.isNetworkActivityIndicatorVisible)
        }
    }

    /// In a process of its own, because the tasks of other tests count, too.
    @Test(.exitTest) func `a task counts once from its start to its end or suspension`() async {
        await #expect(processExitsWith: .success) {
            var (manager, visibility) = Self.manager()
            (manager.activationDelay, manager.completionDelay) = (0, 0)
            manager.isEnabled = true
            let session = AFHTTPSessionManager(sessionConfiguration: .default)
            let url = try #require(URL(string: "http://a.example/"))
            let tasks = (0..<2).map { _ in session.dataTask(with: URLRequest(url: url)) { _, _, _ in } }
            func post(_ name: NSNotification.Name, _ task: Int) {
                NotificationCenter.default.post(name: name, object: tasks[task])
            }
            post(.AFNetworkingTaskDidResume, 0)
            post(.AFNetworkingTaskDidResume, 0)
            #expect(await visibility.next() == true)
            post(.AFNetworkingTaskDidSuspend, 0)
            #expect(await visibility.next() == false)
            post(.AFNetworkingTaskDidResume, 0)
            post(.AFNetworkingTaskDidResume, 1)
            #expect(await visibility.next() == true)
            post(.AFNetworkingTaskDidComplete, 0)
            #expect(manager.isNetworkActivityIndicatorVisible)
            post(.AFNetworkingTaskDidComplete, 1)
            #expect(await visibility.next() == false)
        }
    }
}
