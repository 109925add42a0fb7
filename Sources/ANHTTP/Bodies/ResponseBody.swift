// SPDX-License-Identifier: MIT

public import FoundationEssentials
public import HTTPTypes
import Synchronization

/// The body of a response, read as it arrives.
///
/// It can be read once, by one reader: with `for try await chunk in body`, ``lines`` or ``collect(upTo:)``. If two
/// tasks read a body of libcurl's transport at the same time, one of them receives
/// ``TransportError/Reason/internalInconsistency(_:)``. A slow reader of a streamed body slows down the server
/// (backpressure). When the scope that provides it ends, the unread bytes of a response from libcurl's transport are
/// discarded, and reading throws `CancellationError`.
public struct ResponseBody: AsyncSequence, Sendable {
    private(set) var source: any ResponseBodySource
    /// Returns whether the rest of the body can be read without waiting; `nil` if that is not known.
    private var knowsWhole: (@Sendable () -> Bool)?
    /// Receives the file to which the reader writes the body; `nil` if it makes no difference.
    private var announceFile: (@Sendable (_ path: String) async -> Void)?
    /// Receives the information that the bytes which were read are not passed on, so that it does not matter how reading
    /// ended; `nil` if it makes no difference.
    package var noteDisuse: (@Sendable () -> Void)?
    /// The decoder of the session that received the response, for the values of a stream.
    package var jsonDecoder: JSONDecoder?
    /// Whether an interceptor has passed on another body than it received, whose bytes may differ.
    package var isReplaced = false
    /// The number of the request among an interceptor's, while the interceptor has its response; otherwise `nil`.
    package var loan: Int?
    /// The source of the bytes, which an interceptor may transform: the exchange or the cache; `nil` for a body that an
    /// interceptor has made.
    package var origin: ResponseSource?
    /// The number of the exchange among those of a call that is observed; otherwise `nil`.
    package var exchange: Int?

    /// Creates a body that reads from a source, for transports and interceptors. The reader receives the source's
    /// errors unchanged.
    public init(source: some ResponseBodySource) {
        self.source = source
    }

    /// Creates a body from data in memory.
    ///
    /// - Parameters:
    ///   - data: The body, which is read as a single chunk, or as none if it is empty.
    ///   - ending: The trailers and metrics available after the end; by default no trailers and empty metrics.
    public init(_ data: Data, ending: ResponseEnding = ResponseEnding()) {
        source = BytesBodySource(data, ending: ending)
        knowsWhole = { true }
    }

    /// Creates a body that reads from a source that knows whether its body was received completely.
    package init(source: some WholeBodySource) {
        self.source = source
        knowsWhole = { source.isWhole }
    }

    /// The trailers and metrics, available after the end of the body was read; `nil` before, and if reading failed. The
    /// end must also be read if the body is empty.
    public var ending: ResponseEnding? {
        source.ending
    }

    /// The trailer fields (RFC 9110 §6.5), possibly empty; `nil` before the end of the body was read, and if reading
    /// failed.
    public var trailers: HTTPFields? {
        source.ending?.trailers
    }

    /// The metrics of the exchange; `nil` before the end of the body was read, and if reading failed. The event
    /// ``ExchangeEvent/finished(_:)`` has the metrics of a failed exchange.
    public var metrics: TransferMetrics? {
        source.ending?.metrics
    }

    /// Reads the remaining body and returns it; empty if all of it was read before.
    ///
    /// - Parameter limit: The maximum number of remaining bytes, counted after decompression. 0, as which a negative
    ///   value counts, permits only an empty body.
    /// - Throws: ``TransportError``, with the reason ``TransportError/Reason/responseTooLarge(_:)`` if the remaining
    ///   body exceeds `limit` bytes; `CancellationError` if the task is cancelled, which ends the exchange; or the
    ///   errors of another source, such as the function of ``transforming(_:)``.
    public func collect(upTo limit: Int) async throws -> Data {
        let limit = Swift.max(limit, 0)
        // What does not wait needs no handler, which costs several switches between executors.
        guard !isWhole else { return try await source.collect(upTo: limit) }
        return try await withTaskCancellationHandler {
            try await source.collect(upTo: limit)
        } onCancel: {
            source.cancel()
        }
    }

    /// Returns the body with a source that provides the same bytes.
    package func reading(_ source: some FileBodySource) -> ResponseBody {
        var body = self
        body.source = source
        body.announceFile = { await source.willBeWritten(to: $0) }
        return body
    }

