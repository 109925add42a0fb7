// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
import AsyncNetworking
import FoundationEssentials
import Testing

@Suite struct MessageAssemblerTests {
    /// The example “Hello” of RFC 7692 §7.2.3.1, twice: with its own context, and with that of the first message.
    private static let hello: [UInt8] = [0xF2, 0x48, 0xCD, 0xC9, 0xC9, 0x07, 0x00]
    private static let helloAgain: [UInt8] = [0xF2, 0x00, 0x11, 0x00, 0x00]

    private func messages(
        _ frames: [WebSocketFrame], limit: Int = 1000, resets: Bool = false
    ) throws -> [WebSocketMessage] {
        var assembler = MessageAssembler(maximumSize: limit, resets: resets)
        return try frames.compactMap { try assembler.add($0) }
    }

    private func violation(_ frames: [WebSocketFrame], limit: Int = 1000) throws -> UInt16 {
        try #require(throws: WebSocketViolation.self) { try messages(frames, limit: limit) }.code
    }

    /// Splits a payload into three fragments at every pair of positions.
    private func fragments(
        _ opcode: WebSocketFrame.Opcode, _ payload: [UInt8], isCompressed: Bool = false
    ) -> [[WebSocketFrame]] {
        (0...payload.count).flatMap { first in
            (first...payload.count).map { second in
                [
                    WebSocketFrame(opcode, Array(payload[..<first]), isFinal: false, isCompressed: isCompressed),
                    WebSocketFrame(.continuation, Array(payload[first..<second]), isFinal: false),
                    WebSocketFrame(.continuation, Array(payload[second...])),
                ]
            }
        }
    }

    @Test(arguments: 0..<7)
    func `a compressed message that is cut off is malformed`(count: Int) throws {
        let part = WebSocketFrame(.text, Array(Self.hello[..<count]), isCompressed: true)
        #expect(try violation([part]) == 1007)
        #expect(try violation([WebSocketFrame(.text, Self.hello, isCompressed: true), part]) == 1007)
    }

    @Test func `a compressed message may end its stream, with or without an empty block after it`() throws {
        // The example of RFC 7692 §7.2.3.4, in which the block has the final bit.
        let final: [UInt8] = [0xF3, 0x48, 0xCD, 0xC9, 0xC9, 0x07, 0x00]
        let frames = [final, final + [0x00], final].map { WebSocketFrame(.text, $0, isCompressed: true) }
        #expect(try messages(frames) == [.text("Hello"), .text("Hello"), .text("Hello")])
        #expect(try messages(frames, resets: true) == [.text("Hello"), .text("Hello"), .text("Hello")])
    }

    @Test func `text is joined wherever it is split`() throws {
        let text = "a€😀ä"
        for frames in fragments(.text, Array(text.utf8)) {
            #expect(try messages(frames + frames) == [.text(text), .text(text)])
        }
    }

    @Test func `bytes are not checked`() throws {
        for frames in fragments(.binary, [0xFF, 0x00, 0xC3]) {
            #expect(try messages(frames) == [.binary(Data([0xFF, 0x00, 0xC3]))])
        }
        #expect(try messages([WebSocketFrame(.binary)]) == [.binary(Data())])
    }

    @Test func `invalid text fails with its first invalid byte`() throws {
        let begin = WebSocketFrame(.text, [0x61, 0xF4], isFinal: false)
        #expect(try messages([begin]).isEmpty)
        #expect(try violation([begin, WebSocketFrame(.continuation, [0x90], isFinal: false)]) == 1007)
        #expect(try violation([WebSocketFrame(.text, [0xC3])]) == 1007)
    }

    @Test func `many fragments are joined in time proportional to their number`() throws {
        let count = 200_000
        var frames = [WebSocketFrame(.binary, [7], isFinal: false)]
        for _ in 0..<count { frames.append(WebSocketFrame(.continuation, [7], isFinal: false)) }
        frames.append(WebSocketFrame(.continuation))
        #expect(try messages(frames, limit: .max) == [.binary(Data(repeating: 7, count: count + 1))])
    }

