// SPDX-License-Identifier: MIT

import ANSystem
import AsyncNetworking
import AsyncNetworkingImages
import Dispatch

/// The order in which an ``AFImageDownloader`` starts waiting downloads.
public enum AFImageDownloadPrioritization: Int, Sendable {
    /// First in, first out: in the order of the requests.
    case fifo
    /// Last in, first out: the most recent request first.
    case lifo

    fileprivate var order: ImageDownloadOrder { self == .fifo ? .fifo : .lifo }
}

/// The receipt of a request to an ``AFImageDownloader``, by which the request can be cancelled.
///
/// ``AFImageDownloader/downloadImage(for:success:failure:)`` returns it.
open class AFImageDownloadReceipt: NSObject, @unchecked Sendable {
    /// The task, which equal requests share. To cancel a request, call ``AFImageDownloader/cancelTask(for:)``:
    /// cancelling the task would affect all of them.
    public let task: URLSessionDataTask
    /// The identifier passed to ``AFImageDownloader/downloadImage(for:withReceiptID:success:failure:)``, or a new one.
    /// It is for the program's use: the downloader does not compare it, so it need not be unique.
    public let receiptID: UUID
    /// The number of the request in the downloader's queue.
    let number: Int

    init(_ task: URLSessionDataTask, receiptID: UUID, number: Int) {
        self.task = task
        self.receiptID = receiptID
        self.number = number
        super.init()
    }
}

/// A downloader of images with callbacks, which are called on the main queue.
///
/// Requests for the same URL with the same method, header fields and body data share a task; their body streams and
/// other settings are not compared. AFNetworking compared the URLs only; its known faults are corrected: cancelling a
/// waiting request does not start more downloads than permitted, and data that are not an image are a failure. All
/// members may be used from any thread.
open class AFImageDownloader: NSObject, @unchecked Sendable {
    /// Makes the look-up in the cache and the admission of a request one step.
    private let serialQueue = DispatchQueue(label: "com.alamofire.imagedownloader")
    private let state: Lock<State>

    private struct State: Sendable {
        var queue: ImageDownloadQueue<Key>
        var imageCache: UncheckedSendable<(any AFImageRequestCache)?>
        var sessionManager: AFHTTPSessionManager
        /// The tasks of the downloads in the queue.
        var tasks: [Int: URLSessionDataTask] = [:]
        var handlers: [Int: Handler] = [:]
        var lastReceipt = 0
    }

    /// The part of a request by which equal requests are recognized. `==` of Foundation's `URLRequest` on Linux ignores
    /// the header fields.
    private struct Key: Hashable, Sendable {
        let url: URL
        let method: String?
        let headers: [String: String]?
        let body: Data?
    }

    /// The callback of a request.
    private typealias Handler = @Sendable (HTTPURLResponse?, Result<AFImage, any Error>) -> Void

    private static let shared = AFImageDownloader()

    /// Creates a downloader with ``defaultURLSessionConfiguration()`` and an ``AFAutoPurgingImageCache`` of 100 MiB: at
    /// most 4 concurrent downloads, first in, first out.
    public override convenience init() {
        self.init(sessionConfiguration: Self.defaultURLSessionConfiguration())
    }

    /// Creates a downloader with an ``AFAutoPurgingImageCache`` of 100 MiB: at most 4 concurrent downloads, first in,
    /// first out.
    ///
    /// - Parameter configuration: The configuration of its session manager; see ``defaultURLSessionConfiguration()``.
    public convenience init(sessionConfiguration configuration: URLSessionConfiguration) {
        let manager = AFHTTPSessionManager(sessionConfiguration: configuration)
        manager.responseSerializer = AFImageResponseSerializer()
        self.init(
            sessionManager: manager, downloadPrioritization: .fifo, maximumActiveDownloads: 4,
            imageCache: AFAutoPurgingImageCache())
    }

    /// Creates a downloader.
    ///
    /// - Parameters:
    ///   - sessionManager: The manager of the tasks. Its response serializer must return an ``AFImage``: other objects,
    ///     and none, fail with -1016 of `NSURLErrorDomain`.
    ///   - downloadPrioritization: The order in which waiting downloads are started.
    ///   - maximumActiveDownloads: The maximum number of concurrent downloads; a value below 1 counts as 1.
    ///   - imageCache: The cache; `nil` for none.
    public init(
        sessionManager: AFHTTPSessionManager, downloadPrioritization: AFImageDownloadPrioritization,
        maximumActiveDownloads: Int, imageCache: (any AFImageRequestCache)?
    ) {
        state = Lock(
            State(
                queue: ImageDownloadQueue(limit: maximumActiveDownloads, order: downloadPrioritization.order),
                imageCache: UncheckedSendable(imageCache), sessionManager: sessionManager))
        super.init()
    }

    // MARK: Defaults

    /// Returns the shared downloader, which is created with the defaults of `init()` at the first call.
    open class func defaultInstance() -> AFImageDownloader { shared }

