// SPDX-License-Identifier: MIT

public import ANHTTP
public import FoundationEssentials

/// The decoded values of a response body with several JSON texts, read as they arrive.
private struct JSONStream<Value: Decodable & Sendable>: AsyncSequence, Sendable {
    /// A closure that handles an invalid text: it throws to end the iteration, or returns to go on.
    typealias FailureHandler = @Sendable (SerializationError.JSONStreamFailure) throws -> Void

    fileprivate let reader: BodyReader<JSONStreamSplitter>
    fileprivate let decoder: any ResponseDecoder
    fileprivate let maximumSize: Int
    fileprivate let onFailure: FailureHandler?

    /// Creates an iterator that reads and decodes the body's texts.
    func makeAsyncIterator() -> Iterator {
        Iterator(stream: self)
    }

    /// An iterator over values.
    struct Iterator: AsyncIteratorProtocol {
        fileprivate let stream: JSONStream

        /// Returns the next value; `nil` at the end of the body.
        ///
        /// - Throws: The errors of the body, or ``SerializationError/jsonStream(_:)`` for an invalid text, after which
        ///   the iteration may go on with the next one.
        mutating func next() async throws -> Value? {
            while let (part, number) = try await stream.reader.next() {
                if let value = try stream.value(of: part, number: number) { return value }
            }
            return nil
        }
    }

    /// Returns the value of a part; `nil` if it is invalid and the iteration goes on.
    private func value(of part: JSONStreamSplitter.Part, number: Int) throws -> Value? {
        let failure: SerializationError.JSONStreamFailure
        switch part {
        case .text(let text):
            do {
                return try decoder.value(Value.self, from: text)
            } catch {
                failure = .init(number: number, bytes: text, reason: .invalid(error))
            }
        case .tooLong(let beginning):
            failure = .init(number: number, bytes: beginning, reason: .tooLong(limit: maximumSize))
        case .truncated(let text):
            failure = .init(number: number, bytes: text, reason: .truncated)
        case .unseparated(let bytes):
            failure = .init(number: number, bytes: bytes, reason: .unseparated)
        }
        guard let onFailure else { throw SerializationError.jsonStream(failure) }
        try onFailure(failure)
        return nil
    }
}

extension ResponseBody {
    /// Returns the values of a body with a JSON text on each line (JSON Lines, NDJSON), regardless of its media type.
    ///
    /// Lines end with LF or CR LF; the last one may lack its end. Blank lines and a byte order mark at the start are
    /// skipped. Each value is decoded by the task that iterates, and returned as soon as its line is complete. The body
    /// can be read once: a second iteration of the sequence continues where the first one stopped. The sequence throws ``ANSerialization/SerializationError/jsonStream(_:)`` for a line that is
    /// not valid JSON, does not match the type or is too long, unless `onFailure` handles it, and the errors of the
    /// body.
    ///
    /// ```swift
    /// for try await change in body.jsonLines(of: Change.self) { print(change) }
    /// ```
    ///
    /// - Parameters:
    ///   - type: The type to decode.
    ///   - decoder: The decoder; `nil`, the default, for the session's for JSON, or for a body of no session one that
    ///     reads dates from ISO 8601 text. See ``ANSerialization/JSONCoding``.
    ///   - maximumSize: The maximum size of a line in bytes, with CR but without LF; 16 MiB by default. A longer one is
    ///     invalid, and the rest of it is skipped. With 0 or less, every line that is not empty is too long.
    ///   - onFailure: Handles an invalid line, in the task that iterates: it throws to end the iteration with its
    ///     error, or returns to continue with the next line. `nil`, the default, throws
    ///     ``ANSerialization/SerializationError/jsonStream(_:)``. It is not called for the errors of the body.
    public func jsonLines<Value: Decodable & Sendable>(
        of type: Value.Type, decoder: (any ResponseDecoder)? = nil, maximumSize: Int = 16 << 20,
        onFailure: (@Sendable (SerializationError.JSONStreamFailure) throws -> Void)? = nil
    ) -> some AsyncSequence<Value, any Error> & Sendable {
        stream(.lines, decoder, maximumSize, onFailure)
    }

