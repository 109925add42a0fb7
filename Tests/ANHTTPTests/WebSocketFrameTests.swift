// SPDX-License-Identifier: MIT

import ANHTTP
import Testing

/// The frames of RFC 6455 §5.
@Suite struct WebSocketFrameTests {
    private static let valid: [(bytes: [UInt8], frame: WebSocketFrame)] = [
        // The examples of §5.7.
        ([0x81, 0x05] + Array("Hello".utf8), WebSocketFrame(.text, Array("Hello".utf8))),
        ([0x01, 0x03] + Array("Hel".utf8), WebSocketFrame(.text, Array("Hel".utf8), isFinal: false)),
        ([0x80, 0x02] + Array("lo".utf8), WebSocketFrame(.continuation, Array("lo".utf8))),
        ([0x89, 0x05] + Array("Hello".utf8), WebSocketFrame(.ping, Array("Hello".utf8))),
        ([0x82, 0x7E, 0x01, 0x00] + zeros(256), WebSocketFrame(.binary, zeros(256))),
        ([0x82, 0x7F, 0, 0, 0, 0, 0, 1, 0, 0] + zeros(65_536), WebSocketFrame(.binary, zeros(65_536))),
        ([0xC1, 0x01, 0x61], WebSocketFrame(.text, Array("a".utf8), isCompressed: true)),
        ([0x88, 0x00], WebSocketFrame(.close)),
        ([0x82, 0x7D] + zeros(125), WebSocketFrame(.binary, zeros(125))),
        ([0x82, 0x7E, 0xFF, 0xFF] + zeros(65_535), WebSocketFrame(.binary, zeros(65_535))),
    ]

    private static let invalid: [([UInt8], code: UInt16)] = [
        ([0x83, 0x00], 1002), ([0x8B, 0x00], 1002), ([0x8F, 0x00], 1002),
        ([0xA1, 0x00], 1002), ([0x91, 0x00], 1002), ([0xC9, 0x00], 1002), ([0xC0, 0x00], 1002),
        ([0x81, 0x80], 1002), ([0x09, 0x00], 1002), ([0x89, 0x7E], 1002),
        ([0x82, 0x7E, 0x00, 0x7D], 1002), ([0x82, 0x7F, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF], 1002),
        ([0x82, 0x7F, 0x80, 0, 0, 0, 0, 0, 0, 0], 1002), ([0x82, 0x7F, 0, 0, 0, 0, 0, 1, 0, 1], 1009),
    ]

    private static func zeros(_ count: Int) -> [UInt8] { [UInt8](repeating: 0, count: count) }

    @Test(arguments: valid.indices)
    func `a frame is decoded wherever it is split`(index: Int) throws {
        let (bytes, frame) = Self.valid[index]
        for cut in 0...min(bytes.count, 300) {
            var decoder = WebSocketFrameDecoder(maximumPayload: 65_536, allowsCompression: true)
            decoder.append(Array(bytes[..<cut]))
            let early = try decoder.next()
            decoder.append(bytes[cut...] + [0x8A, 0x00])
            #expect(try early ?? decoder.next() == frame)
            #expect(try decoder.next() == WebSocketFrame(.pong))
            #expect(try decoder.next() == nil)
        }
    }

    @Test(arguments: invalid.indices)
    func `an invalid header is refused`(index: Int) throws {
        let (bytes, code) = Self.invalid[index]
        var decoder = WebSocketFrameDecoder(maximumPayload: 65_536, allowsCompression: true)
        decoder.append(bytes)
        let violation = try #require(throws: WebSocketViolation.self) { try decoder.next() }
        #expect(violation.code == code)
    }

    @Test func `a frame that may be compressed may be larger than the limit`() throws {
        for (first, size, isAccepted) in [
            (0xC2, 1140, true), (0x80, 1140, true), (0xC2, 1300, false), (0x80, 1300, false), (0x82, 1001, false),
        ] as [(UInt8, Int, Bool)] {
            var decoder = WebSocketFrameDecoder(maximumPayload: 1000, allowsCompression: true)
            decoder.append([first, 126, UInt8(size >> 8), UInt8(size & 0xFF)] + Self.zeros(size))
            let frame = Result { () throws(WebSocketViolation) in try decoder.next() }
            if isAccepted {
                #expect(try frame.get()?.payload.count == size)
            } else {
                #expect(throws: WebSocketViolation.tooLarge(limit: 1000)) { try frame.get() }
            }
        }
        var decoder = WebSocketFrameDecoder(maximumPayload: 1000)
        decoder.append([0x80, 126, 0x03, 0xE9])
        #expect(throws: WebSocketViolation.tooLarge(limit: 1000)) { try decoder.next() }
    }

    @Test func `a compressed frame is refused unless compression was negotiated`() {
        var decoder = WebSocketFrameDecoder(maximumPayload: 100, allowsCompression: false)
        decoder.append([0xC1, 0x00])
        #expect(throws: WebSocketViolation.self) { try decoder.next() }
    }

    @Test func `a frame is encoded with its mask`() {
        // The masked example of §5.7.
        let bytes: [UInt8] = [0x81, 0x85, 0x37, 0xFA, 0x21, 0x3D, 0x7F, 0x9F, 0x4D, 0x51, 0x58]
        #expect(WebSocketFrame(.text, Array("Hello".utf8)).encoded(mask: 0x37FA_213D) == bytes)
        #expect(
            WebSocketFrame(.binary, Self.zeros(126)).encoded(mask: 0).prefix(8)
                == [0x82, 0xFE, 0, 126, 0, 0, 0, 0])
        #expect(
            WebSocketFrame(.binary, Self.zeros(65_536)).encoded(mask: 0).prefix(10)
                == [0x82, 0xFF, 0, 0, 0, 0, 0, 1, 0, 0])
    }

    @Test func `a client's frame is decoded without its mask`() throws {
        let frame = WebSocketFrame(.text, Array("Hello, world".utf8))
        for size in 0...frame.payload.count {
            let part = WebSocketFrame(.text, Array(frame.payload.prefix(size)))
            var decoder = WebSocketFrameDecoder(of: .client, maximumPayload: 100)
            for byte in part.encoded(mask: 0x0102_FEFF) {
                #expect(try decoder.next() == nil)
                decoder.append([byte])
            }
            #expect(try decoder.next() == part)
        }
    }

    @Test func `a client's frame without a mask is refused`() {
        var decoder = WebSocketFrameDecoder(of: .client, maximumPayload: 100)
        decoder.append([0x81, 0x00])
        #expect(throws: WebSocketViolation.self) { try decoder.next() }
    }

    @Test func `frames that arrive together are decoded one by one`() throws {
        var decoder = WebSocketFrameDecoder(maximumPayload: 100)
        decoder.append([0x81, 0x01, 0x61, 0x82, 0x01, 0x62, 0x8A])
        #expect(try decoder.next() == WebSocketFrame(.text, [0x61]))
        #expect(try decoder.next() == WebSocketFrame(.binary, [0x62]))
        #expect(try decoder.next() == nil)
        decoder.append([0x00])
        #expect(try decoder.next() == WebSocketFrame(.pong))
    }
}