    // MARK: Compression

    @Test func `compressed messages are inflated wherever they are split`() throws {
        for frames in fragments(.text, Self.hello, isCompressed: true) {
            #expect(try messages(frames) == [.text("Hello")])
        }
    }

    @Test func `a message may refer to an earlier one`() throws {
        let frames = [Self.hello, Self.helloAgain].map { WebSocketFrame(.text, $0, isCompressed: true) }
        let plain = WebSocketFrame(.text, Array("plain".utf8))
        #expect(try messages([frames[0], plain, frames[1]]) == [.text("Hello"), .text("plain"), .text("Hello")])
    }

    @Test func `a message may not refer to an earlier one if the context is reset`() throws {
        let frames = [Self.hello, Self.hello].map { WebSocketFrame(.text, $0, isCompressed: true) }
        #expect(try messages(frames, resets: true) == [.text("Hello"), .text("Hello")])
        let again = [frames[0], WebSocketFrame(.text, Self.helloAgain, isCompressed: true)]
        #expect(throws: WebSocketViolation.self) { try messages(again, resets: true) }
    }

    @Test(
        arguments: [
            // RFC 7692 §7.2.3.3, §7.2.3.4 and §7.2.3.5: without compression, with a final block, and in two blocks.
            [0x00, 0x05, 0x00, 0xFA, 0xFF, 0x48, 0x65, 0x6C, 0x6C, 0x6F, 0x00],
            [0xF3, 0x48, 0xCD, 0xC9, 0xC9, 0x07, 0x00, 0x00],
            [0xF2, 0x48, 0x05, 0x00, 0x00, 0x00, 0xFF, 0xFF, 0xCA, 0xC9, 0xC9, 0x07, 0x00],
        ] as [[UInt8]])
    func `the examples of the RFC are inflated`(bytes: [UInt8]) throws {
        let frame = WebSocketFrame(.text, bytes, isCompressed: true)
        #expect(try messages([frame, frame], resets: true) == [.text("Hello"), .text("Hello")])
    }

    @Test func `malformed compression fails`() throws {
        #expect(try violation([WebSocketFrame(.binary, [0xFF, 0xFF], isCompressed: true)]) == 1007)
    }

    @Test(arguments: [1, 100_000, 1 << 20])
    func `a message that inflates above the limit fails before it is inflated`(limit: Int) throws {
        let bomb = try MessageDeflater(resets: false).deflate([UInt8](repeating: 0, count: 64 << 20))
        #expect(bomb.count < 100_000)
        #expect(try violation([WebSocketFrame(.binary, bomb, isCompressed: true)], limit: limit) == 1009)
    }

    @Test func `a message of exactly the limit is inflated`() throws {
        let bytes = [UInt8](repeating: 1, count: 40_000)
        let frame = WebSocketFrame(.binary, try MessageDeflater(resets: false).deflate(bytes), isCompressed: true)
        #expect(try messages([frame], limit: 40_000) == [.binary(Data(bytes))])
        #expect(try violation([frame], limit: 39_999) == 1009)
    }

    @Test func `the largest limit permits compressed messages`() throws {
        let frame = WebSocketFrame(.text, Self.hello, isCompressed: true)
        #expect(try messages([frame, frame], limit: .max) == [.text("Hello"), .text("Hello")])
    }

    @Test(arguments: [true, false])
    func `compressed messages are inflated to the same`(resets: Bool) throws {
        let deflater = try MessageDeflater(resets: resets)
        var generator = SystemRandomNumberGenerator()
        var frames: [WebSocketFrame] = []
        var expected: [WebSocketMessage] = []
        for size in [1, 2, 100, 16_384, 16_385, 300_000, 5] {
            let bytes = (0..<size).map { _ in UInt8.random(in: 0...15, using: &generator) }
            frames.append(WebSocketFrame(.binary, try deflater.deflate(bytes), isCompressed: true))
            expected.append(.binary(Data(bytes)))
        }
        #expect(try messages(frames, limit: .max - 1, resets: resets) == expected)
    }
}
