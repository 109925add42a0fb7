// SPDX-License-Identifier: MIT

import ANSystem

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
