// SPDX-License-Identifier: MIT

public import AsyncNetworking

/// A client certificate with its private key, which identifies the client to a server. On Linux this is a value type of
/// AsyncNetworking, created from PEM or PKCS #12.
public typealias SecIdentity = ClientIdentity

/// The authentication method of challenges that request a client certificate.
public let NSURLAuthenticationMethodClientCertificate = "NSURLAuthenticationMethodClientCertificate"

/// The authentication method of challenges about trusting a server.
public let NSURLAuthenticationMethodServerTrust = "NSURLAuthenticationMethodServerTrust"

extension URLProtectionSpace {
    /// The certificates that the server presented; `nil` unless the authentication method is
    /// ``NSURLAuthenticationMethodServerTrust``.
    public var serverTrust: SecTrust? { (self as? TrustProtectionSpace)?.trust }
}

extension URLCredential {
    /// Creates a credential that accepts a server as trusted.
    public convenience init(trust: SecTrust) {
        self.init(user: Self.trustedUser, password: "", persistence: .none)
    }

    /// Whether the credential was created with a server trust.
    var isOfTrust: Bool { user == Self.trustedUser }

    /// Creates a credential with a client certificate.
    ///
    /// - Parameters:
    ///   - identity: The certificate, its private key, and the intermediate certificates.
    ///   - certificates: Ignored: intermediate certificates are part of the identity.
    ///   - persistence: Ignored: the identity applies to the connection for which it was requested.
    public convenience init(
        identity: SecIdentity, certificates: [Any]?, persistence: URLCredential.Persistence
    ) {
        self.init(user: Self.identifiedUser, password: CodedIdentity(identity).text, persistence: .none)
    }

    /// The client certificate of the credential; `nil` if it was created without one.
    public var identity: SecIdentity? {
        guard user == Self.identifiedUser else { return nil }
        return password.flatMap(CodedIdentity.init)?.identity
    }

    // User names that mark a credential, unique per process. Foundation's class can store nothing but a user name and a
    // password.
    private static let trustedUser = "trust \(UUID())"
    private static let identifiedUser = "identity \(UUID())"
}

/// A protection space with the certificates that a server presented.
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
    /// Returns the challenge about trusting a server.
    static func of(_ trust: ServerTrust) -> URLAuthenticationChallenge {
        URLAuthenticationChallenge(
            protectionSpace: TrustProtectionSpace(trust), proposedCredential: nil, previousFailureCount: 0,
            failureResponse: nil, error: nil, sender: NoSender())
    }

    /// Returns the challenge of a server that requests a client certificate.
    static func forIdentity(host: String) -> URLAuthenticationChallenge {
        URLAuthenticationChallenge(
            protectionSpace: URLProtectionSpace(
                host: host, port: 443, protocol: "https", realm: nil,
                authenticationMethod: NSURLAuthenticationMethodClientCertificate),
            proposedCredential: nil, previousFailureCount: 0, failureResponse: nil, error: nil, sender: NoSender())
    }

    /// Returns the challenge of a server or proxy that requests a credential.
    static func of(_ challenge: AuthenticationChallenge) -> URLAuthenticationChallenge {
        let space = challenge.protectionSpace
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
            switch space.source {
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
            previousFailureCount: challenge.previousFailureCount,
            failureResponse: challenge.head.flatMap(HTTPURLResponse.make), error: nil, sender: NoSender())
    }
}

/// A challenge sender that ignores answers: they are passed as return values or to a completion handler.
private final class NoSender: NSObject, URLAuthenticationChallengeSender {
    func use(_ credential: URLCredential, for challenge: URLAuthenticationChallenge) {}
    func continueWithoutCredential(for challenge: URLAuthenticationChallenge) {}
    func cancel(_ challenge: URLAuthenticationChallenge) {}
    func performDefaultHandling(for challenge: URLAuthenticationChallenge) {}
    func rejectProtectionSpaceAndContinue(with challenge: URLAuthenticationChallenge) {}
}
