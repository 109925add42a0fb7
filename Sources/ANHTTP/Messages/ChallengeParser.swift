// SPDX-License-Identifier: MIT

/// Parses `WWW-Authenticate` and `Proxy-Authenticate` (RFC 9110 §11.6.1).
///
/// The value is a list of challenges, each with a scheme and either an opaque token or a list of parameters. Commas
/// separate both challenges and parameters, so only the text after a word shows whether the word is a scheme. Malformed
/// text is skipped up to the next word.
package struct ChallengeParser {
    private var scanner: HeaderScanner

    /// A challenge; the names of its parameters are in lower case.
    package struct Challenge: Hashable {
        package var scheme: String
        package var parameters: [String: String] = [:]
    }

    /// Returns the challenges in the value of a field.
    package static func challenges(in value: String) -> [Challenge] {
        var parser = ChallengeParser(scanner: HeaderScanner(value))
        return parser.parse()
    }

    private mutating func parse() -> [Challenge] {
        var challenges: [Challenge] = []
        while true {
            scanner.skipBlanks()
            guard let next = scanner.next else { return challenges }
            let word = scanner.takeToken()
            guard !word.isEmpty else {
                // A comma, a stray byte, or a string without a parameter name.
                if scanner.takeQuotedString() == nil { _ = scanner.take(next) }
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
        let start = scanner
        scanner.skipBlanks()
        guard scanner.take(UInt8(ascii: "=")) else {
            scanner = start
            return nil
        }
        scanner.skipBlanks()
        return scanner.takeQuotedString() ?? scanner.takeToken()
    }

    /// Skips the opaque token of a scheme such as NTLM, unless a parameter follows instead.
    private mutating func skipToken68() {
        let start = scanner
        scanner.skipBlanks()
        let token = scanner.take { HeaderScanner.isTokenByte($0) || $0 == UInt8(ascii: "/") }
        scanner.skip { $0 == UInt8(ascii: "=") }
        scanner.skipBlanks()
        let isAlone = scanner.next == nil || scanner.next == UInt8(ascii: ",")
        if token.isEmpty || !isAlone { scanner = start }
    }
}
