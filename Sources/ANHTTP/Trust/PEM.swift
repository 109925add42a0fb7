// SPDX-License-Identifier: MIT

package import FoundationEssentials

/// A parser for text with binary blocks between lines such as `-----BEGIN CERTIFICATE-----`. See RFC 7468.
///
/// A file is read completely or not at all: a revocation list or pin that was skipped because of a damaged line would
/// be missing without notice.
package enum PEM {
    /// A block of PEM text.
    package struct Block: Equatable {
        /// The label of the block, such as `CERTIFICATE`.
        package let label: String
        /// The decoded content; `nil` if header fields precede it (RFC 1421 §4.6), with which it may be encrypted.
        package let bytes: Data?
    }

    /// The error of a file that is damaged, incomplete, or neither text nor DER.
    package struct Malformed: Error, CustomStringConvertible {
        package let description = "it is damaged or incomplete"
    }

    /// Returns the blocks of a text in order; lines of other text around them are ignored.
    package static func blocks(in text: Data) throws(Malformed) -> [Block] {
        var blocks: [Block] = []
        var label: String?
        var digits = Data()
        var hasFields = false
        for line in text.split(whereSeparator: { $0 == UInt8(ascii: "\n") || $0 == UInt8(ascii: "\r") }) {
            let line = String(decoding: line, as: UTF8.self)
            guard !line.utf8.contains(where: { $0 < 0x20 && $0 != UInt8(ascii: "\t") }) else { throw Malformed() }
            if let word = word(of: line, after: "-----BEGIN ") {
                guard label == nil else { throw Malformed() }
                label = word
                (digits, hasFields) = (Data(), false)
            } else if let word = word(of: line, after: "-----END ") {
                let bytes = hasFields ? nil : Data(base64Encoded: digits)
                guard word == label, hasFields || bytes != nil else { throw Malformed() }
                blocks.append(Block(label: word, bytes: bytes))
                label = nil
            } else if line.contains("--BEGIN ") || line.contains("--END ") {
                // An indented boundary, or one that follows other text, such as the end of a file without a line break.
                throw Malformed()
            } else if label != nil {
                hasFields = hasFields || line.contains(":")
                digits += line.trimmingBlanks.utf8
            }
        }
        guard label == nil else { throw Malformed() }
        return blocks
    }

    /// Returns the label of a boundary, which occupies a line except for blanks at its end.
    private static func word(of line: String, after start: String) -> String? {
        let line = line.utf8.reversed().drop { $0 == 0x20 || $0 == 0x09 }.reversed()
        let (start, end) = (start.utf8, "-----".utf8)
        guard line.starts(with: start), line.suffix(end.count).elementsEqual(end), line.count > start.count + end.count
        else { return nil }
        let word = String(decoding: line.dropFirst(start.count).dropLast(end.count), as: UTF8.self)
        return word.contains("-----") ? nil : word
    }

    /// Returns the certificates of a PEM text in DER, or the bytes themselves if they are a DER certificate. One with
    /// trust settings of OpenSSL, which are not read, is malformed.
    package static func certificates(in bytes: Data) throws(Malformed) -> [Data] {
        try objects(labelled: ["CERTIFICATE", "X509 CERTIFICATE", "TRUSTED CERTIFICATE"], in: bytes)
    }

    /// Returns certificates in DER as a PEM text.
    package static func text(of certificates: [Data]) -> Data {
        Data(
            certificates.map { certificate in
                let digits = certificate.base64EncodedString(options: [.lineLength64Characters, .endLineWithLineFeed])
                return "-----BEGIN CERTIFICATE-----\n\(digits)\n-----END CERTIFICATE-----\n"
            }
            .joined().utf8)
    }

    /// Returns the certificate revocation lists of a PEM text in DER, or the bytes themselves if they are a DER list.
    package static func revocationLists(in bytes: Data) throws(Malformed) -> [Data] {
        try objects(labelled: ["X509 CRL"], in: bytes)
    }

    private static func objects(labelled labels: Set<String>, in bytes: Data) throws(Malformed) -> [Data] {
        guard bytes.count <= 4 || bytes[bytes.startIndex] != 0x30 || bytes[bytes.startIndex + 1] <= 0x80 else {
            guard isSequence(bytes) else { throw Malformed() }
            return [bytes]
        }
        return try blocks(in: bytes).filter { labels.contains($0.label) }.map { block throws(Malformed) in
            guard let bytes = block.bytes, block.label != "TRUSTED CERTIFICATE" else { throw Malformed() }
            return bytes
        }
    }

    /// Returns whether bytes that begin with an ASN.1 sequence of 128 bytes or more, as DER certificates and lists do,
    /// end with it: 0x30, the number of the bytes of the length, these bytes, and the content.
    private static func isSequence(_ bytes: Data) -> Bool {
        let count = Int(bytes[bytes.startIndex + 1] & 0x7F)
        guard count <= 4 else { return false }
        let length = bytes.dropFirst(2).prefix(count).reduce(0) { $0 << 8 | Int($1) }
        return bytes.count == 2 + count + length
    }
}
