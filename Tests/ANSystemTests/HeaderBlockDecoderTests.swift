// SPDX-License-Identifier: MIT

import ANSystem
import Testing

/// The header blocks are written out by the rules of RFC 7541 §5 and §6.
@Suite(.enabled(if: HeaderBlockDecoder.isAvailable)) struct HeaderBlockDecoderTests {
    /// Decodes blocks of one connection, each in parts of one size.
    private func decode(_ blocks: [[UInt8]], part: Int = .max) throws -> [[String]] {
        var decoder = try HeaderBlockDecoder()
        return try blocks.map { block in
            var fields: [String] = []
            for start in stride(from: 0, to: block.count, by: min(part, block.count)) {
                let end = min(block.count, start + min(part, block.count))
                unsafe try decoder.decode(block[start..<end].span, isFinal: false) { name, value in
                    unsafe fields.append(
                        String(decoding: name, as: UTF8.self) + ": " + String(decoding: value, as: UTF8.self))
                }
            }
            unsafe try decoder.decode([UInt8]().span, isFinal: true) { _, _ in Issue.record("a field after the block") }
            return fields
        }
    }

    private static let literal: [UInt8] = [0x40, 3] + Array("x-a".utf8) + [1] + Array("b".utf8)

    @Test(arguments: [1, 2, 3, Int.max])
    func `fields are decoded wherever a block is divided`(part: Int) throws {
        // 404 and 413, a new field, and `0` as `content-length`, Huffman-coded (RFC 7541, Appendix B).
        let blocks: [[UInt8]] = [
            [0x8D] + Self.literal, [0x08, 3] + Array("413".utf8) + [0xBE, 0x5C, 0x81, 0x07],
        ]
        #expect(
            try decode(blocks, part: part) == [
                [":status: 404", "x-a: b"], [":status: 413", "x-a: b", "content-length: 0"],
            ])
    }

    @Test(
        arguments: [[0xBE], [0x80], [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF], [0x40, 3, 65], [0x00, 0x82, 0xFF]]
            as [[UInt8]])
    func `a block that is not valid is an error`(block: [UInt8]) {
        #expect(throws: SystemError.self) { try decode([block]) }
    }

    @Test func `random bytes are decoded or refused`() throws {
        var random = SystemRandomNumberGenerator()
        for _ in 0..<5000 {
            let block = (0..<64).map { _ in UInt8.random(in: 0...255, using: &random) }
            _ = try? decode([block, Self.literal], part: 7)
        }
    }
}
