// SPDX-License-Identifier: MIT

import FoundationEssentials

/// An encoder for the head and the pieces of the body of a ``Reply``.
struct ReplyEncoder {
    let reply: Reply
    /// Whether the body is sent, which is not the case in responses to HEAD and with status 1xx, 204 and 304 (RFC 9112
    /// §6.3).
    let sendsBody: Bool

    init(_ reply: Reply, method: String) {
        self.reply = reply
        sendsBody = method != "HEAD" && reply.status >= 200 && reply.status != 204 && reply.status != 304
    }

    /// Whether the connection must be closed after the response.
    var mustClose: Bool {
        reply.framing == .untilClose || reply.headers.has(token: "close", in: "Connection")
    }

    /// The bytes of the status line and the header fields, including the empty line.
    var head: [UInt8] {
        Self.head(version: reply.version, status: reply.status, reason: reply.reason, headers: headers)
    }

    /// The header fields, including those required by the framing.
    var headers: HeaderPairs {
        var headers = reply.headers
        switch reply.framing {
        case .contentLength(let declared):
            let isKnown = declared != nil || reply.body.count > 0
            if sendsBody || (isKnown && reply.status >= 200 && reply.status != 204) {
                headers.append("Content-Length", String(declared ?? reply.body.count))
            }
        case .chunked:
            if sendsBody { headers.append("Transfer-Encoding", "chunked") }
        case .untilClose:
            headers.append("Connection", "close")
        case .asGiven:
            break
        }
        return headers
    }

    /// Calls a closure with each piece of the body.
    func forEachPiece<Failure: Error>(_ send: (ArraySlice<UInt8>) throws(Failure) -> Void) throws(Failure) {
        try Self.forEachPiece(of: reply.body, size: pieceSize, send)
    }

    /// Calls a closure with each piece of a body; a piece has at most `size` bytes.
    static func forEachPiece<Failure: Error>(
        of body: Reply.Body, size: Int, _ send: (ArraySlice<UInt8>) throws(Failure) -> Void
    ) throws(Failure) {
        switch body {
        case .bytes(let data):
            var rest = Array(data)[...]
            while !rest.isEmpty {
                try send(rest.prefix(size))
                rest = rest.dropFirst(size)
            }
        case .generated(let count):
            var sent: Int64 = 0
            while sent < count {
                let piece = GeneratedBytes.slice(from: sent, atMost: min(Int64(size), count - sent))
                try send(piece)
                sent += Int64(piece.count)
            }
        }
    }

    /// Returns a piece of the body with its framing.
    func frame(_ piece: ArraySlice<UInt8>) -> [UInt8] {
        guard case .chunked = reply.framing else { return Array(piece) }
        return Array("\(String(piece.count, radix: 16))\r\n".utf8) + piece + [0x0D, 0x0A]
    }

    /// The bytes after the last piece.
    var end: [UInt8] {
        guard case .chunked = reply.framing else { return [] }
        return Array("0\r\n\(Self.fields(reply.trailers))\r\n".utf8)
    }

    /// The maximum number of body bytes in a piece.
    var pieceSize: Int {
        guard case .chunked(let size) = reply.framing else { return GeneratedBytes.period }
        return max(1, size)
    }

    /// Returns the bytes of a head.
    static func head(version: String, status: Int, reason: String?, headers: HeaderPairs) -> [UInt8] {
        let reason = reason ?? usualReason(status)
        return Array("\(version) \(status) \(reason)\r\n\(fields(headers))\r\n".utf8)
    }

    private static func fields(_ headers: HeaderPairs) -> String {
        headers.reduce(into: "") { text, field in text += "\(field.name): \(field.value)\r\n" }
    }

    private static func usualReason(_ status: Int) -> String {
        usualReasons[status] ?? ""
    }

    /// The reason phrases of RFC 9110 §15 that are likely in tests; other statuses are sent without one.
    private static let usualReasons = [
        100: "Continue", 103: "Early Hints",
        200: "OK", 201: "Created", 202: "Accepted", 204: "No Content", 206: "Partial Content",
        301: "Moved Permanently", 302: "Found", 303: "See Other", 304: "Not Modified", 307: "Temporary Redirect",
        308: "Permanent Redirect",
        400: "Bad Request", 401: "Unauthorized", 403: "Forbidden", 404: "Not Found", 405: "Method Not Allowed",
        407: "Proxy Authentication Required", 408: "Request Timeout", 409: "Conflict", 410: "Gone",
        412: "Precondition Failed", 413: "Content Too Large", 416: "Range Not Satisfiable", 417: "Expectation Failed",
        421: "Misdirected Request", 429: "Too Many Requests",
        500: "Internal Server Error", 502: "Bad Gateway", 503: "Service Unavailable", 504: "Gateway Timeout",
    ]
}
