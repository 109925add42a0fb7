// SPDX-License-Identifier: MIT

/// A growing buffer of bytes; appending single bytes is faster than with an array.
struct ByteBuffer {
    private var storage: [UInt8] = []
    private(set) var count = 0

    init(capacity: Int = 0) {
        storage = [UInt8](repeating: 0, count: capacity)
    }

    /// The bytes appended so far.
    var bytes: ArraySlice<UInt8> { storage[..<count] }

    /// The bytes as a string; they must be valid UTF-8.
    var text: String { String(decoding: bytes, as: UTF8.self) }

    mutating func append(_ byte: UInt8) {
        reserve(1)
        storage[count] = byte
        count += 1
    }

    mutating func append(_ text: String) {
        let source = text.utf8Span.span
        reserve(source.count)
        let start = count
        var target = storage.mutableSpan
        for index in source.indices { target[start + index] = source[index] }
        count += source.count
    }

    mutating func append(_ other: borrowing ByteBuffer) {
        reserve(other.count)
        let source = other.storage.span
        let (start, length) = (count, other.count)
        var target = storage.mutableSpan
        for index in 0..<length { target[start + index] = source[index] }
        count += length
    }

    /// Appends text, replacing bytes that are not allowed by `%XX`, and spaces by `+` if `spaceIsPlus`.
    mutating func append(
        escaping text: String, allowed: URLEncodedFormEncoder.AllowedCharacters, spaceIsPlus: Bool
    ) {
        let source = text.utf8Span.span
        reserve(3 * source.count)
        var end = count
        var target = storage.mutableSpan
        for index in source.indices {
            let byte = source[index]
            if allowed.contains(byte) {
                target[end] = byte
                end += 1
            } else if byte == UInt8(ascii: " "), spaceIsPlus {
                target[end] = UInt8(ascii: "+")
                end += 1
            } else {
                target[end] = UInt8(ascii: "%")
                target[end + 1] = Self.hexDigit(byte >> 4)
                target[end + 2] = Self.hexDigit(byte & 15)
                end += 3
            }
        }
        count = end
    }

    /// Removes all bytes after the first `length`.
    mutating func truncate(to length: Int) {
        count = min(max(length, 0), count)
    }

    private mutating func reserve(_ room: Int) {
        guard storage.count - count < room else { return }
        storage.append(contentsOf: repeatElement(0, count: max(storage.count, room, 64)))
    }

    private static func hexDigit(_ value: UInt8) -> UInt8 {
        value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "A") + value - 10
    }
}
