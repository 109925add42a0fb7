// SPDX-License-Identifier: MIT

public import ANHTTP
import ANSystem
import FoundationEssentials
public import HTTPTypes

/// The parts of a multipart response, read as they arrive. The sequence can be iterated once.
private struct MultipartResponse: AsyncSequence, Sendable {
    private let head: ResponseHead
    private let reader: PartReader

    /// Creates the sequence of the parts of a response.
    init(_ head: ResponseHead, _ body: ResponseBody, limits: MultipartLimits) throws(SerializationError) {
        let type = head.headers.contentTypeParameters
        guard let type, type.value.lowercased().hasPrefix("multipart/") else {
            throw .parts(.notMultipart(contentType: type?.value))
        }
        guard let boundary = type["boundary"], Self.isValid(boundary) else {
            throw .parts(.responseBoundary(type["boundary"]))
        }
        self.head = head
        reader = PartReader(MultipartParser(boundary: boundary, limits: limits), body)
    }

    /// Returns whether a boundary consists of 1 to 70 printable ASCII characters, without a space at the end. RFC 2046
    /// §5.1.1 allows fewer characters, but servers use others.
    private static func isValid(_ boundary: String) -> Bool {
        1...70 ~= boundary.utf8.count && boundary.utf8.allSatisfy { 0x20...0x7E ~= $0 } && boundary.last != " "
    }

    /// Creates an iterator that reads the parts.
    func makeAsyncIterator() -> Iterator {
        Iterator(head: head, reader: reader)
    }

    /// An iterator over parts.
    struct Iterator: AsyncIteratorProtocol {
        fileprivate let head: ResponseHead
        fileprivate let reader: PartReader

        /// Skips the rest of the current part and returns the next one; `nil` after the last one.
        mutating func next() async throws -> ResponsePart? {
            guard let (number, headers) = try await reader.nextPart() else { return nil }
            var head = head
            head.headers = headers
            var body = ResponseBody(source: PartBodySource(reader, number))
            body.jsonDecoder = head.jsonDecoder
            return ResponsePart(head: head, body: body)
        }
    }
}

/// The limits for reading a multipart response.
///
/// They are an argument of `ResponseBody.parts(of:limits:)` and ``ResponsePart/parts(limits:)``.
///
/// Reading a response that exceeds a limit fails with ``SerializationError/parts(_:)`` as soon as that is known, after
/// earlier parts were returned.
public struct MultipartLimits: Hashable, Sendable {
    /// The maximum size of a part's header in bytes, including line endings and the blank line; 16 KiB by default. With
    /// 0 or less, every part fails.
    public var header = 16 << 10
    /// The maximum number of bytes before the first part's delimiter; 64 KiB by default, 0 for none. With a negative
    /// limit, every response fails.
    public var preamble = 64 << 10
    /// The maximum number of parts; `nil`, the default, for no limit: parts are read one at a time. With 0 or less, the
    /// first part fails.
    public var parts: Int?
    /// The maximum size of a part's content in bytes, without its header; `nil`, the default, for no limit: parts are
    /// read chunk by chunk. With 0 or less, every part must be empty.
    public var part: Int?

    /// Creates the default limits: 16 KiB for a part's header, 64 KiB before the first part, no others.
    public init() {}
}

extension ResponseBody {
    /// Returns the parts of a multipart body as an asynchronous sequence, read as they arrive: `multipart/mixed`,
    /// `form-data`, `byteranges`, `x-mixed-replace` and others (RFC 2046 §5.1).
    ///
    /// ```swift
    /// try await api.withResponse(for: request) { head, body in
    ///     for try await part in try body.parts(of: head) {
    ///         print(part.mediaType ?? "?", try await part.body.collect(upTo: 1 << 20).count)
    ///     }
    /// }
    /// ```
    ///
    /// Parts must be read in order, by one task; requesting the next part skips the unread rest of the previous one.
    /// Memory is bounded by the size of the body's chunks and of a part's header, not of its content. The sequence can
    /// be iterated once, and throws the errors of the body, and ``ANSerialization/SerializationError/parts(_:)`` for a
    /// malformed part, an exceeded limit, reading out of order, and at the end of a body without a closing delimiter,
    /// such as an empty one. Bytes after the closing delimiter are ignored.
    ///
    /// - Parameters:
    ///   - head: The head of the response, whose `Content-Type` has the boundary. Its status is not checked.
    ///   - limits: The limits for reading; by default 16 KiB for a part's header and 64 KiB before the first part.
    /// - Throws: ``ANSerialization/SerializationError/parts(_:)`` if the media type is not multipart, or the boundary
    ///   does not consist of 1 to 70 printable ASCII characters without a space at the end.
    public func parts(
        of head: ResponseHead, limits: MultipartLimits = MultipartLimits()
    ) throws(SerializationError) -> some AsyncSequence<ResponsePart, any Error> & Sendable {
        try MultipartResponse(head, self, limits: limits)
    }
}

