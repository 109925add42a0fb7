// SPDX-License-Identifier: MIT

public import FoundationEssentials

/// The body of a request: empty, bytes, a file, a stream of chunks, bytes that a closure writes, JSON, or a form.
///
/// A body of known length is sent with `Content-Length`; any other, and one with ``Request/trailers``, is chunked over
/// HTTP/1.1. A replayable body can be sent again for a redirect, a challenge, a retry, or after a reused connection
/// turned out to be closed. With any other body, a request whose body must be sent again fails, and a failed attempt is
/// not retried.
public struct RequestBody: Sendable {
    /// The source of the body.
    package let content: Content
    /// How a session encodes the body; `nil` for one that is sent as it is.
    package let encoding: Encoding?
    private var source: Source?
    /// The paths of the files that the bytes are read from, as far as they are known.
    package var files: [String] { if case .file(let path) = content { [path] } else { source?.files ?? [] } }

    /// Returns when the next bytes may be read; `nil`, the default, if they may be read at any time. Awaited before the
    /// first and after each chunk.
    package var gate: (@Sendable () async throws -> Void)? {
        get { source?.wait }
        set { source = Source(newValue, files: source?.files ?? []) }
    }

    private init(content: Content, encoding: Encoding? = nil, files: [String] = []) {
        self.content = content
        source = Source(nil, files: files)
        self.encoding = encoding
    }

    /// Creates a body that a session encodes when the request is created or begins.
    ///
    /// - Parameters:
    ///   - isReplayable: Whether the body can be sent more than once.
    ///   - mediaType: The media type for a request that has none; `nil` if `encode` sets it.
    ///   - write: Writes the body where it is sent without a session.
    ///   - encode: Replaces the body of a request by its encoded form, and adds the other fields that describe it.
    package init(
        isReplayable: Bool, mediaType: String?, write: @escaping BodyWriting, encode: @escaping Encoding.Encode
    ) {
        self.init(
            content: .writer(length: nil, isReplayable: isReplayable, write: write),
            encoding: Encoding(mediaType: mediaType, encode: encode))
    }

    /// Returns this body with the gate and the files of another one, from which it was made.
    package func gated(as original: RequestBody) -> RequestBody {
        var body = self
        body.source = Source(original.gate, files: original.files)
        return body
    }

    /// No body; the default of a request. `POST`, `PUT` and `PATCH` are sent with `Content-Length: 0` (RFC 9110 §8.6),
    /// other methods without the field.
    public static let none = RequestBody(content: .none)

    /// Creates a replayable body of bytes in memory. Empty data is sent as a body of length 0 with any method.
    public static func bytes(_ data: Data) -> RequestBody {
        RequestBody(content: .bytes(data))
    }

    /// Creates a replayable body of the UTF-8 encoding of a string, without setting `Content-Type`. An empty string is
    /// sent as a body of length 0.
    public static func string(_ string: String) -> RequestBody {
        .bytes(Data(string.utf8))
    }

    /// Creates a body from a file, which is read while it is sent.
    ///
    /// The size is determined when the exchange begins. The request fails with
    /// ``TransportError/Reason/requestBody(_:)`` if the file cannot be read or is a directory or a socket, if its size
    /// has changed when reading begins, or if it becomes shorter while it is read. Bytes that are appended while it is
    /// read are not sent.
    ///
    /// A file that the system generates, as in `/proc`, a pipe or a device has no known length, and is read to its end;
    /// a pipe when it has a writer. A pipe or a device is not replayable.
    ///
    /// - Parameter path: The path of the file, absolute or relative to the current directory of the process. It is not
    ///   checked before the exchange begins.
    public static func file(_ path: String) -> RequestBody {
        RequestBody(content: .file(path: path))
    }

