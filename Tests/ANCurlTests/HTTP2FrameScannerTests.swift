// SPDX-License-Identifier: MIT

import ANCurl
import Foundation
import Testing

@Suite struct HTTP2FrameScannerTests {
    typealias Event = HTTP2FrameScanner.Event

    /// The events of bytes that arrive in pieces of one size.
    private func events(_ frames: [HTTP2Frame], piece: Int = .max) -> [Event] {
        scan(frames, piece: piece).events
    }

    /// The events, and the content of frames by stream.
    private func scan(
        _ frames: [HTTP2Frame], piece: Int
    ) -> (events: [Event], headers: [UInt32: [UInt8]], bodies: [UInt32: [UInt8]]) {
        let bytes = frames.flatMap { [UInt8]($0.bytes) }
        var scanner = HTTP2FrameScanner()
        var events: [Event] = []
        var headers: [UInt32: [UInt8]] = [:]
        var bodies: [UInt32: [UInt8]] = [:]
        for start in stride(from: 0, to: bytes.count, by: min(piece, bytes.count)) {
            let end = min(bytes.count, start + min(piece, bytes.count))
            scanner.receive(bytes[start..<end].span) {
                events.append($0)
            } content: { kind, stream, bytes in
                let content = bytes.indices.map { bytes[$0] }
                switch kind {
                case .headerBlock: headers[stream, default: []] += content
                case .body: bodies[stream, default: []] += content
                }
            }
        }
        return (events, headers, bodies)
    }

    private static let conversation: [HTTP2Frame] = [
        .settings, .settingsAcknowledged,
        HTTP2Frame(type: 4, payload: [0, 1, 0, 0, 0, 3, 0, 3, 0, 0, 1, 2, 0, 4, 0, 0, 0, 9]), .head(1),
        .data(1, "hello"), .data(1, ""),
        HTTP2Frame(type: 0, flags: 0x9, stream: 1, payload: [2, 65, 66, 67, 0, 0]),
        HTTP2Frame(type: 1, flags: 0x28, stream: 3, payload: [1, 0, 0, 0, 0, 9, 0x88, 0]),
        HTTP2Frame(type: 9, flags: 4, stream: 3, payload: [0x89]),
        HTTP2Frame(type: 6, payload: Array(repeating: 7, count: 8)),
        .head(5, endsStream: true), .reset(3, code: 8), .goAway(last: 5, code: 11), .data(1, "x", endsStream: true),
    ]

