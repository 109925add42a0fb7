// SPDX-License-Identifier: MIT

public import ANHTTP
public import FoundationEssentials

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