    /// Creates a body from an asynchronous sequence, which is iterated only as fast as the connection accepts data,
    /// with a buffer of about 512 KiB.
    ///
    /// It is iterated in a child task of the request, from the time at which the connection is ready. If the exchange
    /// is over earlier, that task is cancelled and awaited: a sequence that ignores cancellation delays the request's
    /// end.
    ///
    /// - Parameters:
    ///   - chunks: The sequence of chunks. An error that it throws fails the request with
    ///     ``TransportError/RequestBodyFailure/source(_:)``.
    ///   - length: The total number of bytes, at least 0; `nil`, the default, if it is unknown. A negative number fails
    ///     the request with ``TransportError/Reason/invalidRequest(_:)``. If the sequence yields fewer or more bytes, the
    ///     request fails with ``TransportError/RequestBodyFailure/tooShort(declared:produced:)`` or
    ///     ``TransportError/RequestBodyFailure/tooLong(declared:)``.
    ///   - isReplayable: Whether the sequence yields the same chunks each time it is iterated; `false` by default. Must
    ///     be `false` if the sequence can be iterated only once.
    public static func stream<Chunks: AsyncSequence & Sendable>(
        _ chunks: Chunks, length: Int64? = nil, isReplayable: Bool = false
    ) -> RequestBody where Chunks.Element: DataProtocol {
        .writer(length: length, isReplayable: isReplayable) { writer in
            for try await chunk in chunks { try await writer.write(chunk) }
        }
    }

    /// Creates a body whose bytes a closure writes while they are sent.
    ///
    /// ```swift
    /// try await api.post("events", body: .writer { writer in
    ///     for await event in events { try await writer.write(event.json + "\n") }
    /// })
    /// ```
    ///
    /// The closure runs in a child task of the request, not on an event-loop thread. It begins when the connection is
    /// ready, and the body ends when it returns. The request fails with
    /// ``TransportError/RequestBodyFailure/source(_:)`` if it throws. If the exchange is over earlier, for example
    /// because the server has refused the request or the request was cancelled, the closure's task is cancelled and
    /// awaited.
    ///
    /// The body is not replayable: the request fails if a redirect or a challenge requires it again, and a failed
    /// attempt is not retried. The closure is called again only if the program sends the same request a second time.
    ///
    /// - Parameters:
    ///   - length: The total number of bytes, at least 0; `nil`, the default, if it is unknown. A negative number fails
    ///     the request with ``TransportError/Reason/invalidRequest(_:)``. If the closure writes fewer or more bytes, the
    ///     request fails with ``TransportError/RequestBodyFailure/tooShort(declared:produced:)`` or
    ///     ``TransportError/RequestBodyFailure/tooLong(declared:)``.
    ///   - write: Writes the bytes to its argument, which is valid until the closure returns. Writes of other tasks that
    ///     have begun by then are awaited, and are part of the body. Later ones throw `CancellationError`. An error of a
    ///     write fails the request, also if the closure catches it.
    public static func writer(
        length: Int64? = nil,
        _ write: @escaping @concurrent @Sendable (sending RequestBodyWriter) async throws -> Void
    ) -> RequestBody {
        .writer(length: length, isReplayable: false) { writer in
            let lent = LentWriter(writer)
            do {
                try await write(RequestBodyWriter { chunk in try await lent.write(chunk) })
            } catch {
                await lent.close()
                throw error
            }
            await lent.close()
            try await lent.finish()
        }
    }

    /// The maximum size in bytes of the chunks in which files and data are read.
    package static let chunkSize = 256 << 10

    /// Creates a body whose bytes a closure writes each time that the body is sent.
    ///
    /// - Parameter files: The paths of the files that the closure reads.
    package static func writer(
        length: Int64?, isReplayable: Bool, files: [String] = [], _ write: @escaping BodyWriting
    ) -> RequestBody {
        RequestBody(content: .writer(length: length, isReplayable: isReplayable, write: write), files: files)
    }

    /// The kind of the body: none, bytes in memory, a file with its path, or a stream whose bytes are produced while it
    /// is sent.
    public var kind: Kind {
        switch content {
        case .none: .none
        case .bytes(let data): .bytes(data)
        case .file(let path): .file(path)
        case .writer: .stream
        }
    }

