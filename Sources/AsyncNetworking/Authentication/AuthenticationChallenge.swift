// SPDX-License-Identifier: MIT

public import ANHTTP

/// A challenge by which a server or proxy asks for a credential (RFC 9110 §11); the argument of
/// ``AuthenticationPolicy/challengeHandler``.
///
/// If several schemes are offered, the handler is called for the strongest first, and for the next one as long as it
/// returns ``Disposition/rejectProtectionSpace``: Digest, NTLM, Basic, and last Negotiate, which needs a Kerberos
/// ticket of the system. Schemes that the transport does not support are left out, and for the server of a WebSocket
/// connection all but Basic.
public struct AuthenticationChallenge: Sendable {
    /// The refused request, after redirects and with the session's header fields, but without the refused credential.
    /// Changes have no effect on the request that is sent.
    public var request: Request
    /// The head of the 401 or 407 response; `nil` if a proxy refused to open a tunnel.
    public var head: ResponseHead?
    /// The protection space for which a credential is requested, with one of the offered schemes.
    public var protectionSpace: ProtectionSpace
    /// The number of credentials that this server or proxy has already refused for this request, including one that was
    /// sent without a challenge; 0 if there was none.
    public var previousFailureCount = 0
    /// The credential that this server or proxy has refused last for this request; `nil` before the first refusal.
    public var refusedCredential: Credential?

    /// Creates a challenge, for testing a handler.
    package init(request: Request, head: ResponseHead?, protectionSpace: ProtectionSpace) {
        self.request = request
        self.head = head
        self.protectionSpace = protectionSpace
    }

    /// The answer of a ``AuthenticationPolicy/challengeHandler`` to a challenge.
    public enum Disposition: Sendable {
        /// Sends the request again with this credential, by this scheme or the next offered one that it supports. If it
        /// was already refused for this request, or supports none of them, the result is that of
        /// ``performDefaultHandling``. If the body is not replayable, the request fails with
        /// ``SessionError/AuthenticationFailure/bodyNotReplayable``.
        case use(Credential)
        /// Returns the refusal as the response, without trying further schemes. If a proxy refused to open a tunnel,
        /// the request fails with its error instead.
        case performDefaultHandling
        /// Skips this scheme: the handler is called for the next one offered. After the last one, the result is that of
        /// ``performDefaultHandling``.
        case rejectProtectionSpace
        /// Ends the request with `CancellationError`, without cancelling the task that makes it.
        case cancel
    }
}

/// The part of a server or proxy for which a credential is valid (RFC 9110 §11.5), as in
/// ``AuthenticationChallenge/protectionSpace``.
public struct ProtectionSpace: Hashable, Sendable, CustomStringConvertible {
    /// Whether a proxy asks, by a response with status 407, instead of the server, with status 401.
    public var isProxy: Bool
    /// The host of the server, in lower case, without a trailing dot, and without brackets around an IPv6 address; or
    /// the host of the proxy, as configured. `nil` for a proxy set by environment variables.
    public var host: String?
    /// The port of the server, by default that of the URL's scheme, or of the proxy; `nil` for a proxy set by
    /// environment variables.
    public var port: Int?
    /// Whether the URL of the request has the scheme `https`, also for a challenge by a proxy.
    public var isSecure: Bool
    /// The authentication scheme by which the server or proxy asks for the credential.
    public var scheme: AuthenticationScheme
    /// The realm, as named by the server or proxy for this scheme (RFC 9110 §11.5); `nil` if it is not named, or if a
    /// proxy refused to open a tunnel.
    public var realm: String?

    /// Creates a protection space, for testing a handler.
    package init(
        isProxy: Bool = false, host: String?, port: Int?, isSecure: Bool, scheme: AuthenticationScheme,
        realm: String?
    ) {
        self.isProxy = isProxy
        self.host = host
        self.port = port
        self.isSecure = isSecure
        self.scheme = scheme
        self.realm = realm
    }

    /// The space as text, such as `Digest for “users” at server api.example.com`; without the part about the realm if
    /// that is `nil`.
    public var description: String {
        "\(scheme)\(realm.map { " for “\($0.printable)”" } ?? "") at \(isProxy ? "proxy" : "server")\(host.map { " \($0)" } ?? "")"
    }
}
