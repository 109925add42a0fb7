// SPDX-License-Identifier: MIT

import ANCurl
import FoundationEssentials
import Testing

@Suite struct BodyBufferTests {
    @Test(arguments: [0, 1, 16, 100, 32 << 10, 100_000, 1 << 20, 3 << 20])
    func `a buffer returns the bytes that were appended, with and without reserved memory`(size: Int) {
        let bytes = Self.bytes(size)
        for reserved in [nil, 0, size / 2, size, 100_000, 1 << 20] {
            let memory = BodyMemory()
            var buffer = BodyBuffer()
            if let reserved { buffer.reserve(reserved, from: memory) }
            for start in stride(from: 0, to: size, by: 10_000) {
                buffer.append(bytes[start..<min(size, start + 10_000)])
            }
            #expect(buffer.count == size)
            #expect(buffer.isEmpty == (size == 0))
            #expect(buffer.take() == bytes)
            #expect(buffer.isEmpty)
            buffer.append(Data([1, 2]))
            #expect(buffer.take() == Data([1, 2]))
        }
    }

    @Test func `the memory of a body is reused when the last copy of its bytes is released`() {
        let memory = BodyMemory()
        let first = Self.address(of: Self.body(100_000, in: memory))
        var held = Self.body(100_000, in: memory)
        #expect(Self.address(of: held) == first)
        let other = Self.body(100_000, in: memory)
        #expect(Self.address(of: other) != first)
        #expect(held == other)
        held = Data()
        #expect(Self.address(of: Self.body(100_000, in: memory)) == first)
    }

    @Test func `a changed copy does not change the bytes of another body`() {
        let memory = BodyMemory()
        var body = Self.body(100_000, in: memory)
        let copy = body
        body[0] = 77
        body.append(contentsOf: [1, 2, 3])
        #expect(copy == Self.bytes(100_000))
        #expect(body.count == 100_003)
        body = Data()
        #expect(Self.body(100_000, in: memory) == Self.bytes(100_000))
        #expect(copy == Self.bytes(100_000))
    }

    @Test(
        arguments: [
            (1, nil), ((32 << 10) - 1, nil), (32 << 10, 32 << 10), ((32 << 10) + 1, 64 << 10), (100_000, 128 << 10),
            (128 << 10, 128 << 10), (1 << 20, 1 << 20), ((1 << 20) + 1, nil), (-1, nil), (.max, nil), (.min, nil),
        ] as [(Int, Int?)])
    func `a block has the next power of two of the size, if that is neither small nor large`(size: Int, capacity: Int?)
    {
        #expect(BodyMemory().block(for: size)?.capacity == capacity)
    }

    @Test func `blocks above 4 MiB are freed, those first that were returned first`() {
        let memory = BodyMemory()
        let blocks = (0..<5).compactMap { _ in memory.block(for: 1 << 20) }
        for block in blocks { memory.keep(block) }
        #expect(blocks.count == 5)
        var reused = Set<Int>()
        for _ in 0..<5 {
            if let block = memory.block(for: 1 << 20) { reused.insert(Self.index(of: block, in: blocks)) }
        }
        #expect(reused == [-1, 1, 2, 3, 4])
    }

    @Test func `blocks of another size make room`() throws {
        let memory = BodyMemory()
        for block in (0..<4).compactMap({ _ in memory.block(for: 1 << 20) }) { memory.keep(block) }
        let small = try #require(memory.block(for: 100_000))
        memory.keep(small)
        #expect(memory.block(for: 100_000) === small)
    }

    private static func bytes(_ count: Int) -> Data {
        Data((0..<count).lazy.map { UInt8(truncatingIfNeeded: $0 &* 31) })
    }

    private static func body(_ count: Int, in memory: BodyMemory) -> Data {
        var buffer = BodyBuffer()
        buffer.reserve(count, from: memory)
        buffer.append(bytes(count))
        return buffer.take()
    }

    private static func address(of bytes: Data) -> Int {
        unsafe bytes.withUnsafeBytes { Int(bitPattern: $0.baseAddress) }
    }

    /// Returns the index of a block; -1 if it is none of `blocks`.
    private static func index(of block: BodyMemory.Block, in blocks: [BodyMemory.Block]) -> Int {
        blocks.firstIndex { $0 === block } ?? -1
    }
}

extension BodyBuffer {
    fileprivate mutating func append(_ bytes: Data) {
        unsafe bytes.withUnsafeBytes { unsafe append($0) }
    }
}