    /// Returns the values of a JSON text sequence (RFC 7464), regardless of its media type.
    ///
    /// Each value is returned as soon as its text is complete and followed by LF, the next record separator, or the end
    /// of the body. A text that was cut off is a failure, including a number, `true`, `false` or `null` without
    /// whitespace after it (RFC 7464 §2.4), as are bytes other than whitespace that do not follow a record separator;
    /// the texts after it are not affected. Blank texts are skipped. Values are decoded by the task that iterates. The
    /// body can be read once. The sequence throws ``ANSerialization/SerializationError/jsonStream(_:)`` for a failure,
    /// an invalid text, and one that is too long, unless `onFailure` handles it, and the errors of the body.
    ///
    /// - Parameters:
    ///   - type: The type to decode.
    ///   - decoder: The decoder; `nil`, the default, for the session's for JSON, or for a body of no session one that
    ///     reads dates from ISO 8601 text. See ``ANSerialization/JSONCoding``.
    ///   - maximumSize: The maximum size of a text in bytes, without the record separator and the final LF; 16 MiB by
    ///     default. A longer one is invalid, and the rest of it is skipped. With 0 or less, every text that is not
    ///     empty is too long.
    ///   - onFailure: Handles an invalid text, in the task that iterates: it throws to end the iteration with its
    ///     error, or returns to continue with the next text. `nil`, the default, throws
    ///     ``ANSerialization/SerializationError/jsonStream(_:)``. It is not called for the errors of the body.
    public func jsonSequence<Value: Decodable & Sendable>(
        of type: Value.Type, decoder: (any ResponseDecoder)? = nil, maximumSize: Int = 16 << 20,
        onFailure: (@Sendable (SerializationError.JSONStreamFailure) throws -> Void)? = nil
    ) -> some AsyncSequence<Value, any Error> & Sendable {
        stream(.sequence, decoder, maximumSize, onFailure)
    }

    private func stream<Value: Decodable & Sendable>(
        _ format: JSONStreamFormat, _ decoder: (any ResponseDecoder)?, _ maximumSize: Int,
        _ onFailure: JSONStream<Value>.FailureHandler?
    ) -> JSONStream<Value> {
        JSONStream(
            reader: BodyReader(self, by: JSONStreamSplitter(format, limit: maximumSize)),
            decoder: decoder ?? jsonDecoder ?? JSONCoding.standard.decoder, maximumSize: maximumSize,
            onFailure: onFailure)
    }
}

/// A format for several JSON texts one after the other.
enum JSONStreamFormat: Sendable {
    /// A text on each line (JSON Lines, NDJSON).
    case lines
    /// A record separator before each text, and LF after it (RFC 7464).
    case sequence

    /// The byte that separates texts: LF after a line, or RS before a text.
    var separator: UInt8 {
        switch self {
        case .lines: UInt8(ascii: "\n")
        case .sequence: 0x1E
        }
    }

    /// Returns an encoded value in the format.
    func framed(_ json: Data) -> Data {
        switch self {
        case .lines:
            // JSON has line breaks between values only, where they can be omitted.
            let line = json.filter { $0 != UInt8(ascii: "\n") && $0 != UInt8(ascii: "\r") }
            return line + [UInt8(ascii: "\n")]
        case .sequence:
            return [0x1E] + json + [UInt8(ascii: "\n")]
        }
    }
}

extension RequestBody {
    /// Creates a body with a line of JSON for each value of a sequence (JSON Lines, NDJSON), sent without a length:
    /// over HTTP/1.1 chunked.
    ///
    /// Each line ends with LF. The sequence is iterated in a child task of the request while the body is sent, as fast
    /// as the connection accepts it: the next value is requested when at most about 512 KiB wait to be sent. A value
    /// that cannot be encoded, or an error of the sequence, fails the request with
    /// `TransportError.RequestBodyFailure.source`. The `Content-Type`, such as `application/jsonl` or
    /// `application/x-ndjson`, is not set: add it to the header of the request.
    ///
    /// - Parameters:
    ///   - values: The values to encode; without any, the body is empty.
    ///   - encoder: The encoder; `nil`, the default, for one that writes dates as ISO 8601 text. A body is created
    ///     without a session, so pass the session's as `api.configuration.json.encoder` if it was changed. It must not
    ///     be changed afterwards. Line breaks of pretty-printed JSON are omitted.
    ///   - isReplayable: Whether the sequence yields the same values each time it is iterated; `false` by default, so
    ///     that a redirect or retry that needs the body again fails.
    public static func jsonLines<Values: AsyncSequence & Sendable>(
        _ values: Values, encoder: JSONEncoder? = nil, isReplayable: Bool = false
    ) -> RequestBody where Values.Element: Encodable {
        jsonStream(values, .lines, encoder, isReplayable: isReplayable)
    }

