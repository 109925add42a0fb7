// SPDX-License-Identifier: MIT

/// The bytes of an HTTP/1.1 response that libcurl left in the socket.
package struct UnreadResponse {
    private let bytes: ArraySlice<UInt8>
    private var position: Int

    /// The way in which the end of a body is determined (RFC 9112 §6.3).
    package enum Framing: Equatable {
        /// By its length in bytes, which is 0 if there is no body.
        case length(Int64)
        /// By the chunked transfer coding (RFC 9112 §7.1).
        case chunked
        /// By the end of the connection.
        case close
    }

    package init(_ bytes: [UInt8]) {
        self.bytes = bytes[...]
        position = 0
    }

    /// Returns the next line with its terminator; `nil` if it is incomplete.
    package mutating func nextLine() -> ArraySlice<UInt8>? {
        guard let end = bytes[position...].firstIndex(of: UInt8(ascii: "\n")) else { return nil }
        defer { position = end + 1 }
        return bytes[position...end]
    }

    /// Returns the body, which follows the head, as far as it was received, and whether it is complete. Trailers follow
    /// a chunked body.
    ///
    /// A body that the end of the connection delimits is not complete: after a failure to send, the system does not
    /// tell an orderly end from a reset.
    package mutating func nextBody(_ framing: Framing) -> (bytes: [UInt8], isComplete: Bool) {
        switch framing {
        case .length(let length):
            let part = take(length)
            return (Array(part), Int64(part.count) == length)
        case .chunked:
            var body: [UInt8] = []
            while let line = nextLine(), let size = Self.size(line) {
                guard size > 0 else { return (body, true) }
                let part = take(size)
                body += part
                guard Int64(part.count) == size, let end = nextLine(), Self.isEmpty(end) else { break }
            }
            return (body, false)
        case .close:
            return (Array(take(.max)), false)
        }
    }

    private mutating func take(_ count: Int64) -> ArraySlice<UInt8> {
        let part = bytes[position...].prefix(Int(clamping: count))
        position = part.endIndex
        return part
    }

    /// Returns the size in a chunk's first line; `nil` if it is invalid. Extensions are ignored.
    private static func size(_ line: ArraySlice<UInt8>) -> Int64? {
        let digits = line.prefix { $0 != UInt8(ascii: ";") && $0 > UInt8(ascii: " ") }
        guard digits.first != UInt8(ascii: "+"), digits.first != UInt8(ascii: "-") else { return nil }
        return Int64(String(decoding: digits, as: UTF8.self), radix: 16)
    }

    private static func isEmpty(_ line: ArraySlice<UInt8>) -> Bool {
        line.elementsEqual("\r\n".utf8) || line.elementsEqual("\n".utf8)
    }
}
