// SPDX-License-Identifier: MIT

/// Parses `WWW-Authenticate` and `Proxy-Authenticate` (RFC 9110 §11.6.1).
///
/// The value is a list of challenges, each with a scheme and either an opaque token or a list of parameters. Commas
/// separate both challenges and parameters, so only the text after a word shows whether the word is a scheme. Malformed
/// text is skipped up to the next word.
package struct ChallengeParser {
    /// The number of challenges after which the rest of a value is ignored.
    package static let maximumCount = 64

    private var scanner: HeaderScanner

    /// A challenge; the names of its parameters are in lower case.
    package struct Challenge: Hashable {
        package var scheme: String
        package var parameters: [String: String] = [:]

        /// Whether a server or proxy states that the nonce of the answer before has expired (RFC 7616 §3.3).
        package var isStale: Bool { parameters["stale"]?.lowercased() == "true" }
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
            } else if let last = challenges.indices.last, challenges[last].parameters["qop"] != nil,
                DigestChallenge.Protection(rawValue: word.lowercased()) != nil
            {
                // A list that the server has not quoted, which is extended in place.
                challenges[last].parameters["qop"]?.append(", \(word)")
            } else {
                guard challenges.count < Self.maximumCount else { return challenges }
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

    /// Skips the opaque token of a scheme such as NTLM, unless a parameter follows instead. A token begins after a blank
    /// (RFC 9110 §11.4) and has none: no byte is examined for two of them.
    private mutating func skipToken68() {
        guard scanner.isAtBlank else { return }
        let start = scanner
        scanner.skipBlanks()
        let token = scanner.take { HeaderScanner.isTokenByte($0) || $0 == UInt8(ascii: "/") }
        scanner.skip { $0 == UInt8(ascii: "=") }
        scanner.skipBlanks()
        let isAlone = scanner.next == nil || scanner.next == UInt8(ascii: ",")
        if token.isEmpty || !isAlone { scanner = start }
    }
}

/// A challenge by Digest that can be answered (RFC 7616 §3.3).
package struct DigestChallenge: Hashable, Sendable {
    package let realm: String
    package let nonce: String
    package let opaque: String?
    package let algorithm: Algorithm
    /// The algorithm as the server names it; `nil` if it names none.
    package let algorithmName: String?
    /// Whether the secret depends on the nonces, as for algorithms that end with `-sess`.
    package let isSession: Bool
    package let protection: Protection
    /// Whether the user name is sent as a digest.
    package let hidesUser: Bool
    /// Whether the server states that it reads UTF-8.
    package let readsUTF8: Bool
    /// Whether the nonce of the answer before has expired, and nothing else was wrong with it.
    package let isStale: Bool

    /// A digest algorithm, without `-sess`.
    package enum Algorithm: String, Sendable {
        case md5 = "MD5"
        case sha256 = "SHA-256"
        case sha512_256 = "SHA-512-256"
    }

    /// The part of a request that an answer protects (RFC 7616 §3.4).
    package enum Protection: String, Sendable {
        /// The request line, without a nonce of this side (RFC 2069).
        case none
        /// The request line.
        case auth
        /// The request line and the body.
        case integrity = "auth-int"
    }

    /// Creates a value from a challenge; `nil` if it cannot be answered.
    ///
    /// - Parameter knowsBody: Whether the request's body is in memory, so that it can be protected.
    package init?(_ challenge: ChallengeParser.Challenge, knowsBody: Bool) {
        guard challenge.scheme.lowercased() == "digest", let nonce = challenge.parameters["nonce"] else { return nil }
        algorithmName = challenge.parameters["algorithm"]
        var name = (algorithmName ?? "MD5").uppercased()
        isSession = name.hasSuffix("-SESS")
        if isSession { name.removeLast(5) }
        let offered = (challenge.parameters["qop"] ?? "").lowercased().unicodeScalars
            .split { $0 == "," || $0 == " " || $0 == "\t" }.map(String.init)
        guard let algorithm = Algorithm(rawValue: name) else { return nil }
        if offered.isEmpty {
            protection = .none
        } else if offered.contains("auth") {
            protection = .auth
        } else if offered.contains("auth-int"), knowsBody {
            protection = .integrity
        } else {
            return nil
        }
        self.nonce = nonce
        self.algorithm = algorithm
        realm = challenge.parameters["realm"] ?? ""
        opaque = challenge.parameters["opaque"]
        hidesUser = challenge.parameters["userhash"]?.lowercased() == "true"
        readsUTF8 = challenge.parameters["charset"]?.lowercased() == "utf-8"
        isStale = challenge.isStale
    }

    /// Returns the first challenge of a response's fields that can be answered, also by the system.
    ///
    /// - Parameter fields: The values of the fields; for an answer with one character for each byte.
    package static func first(
        in fields: [String], knowsBody: Bool, if isPossible: (DigestChallenge) -> Bool = { _ in true }
    ) -> DigestChallenge? {
        fields.lazy.flatMap(ChallengeParser.challenges).compactMap { DigestChallenge($0, knowsBody: knowsBody) }
            .first(where: isPossible)
    }
}
