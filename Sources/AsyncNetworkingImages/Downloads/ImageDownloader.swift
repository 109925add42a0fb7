// SPDX-License-Identifier: MIT

import ANSystem
public import AsyncNetworking
public import FoundationEssentials

/// A downloader of images, with a cache in memory and a bound on the number of concurrent downloads.
///
/// ```swift
/// let images = ImageDownloader()
/// let logo = try await images.image(for: logoURL)
/// ```
///
/// An image comes from the memory cache, from the session's response cache, or from the server, in this order, as far
/// as the cache policy permits. Equal requests share one transfer, and each has a receipt of its own. Requests are
/// equal if their URLs, header fields and cache policies are. A request with another method than GET, a body, trailers,
/// or transfer options, policies or attributes of its own (other than the cache policy) shares nothing, neither a
/// transfer nor an image in the memory cache.
///
/// The memory cache follows the cache policy, but no header fields of responses: images do not expire there, and those
/// with `no-store` are kept, too. Errors are not cached. Downloads keep the downloader alive until they have ended. All
/// members may be used from any thread or task at any time.
public final class ImageDownloader: Sendable {
    /// The session that performs the requests. The downloader neither invalidates it nor shuts it down.
    public let session: SessionManager
    /// The cache in memory; `nil` if the downloader was created without one, and requests every image from the session.
    /// It may be shared with other downloaders.
    public let cache: AutoPurgingImageCache?
    private let serializer: ImageResponseSerializer
    private let identifier: String?
    private let state: Lock<State>

    private struct State: Sendable {
        var queue: ImageDownloadQueue<Key>
        var downloads: [Int: Download] = [:]
        var receipts: [Int: ImageDownload] = [:]
        var lastReceipt = 0
    }

    /// The key of a transfer, which is equal for requests that can share it.
    private struct Key: Hashable, Sendable {
        let key: ImageCacheKey
        let policy: CachePolicy?
    }

    private struct Download: Sendable {
        /// The key in the memory cache; `nil` if the image is not stored there.
        let cacheKey: ImageCacheKey?
        var status = ImageDownload.Status()
        /// Lets the task begin the transfer.
        let turn: AsyncStream<Void>.Continuation
        /// Waits for its turn and performs the transfer, in the context of the request. It ends with the transfer;
        /// ``ImageDownloader/cancel(_:)`` stops it.
        let task: Task<Void, Never>
    }

    /// Creates a downloader.
    ///
    /// - Parameters:
    ///   - session: The session that performs the requests; by default a new one, not shared with other downloaders,
    ///     with the response cache of the program, `ResponseCache.standard`, in memory and, if its directory can be
    ///     used, on disk.
    ///   - cache: The cache in memory, which downloaders may share; a new one of 100 MiB by default, `nil` for none.
    ///   - serializer: Validates the responses, and decodes the images, off all actors, if it has a decoder; without
    ///     one by default.
    ///   - identifier: Distinguishes the images in a shared cache from those of downloaders with another scale or other
    ///     decoding options; `nil` by default.
    ///   - maximumActiveDownloads: The maximum number of concurrent downloads, 4 by default; a value below 1 counts as
    ///     1. Requests that join a download and images from the memory cache do not count.
    ///   - order: The order in which waiting downloads of the same priority are started; FIFO by default.
    public init(
        session: SessionManager = SessionManager { $0.cache = .standard },
        cache: AutoPurgingImageCache? = AutoPurgingImageCache(),
        serializer: ImageResponseSerializer = ImageResponseSerializer(), identifier: String? = nil,
        maximumActiveDownloads: Int = 4, order: ImageDownloadOrder = .fifo
    ) {
        self.session = session
        self.cache = cache
        self.serializer = serializer
        self.identifier = identifier
        state = Lock(State(queue: ImageDownloadQueue(limit: maximumActiveDownloads, order: order)))
    }

    /// The order in which waiting downloads of the same priority are started; FIFO by default.
    ///
    /// A change applies to downloads that are requested afterwards: those that are waiting keep their order, unless a
    /// request that joins one raises its priority.
    public var order: ImageDownloadOrder {
        get { state.withLock { $0.queue.order } }
        set { state.withLock { $0.queue.order = newValue } }
    }

