// SPDX-License-Identifier: MIT

public import ANHTTP

/// A server or proxy wants to know who makes a request, RFC 9110 §11.
///
/// Where it offers several ways, the strongest comes first: Digest, NTLM, Basic, and then Negotiate, which needs a ticket of
/// the system's.
public struct AuthenticationChallenge: Sendable {
    /// The request that was refused.
    public var request: Request
    /// The head of the response, 401 or 407; nil where a proxy refused to make a tunnel.
    public var head: ResponseHead?
    /// What is asked for.
    public var space: ProtectionSpace
    /// How many credentials were refused for this request already.
    public var previousFailures = 0
    /// The credential that was refused last.
    public var refusedCredential: Credential?

    /// Creates a challenge, as tests of handlers need it.
    public init(request: Request, head: ResponseHead?, space: ProtectionSpace) {
        self.request = request
        self.head = head
        self.space = space
    }

    /// What a program answers.
    public enum Answer: Sendable {
        /// The request is sent again with this credential.
        case use(Credential)
        /// The refusal is the response.
        case carryOn
        /// Not by this scheme: the next one that is offered is asked about; after the last the refusal is the response.
        case rejectProtectionSpace
        /// The request ends with `CancellationError`.
        case cancel
    }
}

/// What a credential is asked for.
public struct ProtectionSpace: Hashable, Sendable, CustomStringConvertible {
    /// Who asks.
    public var asker: Asker
    /// The asker's host; nil for a proxy that the environment names.
    public var host: String?
    /// The asker's port; nil for a proxy that the environment names.
    public var port: Int?
    /// Whether the connection to the server is one of https.
    public var isSecure: Bool
    /// The scheme.
    public var scheme: AuthenticationScheme
    /// What the server calls the space that it protects; nil where it gives no name.
    public var realm: String?

    /// Creates a protection space.
    public init(
        asker: Asker = .server, host: String?, port: Int?, isSecure: Bool, scheme: AuthenticationScheme,
        realm: String?
    ) {
        self.asker = asker
        self.host = host
        self.port = port
        self.isSecure = isSecure
        self.scheme = scheme
        self.realm = realm
    }

    /// Who asks for a credential.
    public enum Asker: String, Hashable, Sendable {
        /// The server of the URL, by status 401.
        case server
        /// The proxy, by status 407.
        case proxy
    }

    /// Such as `Digest for “users” at server api.example.com`.
    public var description: String {
        "\(scheme)\(realm.map { " for “\($0)”" } ?? "") at \(asker.rawValue)\(host.map { " \($0)" } ?? "")"
    }
}
