// SPDX-License-Identifier: MIT

public import ANHTTP
public import FoundationEssentials

/// Credentials, tokens and signatures used to authenticate requests.
///
/// ```swift
/// let api = SessionManager(baseURL: url) {
///     $0.authentication.credentials[url] = Credential(user: "ada", password: password)
/// }
/// ```
///
/// For each request, the first of these that exists is used:
///
/// | available | effect |
/// |---|---|
/// | an `Authorization` field of the request or session | it is sent unchanged, and a server's challenge is returned as the response |
/// | ``signatures`` for the host | the request is signed |
/// | ``authenticators`` for the origin | a bearer token is sent, and refreshed when necessary |
/// | `Request.credential`, then ``credentials``, then the ``netrcFile`` | the credential answers a challenge; one that names a single scheme is used with the first request |
/// | ``challengeHandler`` | it is called if there is no credential, or if the credential was refused |
///
/// A credential that names a single scheme is used with the first request: Basic and Negotiate are sent at once; for
/// Digest and NTLM, the transport first obtains a challenge by a request without the body.
///
/// A 401 for which there is no answer is returned as the response, and so is the last one if the answers run out. The
/// bodies of answered challenges are discarded. An accepted credential is stored for its protection space and sent with
/// later requests to that space without waiting for a challenge. It is never sent to another origin, even after a
/// redirect.
public struct AuthenticationPolicy: Sendable {
    /// The credentials with which challenges are answered, each for one origin; empty by default. One that names a
    /// single scheme is used with the first request. See ``AuthenticationPolicy/Credentials``.
    public var credentials = Credentials()
    /// The path of a `.netrc` file with credentials for hosts without an entry in ``credentials``; `nil`, the default,
    /// for none. A relative path is resolved against the working directory when the file is read, and `~` is not
    /// expanded. See netrc(5).
    ///
    /// The file identifies hosts without scheme and port. Its entries are therefore used over https on any port of the
    /// host, and over http only for `localhost` and the loopback addresses `127.0.0.1` and `::1`, if the request is sent
    /// there itself, neither to a proxy or a Unix-domain socket nor to the address of an override. A `default` entry,
    /// which would match every host, is ignored, and so is one without a password, or that is no UTF-8. If a host has several entries, the
    /// first is used. The file is read once, by the task of the request that first needs it, and again only after this
    /// property was set; a file that cannot be read has no entries. Copies of the policy share the entries that were
    /// read.
    public var netrcFile: String? {
        get { netrc?.path }
        set { netrc = newValue.map(NetrcFile.init) }
    }
    private var netrc: NetrcFile?
    /// The signatures for Amazon's services; the first one with a pattern that matches the host is used, unless the
    /// query has one (`X-Amz-Signature`). Empty by default. The patterns are checked in order until one matches: an invalid one fails the request with
    /// ``ANHTTP/TransportError/Reason/invalidRequest(_:)``.
    public var signatures: [AWSSignature] = []
    /// The sources of bearer tokens; the first one for the origin of a request is used. Empty by default. Requests that
    /// the refresh closure of an ``Authenticator`` makes do not use that authenticator.
    public var authenticators: [Authenticator] = []
    /// A closure called for challenges that no credential answers; `nil`, the default, returns them as responses. It is
    /// also called for challenges by a proxy, but not for those of a server to which an `Authorization` field, a
    /// signature or a bearer token was sent.
    ///
    /// It runs in the task that makes the request, and an error that it throws becomes the error of the request.
    /// Meanwhile the body of the refusal is received and kept in memory, up to
    /// ``ANHTTP/TransferOptions/maximumBodySize``: the handler may make requests, also if the session has only one
    /// connection. If it returns a credential that was already refused for this request, it is not called again, and the
    /// challenge is returned as the response. If a proxy refuses to open a tunnel, there is no response, and the request
    /// fails with ``SessionError/transport(_:)`` instead.
    public var challengeHandler:
        (@Sendable (AuthenticationChallenge) async throws -> AuthenticationChallenge.Disposition)?
    /// The maximum number of credentials tried for one request with the server, and likewise with the proxy. After that
    /// the challenge is returned as the response; if a proxy refused to open a tunnel, the request fails. A redirect or a
    /// retry starts over.
    static let maximumCredentials = 5

    /// Creates a policy without credentials, tokens, signatures or a challenge handler.
    public init() {}

    /// The policy without credentials, tokens, signatures or a challenge handler, which is a session's default. Set as
    /// `Request.authentication`, it disables the session's policy, but not `Request.credential`; write
    /// `AuthenticationPolicy.none` there, because `.none` means `nil` for an optional property.
    public static let none = AuthenticationPolicy()

    /// Whether the policy can authenticate any request.
    var isActive: Bool { answersChallenges || !signatures.isEmpty || !authenticators.isEmpty }

    /// Whether the policy may answer challenges.
    var answersChallenges: Bool { !credentials.isEmpty || challengeHandler != nil || netrc != nil }

    /// Returns the credential for a request that is one of some origins, the one that it is sent to first: its own, or
    /// else from ``credentials`` or the ``netrcFile``; `nil` if there is none.
    func credential(for request: Request, of origins: [Origin], on transport: any Transport) async -> Credential? {
        let known = request.credential ?? origins.lazy.compactMap { credentials[$0] }.first
        if let known { return known }
        guard let netrc, let origin = origins.first else { return nil }
        return await netrc.credential(for: origin, isReached: transport.features.reachesHost(request))
    }

