// SPDX-License-Identifier: MIT

public import FoundationEssentials

/// The body of a request: empty, bytes, a file, or a stream of chunks.
///
/// A body of known length is sent with `Content-Length`, any other chunked. A replayable body can be sent again for a
/// redirect, a retry, or after a reused connection turned out to be closed; for any other body these fail with an
/// error.
public struct RequestBody: Sendable {
    /// The source of the body.
    package let content: Content

    /// No body and no `Content-Length`.
    public static let none = RequestBody(content: .none)

    /// Creates a body of bytes in memory. Empty data is a body of length 0.
    public static func bytes(_ data: Data) -> RequestBody {
        RequestBody(content: .bytes(data))
    }

    /// Creates a body of the UTF-8 encoding of a string.
    public static func string(_ string: String) -> RequestBody {
        .bytes(Data(string.utf8))
    }

    /// Creates a body from a file, which is read while it is sent.
    ///
    /// The size is determined when the exchange begins. If the file has become shorter by the time it is read, the
    /// request fails; if it has become longer, the additional bytes are not sent.
    public static func file(_ path: String) -> RequestBody {
        RequestBody(content: .file(path: path))
    }

    /// Creates a body from an asynchronous sequence, which is iterated only as fast as the connection accepts data.
    ///
    /// - Parameters:
    ///   - chunks: The sequence of chunks.
    ///   - length: The total number of bytes; `nil`, the default, if it is unknown. The request fails if the sequence
    ///     yields fewer or more bytes.
    ///   - isReplayable: Whether the sequence yields the same chunks each time it is iterated; `false` by default. Must
    ///     be `false` if the sequence can be iterated only once.
    public static func stream<Chunks: AsyncSequence & Sendable>(
        _ chunks: Chunks, length: Int64? = nil, isReplayable: Bool = false
    ) -> RequestBody where Chunks.Element: DataProtocol {
        RequestBody(
            content: .stream(
                length: length, isReplayable: isReplayable,
                makeReader: {
                    var iterator = chunks.makeAsyncIterator()
                    return BodyReader { try await iterator.next(isolation: #isolation).map { Data($0) } }
                }))
    }

    /// Creates a body from chunks that a reader returns; `makeReader` creates a new reader each time the body is sent.
    package static func stream(
        length: Int64?, isReplayable: Bool, makeReader: @escaping @Sendable () throws -> BodyReader
    ) -> RequestBody {
        RequestBody(content: .stream(length: length, isReplayable: isReplayable, makeReader: makeReader))
    }

    /// The number of bytes; `nil` if it is unknown or would have to be read from the file system.
    public var length: Int64? {
        switch content {
        case .none: 0
        case .bytes(let data): Int64(data.count)
        case .file: nil
        case .stream(let length, _, _): length
        }
    }

    /// Whether the body can be sent more than once.
    public var isReplayable: Bool {
        switch content {
        case .none, .bytes, .file: true
        case .stream(_, let isReplayable, _): isReplayable
        }
    }

    /// The source of a body.
    package enum Content: Sendable {
        case none
        case bytes(Data)
        case file(path: String)
        case stream(length: Int64?, isReplayable: Bool, makeReader: @Sendable () throws -> BodyReader)
    }
}

/// A reader of a streamed body, for one pass over its chunks.
package struct BodyReader {
    private let read: () async throws -> Data?

    /// Creates a reader from a function that returns the next chunk, or `nil` at the end.
    package init(_ read: @escaping () async throws -> Data?) {
        self.read = read
    }

    /// Returns the next chunk; `nil` at the end.
    package func next() async throws -> Data? {
        try await read()
    }
}
