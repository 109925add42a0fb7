// SPDX-License-Identifier: MIT

package import FoundationEssentials

/// Text that holds binary blocks between lines such as `-----BEGIN CERTIFICATE-----`. See RFC 7468.
package enum PEM {
    /// One block.
    package struct Block: Equatable {
        /// The word of its first line, such as `CERTIFICATE`.
        package let label: String
        /// What it holds.
        package let bytes: Data
    }

    /// The blocks that are complete and can be decoded, in their order; text around them is skipped.
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

    /// The certificates, in DER, of a PEM text, or of bytes that are one certificate in DER.
    package static func certificates(in bytes: Data) -> [Data] {
        if isDER(bytes) { return [bytes] }
        return blocks(in: bytes).filter { $0.label == "CERTIFICATE" || $0.label == "X509 CERTIFICATE" }.map(\.bytes)
    }

    /// The lists of revoked certificates, in DER, of a PEM text, or of bytes that are one list in DER.
    package static func revocationLists(in bytes: Data) -> [Data] {
        if isDER(bytes) { return [bytes] }
        return blocks(in: bytes).filter { $0.label == "X509 CRL" }.map(\.bytes)
    }

    /// Whether the bytes are one long sequence of ASN.1, as certificates and lists are: 0x30, then its length in two bytes
    /// or more.
    private static func isDER(_ bytes: Data) -> Bool {
        bytes.count > 4 && bytes[bytes.startIndex] == 0x30 && bytes[bytes.startIndex + 1] > 0x80
    }
}
