// SPDX-License-Identifier: MIT

package import FoundationEssentials

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

/// Converts XML to UTF-8, so that checks of its bytes see the same document as the parser.
package enum XMLText {
    /// Returns the document in UTF-8, without a byte order mark and without the declaration of another encoding.
    ///
    /// The encoding is determined, in this order, by a byte order mark, `charset`, zeros among the first bytes, and the
    /// XML declaration; otherwise it is UTF-8 (RFC 7303 §3, XML 1.0 appendix F). If the parser could nevertheless
    /// detect another encoding, a declaration is inserted before the document.
    ///
    /// - Throws: ``SerializationError/text(_:)`` if the encoding is unknown or the document is invalid in it.
    package static func utf8(_ data: Data, charset: String? = nil) throws(SerializationError) -> Data {
        let encoding: TextEncoding
        var claimed: String?
        if let marked = TextEncoding(byteOrderMarkOf: data) {
            encoding = marked
        } else {
            claimed = charset ?? TextEncoding(zerosOf: data)?.name ?? XMLDeclaration(data)?.encoding
            guard let known = TextEncoding(charset: claimed ?? "utf-8") else {
                throw .text(.unknownCharset(claimed ?? "utf-8"))
            }
            encoding = known
        }
        guard encoding != .utf8 else { return declaredAsUTF8(data) }
        guard let text = encoding.decode(data) else {
            throw .text(.invalidBytes(charset: claimed ?? encoding.name))
        }
        return declaredAsUTF8(Data(text.utf8))
    }

    /// Returns a UTF-8 document that no parser takes for another encoding.
    ///
    /// libxml2 detects encodings by byte order marks, zeros among the first bytes, and the first letters in EBCDIC. It
    /// also follows a declaration that contradicts the mark or is malformed.
    private static func declaredAsUTF8(_ data: Data) -> Data {
        let mark: [UInt8] = [0xEF, 0xBB, 0xBF]
        var document = data
        // After a second mark, a declaration would still be followed.
        while document.starts(with: mark) { document = document.dropFirst(mark.count) }
        guard let declaration = XMLDeclaration(document) else {
            let isPlain = document.prefix(3).allSatisfy { 1..<0x80 ~= $0 }
            return isPlain ? document : plainDeclaration + document
        }
        // The parser rejects the second declaration with an error.
        guard declaration.isWellFormed else { return plainDeclaration + document }
        guard let range = declaration.encodingRange, declaration.encoding != "utf-8" else { return document }
        return document[..<range.lowerBound] + document[range.upperBound...]
    }

    private static let plainDeclaration = Data("<?xml version=\"1.0\"?>".utf8)
}
