// SPDX-License-Identifier: MIT

import FoundationEssentials

/// The name of a file in a cache's directory, which contains what the index needs to know about it.
///
/// | file | name |
/// |---|---|
/// | entry | `KEY-ID-BODY-SIZE-LENGTH.entry`: the key, the entry, its body file or 0, the size of both in bytes |
/// | body | `KEY-BODY.body` |
package struct EntryName: Hashable, Sendable {
    let key: CacheKey
    /// The number of the entry; 0 for a body.
    let id: UInt64
    /// The number of the body file; 0 if the body is in the entry's file.
    let body: UInt64
    /// The size of the entry's file and its body file in bytes; 0 for a body.
    let size: Int64

    init(key: CacheKey, id: UInt64, body: UInt64, size: Int64) {
        self.key = key
        self.id = id
        self.body = body
        self.size = size
    }

    /// The name of the entry's file.
    package var entryFile: String {
        let numbers = [key.high, key.low, id, body, UInt64(clamping: size)].map(Self.hex)
        return "\(numbers[0])\(numbers[1])-\(numbers[2...].joined(separator: "-"))" + Self.entrySuffix
    }

    /// The name of the body file; `nil` if the body is in the entry's file.
    package var bodyFile: String? {
        body == 0 ? nil : "\(Self.hex(key.high))\(Self.hex(key.low))-\(Self.hex(body))" + Self.bodySuffix
    }

    /// Parses the name of an entry or a body; `nil` for another file.
    package init?(_ name: String) {
        var words: [UInt64] = []
        var word: UInt64 = 0
        var digits = 0
        var rest = name.utf8[...]
        while let byte = rest.popFirst() {
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"): word = word << 4 | UInt64(byte - UInt8(ascii: "0"))
            case UInt8(ascii: "a")...UInt8(ascii: "f"): word = word << 4 | UInt64(byte - UInt8(ascii: "a") + 10)
            case UInt8(ascii: "-") where digits == 0: continue
            case UInt8(ascii: ".") where digits == 0:
                let isEntry = words.count == 5 && rest.elementsEqual(Self.entrySuffix.utf8.dropFirst())
                let isBody = words.count == 3 && rest.elementsEqual(Self.bodySuffix.utf8.dropFirst())
                guard isEntry || isBody, isBody || words[2] != 0, let size = Int64(exactly: isEntry ? words[4] : 0),
                    size <= Self.greatestSize
                else { return nil }
                self.init(
                    key: CacheKey(high: words[0], low: words[1]), id: isEntry ? words[2] : 0,
                    body: isEntry ? words[3] : words[2], size: size)
                return
            default: return nil
            }
            digits += 1
            if digits == 16 {
                words.append(word)
                (word, digits) = (0, 0)
            }
        }
        return nil
    }

    private static func hex(_ number: UInt64) -> String {
        let digits = String(number, radix: 16)
        return String(repeating: "0", count: 16 - digits.utf8.count) + digits
    }

    /// The greatest size of an entry, 256 GiB. A sum of sizes cannot overflow.
    static let greatestSize: Int64 = 1 << 38
    private static let entrySuffix = ".entry"
    private static let bodySuffix = ".body"
}