    // MARK: Requests

    /// Returns an image: from the memory cache if possible, otherwise by a request that may share the transfer of an
    /// equal one. Cancelling the calling task cancels this request, but no other one that shares its transfer.
    ///
    /// - Parameters:
    ///   - url: The URL of the image, requested with `Accept: image/*`.
    ///   - priority: The priority among waiting downloads, which matters only while the maximum number of downloads is
    ///     active; normal by default. If a request joins a waiting download, the higher priority counts.
    /// - Throws: `SessionError` if the request failed, its status or media type was not accepted, or the file is empty
    ///   or larger than `TransferOptions.maximumBodySize`, 128 MiB by default; ``ImageError`` if the file is not an
    ///   image, exceeds the limits or cannot be decoded; the errors of a custom decoder and of the
    ///   program's other code, such as interceptors; `CancellationError` if the session cancels its requests, or if the
    ///   calling task is cancelled and the image is not in the memory cache.
    public func image(for url: URL, priority: RequestPriority = .normal) async throws -> ImageContent {
        try await image(for: Request(url: url, headers: [.accept: "image/*"]), priority: priority)
    }

    /// Returns an image: from the memory cache if possible, otherwise by a request that may share the transfer of an
    /// equal one. Cancelling the calling task cancels this request, but no other one that shares its transfer.
    ///
    /// - Parameters:
    ///   - request: The request to send, to which no `Accept` field is added.
    ///   - priority: The priority among waiting downloads, which matters only while the maximum number of downloads is
    ///     active; normal by default. If a request joins a waiting download, the higher priority counts.
    /// - Throws: `SessionError` if the request failed, its status or media type was not accepted, or the file is empty
    ///   or larger than `TransferOptions.maximumBodySize`, 128 MiB by default; ``ImageError`` if the file is not an
    ///   image, exceeds the limits or cannot be decoded; the errors of a custom decoder and of the
    ///   program's other code, such as interceptors; `CancellationError` if the session cancels its requests, or if the
    ///   calling task is cancelled and the image is not in the memory cache.
    public func image(for request: Request, priority: RequestPriority = .normal) async throws -> ImageContent {
        if let image = cachedImage(for: request) { return image }
        return try await download(request, priority: priority).image
    }

    /// Returns the image for a request from the memory cache, and marks it as accessed there; sends nothing.
    ///
    /// - Parameter request: The request for the image; its cache policy, or else that of the session, must not require
    ///   the server. Its header fields must be those of the earlier request, including the `Accept: image/*` that a
    ///   request for a URL has.
    /// - Returns: The image, regardless of its age; `nil` if the downloader has no memory cache or the image is not in
    ///   it, the cache policy is `reload` or `revalidate`, or the request shares no images, for example because it has
    ///   another method than GET.
    public func cachedImage(for request: Request) -> ImageContent? {
        guard let cache, let key = sharedKey(of: request) else { return nil }
        switch request.cachePolicy ?? session.configuration.cachePolicy {
        case .protocolPolicy, .returnCacheElseLoad, .returnCacheDontLoad: return cache.image(for: key.key)
        case .reload, .revalidate: return nil
        }
    }