    /// A kind of request body, for interceptors and custom transports that treat them differently.
    @nonexhaustive
    public enum Kind: Hashable, Sendable {
        /// No body.
        case none
        /// Bytes in memory, including the encoding of a string, and the compressed form of bytes in memory up to 1 MiB.
        case bytes(Data)
        /// The file with this path.
        case file(String)
        /// Bytes that are produced while they are sent: by a sequence, a closure or a form, for a throttled body, or by
        /// compressing a file, a stream, or more than 1 MiB in memory. Also JSON before a session has encoded it.
        case stream
    }

    /// The bytes, if they are in memory; empty for no body.
    package var bytes: Data? {
        switch content {
        case .none: Data()
        case .bytes(let data): data
        case .file, .writer: nil
        }
    }

    /// The number of bytes, 0 for no body; `nil` if it is unknown or would have to be read from the file system.
    public var length: Int64? {
        switch content {
        case .none: 0
        case .bytes(let data): Int64(data.count)
        case .file: nil
        case .writer(let length, _, _): length
        }
    }

    /// Verifies the declared length.
    ///
    /// - Throws: ``TransportError/Reason/invalidRequest(_:)`` if it is negative.
    package func checkLength() throws(TransportError) {
        guard let length, length < 0 else { return }
        throw TransportError(.invalidRequest(.option("the length of the body, \(length), is negative.")))
    }

    /// Whether the body can be sent more than once, as for a redirect or retry: `true` for no body, bytes and
    /// regular files, `false` for a pipe, a device and a closure, and as declared for a sequence. A form is replayable if all its parts are, and a
    /// compressed or throttled body if the original is.
    public var isReplayable: Bool {
        switch content {
        case .none, .bytes: true
        case .file(let path): !Self.isStream(path)
        case .writer(_, let isReplayable, _): isReplayable
        }
    }

    /// Whether a path names a pipe or a device, whose content is gone when it was read.
    private static func isStream(_ path: String) -> Bool {
        let resolved = URL(filePath: path).resolvingSymlinksInPath().path
        let type = (try? FileManager.default.attributesOfItem(atPath: resolved))?[.type] as? FileAttributeType
        // An open pipe, such as that of /dev/stdin, has no path.
        guard let type else { return path.hasPrefix("/dev/") || path.hasPrefix("/proc/self/fd/") }
        return type != .typeRegular && type != .typeDirectory
    }

    /// The source of a body.
    package enum Content: Sendable {
        case none
        case bytes(Data)
        case file(path: String)
        // Indirect, because requests are copied often and few have such a body.
        indirect case writer(length: Int64?, isReplayable: Bool, write: BodyWriting)
    }

    /// A closure that encodes a body, behind a reference for the same reason.
    package final class Encoding: Sendable {
        package typealias Encode = @Sendable (inout Request, JSONEncoder) throws -> Void

        /// The media type for a request that has none; `nil` if ``encode`` sets it.
        package let mediaType: String?
        package let encode: Encode

        init(mediaType: String?, encode: @escaping Encode) {
            self.mediaType = mediaType
            self.encode = encode
        }
    }

    /// The gate, and the files that are read while bytes are generated, behind a reference for the same reason.
    private final class Source: Sendable {
        let wait: (@Sendable () async throws -> Void)?
        let files: [String]

        /// Creates the reference; `nil` if there are neither.
        init?(_ wait: (@Sendable () async throws -> Void)?, files: [String]) {
            guard wait != nil || !files.isEmpty else { return nil }
            (self.wait, self.files) = (wait, files)
        }
    }
}

/// A destination for the bytes of a request body, in order.
///
/// The closure of ``RequestBody/writer(length:_:)`` receives one. It is not `Sendable`; if an actor holds it for several
/// tasks, their writes follow each other in the order in which they began. An interceptor can create one to read another
/// body, as here to encrypt it:
///
/// ```swift
/// let plain = request.body
/// request.body = .writer { output in
///     try await plain.write(to: RequestBodyWriter { chunk in try await output.write(encrypted(chunk)) })
/// }
/// ```
public struct RequestBodyWriter {
    private let send: (Data) async throws -> Void

