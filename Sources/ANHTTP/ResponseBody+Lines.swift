// SPDX-License-Identifier: MIT

package import FoundationEssentials

extension ResponseBody {
    /// The body as lines of UTF-8 text; they end with LF, CR LF or CR, wherever the chunks were cut.
    ///
    /// Invalid UTF-8 becomes U+FFFD. A line longer than 1 MiB fails; see ``lines(maximumLength:)``.
    public var lines: Lines {
        lines(maximumLength: 1 << 20)
    }

    /// The body as lines of at most so many bytes.
    public func lines(maximumLength: Int) -> Lines {
        Lines(body: self, maximumLength: maximumLength)
    }

    /// A body as a sequence of lines.
    public struct Lines: AsyncSequence, Sendable {
        /// A line without its end.
        public typealias Element = String
        /// What the body throws, or ``TransportError/responseTooLarge(_:_:)`` for a line that is too long.
        public typealias Failure = any Error

        fileprivate let body: ResponseBody
        fileprivate let maximumLength: Int

        /// Starts to read the body's lines.
        public func makeAsyncIterator() -> Iterator {
            Iterator(chunks: body.makeAsyncIterator(), splitter: LineSplitter(maximumLength: maximumLength))
        }

        /// Yields lines without their ends; the last one need not have an end.
        public struct Iterator: AsyncIteratorProtocol {
            fileprivate var chunks: ResponseBody.Iterator
            fileprivate var splitter: LineSplitter

            /// The next line; nil after the last one.
            public mutating func next() async throws -> String? {
                while true {
                    if let line = try splitter.nextLine() { return line }
                    guard let chunk = try await chunks.next() else { return splitter.finish() }
                    splitter.append(chunk)
                }
            }
        }
    }
}

/// Cuts bytes into lines: at LF, CR LF or CR, also when a pair is split between two chunks.
package struct LineSplitter {
    private let maximumLength: Int
    private var bytes: [UInt8] = []
    /// Where the first line that was not yielded begins.
    private var start = 0
    /// Up to where the bytes were searched.
    private var searched = 0
    private var skipsLineFeed = false

    /// Creates a splitter for lines of at most so many bytes.
    package init(maximumLength: Int) {
        self.maximumLength = maximumLength
    }

    /// Adds bytes, cut anywhere.
    package mutating func append(_ chunk: Data) {
        if start > 0 {
            bytes.removeSubrange(..<start)
            searched -= start
            start = 0
        }
        bytes.append(contentsOf: chunk)
    }

    /// The next complete line, or nil when more bytes are needed.
    package mutating func nextLine() throws(TransportError) -> String? {
        if skipsLineFeed, start < bytes.count {
            if bytes[start] == UInt8(ascii: "\n") {
                start += 1
                searched = start
            }
            skipsLineFeed = false
        }
        guard
            let end = bytes[searched...].firstIndex(where: { $0 == UInt8(ascii: "\n") || $0 == UInt8(ascii: "\r") })
        else {
            searched = bytes.count
            guard bytes.count - start <= maximumLength else { throw tooLong }
            return nil
        }
        guard end - start <= maximumLength else { throw tooLong }
        defer {
            start = end + 1
            searched = start
            skipsLineFeed = bytes[end] == UInt8(ascii: "\r")
        }
        return String(decoding: bytes[start..<end], as: UTF8.self)
    }

    /// The last line, when it has no end.
    package mutating func finish() -> String? {
        guard start < bytes.count else { return nil }
        defer { start = bytes.count }
        return String(decoding: bytes[start...], as: UTF8.self)
    }

    private var tooLong: TransportError {
        .responseTooLarge(.body(limit: maximumLength), TransferFacts())
    }
}