    /// Requests an image, and returns at once with a receipt that observes and cancels the request.
    ///
    /// If ``cachedImage(for:)`` has the image, the receipt has ended already. The receipt's ``ImageDownload/image``
    /// throws the errors of the request.
    ///
    /// - Parameters:
    ///   - request: The request to send, to which no `Accept` field is added.
    ///   - priority: The priority among waiting downloads, which matters only while the maximum number of downloads is
    ///     active; normal by default. If a request joins a waiting download, the higher priority counts.
    /// - Returns: The receipt; releasing it does not cancel the request.
    public func download(_ request: Request, priority: RequestPriority = .normal) -> ImageDownload {
        let key = sharedKey(of: request)
        return state.withLock { state in
            // Under the lock: a download that has just ended left its image in the cache before it left the queue.
            state.lastReceipt += 1
            if let image = cachedImage(for: request) {
                let receipt = ImageDownload(id: state.lastReceipt, request: request, downloader: nil)
                receipt.end(ImageDownload.Status(header: image.header, result: .success(image)))
                return receipt
            }
            let receipt = ImageDownload(id: state.lastReceipt, request: request, downloader: self)
            state.receipts[receipt.id] = receipt
            let admission = state.queue.add(receipt.id, key: key, priority: priority)
            switch admission {
            case .joined(let number):
                if let status = state.downloads[number]?.status { receipt.broadcast.send(status) }
            case .started(let number), .waiting(let number):
                let (turns, turn) = AsyncStream.makeStream(of: Void.self)
                let task = Task {
                    for await _ in turns { break }
                    await self.transfer(request, of: number)
                }
                state.downloads[number] = Download(cacheKey: key?.key, turn: turn, task: task)
                if case .started = admission { turn.yield() }
            }
            return receipt
        }
    }

    /// Returns the key of a request; `nil` if its response must not be shared.
    private func sharedKey(of request: Request) -> Key? {
        guard request.method == .get, request.body.length == 0, request.trailers == nil, !request.hasOwnPolicies
        else { return nil }
        return Key(key: ImageCacheKey(request, identifier: identifier), policy: request.cachePolicy)
    }

    // MARK: Ends

    func cancel(_ receipt: ImageDownload) {
        let (isKnown, task) = state.withLock { state -> (Bool, Task<Void, Never>?) in
            let isKnown = state.receipts.removeValue(forKey: receipt.id) != nil
            switch state.queue.cancel(receipt.id) {
            case .unknown, .left: return (isKnown, nil)
            case .removed(let number): return (isKnown, state.downloads.removeValue(forKey: number)?.task)
            case .stopped(let number): return (isKnown, state.downloads[number]?.task)
            }
        }
        task?.cancel()
        if isKnown { receipt.end(ImageDownload.Status(result: .failure(CancellationError()))) }
    }

    private func end(_ number: Int, _ result: Result<ImageContent, any Error>) {
        let (receipts, status) = state.withLock { state in
            var status = state.downloads[number]?.status ?? ImageDownload.Status()
            status.result = result
            if case .success(let image) = result { status.header = image.header }
            if let cache, let key = state.downloads[number]?.cacheKey, case .success(let image) = result {
                cache.add(image, for: key)
            }
            state.downloads[number] = nil
            let (receipts, next) = state.queue.end(number)
            if let next { state.downloads[next]?.turn.yield() }
            return (receipts.compactMap { state.receipts.removeValue(forKey: $0) }, status)
        }
        for receipt in receipts { receipt.end(status) }
    }

    // MARK: Transfers

    /// Performs the request of a download and ends it, unless it was cancelled while it waited.
    private func transfer(_ request: Request, of number: Int) async {
        guard state.withLock({ $0.downloads[number] != nil }) else { return }
        do {
            end(number, .success(try await load(request, of: number)))
        } catch {
            end(number, .failure(error))
        }
    }

    /// Performs the request of a download.
    private func load(_ request: Request, of number: Int) async throws -> ImageContent {
        let limit = request.options(inheriting: SharedTransferOptions(session.configuration.transfer)).value
            .maximumBodySize
        return try await session.withResponse(for: request, validating: serializer.validation) { head, body in
            var file = PartialImage(head)
            for try await chunk in body {
                if let header = try file.append(chunk, upTo: limit) { try serializer.check(header) }
                update(number, ImageDownload.Status(header: file.header, progress: file.progress))
            }
            return try serializer.serialize(head, file.data)
        }
    }

    /// Reports the state of a download to its receipts.
    private func update(_ number: Int, _ status: ImageDownload.Status) {
        let receipts = state.withLock { state in
            state.downloads[number]?.status = status
            return state.queue.receipts(of: number).compactMap { state.receipts[$0] }
        }
        for receipt in receipts { receipt.broadcast.send(status) }
    }
}
