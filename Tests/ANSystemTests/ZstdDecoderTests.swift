// SPDX-License-Identifier: MIT

import ANSystem
import Glibc
import Testing

@Suite(.enabled(if: ZstdDecoder.isAvailable), .timeLimit(.minutes(5))) struct ZstdDecoderTests {
    /// A frame with a window descriptor (RFC 8878 §3.1.1.1.2), and one last block: the raw byte 7.
    private static func frame(windowLog: UInt8) -> [UInt8] {
        [0x28, 0xB5, 0x2F, 0xFD, 0, (windowLog - 10) << 3, 9, 0, 0, 7]
    }

    /// A skippable frame (RFC 8878 §3.1.2).
    private static let skippable: [UInt8] = [0x5F, 0x2A, 0x4D, 0x18, 3, 0, 0, 0, 1, 2, 3]

    @Test func `windows of up to 8 MiB are accepted`() throws {
        for windowLog: UInt8 in 10...23 {
            #expect(try CodedStream.zstd.decode([Self.frame(windowLog: windowLog)]).output == [7])
        }
        for windowLog: UInt8 in 24...41 {
            #expect(throws: SystemError(call: "ZSTD_decompressStream", code: EBADMSG)) {
                try CodedStream.zstd.decode([Self.frame(windowLog: windowLog)])
            }
        }
    }

    @Test func `a stream may have several frames, and skippable frames are skipped`() throws {
        let (frame, text) = (CodedStream.zstd.bytes, CodedStream.text)
        let bytes = Self.skippable + frame + Self.skippable + frame + Self.skippable
        for split in 0...bytes.count {
            let result = try CodedStream.zstd.decode([Array(bytes[..<split]), Array(bytes[split...])])
            #expect(result == Decoded(output: text + text, isComplete: true), "split at \(split)")
        }
    }

    @Test func `a stream that ends within a further frame is not complete`() throws {
        let (frame, text) = (CodedStream.zstd.bytes, CodedStream.text)
        for next in [frame, Self.skippable] {
            for count in 1..<next.count {
                let result = try CodedStream.zstd.decode([frame + next[..<count]])
                #expect(!result.isComplete, "cut off after \(count)")
                #expect(result.output.starts(with: text))
            }
        }
    }

    @Test func `bytes after a frame that are not the start of another are malformed`() {
        #expect(throws: SystemError(call: "ZSTD_decompressStream", code: EBADMSG)) {
            try CodedStream.zstd.decode([CodedStream.zstd.bytes + [0, 0, 0, 0]])
        }
    }
}
