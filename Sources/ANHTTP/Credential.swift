// SPDX-License-Identifier: MIT

/// A user name and a password, for a server or a proxy. Its description never contains the password.
///
/// For a server, set it as `Request.credential` or in `AuthenticationPolicy.credentials`, return it from the policy's
/// `challengeHandler`, or write it into a field with `HTTPFields.setBasicAuthorization(_:)`. For a proxy, set it as
/// ``Proxy/credential``.
public struct Credential: Hashable, Sendable, CustomStringConvertible {
    /// The user name; for NTLM it may be `DOMAIN\user`. A control character in it fails the request with
    /// ``TransportError/Reason/invalidRequest(_:)``, and so does a colon if it is used with Basic for a server.
    public var user: String
    /// The password in clear text. A NUL in it fails the request with ``TransportError/Reason/invalidRequest(_:)``, and
    /// so does any control character if it is used with Basic for a server.
    public var password: String {
        get { secret.value }
        set { secret.value = newValue }
    }
    private var secret: Secret<String>
    /// The authentication schemes that the credential may be used with; `nil`, the default, for Digest, NTLM and Basic.
    ///
    /// Of those that the server offers, the first in the order Digest, NTLM, Basic and Negotiate is used. With an empty
    /// set, challenges are not answered with the credential.
    ///
    /// The credential is sent only after the server has asked for it, with two exceptions: one whose only scheme is
    /// Basic or Negotiate is sent with the first request, and a session sends an accepted one with later requests to
    /// the same protection space. If the only scheme is Digest or NTLM, the body of the first request is sent only with
    /// the answer to the challenge. For ``Proxy/credential``, `nil` selects Basic, which is sent with the first
    /// request, and libcurl selects one of several schemes.
    ///
    /// To open a WebSocket connection, only Basic is possible: a credential whose only scheme is another one fails the
    /// request with ``TransportError/Reason/invalidRequest(_:)``.
    public var schemes: Set<AuthenticationScheme>?

    /// Creates a credential.
    ///
    /// - Parameters:
    ///   - user: The user name; for NTLM it may be `DOMAIN\user`.
    ///   - password: The password in clear text.
    ///   - schemes: The authentication schemes that the credential may be used with; `nil`, the default, for the
    ///     strongest of Digest, NTLM and Basic that the server offers, or Basic for a ``Proxy``. A single scheme is
    ///     used with the first request, see ``schemes``.
    public init(user: String, password: String, schemes: Set<AuthenticationScheme>? = nil) {
        self.user = user
        secret = Secret(password)
        self.schemes = schemes
    }

    /// A credential for Negotiate (RFC 4559) that stands for the Kerberos ticket of the user who runs the process; see
    /// kinit(1). The ticket is sent with the first request, which fails with
    /// ``TransportError/Reason/unsupported(_:)`` if libcurl lacks GSS-API. Without a valid ticket, the server's 401 is
    /// the response.
    public static let systemTicket = Credential(user: "", password: "", schemes: [.negotiate])

    /// A description with the user name, without the password and the schemes.
    public var description: String { "Credential(user: \(user), password: …)" }
}

/// An HTTP authentication scheme (RFC 9110 §11.1).
public enum AuthenticationScheme: Hashable, Sendable, CaseIterable, CustomStringConvertible {
    /// Basic: the user name and the password, encoded but not encrypted (RFC 7617).
    case basic
    /// Digest: a hash of the user name, the password and the server's challenge (RFC 7616).
    case digest
    /// NTLM: Microsoft's challenge-response scheme ([MS-NLMP]), which authenticates a connection. libcurl uses HTTP/1.1
    /// for it. If libcurl was built without it, a server's offer of it is ignored, and a request with a credential that
    /// names no other scheme fails with ``TransportError/Reason/unsupported(_:)``.
    case ntlm
    /// Negotiate: a Kerberos ticket (RFC 4559), for which each request has a connection of its own. It is used only if
    /// ``Credential/schemes`` contains it. If libcurl was built without it, a server's offer of it is ignored, and a
    /// request with a credential that names no other scheme fails with ``TransportError/Reason/unsupported(_:)``.
    case negotiate

    /// The name of the scheme, as in `WWW-Authenticate`.
    public var description: String {
        switch self {
        case .basic: "Basic"
        case .digest: "Digest"
        case .ntlm: "NTLM"
        case .negotiate: "Negotiate"
        }
    }

    /// Creates the scheme with a name, ignoring case; `nil` for an unknown scheme.
    package init?(name: String) {
        let name = name.lowercased()
        guard let scheme = Self.allCases.first(where: { $0.description.lowercased() == name }) else { return nil }
        self = scheme
    }
}
