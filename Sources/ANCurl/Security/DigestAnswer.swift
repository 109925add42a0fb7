// SPDX-License-Identifier: MIT

package import ANHTTP
import ANSystem
package import FoundationEssentials
package import HTTPTypes

/// The answer to a challenge of a server by Digest (RFC 7616).
///
/// It is computed here because libcurl 7.88 computes SHA-512-256 wrongly, knows neither `auth-int` nor a second challenge,
/// answers an answer that is called stale again and again, and reads the body of a challenge whatever its size.
package struct DigestAnswer: Equatable {
    /// The field `Authorization`.
    package let field: HTTPField

    /// Creates the answer to a challenge; `nil` if the system does not provide its algorithm.
    ///
    /// - Parameters:
    ///   - challenge: The challenge.
    ///   - credential: The user name and the password.
    ///   - method: The method of the request.
    ///   - target: The path and query of the request, as they are sent.
    ///   - body: The body, which is used if the challenge asks for its protection.
    ///   - clientNonce: The nonce of this side; by default 128 random bits.
    package init?(
        to challenge: DigestChallenge, with credential: Credential, method: String, target: String, body: Data?,
        clientNonce: String? = nil
    ) {
        let clientNonce = clientNonce ?? Self.makeNonce()
        guard let value = Self.value(challenge, credential, method, target, body, clientNonce) else { return nil }
        field = HTTPField(name: .authorization, lenientValue: value.scalarBytes)
    }

    private static func makeNonce() -> String {
        let number = UInt128.random(in: 0...(.max))
        return String(number, radix: 16)
    }

    /// Whether the system provides the algorithm of a challenge.
    package static func isPossible(_ challenge: DigestChallenge) -> Bool {
        MessageDigest(MessageDigest.Algorithm(challenge.algorithm)).value != nil
    }

    /// Returns the value of the field, with one character for each byte: a challenge may be no UTF-8, and is hashed and sent
    /// back as it came.
    private static func value(
        _ challenge: DigestChallenge, _ credential: Credential, _ method: String, _ target: String,
        _ body: Data?, _ clientNonce: String
    ) -> String? {
        let (realm, nonce, protection) = (challenge.realm, challenge.nonce, challenge.protection)
        let function = MessageDigest.Algorithm(challenge.algorithm)

        let (user, password) = (String(byteText: credential.user.utf8), String(byteText: credential.password.utf8))
        let (method, target) = (String(byteText: method.utf8), String(byteText: target.utf8))

        func hash(_ parts: String...) -> String? { hash(bytes: Data(parts.joined(separator: ":").scalarBytes)) }
        func hash(bytes: Data) -> String? {
            let digest = MessageDigest(function)
            digest.update(bytes.bytes)
            return digest.value.map(\.lowercaseHexadecimal)
        }

        let count = "00000001"
        guard var secret = hash(user, realm, password) else { return nil }
        if challenge.isSession {
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
        guard let response, let name = challenge.hidesUser ? hash(user, realm) : user else { return nil }
        // A quoted string is in ASCII (RFC 7616 §3.4, RFC 8187).
        let isExtended = challenge.readsUTF8 && !name.utf8.allSatisfy { $0 < 0x80 }
        var parts = [
            isExtended
                ? "username*=UTF-8''\(CanonicalRequest.encoding(name.scalarBytes, keeping: ""))"
                : "username=\(name.quoted)",
            "realm=\(realm.quoted)", "nonce=\(nonce.quoted)", "uri=\(target.quoted)",
            "response=\"\(response)\"",
        ]
        if let name = challenge.algorithmName { parts.append("algorithm=\(name)") }
        if let opaque = challenge.opaque { parts.append("opaque=\(opaque.quoted)") }
        if protection != .none || challenge.isSession { parts.append("cnonce=\(clientNonce.quoted)") }
        if protection != .none { parts += ["qop=\(protection.rawValue)", "nc=\(count)"] }
        if challenge.hidesUser { parts.append("userhash=true") }
        return "Digest " + parts.joined(separator: ", ")
    }
}

extension MessageDigest.Algorithm {
    fileprivate init(_ algorithm: DigestChallenge.Algorithm) {
        self =
            switch algorithm {
            case .md5: .md5
            case .sha256: .sha256
            case .sha512_256: .sha512_256
            }
    }
}

extension String {
    /// The bytes of a string with one character for each.
    fileprivate var scalarBytes: [UInt8] { unicodeScalars.map { UInt8(truncatingIfNeeded: $0.value) } }

    /// The string as a quoted-string (RFC 9110 §5.6.4).
    fileprivate var quoted: String {
        "\"" + replacing(each: "\\", with: "\\\\").replacing(each: "\"", with: "\\\"") + "\""
    }
}

extension [UInt8] {
    fileprivate var lowercaseHexadecimal: String { ContentDigest(.sha256, Data(self)).hexadecimal }
}
