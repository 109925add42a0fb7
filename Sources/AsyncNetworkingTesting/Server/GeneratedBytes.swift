// SPDX-License-Identifier: MIT

public import FoundationEssentials

/// An endless pattern of bytes in which byte `i` is `i % 251`, so that lost and repeated pieces are detected.
enum GeneratedBytes {
    /// The period in bytes, a multiple of that of the pattern, so that all pieces of this size are equal.
    static let period = 251 * 256
    /// The first period of the pattern.
    static let piece: [UInt8] = (0..<period).map { UInt8($0 % 251) }

    /// Returns the bytes from an offset, at most `count` and at most up to the end of the period.
    static func slice(from offset: Int64, atMost count: Int64) -> ArraySlice<UInt8> {
        let start = Int(offset % Int64(period))
        return piece[start..<start + Int(min(count, Int64(period - start)))]
    }
}

extension StubServer {
    /// Returns the bytes that ``Reply/Body/generated(_:)`` sends: byte `i` is `i % 251`.
    ///
    /// - Parameter count: The number of bytes; a negative number counts as 0.
    public static func generatedBytes(_ count: Int) -> Data {
        var data = Data(capacity: max(0, count))
        while data.count < count {
            data.append(contentsOf: GeneratedBytes.slice(from: Int64(data.count), atMost: Int64(count - data.count)))
        }
        return data
    }
}
