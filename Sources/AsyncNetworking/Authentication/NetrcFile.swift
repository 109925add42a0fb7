// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
import FoundationEssentials

/// A `.netrc` file, from which tools such as curl and ftp read passwords; see netrc(5).
/// See ``AuthenticationPolicy/netrcFile`` for the entries that are used.
///
/// libcurl's own support, CURLOPT_NETRC(3), is not used: it would read the file on the event-loop thread for each
/// exchange, use `default` entries and plain http, and send the password before a server asks for it.
package final class NetrcFile: Sendable {
    /// The path of the file.
    let path: String
    private let entries = Lock<[String: Credential]?>(nil)

    /// Creates a file for a path, without reading it.
    init(path: String) {
        self.path = path
    }

    /// Returns the credential for the host of an origin, or `nil`.
    func credential(for origin: Origin) -> Credential? {
        guard origin.scheme == "https" || Self.loopback.contains(origin.host) else { return nil }
        return entries.withLock { entries in
            let known = entries ?? Self.read(path)
            entries = known
            return known[origin.host]
        }
    }

    private static let loopback: Set<String> = ["localhost", "127.0.0.1", "::1"]

    private static func read(_ path: String) -> [String: Credential] {
        guard let bytes = try? RegularFile(path: path).readAll() else { return [:] }
        return parse(String(decoding: bytes, as: UTF8.self))
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
        var words = NetrcWords(text)
        while let word = words.next() {
            switch word {
            case "machine":
                finish()
                (host, user, password) = (words.next().map { HostName($0).zonedText }, nil, nil)
            case "default":
                finish()
                (host, user, password) = (nil, nil, nil)
            case "login": user = words.next()
            case "password": password = words.next()
            case "account": _ = words.next()
            case "macdef": words.skipMacro()
            default: break
            }
        }
        finish()
        return entries
    }
}

/// The tokens of a `.netrc` file: separated by whitespace, or quoted. A `#` where a token may start begins a comment
/// that extends to the end of the line.
private struct NetrcWords {
    private var rest: Substring

    init(_ text: String) {
        rest = text[...]
    }

    mutating func next() -> String? {
        while let first = rest.first {
            if first.isWhitespace {
                rest.removeFirst()
            } else if first == "#" {
                rest = rest.drop { !$0.isNewline }
            } else {
                return first == "\"" ? takeQuoted() : takeWord()
            }
        }
        return nil
    }

    /// Skips a macro definition, which ends at the next empty line.
    mutating func skipMacro() {
        var wasEmpty = false
        while !rest.isEmpty, !wasEmpty {
            let line = rest.prefix { !$0.isNewline }
            rest = rest.dropFirst(line.count + 1)
            wasEmpty = line.isEmpty
        }
    }

    private mutating func takeWord() -> String {
        let word = rest.prefix { !$0.isWhitespace }
        rest = rest.dropFirst(word.count)
        return String(word)
    }

    private mutating func takeQuoted() -> String {
        rest.removeFirst()
        var word = ""
        while let character = rest.popFirst(), character != "\"" {
            word.append(character == "\\" ? rest.popFirst() ?? "\\" : character)
        }
        return word
    }
}
