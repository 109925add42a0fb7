// SPDX-License-Identifier: MIT

/// What a transport itself does to show who makes a request: it answers challenges on the connection they came on, or
/// signs what it sends.
///
/// Digest, NTLM and Negotiate take more than one message, two of them on one connection, so they are part of one exchange:
/// the responses in between are not seen, and the first message has no body where the scheme is known.
public struct TransportAuthentication: Hashable, Sendable {
    /// The answer to the server.
    public var server: Answer?
    /// The answer to the proxy, in place of ``Proxy/credential``.
    public var proxy: Answer?
    /// How the request is signed; a signed request has no answer to the server.
    public var signature: AWSSignature?

    /// Creates a value that does nothing but perhaps sign.
    public init(_ signature: AWSSignature? = nil) {
        self.signature = signature
    }

    /// A credential and the one scheme that it is used with.
    public struct Answer: Hashable, Sendable {
        /// The credential.
        public var credential: Credential
        /// The scheme.
        public var scheme: AuthenticationScheme

        /// Creates an answer.
        public init(_ credential: Credential, by scheme: AuthenticationScheme) {
            self.credential = credential
            self.scheme = scheme
        }
    }
}

extension Request {
    /// What the transport does to show who makes the request; nil, the default, is nothing. A session sets it.
    ///
    /// Whoever could set it would have to keep it from other origins.
    public package(set) var transportAuthentication: TransportAuthentication? {
        get { self[TransportAuthentication.OfRequest.self] }
        set { self[TransportAuthentication.OfRequest.self] = newValue }
    }
}

extension TransportAuthentication {
    fileprivate enum OfRequest: RequestAttribute {
        static var defaultValue: TransportAuthentication? { nil }
    }
}