    @Test(arguments: [1, 2, 3, 8, 9, 10, 64, Int.max])
    func `frames are found wherever the bytes are divided`(piece: Int) {
        let (events, headers, bodies) = scan(Self.conversation, piece: piece)
        #expect(headers == [1: [0x88], 3: [0x88, 0x89], 5: [0x88]])
        #expect(bodies == [1: Array("helloABCx".utf8)])
        #expect(
            events == [
                .settings(maximumStreams: nil), .settings(maximumStreams: 258),
                .headers(stream: 1, endsStream: false), .headersEnd(stream: 1),
                .data(stream: 1, count: 5, endsStream: false),
                .data(stream: 1, count: 0, endsStream: false), .data(stream: 1, count: 3, endsStream: true),
                .headers(stream: 3, endsStream: false), .headersEnd(stream: 3), .headers(stream: 5, endsStream: true),
                .headersEnd(stream: 5),
                .reset(stream: 3, code: 8), .goAway(lastStream: 5, code: 11),
                .data(stream: 1, count: 1, endsStream: true),
            ])
    }

    @Test(arguments: [
        (HTTP2Frame(type: 0, stream: 1, claimedLength: 16_385), "a frame above the limit"),
        (HTTP2Frame(type: 0, flags: 8, stream: 1, payload: [3, 1, 2]), "as much padding as payload"),
        (HTTP2Frame(type: 1, flags: 0xC, stream: 1, payload: [2, 1]), "padding beyond a header block"),
        (HTTP2Frame(type: 1, flags: 0x24, stream: 1, payload: [0, 0, 0, 0]), "a priority cut off"),
        (HTTP2Frame(type: 1, flags: 0x2C, stream: 1, payload: [1, 0, 0, 0, 0, 9]), "padding beyond the priority"),
        (HTTP2Frame(type: 0, flags: 8, stream: 1), "no room for the length of the padding"),
        (HTTP2Frame(type: 0, stream: 0, payload: [1]), "DATA on the connection"),
        (HTTP2Frame(type: 3, stream: 1, payload: [0, 0, 0]), "a short RST_STREAM"),
        (HTTP2Frame(type: 3, stream: 0, payload: [0, 0, 0, 1]), "RST_STREAM on the connection"),
        (HTTP2Frame(type: 4, payload: [1]), "a setting cut off"),
        (HTTP2Frame(type: 6, payload: [1]), "a short PING"),
        (HTTP2Frame(type: 7, payload: [0, 0, 0, 1]), "a short GOAWAY"),
        (HTTP2Frame(type: 8, stream: 1, payload: [0]), "a short WINDOW_UPDATE"),
    ])
    func `nothing is read after a frame that breaks the protocol`(frame: HTTP2Frame, reason: String) {
        #expect(
            events([.data(1, "a"), frame, .data(1, "b")]) == [
                .data(stream: 1, count: 1, endsStream: false), .violation,
            ])
    }

    @Test(
        arguments: [
            ([], nil), ([0, 3, 0, 0, 0, 0], 0), ([0, 3, 255, 255, 255, 255], .max), ([3, 3, 0, 0, 0, 7], nil),
            ([0, 3, 0, 0, 0, 7, 0, 3, 0, 0, 0, 8], 8), ([0, 5, 0, 3, 0, 0, 0, 2, 0, 0, 0, 0], nil),
        ] as [([UInt8], UInt32?)])
    func `settings tell the number of streams`(payload: [UInt8], streams: UInt32?) {
        let frames = [HTTP2Frame(type: 4, payload: payload), .settings]
        #expect(events(frames) == [.settings(maximumStreams: streams), .settings(maximumStreams: nil)])
    }

    @Test(arguments: [
        (HTTP2Frame(type: 0, flags: 8, stream: 1, payload: [2, 1, 2]), 0),
        (HTTP2Frame(type: 0, stream: 1, payload: []), 0),
        (HTTP2Frame(type: 0, stream: 1, payload: Array(repeating: 1, count: 16_384)), 16_384),
    ])
    func `frames at the limits are valid`(frame: HTTP2Frame, count: Int) {
        #expect(events([frame]) == [.data(stream: 1, count: count, endsStream: false)])
    }

    @Test(arguments: [
        HTTP2Frame.data(1, ""), HTTP2Frame(type: 0, flags: 8, stream: 1, payload: [1, 0]),
        HTTP2Frame(type: 9, stream: 1),
        HTTP2Frame(type: 2, stream: 1, payload: [0, 0, 0, 0, 0]), HTTP2Frame(type: 99),
    ])
    func `10,000 frames in a row that say nothing break the protocol`(frame: HTTP2Frame) {
        let flood = Array(repeating: frame, count: 9999)
        #expect(!events(flood + [.data(1, "x")] + flood).contains(.violation))
        #expect(events(flood + [frame, frame]).last == .violation)
    }

    @Test(arguments: [
        HTTP2Frame(type: 6, payload: Array(repeating: 0, count: 8)), HTTP2Frame(type: 8, payload: [0, 0, 0, 1]),
        HTTP2Frame(type: 0, flags: 8, stream: 1, payload: [1, 65, 0]),
    ])
    func `frames that a long exchange may bring are no flood`(frame: HTTP2Frame) {
        #expect(!events(Array(repeating: frame, count: 20_000)).contains(.violation))
    }

    @Test func `random bytes bring two events for each frame header at most`() {
        var random = SystemRandomNumberGenerator()
        for _ in 0..<2000 {
            let bytes = (0..<400).map { _ in
                UInt8.random(in: 0...(Bool.random(using: &random) ? 12 : 255), using: &random)
            }
            var scanner = HTTP2FrameScanner()
            var count = 0
            scanner.receive(bytes.span) { _ in
                count += 1
            } content: { _, _, _ in
            }
            #expect(count <= 2 * 400 / 9)
        }
    }
}
