// SPDX-License-Identifier: MIT

import ANHTTP
import Testing

/// The rules of RFC 6455 §5.4, §5.5 and §7.
@Suite struct WebSocketStateMachineTests {
    private typealias Reaction = WebSocketStateMachine.Reaction

    private func receive(_ frames: [WebSocketFrame], limit: Int = 100) throws -> [Reaction] {
        var machine = WebSocketStateMachine(maximumMessageSize: limit)
        return try frames.map { try machine.receive($0) }
    }

    private static func text(_ text: String, isFinal: Bool = true) -> WebSocketFrame {
        WebSocketFrame(.text, Array(text.utf8), isFinal: isFinal)
    }

    @Test func `fragments are delivered, with control frames between them`() throws {
        let ping = WebSocketFrame(.ping, Array("p".utf8))
        let frames = [
            Self.text("Hel", isFinal: false), ping, WebSocketFrame(.continuation, isFinal: false),
            WebSocketFrame(.pong), WebSocketFrame(.continuation, Array("lo".utf8)), WebSocketFrame(.binary, [1]),
        ]
        #expect(
            try receive(frames) == [
                .deliver(frames[0]), .answer(WebSocketFrame(.pong, Array("p".utf8))), .deliver(frames[2]), .none,
                .deliver(frames[4]), .deliver(frames[5]),
            ])
    }

    @Test(
        arguments: [
            ([WebSocketFrame(.continuation)], 1002),
            ([text("a"), WebSocketFrame(.continuation)], 1002),
            ([text("a", isFinal: false), text("b")], 1002),
            ([text("a", isFinal: false), WebSocketFrame(.binary)], 1002),
            ([WebSocketFrame(.binary, [1, 2, 3, 4, 5, 6])], 1009),
            ([text("123", isFinal: false), WebSocketFrame(.continuation, Array("456".utf8))], 1009),
            ([WebSocketFrame(.close, [3])], 1002),
            ([WebSocketFrame(.close, [0x03, 0xE7])], 1002),
            ([WebSocketFrame(.close, [0x03, 0xEC])], 1002),
            ([WebSocketFrame(.close, [0x03, 0xED])], 1002),
            ([WebSocketFrame(.close, [0x03, 0xEE])], 1002),
            ([WebSocketFrame(.close, [0x03, 0xF7])], 1002),
            ([WebSocketFrame(.close, [0x07, 0xD0])], 1002),
            ([WebSocketFrame(.close, [0x13, 0x88])], 1002),
            ([WebSocketFrame(.close, [0x03, 0xE8, 0xFF])], 1007),
            ([WebSocketFrame(.close, [0x03, 0xE8, 0xC3])], 1007),
        ] as [([WebSocketFrame], UInt16)])
    func `a violation of the protocol has its code`(frames: [WebSocketFrame], code: UInt16) throws {
        let violation = try #require(throws: WebSocketViolation.self) { try receive(frames, limit: 5) }
        #expect(violation.code == code)
    }

    @Test func `a message of the maximum size is delivered`() throws {
        let frames = [Self.text("123", isFinal: false), WebSocketFrame(.continuation, Array("45".utf8))]
        #expect(try receive(frames + frames, limit: 5).count == 4)
    }

    @Test func `a compressed message may be larger than the maximum size`() throws {
        // RFC 7692 §7.2.3.6: an empty message in compressed form.
        let empty = WebSocketFrame(.text, [0x00], isCompressed: true)
        #expect(try receive([empty], limit: 0) == [.deliver(empty)])
        let begin = WebSocketFrame(.binary, Self.zeros(700), isFinal: false, isCompressed: true)
        let end = WebSocketFrame(.continuation, Self.zeros(440))
        #expect(try receive([begin, end, begin, end], limit: 1000).count == 4)
        let tooLarge = WebSocketFrame(.continuation, Self.zeros(600))
        #expect(throws: WebSocketViolation.tooLarge(limit: 1000)) { try receive([begin, tooLarge], limit: 1000) }
        let plain = WebSocketFrame(.binary, Self.zeros(1001))
        #expect(throws: WebSocketViolation.tooLarge(limit: 1000)) { try receive([begin, end, plain], limit: 1000) }
    }

    /// RFC 7692 §7.2.1: a fragment that is flushed ends with an empty block.
    @Test func `each fragment of a compressed message may add a few bytes`() throws {
        func fragments(_ size: Int) -> [WebSocketFrame] {
            [WebSocketFrame(.text, Self.zeros(size), isFinal: false, isCompressed: true)]
                + [WebSocketFrame](repeating: .init(.continuation, Self.zeros(size), isFinal: false), count: 100)
                + [WebSocketFrame(.continuation, Self.zeros(1))]
        }
        #expect(try receive(fragments(16) + fragments(16), limit: 100).count == 204)
        #expect(throws: WebSocketViolation.tooLarge(limit: 100)) { try receive(fragments(20), limit: 100) }
        #expect(try receive(fragments(1 << 10), limit: .max).count == 102)
    }

    private static func zeros(_ count: Int) -> [UInt8] { [UInt8](repeating: 0, count: count) }

    @Test(arguments: [1000, 1003, 1007, 1011, 1014, 3000, 4999] as [UInt16])
    func `a close frame is answered with its code, and nothing follows`(code: UInt16) throws {
        let bytes = [UInt8(code >> 8), UInt8(code & 0xFF)]
        let close = WebSocketFrame(.close, bytes + Array("bye".utf8))
        #expect(
            try receive([close, Self.text("late"), WebSocketFrame(.ping), close]) == [
                .closed(WebSocketClosure(code: code, reason: "bye"), answer: WebSocketFrame(.close, bytes)),
                .none, .none, .none,
            ])
    }

    @Test func `a close frame without a code is answered without one`() throws {
        #expect(
            try receive([WebSocketFrame(.close)]) == [
                .closed(WebSocketClosure(code: nil), answer: WebSocketFrame(.close))
            ])
    }

    @Test func `messages after a close frame of this side are discarded until its answer`() throws {
        var machine = WebSocketStateMachine(maximumMessageSize: 100)
        let closure = WebSocketClosure(code: 1000, reason: "x")
        #expect(machine.close(closure) == WebSocketFrame(.close, [0x03, 0xE8, 0x78]))
        #expect(machine.close(closure) == nil)
        #expect(!machine.isOpen)
        #expect(try machine.receive(Self.text("a")) == .none)
        #expect(try machine.receive(WebSocketFrame(.ping, [7])) == .answer(WebSocketFrame(.pong, [7])))
        #expect(throws: WebSocketViolation.self) { try machine.receive(WebSocketFrame(.continuation)) }
        let answer = WebSocketFrame(.close, [0x03, 0xE8])
        #expect(try machine.receive(answer) == .closed(WebSocketClosure(code: 1000), answer: nil))
    }

    @Test(arguments: [("€", 100, 125), ("a", 123, 125), ("a", 124, 125), ("👩‍👩‍👧‍👦", 5, 102)])
    func `a long reason is truncated between characters`(character: String, count: Int, size: Int) throws {
        let closure = WebSocketClosure(code: 1000, reason: String(repeating: character, count: count))
        #expect(closure.payload.count == size)
        #expect(try WebSocketClosure(payload: closure.payload).code == 1000)
    }

    @Test(
        arguments: [
            ([], nil), ([" "], nil),
            (["permessage-deflate"], WebSocketDeflate()),
            (["Permessage-Deflate; Server_No_Context_Takeover"], WebSocketDeflate(serverResets: true)),
            (
                ["permessage-deflate;client_no_context_takeover ; server_max_window_bits=10"],
                WebSocketDeflate(clientResets: true)
            ),
            (["permessage-deflate; server_max_window_bits=\"15\""], WebSocketDeflate()),
        ] as [([String], WebSocketDeflate?)])
    func `an accepted extension is parsed`(values: [String], parameters: WebSocketDeflate?) throws {
        #expect(try WebSocketDeflate.negotiated(values, isOffered: true) == parameters)
    }

    @Test(arguments: [
        "x-webkit-deflate-frame", "permessage-deflate, permessage-deflate", "permessage-deflate; other",
        "permessage-deflate; client_max_window_bits=10", "permessage-deflate; server_max_window_bits",
        "permessage-deflate; server_max_window_bits=16", "permessage-deflate; server_max_window_bits=7",
        "permessage-deflate; server_no_context_takeover=1", "permessage-deflate;",
        "permessage-deflate; server_no_context_takeover; server_no_context_takeover",
    ])
    func `an extension that was not offered in this form is refused`(value: String) {
        #expect(throws: WebSocketViolation.self) { try WebSocketDeflate.negotiated([value], isOffered: true) }
    }

    @Test func `an extension that was not offered is refused`() {
        #expect(throws: WebSocketViolation.self) {
            try WebSocketDeflate.negotiated(["permessage-deflate"], isOffered: false)
        }
    }
}
