// SPDX-License-Identifier: MIT

import AsyncNetworkingTesting
import Foundation

/// A frame of HTTP/2 (RFC 9113 §4.1), for servers that are scripted byte by byte.
struct HTTP2Frame {
    var type: UInt8
    var flags: UInt8 = 0
    var stream: UInt32 = 0
    var payload: [UInt8] = []
    /// The length that the frame claims; `nil` for the true one.
    var claimedLength: Int?

    static let settings = HTTP2Frame(type: 4)
    static let settingsAcknowledged = HTTP2Frame(type: 4, flags: 1)

    /// A head with status 200 and no other field: HPACK's entry 8 of the static table (RFC 7541, Appendix A).
    static func head(_ stream: UInt32, endsStream: Bool = false) -> HTTP2Frame {
        HTTP2Frame(type: 1, flags: endsStream ? 5 : 4, stream: stream, payload: [0x88])
    }

    /// A head with status 200 and a `content-length`, entry 28.
    static func head(_ stream: UInt32, length: String) -> HTTP2Frame {
        HTTP2Frame(
            type: 1, flags: 4, stream: stream,
            payload: [0x88, 0x0F, 0x0D, UInt8(length.utf8.count)] + Array(length.utf8))
    }

    /// A head with a status of three digits and no other field, by default the end of the stream.
    static func head(_ stream: UInt32, status: String, endsStream: Bool = true) -> HTTP2Frame {
        HTTP2Frame(type: 1, flags: endsStream ? 5 : 4, stream: stream, payload: [0x48, 3] + Array(status.utf8))
    }

    /// A head with status 200 and a field, a literal without a name of the table.
    static func head(_ stream: UInt32, field name: String, _ value: String) -> HTTP2Frame {
        HTTP2Frame(type: 1, flags: 4, stream: stream, payload: [0x88] + trailers(stream, name, value).payload)
    }

    /// The end of a stream with status 401 and a `www-authenticate`, entry 61.
    static func challenge(_ stream: UInt32, _ challenge: String) -> HTTP2Frame {
        HTTP2Frame(
            type: 1, flags: 5, stream: stream,
            payload: [0x48, 3] + Array("401".utf8) + [0x7D, UInt8(challenge.utf8.count)] + Array(challenge.utf8))
    }

    /// The end of a stream with one trailer, a literal without a name of the table.
    static func trailers(_ stream: UInt32, _ name: String, _ value: String) -> HTTP2Frame {
        HTTP2Frame(
            type: 1, flags: 5, stream: stream,
            payload: [0, UInt8(name.utf8.count)] + Array(name.utf8) + [UInt8(value.utf8.count)] + Array(value.utf8))
    }

    static func data(_ stream: UInt32, _ text: String, endsStream: Bool = false) -> HTTP2Frame {
        HTTP2Frame(type: 0, flags: endsStream ? 1 : 0, stream: stream, payload: Array(text.utf8))
    }

    static func reset(_ stream: UInt32, code: UInt8) -> HTTP2Frame {
        HTTP2Frame(type: 3, stream: stream, payload: [0, 0, 0, code])
    }

    static func goAway(last stream: UInt8, code: UInt8 = 0) -> HTTP2Frame {
        HTTP2Frame(type: 7, payload: [0, 0, 0, stream, 0, 0, 0, code])
    }

    var bytes: Data {
        let length = claimedLength ?? payload.count
        let head: [UInt8] = [
            UInt8(length >> 16 & 0xFF), UInt8(length >> 8 & 0xFF), UInt8(length & 0xFF), type, flags,
            UInt8(stream >> 24 & 0x7F), UInt8(stream >> 16 & 0xFF), UInt8(stream >> 8 & 0xFF), UInt8(stream & 0xFF),
        ]
        return Data(head + payload)
    }
}

extension Script {
    /// Answers the preface of a client, which a ``StubServer`` takes for a request, and after a moment, in which the client
    /// sends its requests, sends frames; then it is silent, or closes the connection.
    static func http2(
        _ frames: [HTTP2Frame], after delay: Duration = .milliseconds(100), thenClose closes: Bool = false
    ) -> Script {
        Script([
            .send(HTTP2Frame.settings.bytes + HTTP2Frame.settingsAcknowledged.bytes), .delay(delay),
            .send(frames.reduce(into: Data()) { $0 += $1.bytes }), closes ? .end(.close) : .hang,
        ])
    }
}
