// SPDX-License-Identifier: MIT

import FoundationEssentials

/// The declaration `<?xml version="1.0" encoding="…"?>` at the start of a document whose markup is ASCII (XML 1.0
/// §2.8).
struct XMLDeclaration {
    /// The value of `encoding` in lower case; `nil` if absent.
    private(set) var encoding: String?
    /// The range of the attribute `encoding`, including the whitespace before it; `nil` if absent.
    private(set) var encodingRange: Range<Data.Index>?
    /// Whether the declaration is well-formed, with at most one encoding.
    private(set) var isWellFormed = false

    private let data: Data
    private var position: Data.Index

    /// Parses the declaration; `nil` if the document does not begin with one.
    init?(_ data: Data) {
        self.data = data
        guard data.starts(with: "<?xml".utf8) else { return nil }
        position = data.startIndex + 5
        guard skipBlanks() else { return nil }
        position = data.startIndex + 5
        isWellFormed = readAttributes()
        if !isWellFormed { encoding = nil }
    }

    private mutating func readAttributes() -> Bool {
        while true {
            let start = position
            let hasBlanks = skipBlanks()
            if take("?") { return take(">") }
            guard hasBlanks, let name = readToken() else { return false }
            skipBlanks()
            guard take("=") else { return false }
            skipBlanks()
            let quote: Unicode.Scalar = take("\"") ? "\"" : "'"
            guard quote == "\"" || take("'"), let value = readToken(), take(quote) else { return false }
            guard name == "encoding" else { continue }
            guard encoding == nil else { return false }
            encoding = value.lowercased()
            encodingRange = start..<position
        }
    }

    /// Returns the next name, version or encoding; `nil` if it is empty.
    private mutating func readToken() -> String? {
        let token = data[position...].prefix { byte in
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "-"),
                UInt8(ascii: ":"):
                true
            default: false
            }
        }
        position = token.endIndex
        return token.isEmpty ? nil : String(decoding: token, as: UTF8.self)
    }

    private mutating func take(_ scalar: Unicode.Scalar) -> Bool {
        guard position < data.endIndex, data[position] == UInt8(ascii: scalar) else { return false }
        position += 1
        return true
    }

    /// Skips whitespace, and returns whether there was any.
    @discardableResult
    private mutating func skipBlanks() -> Bool {
        let start = position
        while take(" ") || take("\t") || take("\n") || take("\r") {}
        return position > start
    }
}