    /// Creates a replayable body with a line of JSON for each element of a collection (JSON Lines, NDJSON), sent
    /// without a length: over HTTP/1.1 chunked.
    ///
    /// Each line ends with LF. Elements are encoded each time the body is sent, while it is sent; one that cannot be
    /// encoded fails the request with `TransportError.RequestBodyFailure.source`. The `Content-Type`, such as
    /// `application/jsonl` or `application/x-ndjson`, is not set: add it to the header of the request.
    ///
    /// - Parameters:
    ///   - values: The elements to encode; without any, the body is empty.
    ///   - encoder: The encoder, which must not be changed afterwards; `nil`, the default, for one that writes dates as
    ///     ISO 8601 text, regardless of the session's. Line breaks of pretty-printed JSON are omitted.
    public static func jsonLines<Values: Collection & Sendable>(
        _ values: Values, encoder: JSONEncoder? = nil
    ) -> RequestBody where Values.Element: Encodable {
        jsonStream(AsyncElements(base: values), .lines, encoder, isReplayable: true)
    }

    /// Creates a body with a JSON text sequence (RFC 7464) of the values of a sequence, sent without a length: over
    /// HTTP/1.1 chunked.
    ///
    /// Each text follows a record separator (RS) and is followed by LF. The sequence is iterated in a child task of the
    /// request while the body is sent, as fast as the connection accepts it: the next value is requested when at most
    /// about 512 KiB wait to be sent. A value that cannot be encoded, or an error of the sequence, fails the request
    /// with `TransportError.RequestBodyFailure.source`. The `Content-Type`, `application/json-seq`, is not set: add it
    /// to the header of the request.
    ///
    /// - Parameters:
    ///   - values: The values to encode; without any, the body is empty.
    ///   - encoder: The encoder, which must not be changed afterwards; `nil`, the default, for one that writes dates as
    ///     ISO 8601 text, regardless of the session's.
    ///   - isReplayable: Whether the sequence yields the same values each time it is iterated; `false` by default, so
    ///     that a redirect or retry that needs the body again fails.
    public static func jsonSequence<Values: AsyncSequence & Sendable>(
        _ values: Values, encoder: JSONEncoder? = nil, isReplayable: Bool = false
    ) -> RequestBody where Values.Element: Encodable {
        jsonStream(values, .sequence, encoder, isReplayable: isReplayable)
    }

    /// Creates a replayable body with a JSON text sequence (RFC 7464) of the elements of a collection, sent without a
    /// length: over HTTP/1.1 chunked.
    ///
    /// Each text follows a record separator (RS) and is followed by LF. Elements are encoded each time the body is
    /// sent, while it is sent; one that cannot be encoded fails the request with
    /// `TransportError.RequestBodyFailure.source`. The `Content-Type`, `application/json-seq`, is not set: add it to
    /// the header of the request.
    ///
    /// - Parameters:
    ///   - values: The elements to encode; without any, the body is empty.
    ///   - encoder: The encoder, which must not be changed afterwards; `nil`, the default, for one that writes dates as
    ///     ISO 8601 text, regardless of the session's.
    public static func jsonSequence<Values: Collection & Sendable>(
        _ values: Values, encoder: JSONEncoder? = nil
    ) -> RequestBody where Values.Element: Encodable {
        jsonStream(AsyncElements(base: values), .sequence, encoder, isReplayable: true)
    }

    private static func jsonStream<Values: AsyncSequence & Sendable>(
        _ values: Values, _ format: JSONStreamFormat, _ encoder: JSONEncoder?, isReplayable: Bool
    ) -> RequestBody where Values.Element: Encodable {
        let encoder = encoder ?? JSONCoding.standard.encoder
        return .writer(length: nil, isReplayable: isReplayable) { writer in
            for try await value in values { try await writer.write(format.framed(encoder.encode(value))) }
        }
    }
}

/// The elements of a collection as an asynchronous sequence.
private struct AsyncElements<Base: Collection & Sendable>: AsyncSequence, Sendable {
    let base: Base

    func makeAsyncIterator() -> Iterator {
        Iterator(base: base.makeIterator())
    }

    struct Iterator: AsyncIteratorProtocol {
        var base: Base.Iterator

        mutating func next() async throws -> Base.Element? {
            base.next()
        }
    }
}
