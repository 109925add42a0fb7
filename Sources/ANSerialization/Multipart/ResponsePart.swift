// SPDX-License-Identifier: MIT

public import ANHTTP
import FoundationEssentials
public import HTTPTypes

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
