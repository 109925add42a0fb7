// SPDX-License-Identifier: MIT

package import FoundationEssentials

/// Brings XML into UTF-8, so that what is checked byte by byte is what the parser behind reads.
package enum XMLText {
    /// The document in UTF-8; as it is when it was so already.
    ///
    /// The encoding is, in this order: what a byte order mark says; `charset`; what zeros among the first bytes say; what the
    /// XML declaration says; UTF-8 (RFC 7303 §3, XML 1.0 appendix F). A document of another encoding loses its declaration,
    /// which would be wrong now.
    ///
    /// - Throws: ``SerializationError/text(_:)``.
    package static func utf8(_ data: Data, charset: String? = nil) throws(SerializationError) -> Data {
        let encoding: TextEncoding
        var claimed: String?
        if let marked = TextEncoding(byteOrderMarkOf: data) {
            encoding = marked
        } else {
            claimed = charset ?? zeroPattern(data) ?? declaredEncoding(data)
            guard let known = TextEncoding(charset: claimed ?? "utf-8") else {
                throw .text(.unknownCharset(claimed ?? "utf-8"))
            }
            encoding = known
        }
        if encoding == .utf8 {
            // The parser would believe a declaration that contradicts what is known by the header.
            guard charset != nil, let declared = declaredEncoding(data), TextEncoding(charset: declared) != .utf8 else {
                return data
            }
            return withoutDeclaration(data)
        }
        guard let text = encoding.decode(data) else {
            throw .text(.invalidBytes(charset: claimed ?? encoding.name))
        }
        return withoutDeclaration(Data(text.utf8))
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

    /// The value of `encoding` in the XML declaration.
    private static func declaredEncoding(_ data: Data) -> String? {
        guard let range = declaration(data) else { return nil }
        let declaration = String(decoding: data[range], as: UTF8.self)
        guard let name = declaration.firstRange(of: "encoding") else { return nil }
        let rest = declaration[name.upperBound...].drop { $0.isWhitespace || $0 == "=" }
        guard let quote = rest.first, quote == "\"" || quote == "'" else { return nil }
        return rest.dropFirst().prefix { $0 != quote }.lowercased()
    }

    private static func withoutDeclaration(_ data: Data) -> Data {
        guard let range = declaration(data) else { return data }
        return data[range.upperBound...]
    }

    /// `<?xml … ?>` at the very start.
    private static func declaration(_ data: Data) -> Range<Data.Index>? {
        guard data.starts(with: Array("<?xml".utf8)), let end = data.prefix(1_024).firstRange(of: Data("?>".utf8))
        else {
            return nil
        }
        return data.startIndex..<end.upperBound
    }
}
