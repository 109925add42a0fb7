// SPDX-License-Identifier: MIT

/// The authentication that a transport performs itself: answers to challenges, or a signature.
///
/// Digest, NTLM and Negotiate consist of several messages, for NTLM and Negotiate on the same connection, and are
/// therefore part of one exchange. The intermediate responses are not visible. If the scheme is known in advance, the
/// first message is sent without the body.
package struct TransportAuthentication: Hashable, Sendable {
    /// The credential and scheme for the server; `nil` for none.
    package var server: SchemeCredential?
    /// The credential and scheme for the proxy, instead of ``Proxy/credential``; `nil` for none.
    package var proxy: SchemeCredential?
    /// The signature for the request; `nil` for none. The server's challenges are not answered for a signed request.
    package var signature: AWSSignature?

    /// Creates a value without credentials, and optionally with a signature.
    package init(_ signature: AWSSignature? = nil) {
        self.signature = signature
    }

    /// A credential and the one scheme that it is used with.
    package struct SchemeCredential: Hashable, Sendable {
        /// The user name and password.
        package var credential: Credential
        /// The scheme to use the credential with.
        package var scheme: AuthenticationScheme

        /// Creates a value from a credential and a scheme.
        package init(_ credential: Credential, by scheme: AuthenticationScheme) {
            self.credential = credential
            self.scheme = scheme
        }
    }
}

extension Request {
    /// The authentication that the transport performs for this request; `nil`, the default, for none. Set by a session.
    ///
    /// Not settable by users, who would have to remove it before a redirect to another origin.
    package var transportAuthentication: TransportAuthentication? {
        get { self[TransportAuthentication.OfRequest.self] }
        set { self[TransportAuthentication.OfRequest.self] = newValue }
    }
}

extension TransportAuthentication {
    fileprivate enum OfRequest: RequestAttribute {
        static var defaultValue: TransportAuthentication? { nil }
    }
}
