// SPDX-License-Identifier: MIT

package import FoundationEssentials

/// The bytes of a response body that were received and not read yet.
package struct BodyBuffer: Sendable {
    private var data = Data()
    /// The memory with the bytes, if its size was known in advance; otherwise they are in `data`.
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
        if reserved == nil { data.reserveCapacity(count) }
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
        unsafe data.append(contentsOf: bytes)
    }

    /// Removes and returns all bytes. Their memory is reused when they are released.
    package mutating func take() -> Data {
        guard let (block, memory) = reserved else {
            defer { data = Data() }
            return data
        }
        defer { (reserved, filled) = (nil, 0) }
        return unsafe Data(
            bytesNoCopy: block.start, count: filled, deallocator: .custom { _, _ in memory.keep(block) })
    }
}
