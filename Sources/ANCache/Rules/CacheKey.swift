// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
package import FoundationEssentials

/// The primary key of stored responses: a checksum of the target URI.
///
/// The target is compared with that of the stored response as well, so that a collision is a miss.
package struct CacheKey: Hashable, Sendable {
    package let high: UInt64
    package let low: UInt64

    /// Creates a key from its parts.
    package init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    /// Creates the key of a normalized target URI.
    package init(target: String) {
        high = Checksum.of(target, seed: 1)
        low = Checksum.of(target, seed: 2)
    }

    /// Returns the target URI of a URL: without user information, fragment and dot segments, with scheme and host in
    /// lower case, and without the default port (RFC 9110 §4.2.3).
    package static func target(_ url: URL) -> String {
        let url = url.withoutDotSegments
        let text = url.absoluteString
        if isNormalized(text) { return text }
        guard var components = URLComponents(url: url, resolvingAgainstBaseURL: true) else { return text }
        components.scheme = components.scheme?.lowercased()
        components.percentEncodedHost = components.percentEncodedHost?.lowercased()
        components.user = nil
        components.password = nil
        components.fragment = nil
        let standard = components.scheme == "https" ? 443 : components.scheme == "http" ? 80 : nil
        if components.port == standard { components.port = nil }
        if components.percentEncodedPath.isEmpty { components.percentEncodedPath = "/" }
        return components.string ?? text
    }

    /// Whether an absolute URL needs no change: it has a path, no port, user or fragment, and a lower-case authority.
    private static func isNormalized(_ text: String) -> Bool {
        var slashes = 0
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "#"): return false
            case UInt8(ascii: "/"): slashes += 1
            case _ where slashes >= 3: continue
            case UInt8(ascii: ":") where slashes == 0: continue
            case UInt8(ascii: ":"), UInt8(ascii: "@"), UInt8(ascii: "?"), UInt8(ascii: "A")...UInt8(ascii: "Z"):
                return false
            default: continue
            }
        }
        return slashes >= 3
    }

    /// Returns the scheme and authority of a normalized target.
    package static func origin(of target: String) -> Substring {
        var slashes = 0
        let end = target.utf8.firstIndex { byte in
            if byte == UInt8(ascii: "/") { slashes += 1 }
            return slashes == 3
        }
        return target[..<(end ?? target.endIndex)]
    }
}

/// The random salt of a cache or of a download's record, which is part of each checksum of a secret.
///
/// Checksums with different salts cannot be compared, and cannot be used to test guesses without the salt.
package struct CacheSalt: Codable, Hashable, Sendable {
    private let bytes: Data

    /// No salt, for checksums that are not stored.
    package static let none = CacheSalt(bytes: Data())

    private init(bytes: Data) {
        self.bytes = bytes
    }

    /// Creates a random salt.
    package init() {
        var generator = SystemRandom()
        bytes = Data((0..<Self.length).map { _ in .random(in: .min ... .max, using: &generator) })
    }

    /// Reads the salt of a directory, and creates it in a file that only its owner can read if it is missing or
    /// damaged, or another user may know it. If it cannot be read at present, this one is used by this process alone.
    init(directory: String) {
        let salt = CacheSalt()
        self = (try? Self.shared(directory + "/salt", orNew: salt)) ?? salt
    }

    private static func shared(_ path: String, orNew salt: CacheSalt) throws(SystemError) -> CacheSalt? {
        for _ in 0..<2 {
            // Another process may create the file first, whose salt is then that of both.
            if try read(path) == nil { try? salt.write(to: path) }
            if let existing = try read(path) { return existing }
            // The file is damaged, or not private.
            FileLocation.remove(path)
        }
        return nil
    }

    private static func read(_ path: String) throws(SystemError) -> CacheSalt? {
        guard let bytes = try FileDescriptor.privateBytes(at: path, upTo: length), bytes.count == length else {
            return nil
        }
        return CacheSalt(bytes: Data(bytes))
    }

    private func write(to path: String) throws(SystemError) {
        let temporary = "\(path).\(String(UInt64.systemRandom(in: .min ... .max), radix: 36)).part"
        var file = try PartialFile(path: temporary, opening: .new, mode: 0o600)
        try file.write(bytes.bytes)
        try file.move(to: path, overwriting: false)
    }

    /// Returns the first 64 bits of the SHA-256 digest of the salt and some texts; never 0.
    package func checksum(of texts: String...) -> UInt64 { checksum(of: texts) }

    /// Returns the checksum of a list of texts.
    package func checksum(of texts: [String]) -> UInt64 {
        let digest = MessageDigest(.sha256)
        digest.update(bytes.bytes)
        for text in texts {
            // The length keeps `("a", "bc")` apart from `("ab", "c")`.
            var part = Data("\(text.utf8.count):".utf8)
            part.append(contentsOf: text.utf8)
            digest.update(part.bytes)
        }
        // A random number is equal to no other one, so that nothing is used.
        guard let value = digest.value else { return .systemRandom(in: 1 ... .max) }
        return max(1, value.prefix(8).reduce(0) { $0 << 8 | UInt64($1) })
    }

    private static let length = 32
}