    /// Returns the body in memory, after it was collected.
    package func collected(as data: Data) -> ResponseBody {
        var body = ResponseBody(data, ending: ending ?? ResponseEnding())
        (body.isReplaced, body.loan, body.origin, body.exchange) = (isReplaced, loan, origin, exchange)
        return body
    }

    /// Announces that the reader writes the whole body to a file; see ``FileBodySource/willBeWritten(to:)``.
    package func willBeWritten(to path: String) async { await announceFile?(path) }

    /// Whether the rest of the body can be read without waiting, and no more of the request is sent; `false` if the source
    /// does not know.
    package var isWhole: Bool { knowsWhole?() ?? false }

    /// Ends the exchange soon, if it is not over; reading then throws. Callable from any thread, at any time.
    package func cancel() { source.cancel() }

    /// Ends the exchange, and returns when no part of it is running.
    package func close() async { await source.close() }

    /// Returns the next chunk; `nil` at the end, and in all later calls.
    package func next() async throws -> Data? { try await source.next() }

    /// Returns an iterator that reads the body. All iterators continue where the last one stopped: the body is read
    /// once.
    public func makeAsyncIterator() -> Iterator {
        Iterator(source: source)
    }

    /// An iterator over the chunks of a body, after decompression. Their sizes have no meaning: bytes that arrive
    /// before they are requested are joined.
    public struct Iterator: AsyncIteratorProtocol {
        fileprivate let source: any ResponseBodySource

        /// Returns the next chunk, which has at least one byte; `nil` at the end of the body, and in all later calls.
        ///
        /// - Throws: The errors of the body's source, such as ``TransportError`` or, if the task is cancelled,
        ///   `CancellationError`.
        public mutating func next() async throws -> Data? {
            try await source.next()
        }
    }
}

/// A source of the bytes of a ``ResponseBody``, implemented by transports and by interceptors that change bodies.
public protocol ResponseBodySource: Sendable {
    /// Returns the next chunk, which is not empty; `nil` at the end, and in all later calls. It is called by the task
    /// that reads the body.
    ///
    /// - Throws: The error of the transfer, which the reader of the body receives unchanged.
    func next() async throws -> Data?
    /// Returns all remaining bytes; empty at the end. The default implementation calls ``next()`` until the end.
    ///
    /// - Parameter limit: The maximum number of remaining bytes, at least 0.
    /// - Throws: ``TransportError/Reason/responseTooLarge(_:)`` if they exceed `limit`; otherwise the errors of the
    ///   transfer.
    func collect(upTo limit: Int) async throws -> Data
    /// The trailers and metrics; `nil` before the end was read, and if reading failed.
    var ending: ResponseEnding? { get }
    /// Asks for the end of the exchange that provides the body; the default implementation does nothing.
    ///
    /// It is called from any thread when the task that uses the response is cancelled, also if it is not reading, and
    /// must return immediately. Functions that wait for bytes then throw.
    func cancel()
    /// Ends the exchange that provides the body: discards what was not read, and returns when no part of the exchange
    /// is running. The default implementation does nothing.
    ///
    /// A source that wraps another one closes it. It may be called several times.
    func close() async
}

/// A source that reads another body, and makes use of the file to which its reader writes it. Only ``next()`` need be
/// implemented.
package protocol FileBodySource: ResponseBodySource {
    /// The body that it reads.
    var base: ResponseBody { get }
    /// Announces a file before the first byte is read. The file is empty, and contains each chunk, and nothing else,
    /// when the next one is requested.
    func willBeWritten(to path: String) async
}

/// A source that knows whether the rest of its body can be read without waiting, and nothing else is to be done.
package protocol WholeBodySource: ResponseBodySource {
    /// Whether the body was received completely, and no more of the request is sent.
    var isWhole: Bool { get }
}

extension FileBodySource {
    package var ending: ResponseEnding? { base.ending }
    package func cancel() { base.cancel() }
    package func close() async { await base.close() }
    package func willBeWritten(to path: String) async { await base.willBeWritten(to: path) }
}

extension ResponseBodySource {
    /// Does nothing, the default for sources without an exchange.
    public func cancel() {}

    /// Does nothing, the default for sources without an exchange.
    public func close() async {}

