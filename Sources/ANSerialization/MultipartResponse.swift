// SPDX-License-Identifier: MIT

public import ANHTTP
import ANSystem
import FoundationEssentials
import HTTPTypes

/// The parts of a multipart response, one after the other, while they arrive: `multipart/mixed`, `form-data`,
/// `byteranges`, `x-mixed-replace` and the like (RFC 2046 §5.1).
///
/// ```swift
/// try await api.withResponse(for: request) { head, body in
///     for try await part in try body.parts(of: head) {
///         print(part.mediaType ?? "?", try await part.body.collect(upTo: 1 << 20).count)
///     }
/// }
/// ```
///
/// Parts are read in their order, by one task: the next part begins when it is asked for, and what was not read of the one
/// before is skipped then. Memory is bounded by the chunks of the body, not by its parts. A sequence is iterated once.
public struct MultipartResponse: AsyncSequence, Sendable {
    /// A part.
    public typealias Element = ResponsePart
    /// What the body throws, or ``SerializationError/parts(_:)``.
    public typealias Failure = any Error

    /// The line between the parts, without its hyphens.
    public let boundary: String
    private let head: ResponseHead
    private let reader: PartReader

    /// Creates the sequence of parts of a response.
    ///
    /// - Throws: ``SerializationError/parts(_:)`` for a response that is not multipart or has no valid boundary.
    public init(
        _ head: ResponseHead, _ body: ResponseBody, limits: MultipartLimits = MultipartLimits()
    ) throws(SerializationError) {
        let type = head.headers.contentTypeParameters
        guard let type, type.value.lowercased().hasPrefix("multipart/") else {
            throw .parts(.notMultipart(contentType: type?.value))
        }
        guard let boundary = type["boundary"], Self.isValid(boundary) else { throw .parts(.boundary(type["boundary"])) }
        self.head = head
        self.boundary = boundary
        reader = PartReader(MultipartParser(boundary: boundary, limits: limits), body)
    }

    /// Visible ASCII and spaces, but no space at the end; at most 70. That is more than RFC 2046 §5.1.1 allows, as servers
    /// take liberties.
    private static func isValid(_ boundary: String) -> Bool {
        1...70 ~= boundary.utf8.count && boundary.utf8.allSatisfy { 0x20...0x7E ~= $0 } && boundary.last != " "
    }

    /// Starts to read the parts.
    public func makeAsyncIterator() -> Iterator {
        Iterator(head: head, reader: reader)
    }

    /// Yields parts.
    public struct Iterator: AsyncIteratorProtocol {
        fileprivate let head: ResponseHead
        fileprivate let reader: PartReader

        /// The next part, past what is left of the one before; nil after the last one.
        public mutating func next() async throws -> ResponsePart? {
            guard let (number, headers) = try await reader.nextPart() else { return nil }
            var head = head
            head.headers = headers
            return ResponsePart(head: head, body: ResponseBody(source: PartBodySource(reader, number)))
        }
    }
}

/// How much of a multipart response is read.
public struct MultipartLimits: Hashable, Sendable {
    /// How long the header of a part may be, in bytes; 16 KiB by default.
    public var header = 16 << 10
    /// How many bytes may stand before the first part; 64 KiB by default.
    public var preamble = 64 << 10
    /// How many parts there may be; nil, the default, for any number: each is read by itself.
    public var parts: Int?
    /// How many bytes a part may have; nil, the default, for any number: they are read chunk by chunk.
    public var part: Int?

    /// Creates the default limits.
    public init() {}
}

extension ResponseBody {
    /// The parts of this body, if the head says that it is multipart; see ``ANSerialization/MultipartResponse``.
    ///
    /// - Throws: ``ANSerialization/SerializationError/parts(_:)``.
    public func parts(
        of head: ResponseHead, limits: MultipartLimits = MultipartLimits()
    ) throws(SerializationError) -> MultipartResponse {
        try MultipartResponse(head, self, limits: limits)
    }
}

/// Reads the body for whoever's turn it is.
private final class PartReader: Sendable {
    private struct State: Sendable {
        /// Nil while somebody reads.
        var parser: MultipartParser?
        /// The number of the part that was begun last; the first is 1.
        var part = 0
        /// What ended the reading.
        var failure: (any Error)?
    }

    private let body: ResponseBody
    private let state: Lock<State>

    init(_ parser: MultipartParser, _ body: ResponseBody) {
        self.body = body
        state = Lock(State(parser: parser))
    }

    /// Number and header of the next part; nil after the last one.
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
                case .end: return nil
                case .content, .endOfPart, .needsMore: continue
                }
            }
        }
    }

    /// The next bytes of a part; nil at its end.
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

    /// The next step, with more bytes when they are needed.
    private func step(_ parser: inout MultipartParser) async throws -> MultipartParser.Step {
        while true {
            let step = try parser.next()
            guard step == .needsMore else { return step }
            var chunks = body.makeAsyncIterator()
            if let chunk = try await chunks.next() { parser.append(chunk) } else { parser.finish() }
        }
    }

    /// Lends the parser to one reader at a time. Whatever goes wrong ends the reading for good, except that it was not one's
    /// turn.
    private func reading<Value>(_ work: (inout MultipartParser) async throws -> Value) async throws -> Value {
        var parser = try state.withLock { state in
            if let failure = state.failure { throw failure }
            // Taken out, so that the bytes have one owner and are not copied.
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

/// The content of one part.
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