/// A reader of a multipart body that the iterator and the bodies of its parts share.
private final class PartReader: Sendable {
    private struct State: Sendable {
        /// The parser; `nil` while a read is in progress.
        var parser: MultipartParser?
        /// The number of the current part, counted from 1.
        var part = 0
        /// The error that ended reading.
        var failure: (any Error)?
    }

    private let body: ResponseBody
    private let state: Lock<State>

    init(_ parser: MultipartParser, _ body: ResponseBody) {
        self.body = body
        state = Lock(State(parser: parser))
    }

    /// Returns the number and header of the next part; `nil` after the last one.
    func nextPart() async throws -> (Int, HTTPFields)? {
        try await reading { parser in
            while true {
                switch try await self.step(&parser) {
                case .header(let headers):
                    let number = self.state.withLock { state in
                        state.part += 1
                        return state.part
                    }
                    return (number, headers)
                case .end:
                    // The body of the last part, if its rest was skipped, cannot be read any more either.
                    self.state.withLock { $0.part += 1 }
                    return nil
                case .content, .endOfPart, .needsMore: continue
                }
            }
        }
    }

    /// Returns the next chunk of a part; `nil` at its end.
    func nextChunk(of part: Int) async throws -> Data? {
        try await reading { parser in
            guard self.state.withLock({ $0.part }) == part else { throw SerializationError.parts(.outOfTurn) }
            while true {
                switch try await self.step(&parser) {
                case .content(let chunk): return chunk
                case .endOfPart, .end: return nil
                case .header, .needsMore: continue
                }
            }
        }
    }

    /// Returns the next step, and reads more bytes if they are needed.
    private func step(_ parser: inout MultipartParser) async throws -> MultipartParser.Step {
        while true {
            let step = try parser.next()
            guard step == .needsMore else { return step }
            if let chunk = try await body.next() { parser.append(chunk) } else { parser.finish() }
        }
    }

    /// Provides the parser to one reader at a time. All errors end reading for good, except for reading out of turn.
    private func reading<Value>(_ work: (inout MultipartParser) async throws -> Value) async throws -> Value {
        try Task.checkCancellation()
        var parser = try state.withLock { state in
            if let failure = state.failure { throw failure }
            // Removed from the state, so that the buffer has a single owner and is not copied.
            guard let parser = state.parser.take() else { throw SerializationError.parts(.outOfTurn) }
            return parser
        }
        do {
            let value = try await work(&parser)
            putBack(parser, nil)
            return value
        } catch SerializationError.parts(.outOfTurn) {
            putBack(parser, nil)
            throw SerializationError.parts(.outOfTurn)
        } catch {
            putBack(parser, error)
            throw error
        }
    }

    private func putBack(_ parser: consuming MultipartParser, _ failure: (any Error)?) {
        let parser = consume parser
        state.withLock { state in
            state.parser = parser
            state.failure = failure
        }
    }
}

/// The body of a part.
private final class PartBodySource: ResponseBodySource {
    private let reader: PartReader
    private let number: Int
    private let isFinished = Lock(false)

    init(_ reader: PartReader, _ number: Int) {
        self.reader = reader
        self.number = number
    }

    func next() async throws -> Data? {
        guard !isFinished.withLock({ $0 }) else { return nil }
        if let chunk = try await reader.nextChunk(of: number) { return chunk }
        isFinished.withLock { $0 = true }
        return nil
    }

    var ending: ResponseEnding? {
        isFinished.withLock { $0 } ? ResponseEnding() : nil
    }
}

/// A part of a multipart response, as returned by `ResponseBody.parts(of:limits:)`.
///
/// Its ``body`` must be read before the next part is requested; reading the rest of it later fails with
/// ``SerializationError/parts(_:)``.
public struct ResponsePart: Sendable {
    /// The head of the response, with the header fields of the part.
    private let head: ResponseHead
    /// The content of the part, read as it arrives. It can be read once, before the next part is requested. The part's
    /// `Content-Transfer-Encoding` and `Content-Encoding` are not decoded.
    ///
    /// Reading it throws ``SerializationError/parts(_:)`` if the next part was requested before, or the response is
    /// malformed, incomplete or exceeds a limit; and the errors of the response's body.
    public let body: ResponseBody

