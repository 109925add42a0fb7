// SPDX-License-Identifier: MIT

package import ANHTTP
import ANSystem
package import FoundationEssentials
import HTTPTypes

/// The answer to a challenge of a server by Digest (RFC 7616).
///
/// It is computed here because libcurl 7.88 computes SHA-512-256 wrongly, knows neither `auth-int` nor a second challenge,
/// answers an answer that is called stale again and again, and reads the body of a challenge whatever its size.
package struct DigestAnswer: Equatable {
    /// The value of `Authorization`.
    package let field: String

    /// Creates the answer to the first challenge that can be answered; `nil` if there is none.
    ///
    /// - Parameters:
    ///   - challenges: The values of `WWW-Authenticate`.
    ///   - credential: The user name and the password.
    ///   - method: The method of the request.
    ///   - target: The path and query of the request, as they are sent.
    ///   - body: The body; `nil` if it is not in memory, so that `auth-int` cannot be answered.
    ///   - clientNonce: The nonce of this side; by default 128 random bits.
    package init?(
        to challenges: [String], with credential: Credential, method: String, target: String, body: Data?,
        clientNonce: String? = nil
    ) {
        let clientNonce = clientNonce ?? Self.makeNonce()
        let answers = challenges.lazy.flatMap(ChallengeParser.challenges).compactMap { challenge in
            Self.field(challenge, credential, method, target, body, clientNonce)
        }
        guard let field = answers.first else { return nil }
        self.field = field
    }

    private static func makeNonce() -> String {
        let number = UInt128.random(in: 0...(.max))
        return String(number, radix: 16)
    }

    private static func field(
        _ challenge: ChallengeParser.Challenge, _ credential: Credential, _ method: String, _ target: String,
        _ body: Data?, _ clientNonce: String
    ) -> String? {
        guard challenge.scheme.lowercased() == "digest", let nonce = challenge.parameters["nonce"] else { return nil }
        let realm = challenge.parameters["realm"] ?? ""
        let names = challenge.parameters["algorithm"]
        var algorithm = (names ?? "MD5").uppercased()
        let isSession = algorithm.hasSuffix("-SESS")
        if isSession { algorithm.removeLast(5) }
        guard let function = functions[algorithm] else { return nil }
        guard let protection = Protection(offered: challenge.parameters["qop"], knowsBody: body != nil) else {
            return nil
        }

        func hash(_ parts: String...) -> String? { hash(bytes: Data(parts.joined(separator: ":").utf8)) }
        func hash(bytes: Data) -> String? {
            let digest = MessageDigest(function)
            digest.update(bytes.bytes)
            return digest.value.map(\.lowercaseHexadecimal)
        }

        let count = "00000001"
        guard var secret = hash(credential.user, realm, credential.password) else { return nil }
        if isSession {
            guard let session = hash(secret, nonce, clientNonce) else { return nil }
            secret = session
        }
        let request: String?
        let response: String?
        switch protection {
        case .none:
            request = hash(method, target)
            response = request.flatMap { hash(secret, nonce, $0) }
        case .auth, .integrity:
            request =
                protection == .integrity
                ? body.flatMap(hash(bytes:)).flatMap { hash(method, target, $0) } : hash(method, target)
            response = request.flatMap { hash(secret, nonce, count, clientNonce, protection.rawValue, $0) }
        }
        let hidesUser = challenge.parameters["userhash"]?.lowercased() == "true"
        guard let response, let user = hidesUser ? hash(credential.user, realm) : credential.user else { return nil }

        var parts = [
            "username=\(user.quoted)", "realm=\(realm.quoted)", "nonce=\(nonce.quoted)", "uri=\(target.quoted)",
            "response=\"\(response)\"",
        ]
        if let names { parts.append("algorithm=\(names)") }
        if let opaque = challenge.parameters["opaque"] { parts.append("opaque=\(opaque.quoted)") }
        if protection != .none || isSession { parts.append("cnonce=\(clientNonce.quoted)") }
        if protection != .none { parts += ["qop=\(protection.rawValue)", "nc=\(count)"] }
        if hidesUser { parts.append("userhash=true") }
        return "Digest " + parts.joined(separator: ", ")
    }

    private static let functions: [String: MessageDigest.Algorithm] = [
        "MD5": .md5, "SHA-256": .sha256, "SHA-512-256": .sha512_256,
    ]

    /// What the answer protects (RFC 7616 §3.4).
    private enum Protection: String {
        /// The request line, without a nonce of this side (RFC 2069).
        case none
        /// The request line.
        case auth
        /// The request line and the body.
        case integrity = "auth-int"

        init?(offered list: String?, knowsBody: Bool) {
            guard let list else {
                self = .none
                return
            }
            let offered = list.lowercased().split { $0 == "," || $0 == " " || $0 == "\t" }
            if offered.contains("auth") {
                self = .auth
            } else if offered.contains("auth-int"), knowsBody {
                self = .integrity
            } else {
                return nil
            }
        }
    }
}

extension String {
    /// The string as a quoted-string (RFC 9110 §5.6.4).
    fileprivate var quoted: String {
        "\"" + replacing("\\", with: "\\\\").replacing("\"", with: "\\\"") + "\""
    }
}

extension [UInt8] {
    fileprivate var lowercaseHexadecimal: String { ContentDigest(.sha256, Data(self)).hexadecimal }
}
