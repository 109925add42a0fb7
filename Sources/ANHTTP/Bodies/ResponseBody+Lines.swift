// SPDX-License-Identifier: MIT

package import FoundationEssentials

extension ResponseBody {
    /// The body as a sequence of lines of UTF-8 text, which may end with LF, CR LF or CR, of at most 1 MiB each.
    ///
    /// Lines do not include their endings, empty lines are included, and the last line may lack an ending. Invalid
    /// UTF-8 is replaced by U+FFFD, and a byte order mark is kept; the `charset` of the response is ignored. Iteration
    /// throws ``TransportError/Reason/responseTooLarge(_:)`` for a longer line; see ``lines(maximumLength:)`` for other
    /// limits. It also throws the errors of the transfer.
    public var lines: some AsyncSequence<String, any Error> & Sendable {
        lines(maximumLength: 1 << 20)
    }

    /// Returns the body as a sequence of lines of UTF-8 text, which may end with LF, CR LF or CR.
    ///
    /// Lines do not include their endings, empty lines are included, and the last line may lack an ending. Invalid
    /// UTF-8 is replaced by U+FFFD, and a byte order mark is kept; the `charset` of the response is ignored. Iteration
    /// throws the errors of the transfer, and `CancellationError` if the task is cancelled. A second iteration of the
    /// sequence continues where the first one stopped; another sequence does not have the lines that this one has read
    /// ahead.
    ///
    /// - Parameter maximumLength: The maximum length of a line in bytes of the decompressed body, without its line
    ///   ending and without a byte order mark at the beginning of the body. A longer one makes iteration throw ``TransportError/Reason/responseTooLarge(_:)``. With 0, only empty
    ///   lines are accepted, and with a negative number, iteration throws this error at once.
    public func lines(maximumLength: Int) -> some AsyncSequence<String, any Error> & Sendable {
        Lines(reader: BodyReader(self, by: LineSplitter(maximumLength: maximumLength)))
    }

    /// The lines of a response body.
    private struct Lines: AsyncSequence, Sendable {
        fileprivate let reader: BodyReader<LineSplitter>

        /// Creates an iterator that reads the body's lines.
        func makeAsyncIterator() -> Iterator {
            Iterator(reader: reader)
        }

        /// An iterator over lines. The last line may lack a line ending.
        struct Iterator: AsyncIteratorProtocol {
            fileprivate let reader: BodyReader<LineSplitter>

            /// Returns the next line; `nil` after the last one.
            mutating func next() async throws -> String? {
                try await reader.next()
            }
        }
    }
}

/// A parser that splits bytes into lines at LF, CR LF or CR, even if a CR LF is split between two chunks.
package struct LineSplitter: BodyParser {
    private let maximumLength: Int
    /// The limit that errors name.
    private let namedLimit: Int
    /// The bytes that were not discarded yet.
    package private(set) var bytes: [UInt8] = []
    /// The start of the first line that was not returned yet.
    private var start = 0
    /// The end of the bytes already searched for line endings.
    private var searched = 0
    private var skipsLineFeed = false
    private var isFirstLine = true

    /// Creates a splitter for lines of at most `maximumLength` bytes. The limit in errors is `namedLimit`, or the same if
    /// that is `nil`.
    package init(maximumLength: Int, namedLimit: Int? = nil) {
        self.maximumLength = maximumLength
        self.namedLimit = namedLimit ?? maximumLength
    }

    /// Adds a chunk of bytes.
    package mutating func append(_ chunk: Data) {
        if start > 0 {
            bytes.removeSubrange(..<start)
            searched -= start
            start = 0
        }
        bytes.append(contentsOf: chunk)
    }

    /// Returns the next complete line; `nil` if more bytes are needed.
    package mutating func next() throws(TransportError) -> String? {
        try nextRange().map { String(decoding: bytes[$0], as: UTF8.self) }
    }

    /// Returns the range of the next complete line in ``bytes``; `nil` if more bytes are needed.
    package mutating func nextRange() throws(TransportError) -> Range<Int>? {
        if skipsLineFeed, start < bytes.count {
            if bytes[start] == UInt8(ascii: "\n") {
                start += 1
                searched = start
            }
            skipsLineFeed = false
        }
        let end = lineEnd(from: searched)
        guard end - start - markLength(before: end) <= maximumLength else {
            throw TransportError(.responseTooLarge(.body(limit: namedLimit)))
        }
        searched = end
        guard end < bytes.count else { return nil }
        let line = start..<end
        isFirstLine = false
        start = end + 1
        searched = start
        skipsLineFeed = bytes[end] == UInt8(ascii: "\r")
        return line
    }

    /// Returns the length of a byte order mark in front of the first line, which does not count, or of the part of one
    /// that has arrived; 0 for other lines.
    private func markLength(before end: Int) -> Int {
        guard isFirstLine else { return 0 }
        let found = bytes[start..<end].prefix(Self.mark.count)
        // Less than a mark may be the beginning of one only at the end of the bytes.
        let isMark = Self.mark.starts(with: found) && (found.count == Self.mark.count || end == bytes.count)
        return isMark ? found.count : 0
    }

    /// The byte order mark U+FEFF in UTF-8.
    package static let mark: [UInt8] = [0xEF, 0xBB, 0xBF]

    /// Returns the position of the first CR or LF; the end of the bytes without one.
    private func lineEnd(from first: Int) -> Int {
        let span = bytes.span
        var index = first
        // Minima of blocks have no branch for each byte, so that the compiler vectorizes them.
        while span.count - index >= 32 {
            let block = span.extracting(index..<index + 32)
            var least = UInt8.max
            for offset in 0..<32 {
                least = min(least, block[offset] ^ UInt8(ascii: "\n"), block[offset] ^ UInt8(ascii: "\r"))
            }
            if least == 0 { break }
            index += 32
        }
        // In a word, a byte equal to one of the two has a zero in one of the differences, whose highest bit is then set.
        while span.count - index >= 8 {
            let block = span.extracting(index..<index + 8)
            var word: UInt64 = 0
            for offset in 0..<8 { word |= UInt64(block[offset]) << UInt64(8 * offset) }
            let zeros = Self.zeros(in: word ^ 0x0A0A_0A0A_0A0A_0A0A) | Self.zeros(in: word ^ 0x0D0D_0D0D_0D0D_0D0D)
            if zeros != 0 { return index + zeros.trailingZeroBitCount / 8 }
            index += 8
        }
        while index < span.count, span[index] != UInt8(ascii: "\n"), span[index] != UInt8(ascii: "\r") { index += 1 }
        return index
    }

    /// Returns a number whose lowest set bit is the highest bit of the first zero byte; 0 if no byte is zero.
    private static func zeros(in word: UInt64) -> UInt64 {
        (word &- 0x0101_0101_0101_0101) & ~word & 0x8080_8080_8080_8080
    }

    /// Returns the last line if it has no line ending; `nil` if no bytes are left.
    package mutating func finish() -> String? {
        guard start < bytes.count else { return nil }
        defer { start = bytes.count }
        return String(decoding: bytes[start...], as: UTF8.self)
    }
}
