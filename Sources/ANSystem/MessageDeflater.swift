// SPDX-License-Identifier: MIT

import Glibc

/// A compressor of messages that each end with an empty block, whose last four bytes are not sent (RFC 7692 §7.2.1).
package final class MessageDeflater: Sendable {
    private let resets: Bool
    private let lock = Lock(false)
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

/// A decompressor of messages that each end a raw deflate stream with an empty block, whose last four bytes are not sent
/// (RFC 7692 §7.2.2).
package final class MessageInflater: Sendable {
    private let resets: Bool
    private let lock = Lock(false)
    /// Guarded by ``lock``.
    private nonisolated(unsafe) var inflater: Inflater

    /// Creates a decompressor.
    ///
    /// - Parameter resets: Whether each message is compressed on its own.
    /// - Throws: `ENOMEM` if memory is exhausted.
    package init(resets: Bool) throws(SystemError) {
        self.resets = resets
        unsafe inflater = try Inflater(format: .deflate)
    }

    /// Inflates a fragment of a message and appends the result to `message`, up to one byte more than `limit`.
    ///
    /// - Parameter isLast: Whether the message ends with the fragment.
    /// - Throws: `EBADMSG` for malformed input and a message that is cut off, `ENOMEM` if memory is exhausted.
    package func inflate(
        _ fragment: [UInt8], isLast: Bool, into message: inout [UInt8], upTo limit: Int
    ) throws(SystemError) {
        try lock.withLock { _ throws(SystemError) in
            try run(fragment, into: &message, upTo: limit)
            guard isLast, message.count <= limit else { return }
            if unsafe !inflater.isComplete {
                try run([0x00, 0x00, 0xFF, 0xFF], into: &message, upTo: limit)
                // In a message that was cut off, these bytes are not a block.
                guard unsafe message.count > limit || inflater.isBetweenBlocks else {
                    throw SystemError(call: "inflate", code: EBADMSG)
                }
            }
            if resets { try unsafe inflater.reset() }
        }
    }

    private func run(_ bytes: [UInt8], into message: inout [UInt8], upTo limit: Int) throws(SystemError) {
        var consumed = 0
        var buffer: [UInt8] = []
        while message.count <= limit {
            // A message may end its stream, and the next one then begins another (RFC 7692 §7.2.3.5).
            if unsafe inflater.isComplete, consumed < bytes.count { try unsafe inflater.reset() }
            // The limit may be the largest integer.
            let room = min(Self.bufferSize - 1, limit - message.count) + 1
            if buffer.count != room { buffer = [UInt8](repeating: 0, count: room) }
            var output = buffer.mutableSpan
            var space = unsafe output.mutableBytes
            let step = try unsafe inflater.step(bytes.span.bytes.extracting(droppingFirst: consumed), into: &space)
            message.append(contentsOf: buffer[..<step.produced])
            consumed += step.consumed
            guard step.produced == room || consumed < bytes.count && step.consumed + step.produced > 0 else { return }
        }
    }

    private static let bufferSize = 16 << 10
}
