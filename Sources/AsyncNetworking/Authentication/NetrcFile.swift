// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
import FoundationEssentials

/// A `.netrc` file, from which tools such as curl and ftp read passwords; see netrc(5).
/// See ``AuthenticationPolicy/netrcFile`` for the entries that are used.
///
/// libcurl's own support, CURLOPT_NETRC(3), is not used: it would read the file on the event-loop thread for each
/// exchange, use `default` entries and plain http, and send the password before a server asks for it.
package actor NetrcFile {
    /// The path of the file.
    nonisolated let path: String
    private lazy var entries = Self.read(path)

    /// Creates a file for a path, without reading it.
    init(path: String) {
        self.path = path
    }

    /// Returns the credential for the host of an origin, or `nil`.
    ///
    /// - Parameter isReached: Whether the request is sent to the host itself.
    func credential(for origin: Origin, isReached: Bool) -> Credential? {
        guard origin.scheme == "https" || isReached && Self.loopback.contains(origin.host) else { return nil }
        return entries[origin.host]
    }

    private static let loopback: Set<String> = ["localhost", "127.0.0.1", "::1"]

    private static func read(_ path: String) -> [String: Credential] {
        guard let bytes = try? RegularFile(path: path).readAll() else { return [:] }
        let entries = parse(String(decoding: bytes, as: UTF8.self))
        guard String(validating: bytes, as: UTF8.self) == nil else { return entries }
        return entries.filter { ![$1.user, $1.password].contains { $0.unicodeScalars.contains("\u{FFFD}") } }
    }

    /// Parses the text of a `.netrc` file and returns the first entry of each host.
    package static func parse(_ text: String) -> [String: Credential] {
        var entries: [String: Credential] = [:]
        var host: String?
        var user: String?
        var password: String?
        func finish() {
            guard let host, entries[host] == nil, let password else { return }
            entries[host] = Credential(user: user ?? "", password: password)
        }
        var words = NetrcWords(text.hasPrefix("\u{FEFF}") ? String(text.unicodeScalars.dropFirst()) : text)
        while let word = words.next() {
            switch word.lowercased() {
            case "machine":
                finish()
                (host, user, password) = (words.value().map { HostName($0).zonedText }, nil, nil)
            case "default":
                finish()
                (host, user, password) = (nil, nil, nil)
            case "login", "user": user = words.value()
            case "password": password = words.value()
            case "account": _ = words.value()
            case "macdef": words.skipMacro()
            default: break
            }
        }
        finish()
        return entries
    }
}

/// The tokens of a `.netrc` file: separated by ASCII whitespace, or quoted. A `#` where a keyword may start begins a
/// comment that extends to the end of the line; a value may begin with it.
private struct NetrcWords {
    private var rest: Substring.UTF8View

    init(_ text: String) {
        rest = text[...].utf8
    }

    /// Returns the next token, which may be a keyword.
    mutating func next() -> String? {
        skipWhitespace()
        while rest.first == UInt8(ascii: "#") {
            rest = rest.drop { !Self.endsLine($0) }
            skipWhitespace()
        }
        return value()
    }

    /// Returns the next token, which is a value.
    mutating func value() -> String? {
        skipWhitespace()
        return rest.first.map { $0 == UInt8(ascii: "\"") ? takeQuoted() : takeWord() }
    }

    private mutating func skipWhitespace() {
        rest = rest.drop(while: Self.isWhitespace)
    }

    /// Skips a macro definition, which ends at the next empty line.
    mutating func skipMacro() {
        var wasEmpty = false
        while !rest.isEmpty, !wasEmpty {
            let line = rest.prefix { !Self.endsLine($0) }
            rest = rest[line.endIndex...]
            if !rest.isEmpty { rest = rest.dropFirst(rest.starts(with: "\r\n".utf8) ? 2 : 1) }
            wasEmpty = line.isEmpty
        }
    }

    private mutating func takeWord() -> String {
        let word = rest.prefix { !Self.isWhitespace($0) }
        rest = rest[word.endIndex...]
        return String(Substring(word))
    }

    private mutating func takeQuoted() -> String {
        rest.removeFirst()
        var word: [UInt8] = []
        while let byte = rest.popFirst(), byte != UInt8(ascii: "\"") {
            word.append(byte == UInt8(ascii: "\\") ? rest.popFirst().map(Self.unescaped) ?? byte : byte)
        }
        return String(decoding: word, as: UTF8.self)
    }

    /// Returns the byte for which one after a backslash stands.
    private static func unescaped(_ byte: UInt8) -> UInt8 {
        switch byte {
        case UInt8(ascii: "n"): UInt8(ascii: "\n")
        case UInt8(ascii: "r"): UInt8(ascii: "\r")
        case UInt8(ascii: "t"): UInt8(ascii: "\t")
        default: byte
        }
    }

    private static func endsLine(_ byte: UInt8) -> Bool {
        byte == UInt8(ascii: "\n") || byte == UInt8(ascii: "\r")
    }

    /// Whether isspace(3) is true for a byte in the C locale.
    private static func isWhitespace(_ byte: UInt8) -> Bool {
        byte == UInt8(ascii: " ") || 0x09...0x0D ~= byte
    }
}
