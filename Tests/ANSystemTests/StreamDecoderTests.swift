// SPDX-License-Identifier: MIT

import ANSystem
import Glibc
import TestSupport
import Testing

/// Behaviour common to all decoders.
@Suite(.timeLimit(.minutes(5))) struct StreamDecoderTests {
    @Test(arguments: CodedStream.available)
    func `input split in two decodes to the same output`(stream: CodedStream) throws {
        for split in 0...stream.bytes.count {
            let result = try stream.decode([Array(stream.bytes[..<split]), Array(stream.bytes[split...])])
            #expect(result == Decoded(output: CodedStream.text, isComplete: true), "split at \(split)")
        }
    }

    @Test(arguments: CodedStream.available)
    func `the output buffer may have any size`(stream: CodedStream) throws {
        let bytes = stream.bytes.map { [$0] }
        for room in 1...20 {
            let expected = Decoded(output: CodedStream.text, isComplete: true)
            #expect(try stream.decode([stream.bytes], room: room) == expected)
            #expect(try stream.decode(bytes, room: room) == expected)
        }
    }

    @Test(arguments: CodedStream.available)
    func `a truncated stream decodes to a prefix of the text and is not complete`(stream: CodedStream) throws {
        for count in 0..<stream.bytes.count {
            let result = try stream.decode([Array(stream.bytes[..<count])])
            #expect(!result.isComplete, "cut off after \(count)")
            #expect(CodedStream.text.starts(with: result.output))
        }
    }

    @Test(arguments: CodedStream.available)
    func `a corrupted byte is malformed, or the text differs only without a checksum`(stream: CodedStream) throws {
        for index in stream.bytes.indices {
            for mask: UInt8 in [0x01, 0x10, 0x80, 0xFF] {
                var bytes = stream.bytes
                bytes[index] ^= mask
                let result: Decoded
                do throws(SystemError) {
                    result = try stream.decode([bytes])
                } catch {
                    #expect(error.code == EBADMSG)
                    continue
                }
                if stream.hasSum, result.isComplete { #expect(result.output == CodedStream.text) }
            }
        }
    }

    @Test(arguments: CodedStream.available)
    func `a step without input or room is not an error`(stream: CodedStream) throws {
        let pieces: [[UInt8]] = [
            [], [], Array(stream.bytes.prefix(20)), [], [], Array(stream.bytes.dropFirst(20)), [], [],
        ]
        #expect(try stream.decode(pieces).output == CodedStream.text)
        #expect(try stream.decode([stream.bytes], room: 0).output == [])
    }

    @Test(.exitTest) func `decoders free their memory`() async {
        // In a process of its own, where no other test allocates memory.
        await #expect(processExitsWith: .success) {
            func decode(_ stream: CodedStream, _ times: Int) throws {
                for _ in 0..<times { _ = try stream.decode([stream.bytes]) }
            }
            for stream in CodedStream.available {
                try decode(stream, 100)
                let before = try residentKilobytes()
                try decode(stream, 1_000)
                // Each decoder takes 20 KiB or more. A sanitizer does not return freed memory.
                if !isSanitized { try #require(try residentKilobytes() - before < 10_000, "\(stream)") }
            }
        }
    }
}

/// The text, encoded in one of the formats.
enum CodedStream: String, CaseIterable, CustomTestStringConvertible {
    case gzip, zlib, deflate, brotli, zstd

    /// The formats that the system has decoders for.
    static let available = allCases.filter { stream in
        switch stream {
        case .gzip, .zlib, .deflate: true
        case .brotli: BrotliDecoder.isAvailable
        case .zstd: ZstdDecoder.isAvailable
        }
    }

    /// The text that every stream decodes to.
    static let text = Array(
        (String(repeating: "The quick brown fox jumps over the lazy dog. ", count: 4)
            + "Sphinx of black quartz, judge my vow: 0123456789.").utf8)

    var testDescription: String { "\(self)" }

    /// Whether the stream ends with a checksum of the text.
    var hasSum: Bool { ![.deflate, .brotli].contains(self) }

    var bytes: [UInt8] {
        switch self {
        case .gzip: Self.gzipBytes
        case .zlib: Self.zlibBytes
        case .deflate: Self.deflateBytes
        case .brotli: Self.brotliBytes
        case .zstd: Self.zstdBytes
        }
    }

    func decode(_ pieces: [[UInt8]], room: Int = 1_000) throws(SystemError) -> Decoded {
        switch self {
        case .gzip: try Decoded(try Inflater(format: .gzip), pieces, room: room)
        case .zlib: try Decoded(try Inflater(format: .zlib), pieces, room: room)
        case .deflate: try Decoded(try Inflater(format: .deflate), pieces, room: room)
        case .brotli: try Decoded(try BrotliDecoder(), pieces, room: room)
        case .zstd: try Decoded(try ZstdDecoder(), pieces, room: room)
        }
    }

    private static func deflated(_ format: Deflater.Format) -> [UInt8] {
        guard var deflater = try? Deflater(format: format) else { return [] }
        var output = [UInt8](repeating: 0, count: 1_000)
        var span = output.mutableSpan
        var bytes = unsafe span.mutableBytes
        guard let step = try? unsafe deflater.step(text.span.bytes, isEnd: true, into: &bytes) else { return [] }
        return Array(output.prefix(step.produced))
    }

    private static let gzipBytes = deflated(.gzip)
    private static let zlibBytes = deflated(.zlib)
    /// The zlib stream without its header and checksum.
    private static let deflateBytes = Array(zlibBytes.dropFirst(2).dropLast(4))

    /// Encoded by Brotli 1.2 with quality 11.
    private static let brotliBytes: [UInt8] = [
        0x1B, 0xE4, 0x00, 0x00, 0x8C, 0x94, 0xA8, 0xE3, 0x5B, 0x3E, 0x79, 0x3F, 0xD2, 0x07, 0xB4, 0xAB, 0x10, 0xDD,
        0x00, 0xF3, 0x67, 0x56, 0xD8, 0x9B, 0x53, 0x0E, 0x1C, 0x5A, 0x5B, 0x5B, 0x18, 0xE4, 0x17, 0x3D, 0x80, 0x9D,
        0x14, 0xEF, 0x39, 0x7C, 0x3E, 0x92, 0x47, 0x1E, 0xAB, 0x25, 0xB6, 0x8B, 0x43, 0xC8, 0xC5, 0x29, 0x5F, 0xF8,
        0xE8, 0x01, 0x95, 0x27, 0x18, 0xFD, 0x1F, 0xD2, 0x4A, 0x40, 0xD8, 0x61, 0x6D, 0xDD, 0xFC, 0x62, 0x29, 0x45,
        0x86, 0xFF, 0xA8, 0xF9, 0x1F, 0x63, 0x69, 0x42, 0x9E, 0xF7, 0xC7, 0x83, 0x32, 0x2E, 0xA4, 0xD2, 0xC6, 0x3A,
        0x02,
    ]

    /// Encoded by zstd(1) 1.5.4 with `zstd -19 --check`.
    private static let zstdBytes: [UInt8] = [
        0x28, 0xB5, 0x2F, 0xFD, 0x04, 0x68, 0xF5, 0x02, 0x00, 0xE2, 0x05, 0x15, 0x17, 0x50, 0x59, 0x63, 0xFF, 0xB7,
        0x18, 0x42, 0x3E, 0x8F, 0x26, 0x1A, 0x9A, 0xC5, 0x8C, 0x6D, 0xA4, 0xE4, 0xE6, 0x53, 0xCC, 0xCC, 0x7C, 0x08,
        0xC1, 0xA2, 0x24, 0xC8, 0x61, 0x14, 0xC4, 0x20, 0xCC, 0x80, 0xFB, 0x2D, 0x62, 0xCF, 0x29, 0xAA, 0xD5, 0xC0,
        0xE8, 0x71, 0xB2, 0x6E, 0x5B, 0x90, 0xBC, 0x9E, 0xA5, 0x3D, 0xCC, 0x28, 0xAA, 0x35, 0x07, 0xD3, 0x46, 0x8B,
        0xA3, 0xBC, 0x9E, 0xD4, 0x9B, 0x9B, 0xDF, 0xDE, 0x69, 0x58, 0xAD, 0x0E, 0x57, 0x3A, 0x03, 0x97, 0x7B, 0xB6,
        0x20, 0xAA, 0x6E, 0x4F, 0xEA, 0x04, 0x01, 0x00, 0x25, 0x40, 0x4A, 0x95, 0x01, 0x48, 0x47, 0xBE, 0x19,
    ]
}

/// The result of decoding a series of pieces.
struct Decoded: Equatable {
    var output: [UInt8] = []
    var isComplete = false
    /// The number of bytes of the last piece that were not consumed.
    var left = 0

    init(output: [UInt8], isComplete: Bool, left: Int = 0) {
        self.output = output
        self.isComplete = isComplete
        self.left = left
    }

    /// Decodes each piece in steps as long as there is progress.
    init(
        _ decoder: consuming some StreamDecoder & ~Copyable, _ pieces: [[UInt8]], room: Int = 1_000
    ) throws(SystemError) {
        try self.init(&decoder, pieces, room: room)
    }

    /// Decodes each piece in steps as long as there is progress.
    init(
        _ decoder: inout some StreamDecoder & ~Copyable, _ pieces: [[UInt8]], room: Int = 1_000
    ) throws(SystemError) {
        var buffer = [UInt8](repeating: 0, count: room)
        for piece in pieces {
            var rest = piece[...]
            while true {
                let step = try decoder.step(Array(rest), into: &buffer)
                rest = rest.dropFirst(step.consumed)
                output += buffer[..<step.produced]
                isComplete = step.isComplete
                guard step.consumed > 0 || step.produced > 0 else { break }
            }
            left = rest.count
            if room > 0, !isComplete { #expect(rest.isEmpty) }
        }
    }
}

extension StreamDecoder where Self: ~Copyable {
    mutating func step(_ input: [UInt8], into output: inout [UInt8]) throws(SystemError) -> DecodingStep {
        var span = output.mutableSpan
        var bytes = unsafe span.mutableBytes
        return try unsafe step(input.span.bytes, into: &bytes)
    }
}
