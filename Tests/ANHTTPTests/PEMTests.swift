// SPDX-License-Identifier: MIT

import ANHTTP
import FoundationEssentials
import Testing

@Suite struct PEMTests {
    private static func block(_ label: String, _ digits: String) -> String {
        "-----BEGIN \(label)-----\n\(digits)\n-----END \(label)-----\n"
    }

    private static let first = block("X509 CRL", "AQID")
    private static let second = block("X509 CRL", "BAUG\nBwgJ")

    @Test func `blocks are found between other text`() throws {
        let text =
            "Subject: example -- CN=FRONT-END\n\n" + Self.block("CERTIFICATE", "MIEB\nAgME")
            + "  # 12:34 ü\n" + Self.first.replacing("\n", with: " \t\r\n")
            + Self.block("RSA PRIVATE KEY", "Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,00\n\nAAAA")
        let data = Data(text.utf8)
        let blocks = try PEM.blocks(in: data)
        #expect(blocks.map(\.label) == ["CERTIFICATE", "X509 CRL", "RSA PRIVATE KEY"])
        #expect(blocks.map(\.bytes) == [Data([0x30, 0x81, 0x01, 0x02, 0x03, 0x04]), Data([1, 2, 3]), nil])
        #expect(try PEM.certificates(in: data) == [Data([0x30, 0x81, 0x01, 0x02, 0x03, 0x04])])
        #expect(try PEM.revocationLists(in: data) == [Data([1, 2, 3])])
        #expect(try PEM.revocationLists(in: Data((Self.first + Self.second).utf8)).map(\.count) == [3, 6])
    }

    @Test(arguments: [0, 1, 47, 48, 49, 500])
    func `certificates are written as text`(count: Int) throws {
        let certificates = [Data(repeating: 7, count: count), Data("second".utf8)]
        #expect(try PEM.certificates(in: PEM.text(of: certificates)) == certificates)
    }

    @Test(arguments: [
        // Cut off, in each of its lines.
        "-----BEGIN X509 CRL-----\nBAUG\nBwgJ\n", "-----BEGIN X509 CRL-----\nBA", "-----BEGIN X509 CRL-----",
        "-----BEGIN X509", "-----BEGIN X509 CRL-----\nBAUG\nBwgJ\n-----END X509 CRL----",
        // Without its beginning.
        "BAUG\nBwgJ\n-----END X509 CRL-----", "-----END X509 CRL-----",
        // With a character too few, too many, or wrong, or with padding within.
        block("X509 CRL", "BAUG\nBwg"), block("X509 CRL", "BAUGx"), block("X509 CRL", "BAUG\nB.gJ"),
        block("X509 CRL", "BAUG!"), block("X509 CRL", "BA==\nBwgJ"),
        // With boundaries of another form or place.
        "\u{FEFF}" + second, second.replacing("\n", with: "\n  ").replacing("-----BEGIN", with: "  -----BEGIN"),
        "# end of the first" + second, "----" + second.dropFirst(5), "-----BEGIN X509 CRL----- # second\nBAUG\n",
        second.replacing("-----END X509 CRL-----", with: "-----END CERTIFICATE-----"),
        "-----BEGIN X509 CRL-----\n" + second, "-----BEGIN -----\nBAUG\n-----END -----\n",
        // With the fields of an encrypted block.
        block("X509 CRL", "Proc-Type: 4,ENCRYPTED\n\nBAUG"), block("X509 CRL", "Comment: x\nBAUG"),
        // Binary.
        "0\u{3}\u{2}\u{1}\u{1}",
    ])
    func `a text that cannot be read completely is malformed`(damaged: String) {
        #expect(throws: PEM.Malformed.self) { try PEM.revocationLists(in: Data((Self.first + damaged).utf8)) }
        #expect(throws: PEM.Malformed.self) { try PEM.revocationLists(in: Data((damaged + "\n" + Self.first).utf8)) }
    }

    @Test func `a certificate with trust settings of OpenSSL is not passed over in silence`() {
        let text = Self.block("CERTIFICATE", "MIEB\nAgME") + Self.block("TRUSTED CERTIFICATE", "MIEB\nAgME")
        #expect(throws: PEM.Malformed.self) { try PEM.certificates(in: Data(text.utf8)) }
    }

    @Test func `a file that follows one without a final line break is malformed`() {
        let joined = Data((Self.first.dropLast() + Self.second).utf8)
        #expect(throws: PEM.Malformed.self) { try PEM.revocationLists(in: joined) }
        #expect(throws: PEM.Malformed.self) {
            try PEM.revocationLists(in: Data(Self.first.utf16.flatMap { [UInt8($0 & 0xFF), 0] }))
        }
    }

    @Test func `DER bytes are one certificate or list`() throws {
        let der = Data([0x30, 0x82, 0x00, 0x01, 0x05])
        #expect(try PEM.certificates(in: der) == [der])
        #expect(try PEM.revocationLists(in: (Data([0]) + der).dropFirst()) == [der])
        #expect(try PEM.certificates(in: Data()).isEmpty)
        #expect(try PEM.certificates(in: Data("0".utf8)).isEmpty)
        let damaged = [
            der + der, der + Data(Self.first.utf8), Data(Self.first.utf8) + der, der + [0x0A], der.dropLast() + [],
            Data([0x30, 0x84, 0xFF, 0xFF, 0xFF, 0xFF]), Data([0x30, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF]),
        ]
        for bytes in damaged {
            #expect(throws: PEM.Malformed.self) { try PEM.revocationLists(in: bytes) }
        }
    }
}