    init(head: ResponseHead, body: ResponseBody) {
        self.head = head
        self.body = body
    }

    /// The header fields of the part, without those of the response, in the order received; possibly none.
    public var headers: HTTPFields { head.headers }

    /// The media type of `Content-Type`, in lower case and without parameters; `nil` without one, which means
    /// `text/plain` (RFC 2046 §5.1), or `message/rfc822` in a `multipart/digest` (§5.1.5).
    public var mediaType: String? { head.mediaType }

    /// The name of the form field (RFC 7578 §4.2) in `Content-Disposition`, without its quotes; `nil` without one.
    /// Escapes with a backslash are decoded, such as `\"`, but not `%22`.
    public var name: String? { disposition?["name"] }

    /// The name of the part's file in `Content-Disposition`, from `filename*` (RFC 6266 §4.3) or else `filename`; `nil`
    /// without a usable name.
    ///
    /// Only the last component of a path with `/` or `\` is returned, without control characters, so that the name
    /// cannot lead to another directory. It may begin with a dot. Escapes such as `%22` in `filename` are not decoded.
    public var fileName: String? {
        disposition?.fileName
    }

    /// The byte range of a part of `multipart/byteranges`, from its `Content-Range` (RFC 9110 §14.4); `nil` without a
    /// valid one in the unit `bytes`.
    public var range: Range? {
        headers.first { $0.name == .contentRange }.flatMap { Range($0.value) }
    }

    /// Collects the content and returns the value of a serializer, which validates the status of the response and the
    /// media type of the part.
    ///
    /// - Parameters:
    ///   - serializer: The serializer for the content.
    ///   - limit: The maximum number of bytes of the content, without those already read. 0, as which a negative value
    ///     counts, permits only empty content.
    /// - Throws: ``SerializationError/rejected(_:)`` if the serializer does not accept the status or media type, and
    ///   its other errors; ``SerializationError/parts(_:)`` if the next part was requested before, or the response is
    ///   malformed; ``ANHTTP/TransportError/Reason/responseTooLarge(_:)`` if the content exceeds `limit`; the errors of
    ///   the body.
    public func value<Serializer: ResponseSerializer>(
        as serializer: Serializer, upTo limit: Int
    ) async throws -> Serializer.Output {
        try serializer.value(of: head, try await body.collect(upTo: limit))
    }

    /// Returns the parts of a part that is itself multipart, as an asynchronous sequence, read as they arrive.
    ///
    /// The sequence can be iterated once, before the part after this one is requested. It throws the errors of the
    /// ``body``, and ``SerializationError/parts(_:)`` for a malformed part, an exceeded limit, reading out of order,
    /// and a missing closing delimiter.
    ///
    /// - Parameter limits: The limits for reading; by default 16 KiB for a part's header and 64 KiB before the first
    ///   part.
    /// - Throws: ``SerializationError/parts(_:)`` if the part's media type is not multipart, or its boundary does not
    ///   consist of 1 to 70 printable ASCII characters without a space at the end.
    public func parts(
        limits: MultipartLimits = MultipartLimits()
    ) throws(SerializationError) -> some AsyncSequence<ResponsePart, any Error> & Sendable {
        try body.parts(of: head, limits: limits)
    }

    private var disposition: HeaderParameters? {
        headers.first { $0.name == .contentDisposition }.map { HeaderParameters($0.value) }
    }

    /// A byte range of a resource, from the `Content-Range` of a part (RFC 9110 §14.4).
    public struct Range: Hashable, Sendable {
        /// The positions of the first and the last byte, counted from 0; the last one is included.
        public var bytes: ClosedRange<Int64>
        /// The size of the complete resource in bytes; `nil` if the server does not state it (`*`).
        public var total: Int64?

        /// Parses `bytes 0-99/1234` or `bytes 0-99/*`; `nil` for any other text.
        init?(_ value: String) {
            guard let match = value.wholeMatch(of: /[Bb][Yy][Tt][Ee][Ss] +([0-9]+)-([0-9]+)\/([0-9]+|\*)/),
                let first = Int64(match.1), let last = Int64(match.2), first <= last, last < .max
            else { return nil }
            bytes = first...last
            guard match.3 != "*" else { return }
            guard let total = Int64(match.3), last < total else { return nil }
            self.total = total
        }
    }
}
