// SPDX-License-Identifier: MIT

/// A check of UTF-8 that arrives in pieces, which fails at the first byte that cannot be part of valid text (Unicode
/// §3.9, table 3-7).
package struct UTF8Check: Sendable {
    /// The number of continuation bytes that a character still needs.
    private var missing = 0
    /// The range of the next continuation byte.
    private var range: ClosedRange<UInt8> = 0x80...0xBF

    package init() {}

    /// Whether the text may end here.
    package var isComplete: Bool { missing == 0 }

    /// Checks more bytes; returns `false` if the text is invalid.
    package mutating func check(_ bytes: [UInt8]) -> Bool {
        for byte in bytes {
            guard missing == 0 else {
                guard range.contains(byte) else { return false }
                missing -= 1
                range = 0x80...0xBF
                continue
            }
            switch byte {
            case 0x00...0x7F: break
            case 0xC2...0xDF: missing = 1
            case 0xE0: (missing, range) = (2, 0xA0...0xBF)
            case 0xE1...0xEC, 0xEE...0xEF: missing = 2
            case 0xED: (missing, range) = (2, 0x80...0x9F)
            case 0xF0: (missing, range) = (3, 0x90...0xBF)
            case 0xF1...0xF3: missing = 3
            case 0xF4: (missing, range) = (3, 0x80...0x8F)
            default: return false
            }
        }
        return true
    }
}