    /// Creates a writer that passes its bytes to a closure.
    ///
    /// - Parameter send: Receives the bytes of each call of a `write` function, possibly empty, with indices that start
    ///   at 0; returns when it can receive the next ones. An error that it throws is thrown by the function that writes.
    public init(_ send: sending @escaping (Data) async throws -> Void) {
        self.send = send
    }

    private init(send: @escaping (Data) async throws -> Void) {
        self.send = send
    }

    /// Returns a writer that awaits a gate after each chunk; the same writer without one.
    package func gated(by gate: (@Sendable () async throws -> Void)?) -> RequestBodyWriter {
        guard let gate else { return self }
        return RequestBodyWriter(send: { [send] chunk in
            try await send(chunk)
            try await gate()
        })
    }

    /// Writes bytes, and waits until there is room for more.
    ///
    /// The writer of a request buffers about 512 KiB; after that, this function returns when the connection has
    /// accepted some of them. That the bytes were written does not mean that the server has received them.
    ///
    /// - Parameter bytes: The bytes, possibly none, sent after those written before.
    /// - Throws: `CancellationError` if the exchange is over, if the body must be sent again from its beginning, or if
    ///   the closure that received the writer has returned; or
    ///   ``TransportError/RequestBodyFailure/tooLong(declared:)``. The closure should end then: bytes that it writes
    ///   are discarded. A writer created with ``init(_:)`` throws the errors of its closure.
    public func write(_ bytes: some DataProtocol) async throws {
        // `Data(bytes)` copies the bytes of another `Data`, which is necessary only for a slice: readers may assume that
        // the indices start at 0.
        if let data = bytes as? Data, data.startIndex == 0 {
            try await send(data)
        } else {
            try await send(Data(bytes))
        }
    }

    /// Writes the UTF-8 encoding of a string, and waits until there is room for more.
    ///
    /// The writer of a request buffers about 512 KiB; after that, this function returns when the connection has
    /// accepted some of them.
    ///
    /// - Parameter text: The text, sent after the bytes written before.
    /// - Throws: `CancellationError` if the exchange is over, if the body must be sent again from its beginning, or if
    ///   the closure that received the writer has returned; or
    ///   ``TransportError/RequestBodyFailure/tooLong(declared:)``. The closure should end then: bytes that it writes
    ///   are discarded. A writer created with ``init(_:)`` throws the errors of its closure.
    public func write(_ text: String) async throws {
        try await send(Data(text.utf8))
    }
}

/// The writer that a closure of the program receives. The closure may write in several tasks at the same time, and leave
/// tasks behind that write; the writer behind this one receives one chunk after the other.
private actor LentWriter {
    private let writer: RequestBodyWriter
    private var isOver = false
    /// The number of writes that have begun and not ended.
    private var running = 0
    /// The continuations of those that wait for others, in this order.
    private var waiting: [CheckedContinuation<Void, Never>] = []
    /// The error of the first write that has failed, whose bytes are missing.
    private var failure: (any Error)?
    /// The continuation that waits for the last write.
    private var end: CheckedContinuation<Void, Never>?

    init(_ writer: sending RequestBodyWriter) {
        self.writer = writer
    }

    func write(_ chunk: Data) async throws {
        guard !isOver else { throw CancellationError() }
        running += 1
        if running > 1 { await withCheckedContinuation { waiting.append($0) } }
        defer {
            running -= 1
            if waiting.isEmpty { end.take()?.resume() } else { waiting.removeFirst().resume() }
        }
        do {
            try await writer.write(chunk)
        } catch {
            if failure == nil { failure = error }
            throw error
        }
    }

    /// Rejects further writes.
    func close() { isOver = true }

    /// Waits for the writes that have begun before ``close()``.
    ///
    /// - Throws: The error of one of them.
    func finish() async throws {
        if running > 0 { await withCheckedContinuation { end = $0 } }
        if let failure { throw failure }
    }
}

/// The closure of a body that is written while it is sent. It may be called once for each time that the body is sent.
///
/// `@concurrent` and `sending` are necessary for closures with capture lists, which the compiler does not infer to be
/// `nonisolated(nonsending)`.
package typealias BodyWriting = @concurrent @Sendable (sending RequestBodyWriter) async throws -> Void
