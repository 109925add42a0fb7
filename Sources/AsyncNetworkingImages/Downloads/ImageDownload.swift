// SPDX-License-Identifier: MIT

public import AsyncNetworking
import FoundationEssentials

/// The receipt of one request to an ``ImageDownloader``: it observes and cancels the request.
///
/// It is returned by ``ImageDownloader/download(_:priority:)``. Several receipts may share a transfer, which ends early
/// only if all of them are cancelled. Releasing a receipt does not cancel the request.
public final class ImageDownload: Identifiable, Sendable {
    /// The identifier of the receipt, a number from 1 that is unique within its downloader.
    public let id: Int
    /// The request as passed to ``ImageDownloader/download(_:priority:)``, without the header fields that the session
    /// adds.
    public let request: Request

    let broadcast = Broadcast<Status>()
    private let downloader: ImageDownloader?

    /// The state of a request: what has arrived so far, and its result.
    public struct Status: Sendable {
        /// The format and the stored size of the image, read from the beginning of the file; `nil` until enough of the
        /// file has arrived, and if ``ImageDownload/cancel()`` ended the request.
        ///
        /// It is read when the file reaches 64 bytes, then whenever its size has doubled, and at the end.
        public var header: ImageHeader?
        /// The number of bytes of the file received so far, after decompression, and the total if the server declared a
        /// `Content-Length` and no content coding; `nil` before the first bytes have arrived, for an image from the
        /// memory cache, and if ``ImageDownload/cancel()`` ended the request.
        ///
        /// An image from the response cache counts like a received one. The speed is not measured.
        public var progress: TransferProgress?
        /// The image or the error; `nil` before the request has ended.
        ///
        /// The error is a `SessionError` if the request failed or its response was not accepted, an ``ImageError`` if
        /// the file is not an acceptable image, an error of a custom decoder or of the program's other code, such as
        /// interceptors, or `CancellationError` after ``ImageDownload/cancel()`` or if the session cancelled its
        /// requests.
        public var result: Result<ImageContent, any Error>?
    }

    init(id: Int, request: Request, downloader: ImageDownloader?) {
        self.id = id
        self.request = request
        self.downloader = downloader
    }

    /// The states of the request, for any number of readers: each receives the latest first, then newer ones; the last
    /// one has a result.
    ///
    /// Before the first bytes have arrived, there is no state, except an empty one for a request that joins a download,
    /// and the last one if the image is in the memory cache or the request ends. The header of the image is usually
    /// known before the file is complete, so that a place for the image can be laid out. A slow reader skips states,
    /// but never the last. Cancelling the task that reads the stream does not cancel the request.
    public var updates: BroadcastStream<Status> { broadcast.stream }

    /// The image, available when it was downloaded. Cancelling a task that awaits it cancels this request, for all
    /// tasks that await it, but no other request that shares its transfer.
    ///
    /// - Throws: `SessionError` if the request failed, its status or media type was not accepted, or the file is empty
    ///   or larger than `TransferOptions.maximumBodySize`, 128 MiB by default; ``ImageError`` if the file is not an
    ///   image, exceeds the limits or cannot be decoded; the errors of a custom decoder and of the
    ///   program's other code, such as interceptors; `CancellationError` if the request was cancelled, here or by its
    ///   session, or the calling task is cancelled, even after the image was downloaded.
    public var image: ImageContent {
        get async throws {
            try await withTaskCancellationHandler {
                for await status in updates {
                    if let result = status.result { return try result.get() }
                }
                throw CancellationError()
            } onCancel: {
                cancel()
            }
        }
    }

    /// Cancels this request, whose ``image`` then throws `CancellationError`; has no effect if it has ended, also by an
    /// earlier call.
    ///
    /// The transfer is stopped only if no other request shares it; it then keeps its place among the active downloads
    /// until it has ended.
    public func cancel() {
        downloader?.cancel(self)
    }

    /// Ends the request.
    func end(_ status: Status) {
        broadcast.send(status)
        broadcast.finish()
    }
}

/// The beginning of a file that is being received, and its header as soon as it is complete.
struct PartialImage {
    private(set) var data = Data()
    private(set) var header: ImageHeader?
    private let totalBytes: Int64?
    /// The size of the file at which its header is read next. It doubles, so that all readings together take time
    /// proportional to the size of the file.
    private var nextReading = 64

    /// Creates the file of a response. Its size is unknown if the response has a content coding: the bytes are counted
    /// after decoding.
    init(_ head: ResponseHead) {
        totalBytes = head.isDecodable ? nil : head.contentLength
    }

    /// The progress of receiving the file.
    var progress: TransferProgress { TransferProgress(completedBytes: Int64(data.count), totalBytes: totalBytes) }

    /// Appends a chunk, and returns the header if it is complete since then.
    ///
    /// - Throws: `TransportError` if the file exceeds `limit` bytes.
    mutating func append(_ chunk: Data, upTo limit: Int) throws(TransportError) -> ImageHeader? {
        try data.collect(chunk, upTo: limit)
        guard header == nil, data.count >= nextReading else { return nil }
        nextReading = data.count * 2
        header = try? ImageHeader(data)
        return header
    }
}
