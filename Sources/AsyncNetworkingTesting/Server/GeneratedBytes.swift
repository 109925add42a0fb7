// SPDX-License-Identifier: MIT

public import FoundationEssentials

/// A fixed, endless pattern of bytes: byte `i` is `i % 251`, so a piece that is lost or repeated shows.
enum GeneratedBytes {
    /// The pattern repeats after so many bytes, so each piece of this size is the same.
    static let period = 251 * 256
    /// The first bytes of the pattern.
    static let piece: [UInt8] = (0..<period).map { UInt8($0 % 251) }

    /// The bytes from `offset` on, at most `count` and at most up to the end of the period.
    static func slice(from offset: Int64, atMost count: Int64) -> ArraySlice<UInt8> {
        let start = Int(offset % Int64(period))
        return piece[start..<start + Int(min(count, Int64(period - start)))]
    }
}

extension StubServer {
    /// The bytes that ``Reply/Body/generated(_:)`` sends: byte `i` is `i % 251`.
    public static func generatedBytes(_ count: Int) -> Data {
        var data = Data(capacity: max(0, count))
        while data.count < count {
            data.append(contentsOf: GeneratedBytes.slice(from: Int64(data.count), atMost: Int64(count - data.count)))
        }
        return data
    }
}
