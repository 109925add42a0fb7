// SPDX-License-Identifier: MIT

import ANHTTP

/// Parses `WWW-Authenticate` and `Proxy-Authenticate` (RFC 9110 §11.6.1).
///
/// The value is a list of challenges, each with a scheme and either an opaque token or a list of parameters. Commas
/// separate both challenges and parameters, so only the text after a word shows whether the word is a scheme. Malformed
/// text is skipped up to the next word.
package struct ChallengeParser {
    private let bytes: [UInt8]
    private var position = 0

    /// A challenge; the names of its parameters are in lower case.
    package struct Challenge: Hashable {
        package var scheme: String
        package var parameters: [String: String] = [:]
    }

    /// Returns the challenges in the value of a field.
    package static func challenges(in value: String) -> [Challenge] {
        var parser = ChallengeParser(bytes: Array(value.utf8))
        return parser.parse()
    }

    private init(bytes: [UInt8]) {
        self.bytes = bytes
    }

    private mutating func parse() -> [Challenge] {
        var challenges: [Challenge] = []
        while true {
            skip { $0 == UInt8(ascii: ",") || Self.isBlank($0) }
            guard position < bytes.count else { return challenges }
            let word = take(while: Self.isTokenByte)
            guard !word.isEmpty else {
                // A stray byte, or a string without a parameter name.
                if bytes[position] == UInt8(ascii: "\"") { _ = takeString() } else { position += 1 }
                continue
            }
            if let value = takeParameterValue() {
                if let last = challenges.indices.last, challenges[last].parameters[word.lowercased()] == nil {
                    challenges[last].parameters[word.lowercased()] = value
                }
            } else {
                challenges.append(Challenge(scheme: word))
                skipToken68()
            }
        }
    }

    /// Parses `=` and a parameter's value; returns `nil`, without advancing, if there is no `=`.
    private mutating func takeParameterValue() -> String? {
        let start = position
        skip(Self.isBlank)
        guard position < bytes.count, bytes[position] == UInt8(ascii: "=") else {
            position = start
            return nil
        }
        position += 1
        skip(Self.isBlank)
        guard position < bytes.count, bytes[position] == UInt8(ascii: "\"") else {
            return take(while: Self.isTokenByte)
        }
        return takeString()
    }

    /// Parses a quoted string and returns its content. If the closing quote is missing, the string ends with the field.
    private mutating func takeString() -> String {
        position += 1
        var content: [UInt8] = []
        while position < bytes.count, bytes[position] != UInt8(ascii: "\"") {
            if bytes[position] == UInt8(ascii: "\\"), position + 1 < bytes.count { position += 1 }
            content.append(bytes[position])
            position += 1
        }
        position = min(position + 1, bytes.count)
        return String(decoding: content, as: UTF8.self)
    }

    /// Skips the opaque token of a scheme such as NTLM, unless a parameter follows instead.
    private mutating func skipToken68() {
        let start = position
        skip(Self.isBlank)
        let length = take { Self.isTokenByte($0) || $0 == UInt8(ascii: "/") }.utf8.count
        skip { $0 == UInt8(ascii: "=") }
        skip(Self.isBlank)
        let isAlone = position == bytes.count || bytes[position] == UInt8(ascii: ",")
        if length == 0 || !isAlone { position = start }
    }

    private mutating func skip(_ matches: (UInt8) -> Bool) {
        while position < bytes.count, matches(bytes[position]) { position += 1 }
    }

    private mutating func take(while matches: (UInt8) -> Bool) -> String {
        let start = position
        skip(matches)
        return String(decoding: bytes[start..<position], as: UTF8.self)
    }

    private static func isBlank(_ byte: UInt8) -> Bool {
        byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t")
    }

    /// Whether a byte may occur in a token, RFC 9110 §5.6.2.
    private static func isTokenByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
        }
    }
}
