// SPDX-License-Identifier: MIT

import ANSystem
import Glibc
import Testing

@Suite(.enabled(if: BrotliDecoder.isAvailable), .timeLimit(.minutes(5))) struct BrotliDecoderTests {
    @Test func `input after the end of the stream is not consumed`() throws {
        let result = try CodedStream.brotli.decode([CodedStream.brotli.bytes + [1, 2, 3]])
        #expect(result == Decoded(output: CodedStream.text, isComplete: true, left: 3))
    }

    @Test func `a large window is malformed`() {
        // WBITS 00010001, which only the large-window extension defines, and a window of 2^30 bytes.
        #expect(throws: SystemError(call: "BrotliDecoderDecompressStream", code: EBADMSG)) {
            try CodedStream.brotli.decode([[0x11, 0x1E, 0x03]])
        }
    }
}
