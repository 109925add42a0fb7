// SPDX-License-Identifier: MIT

public import FoundationEssentials

/// The body of a request: nothing, bytes, a file, or a stream of chunks.
///
/// A body says two things about itself: how long it is, where that is known, and whether it can be read again. A body of
/// known length is sent with `Content-Length`, another one chunked. One that can be read again survives a redirect, a
/// retry, or a kept-alive connection that turns out to be dead; one that cannot fails these with a clear error.
public struct RequestBody: Sendable {
    /// What the body is made of.
    package let content: Content

    /// No body, and no `Content-Length`.
    public static let none = RequestBody(content: .none)

    /// Bytes in memory; empty ones are a body of length 0.
    public static func bytes(_ data: Data) -> RequestBody {
        RequestBody(content: .bytes(data))
    }

    /// The UTF-8 of a string.
    public static func string(_ string: String) -> RequestBody {
        .bytes(Data(string.utf8))
    }

    /// A file, read piece by piece while it is sent. Its size is taken when the exchange begins; one that has shrunk by
    /// the time it is read fails the request, one that has grown is sent up to that size.
    public static func file(_ path: String) -> RequestBody {
        RequestBody(content: .file(path: path))
    }

    /// Chunks from a sequence, taken only as fast as the connection takes them.
    ///
    /// - Parameters:
    ///   - chunks: The sequence.
    ///   - length: The sum of all chunks, if known. A sequence that yields less or more fails the request.
    ///   - isReplayable: Whether the sequence yields the same chunks each time it is iterated; a sequence that can be
    ///     iterated once only must say false.
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

    /// Chunks from readers that `makeReader` makes, one for each time that the body is sent.
    package static func stream(
        length: Int64?, isReplayable: Bool, makeReader: @escaping @Sendable () throws -> BodyReader
    ) -> RequestBody {
        RequestBody(content: .stream(length: length, isReplayable: isReplayable, makeReader: makeReader))
    }

    /// The number of bytes, where it is known without looking at the file system.
    public var length: Int64? {
        switch content {
        case .none: 0
        case .bytes(let data): Int64(data.count)
        case .file: nil
        case .stream(let length, _, _): length
        }
    }

    /// Whether the body can be sent a second time.
    public var isReplayable: Bool {
        switch content {
        case .none, .bytes, .file: true
        case .stream(_, let isReplayable, _): isReplayable
        }
    }

    /// What a body is made of.
    package enum Content: Sendable {
        case none
        case bytes(Data)
        case file(path: String)
        case stream(length: Int64?, isReplayable: Bool, makeReader: @Sendable () throws -> BodyReader)
    }
}

/// Reads a streamed body once, chunk by chunk.
package struct BodyReader {
    private let read: () async throws -> Data?

    /// Creates a reader from a function that returns the next chunk, or nil at the end.
    package init(_ read: @escaping () async throws -> Data?) {
        self.read = read
    }

    /// The next chunk; nil at the end.
    package func next() async throws -> Data? {
        try await read()
    }
}
