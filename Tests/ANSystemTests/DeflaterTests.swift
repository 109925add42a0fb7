// SPDX-License-Identifier: MIT

import ANSystem
import Glibc
import TestSupport
import Testing

@Suite struct DeflaterTests {
    @Test(arguments: [(Deflater.Format.gzip, [0x1F, 0x8B, 8]), (.zlib, [0x78])] as [(Deflater.Format, [UInt8])])
    func `a small output takes the end in several steps`(format: Deflater.Format, start: [UInt8]) throws {
        let whole = try compress([1, 2, 3, 1, 2, 3], format, room: 1_000)
        #expect(whole.starts(with: start))
        for room in 1...20 { #expect(try compress([1, 2, 3, 1, 2, 3], format, room: room) == whole) }
    }

    @Test func `a step consumes only the input that the output has room for`() throws {
        var deflater = try Deflater(format: .gzip, level: 1)
        let input = (0..<100_000).map { _ in UInt8.random(in: .min ... .max) }
        var output = [UInt8](repeating: 0, count: 1_000)
        let step = try deflater.step(input, isEnd: true, into: &output)
        #expect(step.produced == 1_000)
        #expect(step.consumed < input.count)
        #expect(!step.isFinished)
    }

    @Test func `a step without input or room is not an error`() throws {
        var deflater = try Deflater(format: .zlib)
        var output = [UInt8](repeating: 0, count: 100)
        for _ in 0..<3 { _ = try deflater.step([], isEnd: false, into: &output) }
        var none: [UInt8] = []
        #expect(try deflater.step([1], isEnd: true, into: &none).produced == 0)
    }

    @Test(arguments: [0, 10, -1])
    func `a level out of range fails with EINVAL`(level: Int) {
        #expect(throws: SystemError(call: "deflateInit2", code: EINVAL)) {
            _ = try Deflater(format: .gzip, level: level)
        }
    }

    @Test func `compressors free their memory`() throws {
        let before = try residentKilobytes()
        for _ in 0..<2_000 {
            var deflater = try Deflater(format: .gzip)
            var output = [UInt8](repeating: 0, count: 100)
            _ = try deflater.step([1, 2, 3], isEnd: false, into: &output)
        }
        // Each takes about 270 KB.
        #expect(try residentKilobytes() - before < 300 << 10)
    }

    private func compress(_ bytes: [UInt8], _ format: Deflater.Format, room: Int) throws -> [UInt8] {
        var deflater = try Deflater(format: format)
        var rest = bytes[...]
        var result: [UInt8] = []
        for _ in 0..<1_000 {
            var output = [UInt8](repeating: 0, count: room)
            let step = try deflater.step(Array(rest), isEnd: true, into: &output)
            rest = rest.dropFirst(step.consumed)
            result += output[..<step.produced]
            if step.isFinished { return result }
        }
        Issue.record("the stream does not end")
        return result
    }
}

extension Deflater {
    fileprivate mutating func step(_ input: [UInt8], isEnd: Bool, into output: inout [UInt8]) throws -> Step {
        var span = output.mutableSpan
        var bytes = unsafe span.mutableBytes
        return try unsafe step(input.span.bytes, isEnd: isEnd, into: &bytes)
    }
}