    /// Returns a new cache of 20 MiB in memory and 150 MiB on the disk. A manager uses its capacities only: the files
    /// are in a directory beside that of `ResponseCache.standard`, and `removeAllCachedResponses()` does not remove
    /// them. Call `coreSession.configuration.cache?.removeAll()` of the downloader's manager instead.
    open class func defaultURLCache() -> URLCache {
        // On Linux, Foundation would create a directory with a relative path in the working directory.
        let directory = FileManager.default.urls(for: .cachesDirectory, in: .userDomainMask).first
        return URLCache(
            memoryCapacity: 20 * 1_024 * 1_024, diskCapacity: 150 * 1_024 * 1_024,
            diskPath: directory?.appendingPathComponent("com.alamofire.imagedownloader").path)
    }

    /// Returns a new configuration with the protocol's cache policy, an idle timeout of 60 s and ``defaultURLCache()``.
    open class func defaultURLSessionConfiguration() -> URLSessionConfiguration {
        let configuration = URLSessionConfiguration.default
        configuration.requestCachePolicy = .useProtocolCachePolicy
        configuration.timeoutIntervalForRequest = 60
        configuration.urlCache = defaultURLCache()
        return configuration
    }

    // MARK: Parts

    /// The cache of images; by default a new ``AFAutoPurgingImageCache`` of 100 MiB. Without one, `nil`, equal requests
    /// still share a task. It is consulted for requests with the cache policies `useProtocolCachePolicy`,
    /// `returnCacheDataElseLoad` and `returnCacheDataDontLoad`; images are added with every policy. A change applies to
    /// later requests and results.
    open var imageCache: (any AFImageRequestCache)? {
        get { state.withLock { $0.imageCache.value } }
        set { state.set(\.imageCache, to: UncheckedSendable(newValue)) }
    }

    /// The manager of the tasks, by default one with an ``AFImageResponseSerializer``. Its response serializer must
    /// return an ``AFImage``: other objects, and none, fail with -1016 of `NSURLErrorDomain`. A change applies to later
    /// downloads.
    open var sessionManager: AFHTTPSessionManager {
        get { state.withLock { $0.sessionManager } }
        set { state.set(\.sessionManager, to: newValue) }
    }

    /// The order in which waiting downloads are started; ``AFImageDownloadPrioritization/fifo`` by default. After a
    /// change, downloads that are already waiting keep their order, and later ones are added behind (`fifo`) or before
    /// them (`lifo`).
    open var downloadPrioritization: AFImageDownloadPrioritization {
        get { state.withLock { $0.queue.order } == .fifo ? .fifo : .lifo }
        set { state.withLock { $0.queue.order = newValue.order } }
    }

    // MARK: Requests

    /// Downloads an image, or takes it from ``imageCache`` if the cache policy of the request permits that.
    ///
    /// - Parameters:
    ///   - request: The request. It shares the task of a request with the same URL, method, header fields and body that
    ///     has not ended.
    ///   - success: Called on the main queue with the request, the response (`nil` for an image from the cache) and the
    ///     image. The block may be `nil`.
    ///   - failure: Called on the main queue with the request, the response, if any, and the error: -999 for a
    ///     cancelled request, -1016 for a response without an image, or that of the transfer or the serializer. The
    ///     block may be `nil`.
    /// - Returns: The receipt, with a new identifier; `nil` for an image from the cache, or a request without a URL,
    ///   which fails with -1000.
    #if MigrationHints
        @available(*, deprecated, message: "Use ImageDownloader of AsyncNetworkingImages.")
    #endif
    @preconcurrency
    @discardableResult
    open func downloadImage(
        for request: URLRequest, success: (@Sendable (URLRequest, HTTPURLResponse?, UIImage) -> Void)?,
        failure: (@Sendable (URLRequest, HTTPURLResponse?, any Error) -> Void)? = nil
    ) -> AFImageDownloadReceipt? {
        downloadImage(for: request, withReceiptID: UUID(), success: success, failure: failure)
    }

    /// Downloads an image, or takes it from ``imageCache`` if the cache policy of the request permits that.
    ///
    /// - Parameters:
    ///   - request: The request. It shares the task of a request with the same URL, method, header fields and body that
    ///     has not ended.
    ///   - receiptID: The identifier for the receipt, for the program's use; it need not be unique.
    ///   - success: Called on the main queue with the request, the response (`nil` for an image from the cache) and the
    ///     image. The block may be `nil`.
    ///   - failure: Called on the main queue with the request, the response, if any, and the error: -999 for a
    ///     cancelled request, -1016 for a response without an image, or that of the transfer or the serializer. The
    ///     block may be `nil`.
    /// - Returns: The receipt; `nil` for an image from the cache, or a request without a URL, which fails with -1000.
    #if MigrationHints
        @available(*, deprecated, message: "Use ImageDownloader of AsyncNetworkingImages.")
    #endif
    @preconcurrency
    @discardableResult
    open func downloadImage(
        for request: URLRequest, withReceiptID receiptID: UUID,
        success: (@Sendable (URLRequest, HTTPURLResponse?, UIImage) -> Void)?,
        failure: (@Sendable (URLRequest, HTTPURLResponse?, any Error) -> Void)? = nil
    ) -> AFImageDownloadReceipt? {
        let handler: Handler = { response, result in
            switch result {
            case .success(let image): success?(request, response, image)
            case .failure(let error): failure?(request, response, error)
            }
        }
        guard let url = request.url else {
            call(handler, nil, .failure(URLError(.badURL, url: nil)))
            return nil
        }
        let (receipt, starts) = serialQueue.sync { () -> (AFImageDownloadReceipt?, Bool) in
            if let image = cachedImage(for: request) {
                call(handler, nil, .success(image))
                return (nil, false)
            }
            return admit(handler, request, url, receiptID)
        }
        if starts { receipt?.task.resume() }
        return receipt
    }

