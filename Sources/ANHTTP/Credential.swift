// SPDX-License-Identifier: MIT

/// A user and password, for a server or a proxy. Its description never shows the password.
public struct Credential: Hashable, Sendable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The user's name; for NTLM it may be `DOMAIN\user`.
    public var user: String
    /// The password.
    public var password: String
    /// The schemes that it may be used with.
    ///
    /// For a server nil, the default, means the strongest that the server asks for among Digest, NTLM and Basic: nothing is
    /// sent before the server has asked. With one scheme the server need not ask: Basic is sent with the first request.
    public var schemes: Set<AuthenticationScheme>?

    /// Creates a credential.
    public init(user: String, password: String, schemes: Set<AuthenticationScheme>? = nil) {
        self.user = user
        self.password = password
        self.schemes = schemes
    }

    /// The ticket of the user whom the program runs as, for Negotiate: see kinit(1).
    public static let systemTicket = Credential(user: "", password: "", schemes: [.negotiate])

    /// The user's name with the password left out.
    public var description: String { "Credential(user: \(user), password: …)" }
    /// The same as the description.
    public var debugDescription: String { description }
    /// A mirror without the password.
    public var customMirror: Mirror { Mirror(self, children: ["user": user]) }
}

/// A way to show who makes a request, RFC 9110 §11.1.
public enum AuthenticationScheme: String, Hashable, Sendable, CaseIterable, CustomStringConvertible {
    /// The password itself, readable by all who see the request. RFC 7617.
    case basic = "Basic"
    /// A digest of the password and of what the server asked with. RFC 7616.
    case digest = "Digest"
    /// Windows' own scheme, which authenticates a connection. HTTP/1.1 only.
    case ntlm = "NTLM"
    /// A Kerberos ticket, RFC 4559; it authenticates a connection. HTTP/1.1 only.
    case negotiate = "Negotiate"

    /// The name as it stands in `WWW-Authenticate`.
    public var description: String { rawValue }

    /// The scheme of this name, whatever its case.
    package init?(name: String) {
        let name = name.lowercased()
        guard let scheme = Self.allCases.first(where: { $0.rawValue.lowercased() == name }) else { return nil }
        self = scheme
    }
}
