// SPDX-License-Identifier: MIT

import ANSystem
package import FoundationEssentials

extension TextEncoding {
    /// Returns the decoded text without a byte order mark; `nil` if the bytes are invalid.
    package func decode(_ bytes: Data) -> String? {
        switch method {
        case .utf8:
            return String(validating: bytes, as: UTF8.self).map(Self.withoutMark)
        case .utf16:
            return Self.utf16(bytes, isLittleEndian: bytes.starts(with: [0xFF, 0xFE]))
        case .utf16LittleEndian:
            return Self.utf16(bytes, isLittleEndian: true)
        case .utf16BigEndian:
            return Self.utf16(bytes, isLittleEndian: false)
        case .utf32:
            return Self.utf32(bytes, isLittleEndian: bytes.starts(with: [0xFF, 0xFE, 0, 0]))
        case .utf32LittleEndian:
            return Self.utf32(bytes, isLittleEndian: true)
        case .utf32BigEndian:
            return Self.utf32(bytes, isLittleEndian: false)
        case .ascii:
            return bytes.allSatisfy { $0 < 0x80 } ? String(decoding: bytes, as: UTF8.self) : nil
        case .latin1:
            return Self.singleBytes(bytes) { UInt32($0) }
        case .windows1252:
            return Self.singleBytes(bytes) { 0x80...0x9F ~= $0 ? Self.windows1252Table[Int($0) - 0x80] : UInt32($0) }
        case .legacy(let charset):
            return LegacyDecoder.decode(bytes, charset)
        case .system(let charset):
            do throws(SystemError) {
                var converter = try CharsetConverter(from: charset)
                return Self.withoutMark(String(decoding: try converter.utf8(of: bytes.bytes), as: UTF8.self))
            } catch {
                return nil
            }
        }
    }

    private static func utf16(_ bytes: Data, isLittleEndian: Bool) -> String? {
        guard let units = units(of: bytes, width: 2, isLittleEndian: isLittleEndian) else { return nil }
        return String(validating: units.lazy.map { UInt16(truncatingIfNeeded: $0) }, as: UTF16.self).map(withoutMark)
    }

    private static func utf32(_ bytes: Data, isLittleEndian: Bool) -> String? {
        guard let units = units(of: bytes, width: 4, isLittleEndian: isLittleEndian) else { return nil }
        return String(validating: units, as: UTF32.self).map(withoutMark)
    }

    /// Returns the bytes as integers of `width` bytes; `nil` if their number is not a multiple of it.
    private static func units(of bytes: Data, width: Int, isLittleEndian: Bool) -> [UInt32]? {
        guard bytes.count.isMultiple(of: width) else { return nil }
        var units: [UInt32] = []
        units.reserveCapacity(bytes.count / width)
        var unit: UInt32 = 0
        var shift = 0
        for byte in bytes {
            unit = isLittleEndian ? unit | UInt32(byte) << (8 * shift) : unit << 8 | UInt32(byte)
            shift += 1
            if shift == width {
                units.append(unit)
                unit = 0
                shift = 0
            }
        }
        return units
    }

    private static func singleBytes(_ bytes: Data, _ scalar: (UInt8) -> UInt32) -> String? {
        String(validating: bytes.map(scalar), as: UTF32.self)
    }

    private static func withoutMark(_ text: String) -> String {
        text.unicodeScalars.first == "\u{FEFF}" ? String(text.unicodeScalars.dropFirst()) : text
    }

    /// The characters of Windows-1252 at 0x80 to 0x9F.
    private static let windows1252Table: [UInt32] = [
        0x20AC, 0x81, 0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021,
        0x02C6, 0x2030, 0x0160, 0x2039, 0x0152, 0x8D, 0x017D, 0x8F,
        0x90, 0x2018, 0x2019, 0x201C, 0x201D, 0x2022, 0x2013, 0x2014,
        0x02DC, 0x2122, 0x0161, 0x203A, 0x0153, 0x9D, 0x017E, 0x0178,
    ]
}
