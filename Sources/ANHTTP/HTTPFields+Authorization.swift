// SPDX-License-Identifier: MIT

import FoundationEssentials
public import HTTPTypes

extension HTTPFields {
    /// Sets `Authorization` to Basic credentials in UTF-8, replacing any previous value. See RFC 7617.
    ///
    /// To remove the field again, set `headers[.authorization]` to `nil`. The credential's ``Credential/schemes`` are
    /// ignored. A session adds no other credential to a request with the field, and returns a challenge of the server
    /// as the response.
    ///
    /// - Throws: ``TransportError/Reason/invalidRequest(_:)`` if the user name contains a colon, which a server would
    ///   take for its end, or if the user name or password contains a control character. The fields are unchanged then.
    public mutating func setBasicAuthorization(_ credential: Credential) throws(TransportError) {
        guard !credential.user.hasControlCharacters, !credential.password.hasControlCharacters else {
            throw TransportError(.invalidRequest(.headerValue(name: "Authorization")))
        }
        guard !credential.user.utf8.contains(UInt8(ascii: ":")) else {
            throw TransportError(.invalidRequest(.option("A user name in Basic credentials cannot contain a colon.")))
        }
        let text = Data("\(credential.user):\(credential.password)".utf8).base64EncodedString()
        self[.authorization] = "Basic " + text
    }

    /// Sets `Authorization` to a bearer token, replacing any previous value. See RFC 6750 §2.1.
    ///
    /// A session adds no other credential to a request with the field, and returns a challenge of the server as the
    /// response.
    ///
    /// - Parameter token: The token, without the word `Bearer`.
    /// - Throws: ``TransportError/Reason/invalidRequest(_:)`` if the token is empty or contains anything but visible
    ///   ASCII characters. The fields are unchanged then.
    public mutating func setBearerAuthorization(_ token: String) throws(TransportError) {
        guard !token.isEmpty, token.utf8.allSatisfy({ 0x21...0x7E ~= $0 }) else {
            throw TransportError(.invalidRequest(.headerValue(name: "Authorization")))
        }
        self[.authorization] = "Bearer " + token
    }
}
