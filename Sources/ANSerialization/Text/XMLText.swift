// SPDX-License-Identifier: MIT

package import FoundationEssentials

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
            claimed = charset ?? zeroPattern(data) ?? XMLDeclaration(data)?.encoding
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

    /// Returns the encoding in which `<` or `<?` is written with the zeros found; `nil` if there are no zeros.
    private static func zeroPattern(_ data: Data) -> String? {
        let start = Array(data.prefix(4))
        guard start.count == 4 else { return nil }
        return switch (start[0], start[1], start[2], start[3]) {
        case (0, 0, 0, _): "utf-32be"
        case (_, 0, 0, 0): "utf-32le"
        case (0, _, _, _): "utf-16be"
        case (_, 0, _, _): "utf-16le"
        default: nil
        }
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
