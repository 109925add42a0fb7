// SPDX-License-Identifier: MIT

import ANCache
import ANCurl
import ANHTTP
import ANSystem
import AsyncNetworking
import AsyncNetworkingImages
import AsyncNetworkingTesting
import FoundationEssentials
import HTTPTypes

extension FuzzTarget {
    /// Parsers of files, some of which contain what a server has sent.
    static let files: [FuzzTarget] = [
        FuzzTarget("cookies", checkCookies),
        FuzzTarget("netrc", checkNetrc),
        FuzzTarget("resume-data", checkResumeData),
        FuzzTarget("cache-entries", checkCacheEntries),
        FuzzTarget("images", maximumSize: 1_024, checkImages),
        FuzzTarget("pem", checkPEM),
        FuzzTarget("certificates", maximumSize: 1_024, checkCertificates),
        FuzzTarget("identities", maximumSize: 2_048, checkIdentities),
    ]

    // MARK: Cookies

    /// A cookie of a file is written as a line that has the same cookie, and so is one with the fields of a line.
    private static func checkCookies(_ input: [UInt8]) throws {
        let text = String(decoding: input, as: UTF8.self)
        let words = text.split(separator: "\t", omittingEmptySubsequences: false).map(String.init)
        var cookies = text.utf8.split(separator: UInt8(ascii: "\n")).compactMap { Cookie(netscapeLine: Substring($0)) }
        if words.count > 3 {
            cookies.append(Cookie(name: words[0], value: words[1], domain: words[2], path: words[3]))
        }
        for cookie in cookies {
            _ = cookie.matches(URL(filePath: "/"))
            guard let line = cookie.netscapeLine else { continue }
            // As in the Cookie field.
            try require(
                !cookie.name.utf8.contains { $0 == UInt8(ascii: "=") || $0 == UInt8(ascii: ";") }, "\(line) has a name")
            try require(!cookie.value.utf8.contains(UInt8(ascii: ";")), "\(line) has one value")
            try require(!line.utf8.contains { $0 == 10 || $0 == 13 }, "\(line) is one line")
            guard let again = Cookie(netscapeLine: line) else { throw Violation(description: "\(line) is lost") }
            try requireEqual(again.netscapeLine, line, "written again")
            try requireEqual([again.name, again.value, again.path], [cookie.name, cookie.value, cookie.path], line)
        }
    }

    // MARK: Credentials

    /// Entries that are written with quotation marks are read again. Those of hosts that are read as another host, such
    /// as `0.`, which is left of `0..`, would replace its entry.
    private static func checkNetrc(_ input: [UInt8]) throws {
        let entries = NetrcFile.parse(String(decoding: input, as: UTF8.self)).filter { host, _ in
            HostName(host).zonedText == host
        }
        let text = entries.sorted { $0.key < $1.key }.map { host, credential in
            "machine \(quoted(host)) login \(quoted(credential.user)) password \(quoted(credential.password))\n"
        }.joined()
        let again = NetrcFile.parse(text)
        for (host, credential) in entries {
            try requireEqual(again[host]?.user, credential.user, "the user of \(host)")
            try requireEqual(again[host]?.password, credential.password, "the password of \(host)")
        }
    }

    private static func quoted(_ text: String) -> String {
        let scalars = text.unicodeScalars.map { $0 == "\"" || $0 == "\\" ? "\\\($0)" : "\($0)" }
        return "\"\(scalars.joined())\""
    }

    // MARK: Downloads

    /// A record that is written again is the same.
    private static func checkResumeData(_ input: [UInt8]) throws {
        guard let data = try? JSONDecoder().decode(ResumeData.self, from: Data(input)) else { return }
        try requireEqual(
            try JSONDecoder().decode(ResumeData.self, from: JSONEncoder().encode(data)), data, "the record")
    }

    // MARK: Cache