    /// Returns all remaining bytes, which are read by calling ``next()`` until the end; empty at the end.
    ///
    /// - Parameter limit: The maximum number of remaining bytes, at least 0.
    /// - Throws: ``TransportError/Reason/responseTooLarge(_:)`` if they exceed `limit`; otherwise the errors that
    ///   ``next()`` throws.
    public func collect(upTo limit: Int) async throws -> Data {
        var collected = Data()
        while let chunk = try await next() {
            try collected.collect(chunk, upTo: limit)
        }
        return collected
    }
}

extension Data {
    /// Appends a chunk of a body; the first chunk is adopted without a copy.
    ///
    /// - Throws: ``TransportError/Reason/responseTooLarge(_:)`` with the context if the body then exceeded `limit`
    ///   bytes.
    package mutating func collect(
        _ chunk: Data, upTo limit: Int, _ context: @autoclosure () -> FailureContext = FailureContext()
    ) throws(TransportError) {
        guard chunk.count <= limit - count else {
            throw TransportError(.responseTooLarge(.body(limit: limit)), context: context())
        }
        // Readers of the result may assume that its indices start at 0.
        if isEmpty, chunk.startIndex == 0 { self = chunk } else { append(chunk) }
    }
}

/// The information available at the end of a response, in ``ResponseBody/ending``: trailer fields and metrics.
public struct ResponseEnding: Sendable {
    /// The trailer fields (RFC 9110 §6.5); empty if the server sent no trailers.
    public var trailers: HTTPFields
    /// The metrics of the complete exchange; those of ``TransferMetrics/init()`` if it was created without metrics.
    public var metrics: TransferMetrics {
        get { sharedMetrics.value }
        set { sharedMetrics = Shared(newValue) }
    }

    package private(set) var sharedMetrics: Shared<TransferMetrics>

    /// Creates an ending.
    ///
    /// - Parameters:
    ///   - trailers: The trailer fields; none by default.
    ///   - metrics: The metrics of the exchange; by default those of an exchange that has not begun.
    public init(trailers: HTTPFields = [:], metrics: TransferMetrics = TransferMetrics()) {
        self.trailers = trailers
        sharedMetrics = Shared(metrics)
    }

    /// Creates an ending with shared metrics.
    package init(trailers: HTTPFields, metrics: Shared<TransferMetrics>) {
        self.trailers = trailers
        sharedMetrics = metrics
    }
}

extension ResponseBody {
    /// Returns a body whose chunks are transformed when they are read. Chunks that become empty are omitted.
    ///
    /// Nothing is read ahead. To observe a body without changing it, return each chunk unchanged. The limit of
    /// ``collect(upTo:)`` applies to the transformed bytes, and ``ending`` is that of this body.
    ///
    /// - Parameter transform: A function called for each decompressed chunk in order, by the task that reads the body.
    ///   It may wait, which slows the server down. That task also receives the errors that the function throws. Chunks
    ///   are not empty, and their sizes have no meaning.
    public func transforming(_ transform: @escaping @Sendable (Data) async throws -> Data) -> ResponseBody {
        var body = self
        body.source = TransformedBodySource(base: source, transform: transform)
        // A file has other bytes.
        body.announceFile = nil
        body.isReplaced = true
        return body
    }
}

/// A source that transforms the chunks of another one.
private struct TransformedBodySource: ResponseBodySource {
    let base: any ResponseBodySource
    let transform: @Sendable (Data) async throws -> Data

    func next() async throws -> Data? {
        while let chunk = try await base.next() {
            let changed = try await transform(chunk)
            if !changed.isEmpty { return changed }
        }
        return nil
    }

    var ending: ResponseEnding? { base.ending }
    func cancel() { base.cancel() }
    func close() async { await base.close() }
}

/// A response body in memory.
final class BytesBodySource: ResponseBodySource {
    private let data: Data
    private let end: ResponseEnding
    private let isRead = Atomic(false)

    init(_ data: Data, ending: ResponseEnding) {
        // Readers may assume that the indices start at 0.
        self.data = data.startIndex == 0 ? data : Data(data)
        end = ending
    }

    func next() async throws -> Data? {
        try Task.checkCancellation()
        return take()
    }

    func collect(upTo limit: Int) async throws -> Data {
        guard data.count <= limit || isRead.load(ordering: .acquiring) else {
            throw TransportError(.responseTooLarge(.body(limit: limit)))
        }
        return take() ?? Data()
    }

    var ending: ResponseEnding? {
        isRead.load(ordering: .acquiring) ? end : nil
    }

    private func take() -> Data? {
        let wasRead = isRead.exchange(true, ordering: .acquiringAndReleasing)
        return wasRead || data.isEmpty ? nil : data
    }
}
