// SPDX-License-Identifier: MIT

public import FoundationEssentials

/// A file as a server serves it: with validators, whole or in ranges (RFC 9110 §14), and as unreliably as a test wants it.
///
/// ```swift
/// let file = ServedFile(StubServer.generatedBytes(1000), interruption: .close(after: 400))
/// server.route("/disk.iso") { file.script(for: $0) }
/// ```
public struct ServedFile: Sendable {
    /// The file.
    public var bytes: Data
    /// Its entity tag, with quotes; `"1"` unless set, nil for none.
    public var entityTag: String?
    /// Further fields, such as `Last-Modified` and `Date`.
    public var headers: HeaderPairs
    /// Whether it is served in ranges.
    public var hasRanges: Bool
    /// How each response ends before its time.
    public var interruption: Interruption?
    /// The speed of the body.
    public var pace: Script.Pace?

    /// Creates a file.
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

    /// How a response ends before its time.
    public enum Interruption: Hashable, Sendable {
        /// The connection is closed after so many bytes of the body.
        case close(after: Int)
        /// Nothing comes after so many bytes of the body.
        case hang(after: Int)
    }

    /// What the server does with a request for the file.
    public func script(for request: RecordedRequest) -> Script {
        var fields = headers
        if let entityTag { fields.append("ETag", entityTag) }
        guard hasRanges, let start = rangeStart(of: request) else { return response(200, fields, bytes) }
        guard start < bytes.count else {
            fields.append("Content-Range", "bytes */\(bytes.count)")
            return .status(416, headers: fields)
        }
        fields.append("Content-Range", "bytes \(start)-\(bytes.count - 1)/\(bytes.count)")
        return response(206, fields, bytes.dropFirst(start))
    }

    /// Where the range of a request begins, if it has one that is open at its end and holds for this version.
    private func rangeStart(of request: RecordedRequest) -> Int? {
        guard let range = request.headers["Range"], range.hasPrefix("bytes="), range.hasSuffix("-") else { return nil }
        if let condition = request.headers["If-Range"], condition != entityTag, condition != headers["Last-Modified"] {
            return nil
        }
        return Int(range.dropFirst("bytes=".count).dropLast())
    }

    private func response(_ status: Int, _ fields: HeaderPairs, _ body: Data) -> Script {
        let framing = Reply.Framing.contentLength(declared: Int64(body.count))
        let (length, end): (Int, Script.Action?) =
            switch interruption {
            case .close(let length): (length, .end(.closeWithoutNotify))
            case .hang(let length): (length, .hang)
            case nil: (body.count, nil)
            }
        let reply = Reply(
            status: status, headers: fields, body: .bytes(Data(body.prefix(length))), framing: framing, pace: pace)
        return Script([.reply(reply)] + (length < body.count ? end.map { [$0] } ?? [] : []))
    }
}