    /// Names and entries that are written again are the same, and decisions about entries do not crash.
    ///
    /// The first two bytes of an entry are the length of a body in it; its checksum is computed here.
    private static func checkCacheEntries(_ input: [UInt8]) throws {
        if let name = EntryName(String(decoding: input, as: UTF8.self)) {
            let isEntry = name != name.bodyFile.flatMap { EntryName($0) }
            try requireEqual(
                isEntry ? EntryName(name.entryFile) : name.bodyFile.flatMap { EntryName($0) }, name, "the name")
        }
        guard CacheEntry(id: 1, encoded: Data(input)) == nil, input.count >= 2 else { return }
        let content = Data(input[2...])
        let inline = min(Int(input[0]) | Int(input[1]) << 8, content.count)
        var prefix = Data("ANcache2".utf8)
        for number in [content.count - inline, inline] {
            prefix += (0..<8).map { UInt8(truncatingIfNeeded: number >> (8 * $0)) }
        }
        var checksum = Checksum(seed: 0x3165_6863_6163_4E41)
        checksum.update(prefix.bytes)
        checksum.update(content.bytes)
        let sum = checksum.value
        let file = prefix + (0..<8).map { UInt8(truncatingIfNeeded: sum >> UInt64(8 * $0)) } + content
        guard let entry = CacheEntry(id: 1, encoded: file) else { return }
        let again = CacheEntry(id: 1, encoded: entry.encoded())
        try requireEqual(again?.response, entry.response, "the response")
        try requireEqual(again?.body, entry.body, "the body")
        try require(entry.memoryCost > 0, "the entry occupies memory")
        try checkDecisions(about: entry.response, headers: [.range: "bytes=1-", .ifModifiedSince: "x"])
        try checkDecisions(about: entry.response, headers: [.cacheControl: "max-stale, min-fresh=1"])
    }

    // MARK: Images

    /// The size of an image is positive, and does not depend on where its bytes are in memory.
    private static func checkImages(_ input: [UInt8]) throws {
        let header = try? ImageHeader(Data(input))
        let slice = Data([0, 0, 0] + input).dropFirst(3)
        try requireEqual(try? ImageHeader(slice), header, "the header of a slice")
        guard let header else { return }
        try require(header.size.width > 0 && header.size.height > 0, "\(header.size) is positive")
        try requireEqual(ImageFormat(slice), header.format, "the format")
        _ = header.size.decodedBytes
    }

    // MARK: Certificates

    /// Blocks that are written again are the same.
    private static func checkPEM(_ input: [UInt8]) throws {
        let data = Data(input)
        if let blocks = try? PEM.blocks(in: data) {
            let text = blocks.map { block in
                let digits = block.bytes?.base64EncodedString() ?? "Proc-Type: 4,ENCRYPTED"
                return "-----BEGIN \(block.label)-----\n\(digits)\n-----END \(block.label)-----\n"
            }.joined()
            try requireEqual(PEM.blocks(in: Data(text.utf8)), blocks, "written again")
        }
        for certificate in (try? PEM.certificates(in: data)) ?? [] { _ = ChainEvaluator.isCertificate(certificate) }
        var policy = SecurityPolicy()
        policy.trustRoots = .pem(data)
        _ = policy.evaluate([data], for: nil)
    }

    /// An authority, and a certificate that it has issued.
    private struct Issued {
        let authority = try? TestCertificateAuthority()
        let certificate: TestCertificate?
        let key: PublicKeyPin?
        let policy: SecurityPolicy

        init() {
            certificate = try? authority?.issue()
            key = certificate.flatMap { try? PublicKeyPin("sha256/\($0.publicKeySHA256)") }
            var policy = SecurityPolicy()
            policy.trustRoots = .pem(authority?.pemData ?? Data())
            self.policy = policy
        }
    }

    private static let issued = Issued()

    /// A chain with the input is trusted only if it has the certificate of the authority.
    ///
    /// In place of the first byte, an input may name a certificate to be changed: the other bytes are then positions
    /// and values.
    private static func checkCertificates(_ input: [UInt8]) throws {
        guard let own = issued.certificate else { throw Violation(description: "there is no authority") }
        var der = Data(input)
        if input.first == 0 {
            der = own.derData
            for index in stride(from: 1, to: input.count - 2, by: 3) {
                der[(Int(input[index]) << 8 | Int(input[index + 1])) % der.count] = input[index + 2]
            }
        }
        let isChanged = der != own.derData
        for chain in [[der], [der, own.derData], [own.derData, der]] {
            let result = issued.policy.evaluate(chain, for: "localhost")
            guard !result.isRefused, isChanged else { continue }
            try requireEqual(result.trust.chain.first?.publicKey, issued.key, "the key of a trusted server")
        }
    }

    /// An identity that is loaded does not crash.
    ///
    /// Numbers of more than two bytes are skipped: as the number of iterations, they would take minutes.
    private static func checkIdentities(_ input: [UInt8]) throws {
        let data = Data(input)
        let hasLongNumber = zip(input, input.dropFirst()).contains { $0 == 2 && 3...8 ~= $1 || $0 == 2 && $1 >= 0x80 }
        let bundle = ClientIdentity.pkcs12(.data(data), passphrase: "secret")
        let pair = ClientIdentity.pem(certificates: .data(data), key: .data(data), passphrase: "secret")
        for identity in hasLongNumber ? [pair] : [bundle, pair] {
            try? LoadedIdentity(identity).check(at: .now)
        }
    }
}
