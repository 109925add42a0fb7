// SPDX-License-Identifier: MIT

public import AsyncNetworking

/// An identity with which a client shows a server who it is. On Linux it is a value of the library's, read from PEM or
/// PKCS #12.
public typealias SecIdentity = ClientIdentity

/// The method of challenges for a client's certificate.
public let NSURLAuthenticationMethodClientCertificate = "NSURLAuthenticationMethodClientCertificate"

/// The method of challenges to trust a server.
public let NSURLAuthenticationMethodServerTrust = "NSURLAuthenticationMethodServerTrust"

extension URLProtectionSpace {
    /// What the server has shown; nil for challenges that are not about its certificate.
    public var serverTrust: SecTrust? { (self as? TrustProtectionSpace)?.trust }
}

extension URLCredential {
    /// A credential that says that a server is trusted.
    public convenience init(trust: SecTrust) {
        self.init(user: Self.trustedUser, password: "", persistence: .none)
    }

    /// Whether it says that a server is trusted.
    var isOfTrust: Bool { user == Self.trustedUser }

    /// Creates a credential for a server that asks for a client's certificate.
    ///
    /// - Parameters:
    ///   - identity: The certificate, its key, and the certificates between it and an authority.
    ///   - certificates: Not used: they are part of the identity.
    ///   - persistence: Not used: the identity counts for the connection that it was asked for.
    public convenience init(
        identity: SecIdentity, certificates: [Any]?, persistence: URLCredential.Persistence
    ) {
        self.init(user: Self.identifiedUser, password: CodedIdentity(identity).text, persistence: .none)
    }

    /// The identity of a credential for a server that asks for a client's certificate; `nil` for other credentials.
    public var identity: SecIdentity? {
        guard user == Self.identifiedUser else { return nil }
        return password.flatMap(CodedIdentity.init)?.identity
    }

    /// No users of a server's: Foundation's class has no room for anything else.
    private static let trustedUser = "trust \(UUID())"
    private static let identifiedUser = "identity \(UUID())"
}

/// A protection space with what a server has shown.
private final class TrustProtectionSpace: URLProtectionSpace, @unchecked Sendable {
    let trust: ServerTrust

    init(_ trust: ServerTrust) {
        self.trust = trust
        super.init(
            host: trust.host, port: 443, protocol: "https", realm: nil,
            authenticationMethod: NSURLAuthenticationMethodServerTrust)
    }

    required init?(coder: NSCoder) { nil }
}

extension URLAuthenticationChallenge {
    /// The challenge to trust a server.
    static func of(_ trust: ServerTrust) -> URLAuthenticationChallenge {
        URLAuthenticationChallenge(
            protectionSpace: TrustProtectionSpace(trust), proposedCredential: nil, previousFailureCount: 0,
            failureResponse: nil, error: nil, sender: NoSender())
    }

    /// The challenge of a server that asks for a client's certificate.
    static func forIdentity(host: String) -> URLAuthenticationChallenge {
        URLAuthenticationChallenge(
            protectionSpace: URLProtectionSpace(
                host: host, port: 443, protocol: "https", realm: nil,
                authenticationMethod: NSURLAuthenticationMethodClientCertificate),
            proposedCredential: nil, previousFailureCount: 0, failureResponse: nil, error: nil, sender: NoSender())
    }

    /// The challenge of a server or proxy that asks for a credential.
    static func of(_ challenge: AuthenticationChallenge) -> URLAuthenticationChallenge {
        let space = challenge.space
        let method: String =
            switch space.scheme {
            case .basic: NSURLAuthenticationMethodHTTPBasic
            case .digest: NSURLAuthenticationMethodHTTPDigest
            case .ntlm: NSURLAuthenticationMethodNTLM
            case .negotiate: NSURLAuthenticationMethodNegotiate
            }
        let host = space.host ?? ""
        let port = space.port ?? 0
        let scheme = space.isSecure ? "https" : "http"
        let foundation =
            switch space.asker {
            case .server:
                URLProtectionSpace(
                    host: host, port: port, protocol: scheme, realm: space.realm, authenticationMethod: method)
            case .proxy:
                URLProtectionSpace(
                    proxyHost: host, port: port, type: scheme, realm: space.realm, authenticationMethod: method)
            }
        let refused = challenge.refusedCredential.map {
            URLCredential(user: $0.user, password: $0.password, persistence: .none)
        }
        return URLAuthenticationChallenge(
            protectionSpace: foundation, proposedCredential: refused,
            previousFailureCount: challenge.previousFailures,
            failureResponse: challenge.head.flatMap(HTTPURLResponse.make), error: nil, sender: NoSender())
    }
}

/// Takes no answers: they are returned, or given to a completion handler.
private final class NoSender: NSObject, URLAuthenticationChallengeSender {
    func use(_ credential: URLCredential, for challenge: URLAuthenticationChallenge) {}
    func continueWithoutCredential(for challenge: URLAuthenticationChallenge) {}
    func cancel(_ challenge: URLAuthenticationChallenge) {}
    func performDefaultHandling(for challenge: URLAuthenticationChallenge) {}
    func rejectProtectionSpaceAndContinue(with challenge: URLAuthenticationChallenge) {}
}
