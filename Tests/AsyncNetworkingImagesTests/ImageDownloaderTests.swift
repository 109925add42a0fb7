// SPDX-License-Identifier: MIT

import ANSystem
import AsyncNetworking
import AsyncNetworkingImages
import AsyncNetworkingTesting
import Foundation
import Testing

@Suite(.timeLimit(.minutes(5))) struct ImageDownloaderTests {
    private static let png = MockResponse.data(SamplePicture.png, headers: [.contentType: "image/png"])

    private static func downloader(
        _ transport: some Transport, cache: AutoPurgingImageCache? = AutoPurgingImageCache(memoryPressure: nil),
        serializer: ImageResponseSerializer = .image, limit: Int = 4, order: ImageDownloadOrder = .fifo
    ) -> ImageDownloader {
        ImageDownloader(
            session: SessionManager { $0.transport = transport }, cache: cache, serializer: serializer,
            maximumActiveDownloads: limit, order: order)
    }

    private static func request(_ name: some CustomStringConvertible) throws -> Request {
        Request(url: try #require(URL(string: "http://localhost/\(name)")))
    }

    // MARK: Sources

    @Test func `an image comes from the server once, and then from memory`() async throws {
        let transport = MockTransport(Self.png)
        let images = Self.downloader(transport)
        let url = try #require(URL(string: "http://localhost/logo"))
        let image = try await images.image(for: url)
        #expect(image.header.size == SamplePicture.size)
        #expect(transport.requests.first?.request.headers[.accept] == "image/*")
        #expect(try await images.image(for: url) == image)
        #expect(transport.requests.count == 1)
        let receipt = images.download(Request(url: url, headers: [.accept: "image/*"]))
        #expect(receipt.id != images.download(Request(url: url, headers: [.accept: "image/*"])).id)
        #expect(try await receipt.image == image)
        receipt.cancel()
        #expect(try await receipt.image == image)
    }

    @Test func `an image comes from the response cache after the memory cache was emptied`() async throws {
        let transport = MockTransport(
            .data(SamplePicture.png, headers: [.contentType: "image/png", .cacheControl: "max-age=60"]))
        let session = SessionManager {
            $0.transport = transport
            $0.cache = .memory()
        }
        let images = ImageDownloader(session: session, cache: AutoPurgingImageCache(memoryPressure: nil))
        _ = try await images.image(for: Self.request("a"))
        images.cache?.removeAll()
        _ = try await images.image(for: Self.request("a"))
        #expect(transport.requests.count == 1)
    }

    @Test(
        arguments: [
            (nil, 1), (.protocolPolicy, 1), (.returnCacheElseLoad, 1), (.returnCacheDontLoad, 1), (.reload, 2),
            (.revalidate, 2),
        ] as [(CachePolicy?, Int)])
    func `the memory cache is used as the cache policy permits`(policy: CachePolicy?, transfers: Int) async throws {
        let transport = MockTransport(Self.png)
        let images = Self.downloader(transport)
        var request = try Self.request("a")
        _ = try await images.image(for: request)
        request.cachePolicy = policy
        _ = try await images.image(for: request)
        #expect(transport.requests.count == transfers)
    }

    @Test func `without a memory cache every request is sent`() async throws {
        let transport = MockTransport(Self.png)
        let images = Self.downloader(transport, cache: nil)
        for _ in 0..<2 { _ = try await images.image(for: Self.request("a")) }
        #expect(transport.requests.count == 2)
    }

    @Test func `requests with other credentials, bodies or policies share nothing`() async throws {
        let transport = MockTransport(Self.png)
        let images = Self.downloader(transport)
        var requests = try (0..<7).map { _ in try Self.request("a") }
        requests[1].headers[.authorization] = "Bearer a"
        requests[2].headers[.authorization] = "Bearer b"
        requests[3].method = .post
        requests[4].body = .bytes(Data("a".utf8))
        requests[5].changeOptions { $0.timeouts.idle = .seconds(9) }
        requests[6].retryPolicy = RetryPolicy.none
        for request in requests { _ = try await images.image(for: request) }
        #expect(transport.requests.count == requests.count)
        // The first three are stored in memory.
        for request in requests { _ = try await images.image(for: request) }
        #expect(transport.requests.count == 2 * requests.count - 3)
    }

    @Test func `downloaders with other options can share a cache`() async throws {
        let transport = MockTransport(Self.png)
        let session = SessionManager { $0.transport = transport }
        let cache = AutoPurgingImageCache(memoryPressure: nil)
        var serializer = ImageResponseSerializer()
        let plain = ImageDownloader(session: session, cache: cache)
        serializer.scale = 2
        let scaled = ImageDownloader(session: session, cache: cache, serializer: serializer, identifier: "@2x")
        #expect(try await plain.image(for: Self.request("a")).scale == 1)
        #expect(try await scaled.image(for: Self.request("a")).scale == 2)
        #expect(try await plain.image(for: Self.request("a")).scale == 1)
        #expect(transport.requests.count == 2)
    }

    // MARK: Sharing

    @Test func `1,000 requests at once for 20 images make 20 transfers`() async throws {
        let active = Lock((now: 0, most: 0))
        let transport = MockTransport { _ in
            active.withLock { $0 = ($0.now + 1, max($0.most, $0.now + 1)) }
            await Task.yield()
            active.withLock { $0.now -= 1 }
            return Self.png
        }
        let images = Self.downloader(transport)
        let requests = try (0..<20).map { try Self.request($0) }
        let received = try await withThrowingTaskGroup(of: ImageContent.self) { group in
            for index in 0..<1_000 { group.addTask { try await images.image(for: requests[index % 20]) } }
            return try await group.reduce(into: 0) { count, _ in count += 1 }
        }
        #expect(received == 1_000)
        #expect(transport.requests.count == 20)
        #expect(Set(transport.requests.map(\.request.url)).count == 20)
        #expect(active.withLock { $0.most } <= 4)
    }

    @Test func `at most the given number of downloads are active`() async throws {
        let gate = try ScriptGate()
        let transport = MockTransport(script: Script([.wait(gate), .reply(Self.reply)]))
        let images = Self.downloader(transport, limit: 2)
        let receipts = try (0..<5).map { images.download(try Self.request($0)) }
        // They are active at the same time, so that either may arrive first.
        try await transport.requests(count: 2)
        #expect(Set(transport.requests.map(\.request.url.path)) == ["/0", "/1"])
        gate.open()
        for receipt in receipts { _ = try await receipt.image }
        #expect(transport.requests.count == 5)
    }

    @Test(arguments: [
        (ImageDownloadOrder.fifo, ["/0", "/3", "/1", "/2"]), (.lifo, ["/0", "/3", "/2", "/1"]),
    ])
    func `waiting downloads start by priority and order`(order: ImageDownloadOrder, expected: [String]) async throws {
        let gate = try ScriptGate()
        let transport = MockTransport(script: Script([.wait(gate), .reply(Self.reply)]))
        let images = Self.downloader(transport, limit: 1, order: order)
        let receipts = try (0..<4).map { index in
            images.download(try Self.request(index), priority: index == 3 ? .high : .normal)
        }
        gate.open()
        for receipt in receipts { _ = try await receipt.image }
        #expect(transport.requests.map(\.request.url.path) == expected)
        #expect(images.order == order)
    }

    @TaskLocal private static var caller = "none"

    @Test func `each download runs in the context of its own request`() async throws {
        let gate = try ScriptGate()
        let callers = Lock<[String]>([])
        let transport = MockTransport { _ in
            callers.withLock { $0.append(Self.caller) }
            return MockResponse([
                .wait(gate), .head(.ok, [.contentType: "image/png"]), .chunk(SamplePicture.png),
            ])
        }
        let images = Self.downloader(transport, limit: 1)
        let names = ["first", "second", "third"]
        let receipts = try names.map { name in
            try Self.$caller.withValue(name) { images.download(try Self.request(name)) }
        }
        gate.open()
        for receipt in receipts { _ = try await receipt.image }
        #expect(callers.withLock(\.self) == names)
    }

    // MARK: Cancellation

    @Test func `a cancelled receipt neither ends nor starves the others`() async throws {
        let gate = try ScriptGate()
        let transport = MockTransport(script: Script([.wait(gate), .reply(Self.reply)]))
        let images = Self.downloader(transport, limit: 1)
        let shared = try (0..<3).map { _ in images.download(try Self.request("shared")) }
        let waiting = try (0..<3).map { images.download(try Self.request($0)) }
        try await transport.requests(count: 1)
        shared[0].cancel()
        shared[0].cancel()
        waiting[1].cancel()
        await #expect(throws: CancellationError.self) { try await shared[0].image }
        await #expect(throws: CancellationError.self) { try await waiting[1].image }
        gate.open()
        #expect(try await shared[1].image == shared[2].image)
        _ = try await (waiting[0].image, waiting[2].image)
        #expect(transport.requests.map(\.request.url.path) == ["/shared", "/0", "/2"])
        // A cancellation after the end changes nothing.
        shared[1].cancel()
        #expect(try await shared[1].image == shared[2].image)
    }

    @Test func `the transfer ends with the last receipt, and a new request is sent again`() async throws {
        let hangs = Lock(true)
        let (calls, called) = AsyncStream.makeStream(of: Void.self)
        let transport = MockTransport { _ in
            called.yield()
            return hangs.withLock { $0 } ? .hang : Self.png
        }
        let images = Self.downloader(transport, limit: 1)
        let receipts = try (0..<2).map { _ in images.download(try Self.request("a")) }
        for await _ in calls { break }
        let task = Task { try await receipts[0].image }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        receipts[1].cancel()
        await #expect(throws: CancellationError.self) { try await receipts[1].image }
        hangs.withLock { $0 = false }
        let next = images.download(try Self.request("a"))
        // It has the only place, so the transfer of the first download has ended.
        #expect(try await next.image.header.format == .png)
        #expect(transport.requests.count == 2)
    }

    @Test func `downloads end even if the downloader is released`() async throws {
        let gate = try ScriptGate()
        let transport = MockTransport(script: Script([.wait(gate), .reply(Self.reply)]))
        var images: ImageDownloader? = Self.downloader(transport, limit: 1)
        let receipts = try (0..<3).compactMap { images?.download(try Self.request($0)) }
        images = nil
        gate.open()
        for receipt in receipts { _ = try await receipt.image }
        #expect(transport.requests.count == 3)
    }

    // MARK: Failures

    @Test func `every receipt gets the error, which is not stored`() async throws {
        let responses = Lock([MockResponse.status(.notFound), Self.png])
        let transport = MockTransport { _ in responses.withLock { $0.removeFirst() } }
        let images = Self.downloader(transport, limit: 1)
        let receipts = try (0..<2).map { _ in images.download(try Self.request("a")) }
        for receipt in receipts {
            let error = await #expect(throws: SessionError.self) { try await receipt.image }
            #expect(error?.statusCode == 404)
        }
        #expect(try await images.image(for: Self.request("a")).header.format == .png)
    }

    @Test func `a response that is not an image fails`() async throws {
        let transport = MockTransport(
            .text("<html>"), .data(Data("<html>".utf8), headers: [.contentType: "image/png"]),
            .status(.ok, headers: [.contentType: "image/png"]))
        let images = Self.downloader(transport)
        let rejected = await #expect(throws: SessionError.self) { try await images.image(for: Self.request("a")) }
        #expect(rejected?.rejection?.rejectsMediaType == true)
        await #expect(throws: ImageError.unknownFormat) { try await images.image(for: Self.request("a")) }
        let empty = await #expect(throws: (any Error).self) { try await images.image(for: Self.request("a")) }
        #expect("\(empty.map { "\($0)" } ?? "")".contains("image"))
    }

    @Test func `an image that is too large is refused before its pixels are received`() async throws {
        let bomb = Header.png(width: 50_000, height: 50_000) + Data(count: 100)
        // The rest of the body never arrives.
        let transport = MockTransport { _ in
            MockResponse([.head(.ok, [.contentType: "image/png", .contentLength: "9999999"]), .chunk(bomb), .hang])
        }
        let size = PixelSize(width: 50_000, height: 50_000)
        await #expect(throws: ImageError.tooManyPixels(size, limit: 128 << 20)) {
            try await Self.downloader(transport).image(for: Self.request("bomb"))
        }
    }

    @Test func `a file that exceeds the body limit is refused`() async throws {
        let images = Self.downloader(MockTransport(Self.png))
        var request = try Self.request("a")
        request.changeOptions { $0.maximumBodySize = 50 }
        let error = await #expect(throws: SessionError.self) { try await images.image(for: request) }
        #expect(error?.reason == .responseTooLarge(.body(limit: 50)))
    }

    // MARK: Progress

    @Test func `the header of a small file is known at the end`() async throws {
        let file = try #require(SamplePicture.all.first { $0.data.count < 64 }).data
        let images = Self.downloader(MockTransport { _ in .data(file, headers: [.contentType: "image/gif"]) })
        var last: ImageDownload.Status?
        for await status in images.download(try Self.request("a")).updates { last = status }
        #expect(last?.header?.format == .gif)
    }

    @Test func `the header is known before the image`() async throws {
        let gate = try ScriptGate()
        let (start, rest) = (SamplePicture.png.prefix(70), SamplePicture.png.dropFirst(70))
        let transport = MockTransport { _ in
            MockResponse([
                .head(.ok, [.contentType: "image/png", .contentLength: "90"]), .chunk(Data(start)), .wait(gate),
                .chunk(Data(rest)),
            ])
        }
        let images = Self.downloader(transport)
        let first = images.download(try Self.request("a"))
        var updates = first.updates.makeAsyncIterator()
        let status = await updates.next()
        #expect(status?.header?.size == SamplePicture.size)
        #expect(status?.progress?.completedBytes == 70)
        #expect(status?.progress?.fraction == 70.0 / 90)
        #expect(status?.result == nil)
        // A request that joins receives the latest state at once.
        let second = images.download(try Self.request("a"))
        for await status in second.updates {
            #expect(status.progress?.completedBytes == 70)
            break
        }
        gate.open()
        var last: ImageDownload.Status?
        for await status in second.updates { last = status }
        #expect(try last?.result?.get().data == SamplePicture.png)
        #expect(last?.progress?.completedBytes == 90)
    }

    @Test func `the total of an encoded file is unknown`() async throws {
        let transport = MockTransport { _ in
            .data(SamplePicture.png, headers: [.contentType: "image/png", .contentEncoding: "gzip"])
        }
        let images = Self.downloader(transport)
        var last: ImageDownload.Status?
        for await status in images.download(try Self.request("a")).updates { last = status }
        #expect(last?.progress?.completedBytes == Int64(SamplePicture.png.count))
        #expect(last?.progress?.fraction == nil)
    }

    private static let reply = Reply(headers: ["Content-Type": "image/png"], body: .bytes(SamplePicture.png))
}
