// SPDX-License-Identifier: MIT

public import FoundationEssentials
public import HTTPTypes

/// The body of a response, read while it arrives.
///
/// It is read once, by one reader: `for try await chunk in body`, ``lines`` or ``collect(upTo:)``. Whoever reads slowly
/// slows the server down; what is not read is given up when the scope that lent the body ends.
public struct ResponseBody: AsyncSequence, Sendable {
    /// Some bytes, at least one.
    public typealias Element = Data
    /// ``TransportError`` or `CancellationError`, from the usual transport.
    public typealias Failure = any Error

    let source: any ResponseBodySource

    /// Creates a body that takes its bytes from `source`.
    public init(source: some ResponseBodySource) {
        self.source = source
    }

    /// Creates a body of bytes that are here already.
    public init(_ data: Data, ending: ResponseEnding = ResponseEnding()) {
        source = BytesBodySource(data, ending: ending)
    }

    /// What came after the body; nil before the end of the body was read.
    public var ending: ResponseEnding? {
        source.ending
    }

    /// The trailer fields; nil before the end of the body was read, and empty when there were none. See RFC 9110 §6.5.
    public var trailers: HTTPFields? {
        source.ending?.trailers
    }

    /// What the exchange cost; nil before the end of the body was read.
    public var metrics: TransferMetrics? {
        source.ending?.metrics
    }

    /// Reads the rest of the body as one piece.
    ///
    /// - Throws: ``TransportError/responseTooLarge(_:_:)`` above `limit` bytes; the transfer then stops.
    public func collect(upTo limit: Int) async throws -> Data {
        try await source.collect(upTo: limit)
    }

    /// Starts to read the body.
    public func makeAsyncIterator() -> Iterator {
        Iterator(source: source)
    }

    /// Yields chunks as they arrived, none of them empty.
    public struct Iterator: AsyncIteratorProtocol {
        fileprivate let source: any ResponseBodySource

        /// The next bytes; nil at the end of the body.
        public mutating func next() async throws -> Data? {
            try await source.next()
        }
    }
}

/// Where the bytes of a ``ResponseBody`` come from.
public protocol ResponseBodySource: Sendable {
    /// The next bytes, not empty, which do not change afterwards; nil at the end, and from then on.
    func next() async throws -> Data?
    /// All bytes that are left; fails above `limit`.
    func collect(upTo limit: Int) async throws -> Data
    /// What came after the body; nil until its end was read.
    var ending: ResponseEnding? { get }
}

extension ResponseBodySource {
    /// Collects chunk by chunk.
    public func collect(upTo limit: Int) async throws -> Data {
        var collected = Data()
        while let chunk = try await next() {
            guard chunk.count <= limit - collected.count else {
                throw TransportError.responseTooLarge(.body(limit: limit), TransferFacts())
            }
            collected.collect(chunk)
        }
        return collected
    }
}

extension Data {
    /// Appends a chunk; the first one is taken as it is, without a copy.
    package mutating func collect(_ chunk: Data) {
        // Whoever gets the bytes may count them from 0.
        if isEmpty, chunk.startIndex == 0 { self = chunk } else { append(chunk) }
    }
}

/// What is known once a response is complete.
public struct ResponseEnding: Sendable {
    /// The trailer fields.
    public var trailers: HTTPFields
    /// What the exchange cost.
    public var metrics: TransferMetrics {
        get { sharedMetrics.value }
        set { sharedMetrics = Shared(newValue) }
    }

    package private(set) var sharedMetrics: Shared<TransferMetrics>

    /// Creates an ending.
    public init(trailers: HTTPFields = [:], metrics: TransferMetrics = TransferMetrics()) {
        self.trailers = trailers
        sharedMetrics = Shared(metrics)
    }

    /// Creates an ending with metrics that others have too.
    package init(trailers: HTTPFields, metrics: Shared<TransferMetrics>) {
        self.trailers = trailers
        sharedMetrics = metrics
    }
}

/// A large value behind a reference: what has it is small, and copied at once.
package final class Shared<Value: Sendable>: Sendable {
    package let value: Value

    package init(_ value: Value) {
        self.value = value
    }
}