    private func cachedImage(for request: URLRequest) -> AFImage? {
        switch request.cachePolicy {
        case .useProtocolCachePolicy, .returnCacheDataElseLoad, .returnCacheDataDontLoad:
            imageCache?.imageforRequest(request, withAdditionalIdentifier: nil)
        default: nil
        }
    }

    private func call(_ handler: @escaping Handler, _ response: HTTPURLResponse?, _ result: Result<AFImage, any Error>)
    {
        MainQueueBuffer.shared.send { handler(response, result) }
    }

    /// Adds a request to the queue. Returns its receipt, and whether its download has a place and must be started.
    private func admit(
        _ handler: @escaping Handler, _ request: URLRequest, _ url: URL, _ receiptID: UUID
    ) -> (AFImageDownloadReceipt?, Bool) {
        let key = Key(
            url: url.absoluteURL, method: request.httpMethod, headers: request.allHTTPHeaderFields,
            body: request.httpBody)
        let (number, admission) = state.withLock { state in
            state.lastReceipt += 1
            state.handlers[state.lastReceipt] = handler
            return (state.lastReceipt, state.queue.add(state.lastReceipt, key: key))
        }
        let download = admission.download
        if case .joined = admission {
            let task = state.withLock { $0.tasks[download] }
            return (task.map { AFImageDownloadReceipt($0, receiptID: receiptID, number: number) }, false)
        }
        let task = (sessionManager as any TaskMaker).dataTask(
            with: request, uploadProgress: nil, downloadProgress: nil
        ) { [self] response, object, error in
            let image = error == nil ? object as? AFImage : nil
            let failure = error ?? URLError(.cannotDecodeContentData, url: url)
            let result = image.map(Result.success) ?? .failure(failure)
            // A subclass of the manager may call this while it makes the task, within the queue.
            serialQueue.async { self.end(download, request, response as? HTTPURLResponse, result) }
        }
        state.withLock { $0.tasks[download] = task }
        return (AFImageDownloadReceipt(task, receiptID: receiptID, number: number), admission == .started(download))
    }

    /// Cancels a request, whose `failure` is called on the main queue with the error -999 and without a response. The
    /// task is cancelled if no other request shares it.
    ///
    /// - Parameter imageDownloadReceipt: The receipt; it has no effect if the request has ended.
    open func cancelTask(for imageDownloadReceipt: AFImageDownloadReceipt) {
        let (number, task) = (imageDownloadReceipt.number, imageDownloadReceipt.task)
        let (handler, isLast) = serialQueue.sync {
            state.withLock { state -> (Handler?, Bool) in
                guard let download = state.queue.download(of: number), state.tasks[download] === task else {
                    return (nil, false)
                }
                let handler = state.handlers.removeValue(forKey: number)
                switch state.queue.cancel(number) {
                case .unknown, .left: return (handler, false)
                case .removed(let download): state.tasks[download] = nil
                case .stopped: break
                }
                return (handler, true)
            }
        }
        if isLast { task.cancel() }
        guard let handler else { return }
        let reason = "ImageDownloader cancelled URL request: \(task.originalRequest?.url?.absoluteString ?? "")"
        let error = NSError(
            domain: NSURLErrorDomain, code: NSURLErrorCancelled, userInfo: [NSLocalizedFailureReasonErrorKey: reason])
        call(handler, nil, .failure(error))
    }

    /// Ends a download, calls the handlers of its requests, and starts the next one. Called on `serialQueue`.
    private func end(
        _ number: Int, _ request: URLRequest, _ response: HTTPURLResponse?, _ result: Result<AFImage, any Error>
    ) {
        let isWanted = state.withLock { !$0.queue.receipts(of: number).isEmpty }
        if isWanted, case .success(let image) = result, let imageCache,
            imageCache.shouldCache(image, for: request, withAdditionalIdentifier: nil)
        {
            imageCache.add(image, for: request, withAdditionalIdentifier: nil)
        }
        let (handlers, next) = state.withLock { state in
            state.tasks[number] = nil
            let (receipts, next) = state.queue.end(number)
            let handlers = receipts.compactMap { state.handlers.removeValue(forKey: $0) }
            return (handlers, next.flatMap { state.tasks[$0] })
        }
        for handler in handlers { call(handler, response, result) }
        // Observers of the task's notifications may request images.
        if let next { DispatchQueue.global().async { next.resume() } }
    }
}
