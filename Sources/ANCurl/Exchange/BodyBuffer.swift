// SPDX-License-Identifier: MIT

import ANSystem
package import FoundationEssentials

/// The bytes of a response body that were received and not read yet.
package struct BodyBuffer: Sendable {
    private var data = Data()
    /// The expected number of bytes; 0 if it is unknown.
    private var expected = 0
    /// The memory with the bytes, if their number was known in advance and is large; otherwise they are in `data`.
    private var reserved: (block: BodyMemory.Block, memory: BodyMemory)?
    /// The number of bytes in the reserved memory.
    private var filled = 0

    /// Creates an empty buffer.
    package init() {}

    /// The number of bytes.
    package var count: Int { reserved == nil ? data.count : filled }

    /// Whether there are no bytes.
    package var isEmpty: Bool { count == 0 }

    /// Reserves memory for a body, if the buffer is empty.
    package mutating func reserve(_ count: Int, from memory: BodyMemory) {
        guard isEmpty else { return }
        reserved = memory.block(for: count).map { ($0, memory) }
        expected = count
    }

    /// Appends bytes, also if they are more than reserved.
    package mutating func append(_ bytes: UnsafeRawBufferPointer) {
        if let block = reserved?.block {
            if bytes.count <= block.capacity - filled {
                unsafe UnsafeMutableRawBufferPointer(start: block.start + filled, count: bytes.count)
                    .copyMemory(from: bytes)
                filled += bytes.count
                return
            }
            data = take()
        }
        guard data.isEmpty else { return unsafe data.append(contentsOf: bytes) }
        if bytes.count >= expected { return data = unsafe Data(bytes) }
        data.reserveCapacity(expected)
        unsafe data.append(contentsOf: bytes)
    }

    /// Removes and returns all bytes. Their memory is reused when they are released.
    package mutating func take() -> Data {
        expected = 0
        guard let (block, memory) = reserved else {
            defer { data = Data() }
            return data
        }
        defer { (reserved, filled) = (nil, 0) }
        return unsafe Data(
            bytesNoCopy: block.start, count: filled, deallocator: .custom { _, _ in memory.keep(block) })
    }
}

/// Memory for collected response bodies, which later ones reuse.
///
/// glibc returns freed memory to the system above 128 KiB (`M_TRIM_THRESHOLD` of mallopt(3)), so that each larger body
/// would take new pages, which costs more than receiving it.
package final class BodyMemory: Sendable {
    private let kept = Lock(Kept())

    private struct Kept {
        /// The unused blocks, in the order in which they were returned.
        var blocks: [Block] = []
        var size = 0
    }

    /// A block of memory, freed with its last reference.
    @safe package final class Block: Sendable {
        package nonisolated(unsafe) let start: UnsafeMutableRawPointer
        package let capacity: Int

        fileprivate init(capacity: Int) {
            unsafe start = .allocate(byteCount: capacity, alignment: 16)
            self.capacity = capacity
        }

        deinit {
            unsafe start.deallocate()
        }
    }

    /// Creates an empty store.
    package init() {}

    /// Returns a block with room for `count` bytes, whose content is undefined; `nil` for fewer than 32 KiB, where
    /// malloc(3) is as fast, and for more than 1 MiB, of which too few could be kept.
    package func block(for count: Int) -> Block? {
        guard count >= 32 << 10, count <= 1 << 20 else { return nil }
        let capacity = 1 << (Int.bitWidth - (count - 1).leadingZeroBitCount)
        let block = kept.withLock { kept -> Block? in
            guard let index = kept.blocks.lastIndex(where: { $0.capacity == capacity }) else { return nil }
            kept.size -= capacity
            return kept.blocks.remove(at: index)
        }
        return block ?? Block(capacity: capacity)
    }

    /// Keeps a block for other bodies. Above 4 MiB, blocks that have not been used for the longest time are freed.
    package func keep(_ block: Block) {
        // Freed after the lock is released.
        _ = kept.withLock { kept in
            kept.blocks.append(block)
            kept.size += block.capacity
            var excess = 0
            while kept.size > Self.maximumSize {
                kept.size -= kept.blocks[excess].capacity
                excess += 1
            }
            defer { kept.blocks.removeFirst(excess) }
            return Array(kept.blocks.prefix(excess))
        }
    }

    private static let maximumSize = 4 << 20
}
