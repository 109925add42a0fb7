// SPDX-License-Identifier: MIT

package import FoundationEssentials

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

    /// Creates a credential from the user information of a URL; `nil` without a user.
    package init?(userOf url: URL) {
        guard let user = url.user(percentEncoded: false) else { return nil }
        self.init(user: user, password: url.password(percentEncoded: false) ?? "")
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

/// Credentials and scope for signing requests with AWS Signature Version 4, for Amazon's and compatible services.
///
/// A session that has the value in its `AuthenticationPolicy.signatures` signs the requests to its ``hosts``, except
/// those with an `Authorization` field. WebSocket connections cannot be signed: those to the ``hosts`` without such a
/// field fail with ``TransportError/Reason/invalidRequest(_:)``.
///
/// The signature covers the method, the URL, the body, the time, and the header fields except `Content-Length`,
/// `Transfer-Encoding` and stored cookies. A `Cookie` field of the request is covered only if cookies are not handled;
/// see ``TransferOptions/handlesCookies``. The path and the query are sent in the form that is signed: reserved
/// characters are percent-encoded, and the parameters are sorted, each with `=`. `Accept-Encoding` is covered if it is a
/// field of the request, but not if the transport adds it; see ``TransferOptions/decodesContent``.
///
/// Bytes and files are hashed before they are sent, so a file is read twice: on the global executor, and within the time
/// limits of the request. A request that waits for a connection is signed when it gets one. A streamed body can be signed only for the
/// service `s3` over https, as `UNSIGNED-PAYLOAD`, or with an `x-amz-content-sha256` field set by the request;
/// otherwise the request fails with ``TransportError/Reason/invalidRequest(_:)``.
///
/// The description never contains the secrets.
public struct AWSSignature: Hashable, Sendable, CustomStringConvertible {
    /// The identifier of the access key.
    package let accessKeyID: String
    /// The secret access key that belongs to `accessKeyID`.
    package var secretAccessKey: String { secretKey.value }
    private let secretKey: Secret<String>
    /// The session token of temporary credentials, sent as `X-Amz-Security-Token`; `nil` for permanent ones.
    package var sessionToken: String? {
        get { secretToken.value }
        set { secretToken.value = newValue }
    }
    private var secretToken: Secret<String?>
    /// The region, such as `eu-central-1`.
    package let region: String
    /// The service, such as `s3`.
    package let service: String
    /// The hosts to which requests are signed, over http and https and on any port; `*.amazonaws.com` by default, which
    /// covers neither partitions such as `*.amazonaws.com.cn` nor compatible services. If empty, no request is signed.
    ///
    /// An invalid literal fails a session's requests to any host with ``TransportError/Reason/invalidRequest(_:)``,
    /// except those that an earlier pattern matches, and those with an `Authorization` field.
    public var hosts: [HostPattern] = ["*.amazonaws.com"]

    /// Creates the credentials for signing requests to one service in one region.
    ///
    /// ``hosts`` is `*.amazonaws.com`; set it for compatible services and for partitions such as `*.amazonaws.com.cn`.
    /// A control character in one of the values fails the requests with ``TransportError/Reason/invalidRequest(_:)``. If
    /// the values are wrong otherwise, the server refuses the requests.
    ///
    /// - Parameters:
    ///   - accessKeyID: The identifier of the access key.
    ///   - secretAccessKey: The secret access key.
    ///   - sessionToken: The session token of temporary credentials, sent as `X-Amz-Security-Token`; `nil`, the default,
    ///     for permanent ones.
    ///   - region: The region, such as `eu-central-1`; it must not be empty.
    ///   - service: The service, such as `s3`, in lower case; it must not be empty.
    public init(
        accessKeyID: String, secretAccessKey: String, sessionToken: String? = nil, region: String, service: String
    ) {
        self.accessKeyID = accessKeyID
        secretKey = Secret(secretAccessKey)
        secretToken = Secret(sessionToken)
        self.region = region
        self.service = service
    }

    /// A description with the access key's identifier, the region and the service, without secrets.
    public var description: String { "AWSSignature(\(accessKeyID), \(region), \(service))" }
}

/// A value that is never printed: neither descriptions nor mirrors contain it.
package struct Secret<Value: Hashable & Sendable>: Hashable, Sendable, CustomStringConvertible, CustomReflectable {
    package var value: Value

    /// Wraps a value.
    package init(_ value: Value) {
        self.value = value
    }

    package var description: String { "…" }
    package var customMirror: Mirror { Mirror(self, children: []) }
}
