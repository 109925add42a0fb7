// SPDX-License-Identifier: MIT

package import ANHTTP
package import FoundationEssentials
package import HTTPTypes

/// Turns the lines that libcurl hands to its header callback into heads and trailers.
///
/// libcurl calls back with one complete line at a time, and with a new status line for each interim response; after the
/// body come the trailers. It lets pass what must not: a status line `Http/1.1`, or two `Content-Length` fields that
/// differ. See CURLOPT_HEADERFUNCTION(3) and RFC 9112 §4, §5 and §6.3.
package struct HeaderParser {
    private let url: URL
    private let maximumSize: Int
    private let cache: HeaderFieldCache
    private var state = State.expectingStatusLine
    private var size = 0

    /// Whether the connection speaks HTTP/2 or HTTP/3; on another one a status line of theirs is text of the server's.
    package var isOnMultiplexedConnection = true

    private var version = HTTPVersion.http1_1
    /// The latest status.
    private(set) var status = HTTPResponse.Status(code: 0)
    /// The fields of the head, or, after the final head, the trailers.
    private var fields: HTTPFields = [:]
    /// The field that folded lines continue, taken out of `fields` so that each of them costs its own bytes only.
    private var folded: (name: HTTPField.Name, value: [UInt8])?
    private var declaredLength: Int64?
    /// Whether the head has a `Transfer-Encoding`, which overrides `Content-Length` (RFC 9112 §6.3).
    private var isTransferEncoded = false

    /// Creates a parser for one exchange; all its heads together may have `maximumSize` bytes.
    package init(url: URL, maximumSize: Int, cache: HeaderFieldCache = HeaderFieldCache()) {
        self.cache = cache
        self.url = url
        self.maximumSize = maximumSize
    }

    /// The length that the final head declared, if it did and it counts.
    package var contentLength: Int64? { isTransferEncoded ? nil : declaredLength }

    /// What a line brought.
    package enum Event {
        /// More lines are needed.
        case none
        /// An interim head is complete.
        case informational(ResponseHead)
        /// The final head is complete. A body follows, if there is one.
        case final(ResponseHead)
    }

    /// What makes a line unacceptable.
    package enum Failure: Error, Equatable {
        case invalid(TransportError.ResponseFailure)
        case tooLarge(limit: Int)
    }

    /// Whether any line has arrived.
    package var hasBegun: Bool { size > 0 }

    /// Whether the version is one with many exchanges on a connection.
    package var isMultiplexed: Bool { isComplete && (version == .http2 || version == .http3) }

    /// Whether the body ends where the connection does (RFC 9112 §6.3), if there is a body.
    package var isEndedByClose: Bool {
        isComplete && !isMultiplexed && !isTransferEncoded && declaredLength == nil && !hasNoBody
    }

    /// Whether the final status is one without a body (RFC 9112 §6.3).
    package var hasNoBody: Bool { status.code == 204 || status.code == 304 }

    /// Whether a head has begun and is not complete.
    package var isInHead: Bool { state == .inFields }

    /// Whether the final head is complete.
    package var isComplete: Bool { state == .complete }

    /// The trailer fields received so far.
    package var trailers: HTTPFields {
        guard isComplete else { return [:] }
        guard folded != nil else { return fields }
        var parser = self
        parser.finishFolding()
        return parser.fields
    }

    /// Takes one line, with its line end.
    package mutating func receive(_ line: UnsafeBufferPointer<UInt8>) throws(Failure) -> Event {
        size += line.count
        guard size <= maximumSize else { throw .tooLarge(limit: maximumSize) }
        let content = unsafe Self.trimmingLineEnd(line)
        switch state {
        case .expectingStatusLine:
            unsafe try parseStatusLine(content)
            state = .inFields
            return .none
        case .inFields:
            if content.isEmpty { return finishHead() }
            unsafe try parseField(content)
            return .none
        case .complete:
            if !content.isEmpty { unsafe try parseField(content) }
            return .none
        }
    }

    private mutating func finishHead() -> Event {
        finishFolding()
        let head = ResponseHead(status: status, headers: fields, version: version, url: url)
        fields = [:]
        if status.kind == .informational {
            state = .expectingStatusLine
            declaredLength = nil
            isTransferEncoded = false
            return .informational(head)
        }
        state = .complete
        return .final(head)
    }

    /// `HTTP/1.1 200 OK`, `HTTP/1.1 200`, or libcurl's `HTTP/2 200 `.
    private mutating func parseStatusLine(_ line: UnsafeBufferPointer<UInt8>) throws(Failure) {
        guard unsafe line.starts(with: "HTTP/".utf8) else { throw .invalid(.notHTTP) }
        let versionEnd = unsafe Self.index(of: UInt8(ascii: " "), in: line, from: 5)
        let codeStart = min(versionEnd + 1, line.count)
        let codeEnd = unsafe Self.index(of: UInt8(ascii: " "), in: line, from: codeStart)
        guard
            let version = unsafe Self.version(Self.part(line, 5, versionEnd)), codeEnd - codeStart == 3,
            let code = unsafe Self.decimal(Self.part(line, codeStart, codeEnd)), code >= 100,
            isOnMultiplexedConnection || version == .http1_1 || version == .http1_0
        else {
            throw .invalid(.statusLine(unsafe Self.excerpt(line)))
        }
        self.version = version
        fields.reserveCapacity(12)
        let phrase = unsafe String(
            decoding: Self.part(line, min(codeEnd + 1, line.count), line.count), as: UTF8.self)
        status = HTTPResponse.Status(code: Int(code), reasonPhrase: phrase)
    }

    private mutating func parseField(_ line: UnsafeBufferPointer<UInt8>) throws(Failure) {
        if let first = unsafe line.first, Self.isBlank(first) {
            unsafe try foldLine(line)
            return
        }
        finishFolding()
        let colon = unsafe Self.index(of: UInt8(ascii: ":"), in: line, from: 0)
        let value = unsafe Self.trimmingBlanks(line, from: min(colon + 1, line.count))
        guard colon < line.count, let (field, role) = unsafe cache.field(named: Self.part(line, 0, colon), value) else {
            throw .invalid(.headerLine(unsafe Self.excerpt(line)))
        }
        switch role {
        case .contentLength where state != .complete:
            declaredLength = unsafe try length(value)
        case .transferEncoding where state != .complete:
            // No other coding was asked for, and libcurl would hand it on as it came.
            guard unsafe Self.isChunked(value) else { throw .invalid(.framing) }
            isTransferEncoded = true
        case .contentLength, .transferEncoding, .none: break
        }
        guard fields.count < Self.maximumFieldCount else { throw .tooLarge(limit: maximumSize) }
        fields.append(field)
    }

    /// The length that a `Content-Length` field declares; a list of equal numbers is one number (RFC 9110 §8.6).
    private func length(_ value: UnsafeBufferPointer<UInt8>) throws(Failure) -> Int64 {
        var length = declaredLength
        var start = 0
        while start <= value.count {
            let end = unsafe Self.index(of: UInt8(ascii: ","), in: value, from: start)
            let digits = unsafe Self.trimmingBlanks(UnsafeBufferPointer(rebasing: value[..<end]), from: start)
            guard let number = unsafe Self.decimal(digits), number == length ?? number else {
                throw .invalid(.contentLength)
            }
            length = number
            start = end + 1
        }
        guard let length else { throw .invalid(.contentLength) }
        return length
    }

    /// A line that begins with a blank continues the value before it (obsolete, RFC 9112 §5.2). libcurl frames the message by
    /// the first line alone, so a field that says how is not continued.
    private mutating func foldLine(_ line: UnsafeBufferPointer<UInt8>) throws(Failure) {
        if folded == nil {
            guard let last = fields.popLast(), last.name != .contentLength, last.name != .transferEncoding,
                last.name != .contentEncoding, last.name != .connection
            else {
                throw .invalid(.headerLine(unsafe Self.excerpt(line)))
            }
            unsafe folded = (last.name, last.withUnsafeBytesOfValue { unsafe Array($0) })
        }
        let more = unsafe Self.trimmingBlanks(line, from: 0)
        if folded?.value.isEmpty == false, !more.isEmpty { folded?.value.append(UInt8(ascii: " ")) }
        unsafe folded?.value.append(contentsOf: more)
    }

    /// Puts a field that was continued back in its place.
    private mutating func finishFolding() {
        guard let field = folded else { return }
        folded = nil
        fields.append(HTTPField(name: field.name, lenientValue: field.value))
    }

    // MARK: Bytes

    private static func isChunked(_ value: UnsafeBufferPointer<UInt8>) -> Bool {
        unsafe value.elementsEqual("chunked".utf8, by: { $0 | 0x20 == $1 })
    }

    private static func version(_ digits: UnsafeBufferPointer<UInt8>) -> HTTPVersion? {
        if unsafe digits.elementsEqual("1.1".utf8) { return .http1_1 }
        if unsafe digits.elementsEqual("2".utf8) { return .http2 }
        if unsafe digits.elementsEqual("1.0".utf8) { return .http1_0 }
        if unsafe digits.elementsEqual("3".utf8) { return .http3 }
        return nil
    }

    private static func decimal(_ digits: UnsafeBufferPointer<UInt8>) -> Int64? {
        guard !digits.isEmpty, digits.count <= 18 else { return nil }
        var value: Int64 = 0
        for index in 0..<digits.count {
            let digit = unsafe digits[index]
            guard case UInt8(ascii: "0")...UInt8(ascii: "9") = digit else { return nil }
            value = value * 10 + Int64(digit - UInt8(ascii: "0"))
        }
        return value
    }

    /// The position of a byte; the end where there is none.
    private static func index(of byte: UInt8, in line: UnsafeBufferPointer<UInt8>, from start: Int) -> Int {
        var index = start
        while index < line.count, unsafe line[index] != byte { index += 1 }
        return index
    }

    private static func part(
        _ line: UnsafeBufferPointer<UInt8>, _ start: Int, _ end: Int
    ) -> UnsafeBufferPointer<UInt8> {
        unsafe UnsafeBufferPointer(rebasing: line[start..<end])
    }

    private static func isBlank(_ byte: UInt8) -> Bool {
        byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t")
    }

    private static func trimmingLineEnd(_ line: UnsafeBufferPointer<UInt8>) -> UnsafeBufferPointer<UInt8> {
        var count = line.count
        if unsafe count > 0 && line[count - 1] == UInt8(ascii: "\n") { count -= 1 }
        if unsafe count > 0 && line[count - 1] == UInt8(ascii: "\r") { count -= 1 }
        return unsafe UnsafeBufferPointer(rebasing: line[..<count])
    }

    private static func trimmingBlanks(
        _ line: UnsafeBufferPointer<UInt8>, from start: Int
    ) -> UnsafeBufferPointer<UInt8> {
        var (start, end) = (start, line.count)
        while start < end, unsafe isBlank(line[start]) { start += 1 }
        while end > start, unsafe isBlank(line[end - 1]) { end -= 1 }
        return unsafe part(line, start, end)
    }

    private static func excerpt(_ line: UnsafeBufferPointer<UInt8>) -> String {
        unsafe String(decoding: line.prefix(80), as: UTF8.self)
    }

    private enum State {
        /// Before the first line, and after each interim head.
        case expectingStatusLine
        /// After a status line, until an empty line.
        case inFields
        /// The final head is complete; further lines are trailers.
        case complete
    }

    /// More fields than any server sends; `HTTPFields` itself traps at 65,535.
    private static let maximumFieldCount = 4096
}
