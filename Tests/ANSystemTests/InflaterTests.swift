// SPDX-License-Identifier: MIT

import ANSystem
import Glibc
import Testing

@Suite(.timeLimit(.minutes(5))) struct InflaterTests {
    @Test(arguments: [CodedStream.gzip, .zlib, .deflate])
    func `input after the end of the stream is not consumed`(stream: CodedStream) throws {
        let result = try stream.decode([stream.bytes + [1, 2, 3]])
        #expect(result == Decoded(output: CodedStream.text, isComplete: true, left: 3))
    }

    @Test func `a decoder can decode another stream after a reset`() throws {
        var inflater = try Inflater(format: .gzip)
        for count in [30, CodedStream.gzip.bytes.count, CodedStream.gzip.bytes.count] {
            _ = try Decoded(&inflater, [Array(CodedStream.gzip.bytes.prefix(count))])
            try inflater.reset()
        }
        let result = try Decoded(&inflater, [CodedStream.gzip.bytes])
        #expect(result == Decoded(output: CodedStream.text, isComplete: true))
    }

    @Test(
        arguments: [
            [0x1F, 0x8B, 8, 0x1F, 0, 0, 0, 0, 0, 3, 2, 0, 7, 7, 0x61, 0, 0x62, 0, 0x01, 0x65],
            [0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 3],
        ] as [[UInt8]])
    func `a gzip header may have all of its optional fields or none`(header: [UInt8]) throws {
        // An empty stored block, whose CRC and length are 0.
        let bytes = header + [1, 0, 0, 0xFF, 0xFF] + [0, 0, 0, 0, 0, 0, 0, 0]
        #expect(try CodedStream.gzip.decode([bytes]) == Decoded(output: [], isComplete: true))
    }

    @Test(
        arguments: [
            (CodedStream.gzip, [0x1F, 0x8B, 9, 0]), (.gzip, [0x50, 0x4B]), (.gzip, [0x1F, 0x8B, 8, 0x20]),
            (.zlib, [0x78, 0x9D]), (.zlib, [0x88, 0x1C]), (.deflate, [7]),
        ] as [(CodedStream, [UInt8])])
    func `input in another format is malformed`(stream: CodedStream, bytes: [UInt8]) {
        #expect(throws: SystemError(call: "inflate", code: EBADMSG)) { try stream.decode([bytes]) }
    }

    @Test func `a stream with a preset dictionary is malformed`() {
        // FLG with FDICT, and the checksum of the dictionary.
        #expect(throws: SystemError(call: "inflate", code: EBADMSG)) {
            try CodedStream.zlib.decode([[0x78, 0xBB, 0, 0, 0, 1, 3, 0]])
        }
    }

    @Test func `the content of a body is what is there of it, up to a limit`() {
        let (gzip, zlib, text) = (CodedStream.gzip.bytes, CodedStream.zlib.bytes, CodedStream.text)
        func content(_ body: [UInt8], _ coding: String, upTo limit: Int = .max) -> (bytes: [UInt8], isComplete: Bool)? {
            Inflater.content(of: body, coding: coding, upTo: limit)
        }
        for (body, coding) in [(gzip, "gzip"), (zlib, "deflate")] {
            for limit in [Int.max, text.count] {
                #expect(content(body, coding, upTo: limit)?.bytes == text)
                #expect(content(body, coding, upTo: limit)?.isComplete == true)
            }
            #expect(content(body, coding, upTo: 5)?.bytes == Array(text.prefix(5)))
            #expect(content(body, coding, upTo: 5)?.isComplete == false)
            let part = content(Array(body.dropLast(10)), coding)
            #expect(part.map { text.starts(with: $0.bytes) && !$0.isComplete } == true)
            #expect(content(body + [0], coding) == nil)
            #expect(content(text, coding) == nil)
        }
        #expect(content([], "gzip")?.bytes == [])
        #expect(content(gzip, "br") == nil)
    }
}
