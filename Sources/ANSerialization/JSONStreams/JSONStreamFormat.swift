// SPDX-License-Identifier: MIT

import FoundationEssentials

/// A format for several JSON texts one after the other.
enum JSONStreamFormat: Sendable {
    /// A text on each line (JSON Lines, NDJSON).
    case lines
    /// A record separator before each text, and LF after it (RFC 7464).
    case sequence

    /// The byte that separates texts: LF after a line, or RS before a text.
    var separator: UInt8 {
        switch self {
        case .lines: UInt8(ascii: "\n")
        case .sequence: 0x1E
        }
    }

    /// Returns an encoded value in the format.
    func framed(_ json: Data) -> Data {
        switch self {
        case .lines:
            // JSON has line breaks between values only, where they can be omitted.
            let line = json.filter { $0 != UInt8(ascii: "\n") && $0 != UInt8(ascii: "\r") }
            return line + [UInt8(ascii: "\n")]
        case .sequence:
            return [0x1E] + json + [UInt8(ascii: "\n")]
        }
    }
}