    /// Returns the source of the bearer token for a request that is one of some origins; `nil` if there is none.
    func authenticator(for origins: [Origin]) -> Authenticator? {
        authenticators.first { !$0.origins.isDisjoint(with: origins) && !$0.isBypassed }
    }
}

extension AuthenticationPolicy {
    /// Credentials by origin: scheme, host and port. They take effect as ``AuthenticationPolicy/credentials``. Each applies
    /// to all paths of its origin, and to no subdomain of its host. One for an origin over http is also used over https if
    /// the host is known to require that (``SessionManager/strictTransport``). The description contains no passwords.
    public struct Credentials: Hashable, Sendable, CustomStringConvertible {
        private var values: [Origin: Credential] = [:]

        /// Creates a collection without credentials.
        public init() {}

        /// The credential for the origin of a URL; `nil` if not set. Setting `nil` removes it.
        ///
        /// The path of the URL is ignored, a missing port is the default of the scheme, and `ws` and `wss` count as `http`
        /// and `https`.
        public subscript(_ url: URL) -> Credential? {
            get { values[Origin(url)] }
            set { values[Origin(url)] = newValue }
        }

        /// A Boolean value that indicates whether the collection is empty.
        var isEmpty: Bool { values.isEmpty }

        subscript(_ origin: Origin) -> Credential? { values[origin] }

        /// The origins and their user names, without passwords, sorted and separated by commas, such as
        /// `https://example.com:443: Credential(user: ada, password: …)`; empty if there are no credentials.
        public var description: String {
            values.map { "\($0.key): \($0.value)" }.sorted().joined(separator: ", ")
        }
    }
}

extension Request {
    /// The credential of this request; `nil`, the default, uses those of the authentication policy. It answers a
    /// challenge of the server; one that names a single scheme is used with the first request. It takes precedence over
    /// the policy's credentials and `.netrc` file, but not over an `Authorization` field, a signature or a bearer
    /// token.
    ///
    /// It belongs to the origin that ``ANHTTP/Request/url`` has when the credential is set, and is not sent to another
    /// origin, except over https in place of http to a host that requires it (RFC 6797). For a URL of another origin it
    /// reads as `nil`.
    ///
    /// If it is accepted after a challenge, later requests to the protection space that have the same credential send it
    /// without waiting for a challenge, unless `authentication` is set. Requests without a credential never send it.
    public var credential: Credential? {
        get { scopedCredential.flatMap { $0.origin == Origin(url) ? $0.credential : nil } }
        set {
            scopedCredential = newValue.map { ScopedCredential(origin: Origin(url), credential: $0) }
        }
    }

    /// The authentication policy of this request, which replaces the session's as a whole; `nil`, the default, uses the
    /// session's.
    ///
    /// Credentials that are accepted under a policy of a request's own are not stored for later requests, and those
    /// that the session has stored are not used.
    public var authentication: AuthenticationPolicy? {
        get { self[PolicyOfRequest.self] }
        set { self[PolicyOfRequest.self] = newValue }
    }

    /// Sends the request to a URL over https, because the host of its own requires that.
    mutating func upgrade(to url: URL) {
        let origin = Origin(url)
        if let scoped = scopedCredential, origin.overPlainHTTP.contains(scoped.origin) {
            scopedCredential = ScopedCredential(origin: origin, credential: scoped.credential)
        }
        self.url = url
    }

    /// Whether this request has a credential or an authentication policy of its own.
    var hasOwnAuthentication: Bool { scopedCredential != nil || authentication != nil || challengeHandler != nil }

    /// A closure called for challenges before that of the authentication policy, to which it leaves a challenge by
    /// returning `nil`. Its answers are not stored for later requests.
    package var challengeHandler:
        (@Sendable (AuthenticationChallenge) async throws -> AuthenticationChallenge.Disposition?)?
    {
        get { self[HandlerOfRequest.self] }
        set { self[HandlerOfRequest.self] = newValue }
    }

    private var scopedCredential: ScopedCredential? {
        get { self[ScopedCredential.self] }
        set { self[ScopedCredential.self] = newValue }
    }
}

/// A credential and the origin that it belongs to.
private struct ScopedCredential: RequestAttribute {
    var origin: Origin
    var credential: Credential

    static var defaultValue: ScopedCredential? { nil }
}

private enum PolicyOfRequest: RequestAttribute {
    static var defaultValue: AuthenticationPolicy? { nil }
}

private enum HandlerOfRequest: RequestAttribute {
    static var defaultValue: (@Sendable (AuthenticationChallenge) async throws -> AuthenticationChallenge.Disposition?)?
    { nil }
}

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
    /// sent without a challenge, except a stored one of another realm; 0 if there was none.
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
        "\(scheme)\(realm.map { " for “\($0.printable)”" } ?? "")\(place)"
    }

    /// The space as text without the realm, which is a text of the server.
    var words: String { "\(scheme)\(place)" }

    private var place: String { " at \(isProxy ? "proxy" : "server")\(host.map { " \($0)" } ?? "")" }
}
