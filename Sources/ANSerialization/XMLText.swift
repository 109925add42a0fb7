// SPDX-License-Identifier: MIT

package import FoundationEssentials

/// Brings XML into UTF-8, so that what is checked byte by byte is what the parser behind reads.
package enum XMLText {
    /// The document in UTF-8, without a byte order mark and without the name of another encoding in its XML declaration.
    ///
    /// The encoding is, in this order: what a byte order mark says; `charset`; what zeros among the first bytes say; what the
    /// XML declaration says; UTF-8 (RFC 7303 §3, XML 1.0 appendix F).
    ///
    /// A document that its parser could nevertheless take for one of another encoding gets a declaration before it.
    ///
    /// - Throws: ``SerializationError/text(_:)``.
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

    /// The encoding in whose units `<` or `<?` is written with zeros.
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

    /// A document of UTF-8 that no parser takes for anything else.
    ///
    /// libxml2 obeys byte order marks, zeros among the first bytes, the first letters in EBCDIC, and a declaration even after
    /// a mark that contradicts it, or when it is not well-formed.
    private static func declaredAsUTF8(_ data: Data) -> Data {
        let mark: [UInt8] = [0xEF, 0xBB, 0xBF]
        var document = data
        // After a second mark, a declaration would still be obeyed.
        while document.starts(with: mark) { document = document.dropFirst(mark.count) }
        guard let declaration = XMLDeclaration(document) else {
            let isPlain = document.prefix(3).allSatisfy { 1..<0x80 ~= $0 }
            return isPlain ? document : plainDeclaration + document
        }
        // The parser finds the second declaration, and says so.
        guard declaration.isWellFormed else { return plainDeclaration + document }
        guard let range = declaration.encodingRange, declaration.encoding != "utf-8" else { return document }
        return document[..<range.lowerBound] + document[range.upperBound...]
    }

    private static let plainDeclaration = Data("<?xml version=\"1.0\"?>".utf8)
}
