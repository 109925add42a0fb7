// SPDX-License-Identifier: MIT

package import FoundationEssentials

/// A parser for text with binary blocks between lines such as `-----BEGIN CERTIFICATE-----`. See RFC 7468.
package enum PEM {
    /// A block of PEM text.
    package struct Block: Equatable {
        /// The label of the block, such as `CERTIFICATE`.
        package let label: String
        /// The decoded content.
        package let bytes: Data
    }

    /// Returns the complete, decodable blocks in order; text around them is ignored.
    package static func blocks(in text: Data) -> [Block] {
        var blocks: [Block] = []
        var label: String?
        var digits = Data()
        for line in text.split(whereSeparator: { $0 == UInt8(ascii: "\n") || $0 == UInt8(ascii: "\r") }) {
            if let word = word(of: line, after: "-----BEGIN ") {
                label = word
                digits = Data()
            } else if let word = word(of: line, after: "-----END ") {
                if word == label, let bytes = Data(base64Encoded: digits, options: .ignoreUnknownCharacters) {
                    blocks.append(Block(label: word, bytes: bytes))
                }
                label = nil
            } else if label != nil {
                digits += line
            }
        }
        return blocks
    }

    private static func word(of line: Data, after start: String) -> String? {
        let text = String(decoding: line, as: UTF8.self).trimmingPrefix(start)
        guard line.starts(with: start.utf8), let end = text.firstRange(of: "-----") else { return nil }
        return String(text[..<end.lowerBound])
    }

    /// Returns the certificates of a PEM text in DER, or the bytes themselves if they are a DER certificate.
    package static func certificates(in bytes: Data) -> [Data] {
        if isDER(bytes) { return [bytes] }
        return blocks(in: bytes).filter { $0.label == "CERTIFICATE" || $0.label == "X509 CERTIFICATE" }.map(\.bytes)
    }

    /// Returns the certificate revocation lists of a PEM text in DER, or the bytes themselves if they are a DER list.
    package static func revocationLists(in bytes: Data) -> [Data] {
        if isDER(bytes) { return [bytes] }
        return blocks(in: bytes).filter { $0.label == "X509 CRL" }.map(\.bytes)
    }

    /// Returns whether the bytes begin with an ASN.1 sequence of 128 bytes or more, as DER certificates and lists do:
    /// 0x30, then a length of two or more bytes.
    private static func isDER(_ bytes: Data) -> Bool {
        bytes.count > 4 && bytes[bytes.startIndex] == 0x30 && bytes[bytes.startIndex + 1] > 0x80
    }
}
