// SPDX-License-Identifier: MIT

import AsyncNetworking
import FoundationEssentials
import Testing

@Suite struct SecurityPolicyCertificatesTests {
    @Test func `the certificates of a directory are selected by file extension`() throws {
        let directory = "/tmp/an-pins-\(UInt64.random(in: 0...UInt64.max))"
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(atPath: directory) }
        #expect(throws: SecurityPolicy.ConfigurationError.noCertificate(directory)) {
            try SecurityPolicy.certificates(inDirectory: directory)
        }
        let der = Data([0x30, 0x82, 0x00, 0x01, 0x05])
        try der.write(to: URL(filePath: directory + "/b.cer"))
        try Data("-----BEGIN CERTIFICATE-----\nMIEBAgME\n-----END CERTIFICATE-----\n".utf8)
            .write(to: URL(filePath: directory + "/a.pem"))
        try Data("none".utf8).write(to: URL(filePath: directory + "/notes.txt"))
        let found = try SecurityPolicy.certificates(inDirectory: directory)
        #expect(found == [Data([0x30, 0x81, 0x01, 0x02, 0x03, 0x04]), der])
        try Data("none".utf8).write(to: URL(filePath: directory + "/c.crt"))
        #expect(throws: SecurityPolicy.ConfigurationError.noCertificate(directory + "/c.crt")) {
            try SecurityPolicy.certificates(inDirectory: directory)
        }
        try Data("-----BEGIN CERTIFICATE-----\nMIEBAgME\n".utf8).write(to: URL(filePath: directory + "/a.pem"))
        #expect(
            throws: SecurityPolicy.ConfigurationError.unreadable(
                path: directory + "/a.pem", reason: "it is damaged or incomplete")
        ) {
            try SecurityPolicy.certificates(inDirectory: directory)
        }
        #expect(throws: SecurityPolicy.ConfigurationError.self) {
            try SecurityPolicy.certificates(inDirectory: directory + "/none")
        }
        #expect(throws: SecurityPolicy.ConfigurationError.self) {
            try SecurityPolicy.certificates(in: .file(directory + "/none"))
        }
    }
}
