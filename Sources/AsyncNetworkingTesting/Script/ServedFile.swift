// SPDX-License-Identifier: MIT

import ANHTTP
public import FoundationEssentials

/// A file on a server, with validators and range requests (RFC 9110 §14), and optionally with interrupted responses.
///
/// A single range with a first position (`bytes=100-`, `bytes=100-199`) and `If-Range` are evaluated. Any other range is
/// answered with the whole file, and any other precondition is ignored.
///
/// ```swift
/// let file = ServedFile(StubServer.generatedBytes(1000), interruption: .close(after: 400))
/// server.route("/disk.iso") { file.script(for: $0) }
/// ```
public struct ServedFile: Sendable {
    /// The content of the file, held in memory; it may be empty.
    public var bytes: Data
    /// The entity tag including its quotes, which is sent as `ETag` and compared with `If-Range`, as text; `"1"` by
    /// default, `nil` for none.
    public var entityTag: String?
    /// The header fields of each response in addition to `ETag`, `Content-Range` and `Content-Length`; empty by
    /// default.
    ///
    /// `Last-Modified`, if present, is also compared with `If-Range`, as text (RFC 9110 §13.1.5). `Accept-Ranges` and
    /// `Content-Type` are sent only if they are among these fields.
    public var headers: HeaderPairs
    /// Whether range requests are supported; `true` by default. Otherwise every response has status 200 and the whole
    /// file.
    public var hasRanges: Bool
    /// The place at which each response with status 200 or 206 is cut short, including those that resume a transfer;
    /// `nil`, the default, for complete responses.
    public var interruption: Interruption?
    /// The pace at which the bodies of responses with status 200 or 206 are sent; `nil`, the default, to send them
    /// without pauses.
    public var pace: Script.Pace?

    /// Creates a file.
    ///
    /// - Parameters:
    ///   - bytes: The content of the file.
    ///   - entityTag: The entity tag including its quotes, sent as `ETag`; `"1"` by default, `nil` for none.
    ///   - headers: The header fields of each response in addition to `ETag`, `Content-Range` and `Content-Length`;
    ///     empty by default.
    ///   - hasRanges: Whether range requests are supported; `true` by default.
    ///   - interruption: The place at which each response with status 200 or 206 is cut short; `nil`, the default, for
    ///     complete responses.
    ///   - pace: The pace at which the bodies of responses with status 200 or 206 are sent; `nil`, the default, to send
    ///     them without pauses.
    public init(
        _ bytes: Data, entityTag: String? = "\"1\"", headers: HeaderPairs = [:], hasRanges: Bool = true,
        interruption: Interruption? = nil, pace: Script.Pace? = nil
    ) {
        self.bytes = bytes
        self.entityTag = entityTag
        self.headers = headers
        self.hasRanges = hasRanges
        self.interruption = interruption
        self.pace = pace
    }

    /// The way in which each response is cut short, to test resumption: after a number of bytes of its body.
    ///
    /// The bytes are counted from the start of the requested range, and a negative number counts as 0. `Content-Length`
    /// declares the whole body. A body that is not longer than the number is sent completely.
    public enum Interruption: Hashable, Sendable {
        /// The connection is closed, without `close_notify`, after the given number of body bytes; the client receives
        /// a truncated body. See ``Script/Ending/closeWithoutNotify``.
        case close(after: Int)
        /// Nothing more is sent after the given number of body bytes, until the client closes the connection or its
        /// sending side, or the server is stopped.
        case hang(after: Int)
    }

    /// Returns the script for a request for the file, as the function of a route of a ``StubServer``.
    ///
    /// | request | response |
    /// |---|---|
    /// | without `Range`, or with `If-Range` that matches no validator | 200, the whole file |
    /// | `Range: bytes=N-`, N within the file | 206, the rest of the file |
    /// | `Range: bytes=N-M`, N within the file and M not before it | 206, the bytes up to M or the end |
    /// | either, N at or after the end | 416 with `Content-Range: bytes */length` |
    /// | any other `Range` | 200, the whole file |
    ///
    /// Other preconditions, such as `If-None-Match`, and the method are ignored. A response to HEAD has no body, but is
    /// followed by the ``interruption`` that would cut its body short; it has no `Content-Length` if no byte of the
    /// body would be sent before that, or if the body is empty. If ``hasRanges`` is `false`, every response is the
    /// whole file. A response with status 416 has an empty body and is not interrupted.
    public func script(for request: RecordedRequest) -> Script {
        var fields = headers
        if let entityTag { fields.append("ETag", entityTag) }
        guard hasRanges, let (start, last) = range(of: request) else { return response(200, fields, bytes) }
        guard start < bytes.count else {
            fields.append("Content-Range", "bytes */\(bytes.count)")
            return .status(416, headers: fields)
        }
        let end = min(last, bytes.count - 1)
        fields.append("Content-Range", "bytes \(start)-\(end)/\(bytes.count)")
        return response(206, fields, bytes.prefix(end + 1).dropFirst(start))
    }

    /// Returns the first and the last position of the requested range; `nil` if the request has no single range or its
    /// `If-Range` does not match.
    private func range(of request: RecordedRequest) -> (first: Int, last: Int)? {
        guard let range = request.headers["Range"], range.hasPrefix("bytes=") else { return nil }
        if let condition = request.headers["If-Range"], condition != entityTag, condition != headers["Last-Modified"] {
            return nil
        }
        let ends = range.dropFirst("bytes=".count).split(at: "-", omittingEmptySubsequences: false)
        guard ends.count == 2, let first = Int(clampingDigits: ends[0]) else { return nil }
        let last = ends[1].isEmpty ? .max : Int(clampingDigits: ends[1])
        return last.flatMap { $0 < first ? nil : (first, $0) }
    }

    private func response(_ status: Int, _ fields: HeaderPairs, _ body: Data) -> Script {
        let framing = Reply.Framing.contentLength(declared: Int64(body.count))
        let (length, end): (Int, Script.Action?) =
            switch interruption {
            case .close(let length): (length, .end(.closeWithoutNotify))
            case .hang(let length): (length, .hang)
            case nil: (body.count, nil)
            }
        let sent = body.prefix(max(0, length))
        let reply = Reply(status: status, headers: fields, body: .bytes(Data(sent)), framing: framing, pace: pace)
        return Script([.reply(reply)] + (sent.count < body.count ? end.map { [$0] } ?? [] : []))
    }
}
