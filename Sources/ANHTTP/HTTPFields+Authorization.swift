// SPDX-License-Identifier: MIT

import FoundationEssentials
public import HTTPTypes

extension HTTPFields {
    /// Sets `Authorization` to a name and a password in Base64, in place of what is there. See RFC 7617.
    ///
    /// To take it away again, set `headers[.authorization]` to nil.
    ///
    /// - Throws: ``TransportError/invalidRequest(_:)`` for a name with a colon, which a server would take for the end of
    ///   the name, and for control characters.
    public mutating func setBasicAuthorization(_ credential: Credential) throws(TransportError) {
        let isPrintable = (credential.user + credential.password).utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F }
        guard isPrintable else { throw .invalidRequest(.headerValue(name: "Authorization")) }
        guard !credential.user.utf8.contains(UInt8(ascii: ":")) else {
            throw .invalidRequest(.option("The name of a user cannot have a colon in Basic credentials."))
        }
        let text = Data("\(credential.user):\(credential.password)".utf8).base64EncodedString()
        self[.authorization] = "Basic " + text
    }

    /// Sets `Authorization` to a bearer token, in place of what is there. See RFC 6750 §2.1.
    ///
    /// - Throws: ``TransportError/invalidRequest(_:)`` for a token that is empty or has anything but visible ASCII.
    public mutating func setBearerAuthorization(_ token: String) throws(TransportError) {
        guard !token.isEmpty, token.utf8.allSatisfy({ 0x21...0x7E ~= $0 }) else {
            throw .invalidRequest(.headerValue(name: "Authorization"))
        }
        self[.authorization] = "Bearer " + token
    }
}
