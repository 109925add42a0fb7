// SPDX-License-Identifier: MIT

/// A compressor of messages that each end with an empty block, whose last four bytes are not sent (RFC 7692 §7.2.1).
package final class MessageDeflater: Sendable {
    private let resets: Bool
    private let lock = Lock(())
    /// Guarded by ``lock``.
    private nonisolated(unsafe) var deflater: Deflater

    /// Creates a compressor.
    ///
    /// - Parameter resets: Whether each message is compressed on its own.
    /// - Throws: `ENOMEM` if memory is exhausted.
    package init(resets: Bool) throws(SystemError) {
        self.resets = resets
        unsafe deflater = try Deflater(rawAtLevel: 6)
    }

    /// Returns a message, which must not be empty, in compressed form.
    ///
    /// - Throws: `ENOMEM` if memory is exhausted.
    package func deflate(_ message: [UInt8]) throws(SystemError) -> [UInt8] {
        try lock.withLock { _ throws(SystemError) in
            var result: [UInt8] = []
            var consumed = 0
            var buffer = [UInt8](repeating: 0, count: Self.bufferSize)
            while true {
                var output = buffer.mutableSpan
                var space = unsafe output.mutableBytes
                let step = try unsafe deflater.flush(
                    message.span.bytes.extracting(droppingFirst: consumed), into: &space)
                result += buffer[..<step.produced]
                consumed += step.consumed
                guard step.produced == Self.bufferSize else { break }
            }
            if resets { unsafe deflater = try Deflater(rawAtLevel: 6) }
            return result.dropLast(4)
        }
    }

    private static let bufferSize = 16 << 10
}
