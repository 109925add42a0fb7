// SPDX-License-Identifier: MIT

public import ANHTTP
import FoundationEssentials
public import HTTPTypes

/// A part of a multipart response; see ``MultipartResponse``.
public struct ResponsePart: Sendable {
    /// The response's head, with the part's header fields in place of its own.
    private let head: ResponseHead
    /// The content, read while it arrives. It is as it was sent: `Content-Transfer-Encoding` is not undone.
    public let body: ResponseBody

    init(head: ResponseHead, body: ResponseBody) {
        self.head = head
        self.body = body
    }

    /// The part's header fields in the order received.
    public var headers: HTTPFields { head.headers }

    /// The media type of `Content-Type`, lower-case and without parameters; nil when there is none, which means
    /// `text/plain` (RFC 2046 §5.1).
    public var mediaType: String? { head.mediaType }

    /// The name of a form's field (RFC 7578 §4.2), as it was sent.
    public var name: String? { disposition?["name"] }

    /// The name of the part's file: `filename*` (RFC 6266 §4.3), else `filename`.
    ///
    /// It is the last component of what was sent, without control characters, so that it cannot lead to another folder; nil
    /// when nothing is left.
    public var fileName: String? {
        guard let disposition, let name = disposition["filename*"].flatMap(Self.extended) ?? disposition["filename"]
        else { return nil }
        let last = name.unicodeScalars.split { $0 == "/" || $0 == "\\" }.last ?? []
        let safe = String(String.UnicodeScalarView(last.filter { $0.properties.generalCategory != .control }))
        return ["", ".", ".."].contains(safe) ? nil : safe
    }

    /// Which bytes of a resource a part of `multipart/byteranges` has, by its `Content-Range` (RFC 9110 §14.4); nil when there
    /// is none, or an invalid one.
    public var range: Range? {
        headers.first { $0.name == .contentRange }.flatMap { Range($0.value) }
    }

    /// Collects the content and makes a value of it; the serializer judges the status of the response and the part's media
    /// type.
    ///
    /// - Throws: ``SerializationError``; ``ANHTTP/TransportError/responseTooLarge(_:_:)`` above `limit` bytes; what the
    ///   body throws.
    public func value<Serializer: ResponseSerializer>(
        as serializer: Serializer, upTo limit: Int
    ) async throws -> Serializer.Output {
        try serializer.value(of: head, try await body.collect(upTo: limit))
    }

    /// The parts of this part, which is multipart itself.
    ///
    /// - Throws: ``SerializationError/parts(_:)``.
    public func parts(limits: MultipartLimits = MultipartLimits()) throws(SerializationError) -> MultipartResponse {
        try body.parts(of: head, limits: limits)
    }

    private var disposition: HeaderParameters? {
        headers.first { $0.name == .contentDisposition }.map { HeaderParameters($0.value) }
    }

    /// The text of an extended value such as `UTF-8''na%C3%AFve` (RFC 8187 §3.2); nil when it is none.
    private static func extended(_ value: String) -> String? {
        let pieces = value.split(separator: "'", maxSplits: 2, omittingEmptySubsequences: false)
        guard pieces.count == 3, let encoding = TextEncoding(charset: String(pieces[0])) else { return nil }
        var bytes: [UInt8] = []
        var rest = Array(pieces[2].utf8)[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            let digits = rest.prefix(2)
            guard digits.count == 2, digits.allSatisfy({ Character(UnicodeScalar($0)).isHexDigit }),
                let escaped = UInt8(String(decoding: digits, as: UTF8.self), radix: 16)
            else { return nil }
            bytes.append(escaped)
            rest = rest.dropFirst(2)
        }
        return encoding.decode(Data(bytes))
    }

    /// Which bytes of a resource a part has.
    public struct Range: Hashable, Sendable {
        /// The first and the last byte, counted from 0.
        public var bytes: ClosedRange<Int64>
        /// The size of the resource; nil when it is not known.
        public var total: Int64?

        /// Reads `bytes 0-99/1234` or `bytes 0-99/*`; nil for anything else.
        init?(_ value: String) {
            guard let match = value.wholeMatch(of: /[Bb][Yy][Tt][Ee][Ss] +([0-9]+)-([0-9]+)\/([0-9]+|\*)/),
                let first = Int64(match.1), let last = Int64(match.2), first <= last
            else { return nil }
            bytes = first...last
            guard match.3 != "*" else { return }
            guard let total = Int64(match.3), last < total else { return nil }
            self.total = total
        }
    }
}
