// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
import FoundationEssentials

/// The passwords that tools such as curl and ftp read, `.netrc`. See netrc(5).
///
/// The file names hosts without scheme and port, so its entries are no credentials for an origin. What it has goes over https
/// to any port of the host, and over http to `localhost` and the loopback addresses alone. An entry `default`, which is for
/// all hosts, is passed over. The file is read once, when it is first needed; one that cannot be read has no entries.
public final class PasswordFile: Sendable {
    /// The file's path.
    public let path: String
    private let entries = Lock<[String: Credential]?>(nil)

    /// Names a file.
    public init(path: String) {
        self.path = path
    }

    /// The credential for the host of an origin.
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

    /// The first entry of each host.
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

/// The words of a `.netrc`: between blanks, or in quotation marks; a `#` where a word may begin makes the rest of the line a
/// comment.
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

    /// A macro goes on to the next empty line.
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
