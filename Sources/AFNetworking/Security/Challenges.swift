// SPDX-License-Identifier: MIT

public import AsyncNetworking

/// A client certificate with its private key, which identifies the client to a server. On Linux this is a value type of
/// AsyncNetworking, created from PEM or PKCS #12.
public typealias SecIdentity = ClientIdentity

/// The authentication method of challenges that request a client certificate. The answer is a `URLCredential` that was
/// created with an identity.
public let NSURLAuthenticationMethodClientCertificate = "NSURLAuthenticationMethodClientCertificate"

/// The authentication method of challenges about trusting a server. The answer that accepts it is a `URLCredential`
/// that was created with its trust.
public let NSURLAuthenticationMethodServerTrust = "NSURLAuthenticationMethodServerTrust"

extension URLProtectionSpace {
    /// The certificates that the server presented; `nil` unless the space is that of a challenge from this module with
    /// the authentication method ``NSURLAuthenticationMethodServerTrust``.
    public var serverTrust: SecTrust? { (self as? TrustProtectionSpace)?.trust }
}

extension URLCredential {
    /// Creates a credential that accepts a server as trusted, as an answer to the challenge about it.
    ///
    /// - Parameter trust: The trust of the challenge. It is not stored: the credential accepts the server that it is
    ///   the answer for.
    public convenience init(trust: SecTrust) {
        self.init(user: Self.trustedUser, password: "", persistence: .none)
    }

    /// Whether the credential was created with a server trust.
    var isOfTrust: Bool { user == Self.trustedUser }

    /// The user name and the password for a challenge of HTTP; `nil` if the credential has no user, or was created with
    /// a server trust or an identity, whose private key is in the password.
    var userCredential: Credential? {
        guard let user, !isOfTrust, user != Self.identifiedUser else { return nil }
        return Credential(user: user, password: password ?? "")
    }

    /// Creates a credential with a client certificate for the connection for which it was requested.
    ///
    /// `password` contains the identity in encoded form: do not write it to a log. The certificate and key are read
    /// during the handshake; if they cannot be used, the task fails with -1205.
    ///
    /// - Parameters:
    ///   - identity: The certificate with its private key, and any intermediate certificates.
    ///   - certificates: Ignored: intermediate certificates are part of the identity.
    ///   - persistence: Ignored: the credential is not stored.
    public convenience init(
        identity: SecIdentity, certificates: [Any]?, persistence: URLCredential.Persistence
    ) {
        let coded = (try? JSONEncoder().encode(CodedIdentity(identity))) ?? Data()
        self.init(user: Self.identifiedUser, password: String(decoding: coded, as: UTF8.self), persistence: .none)
    }

    /// The client certificate of the credential; `nil` if it was created without one.
    public var identity: SecIdentity? {
        guard user == Self.identifiedUser else { return nil }
        let coded = password.flatMap { try? JSONDecoder().decode(CodedIdentity.self, from: Data($0.utf8)) }
        return coded?.identity
    }

    // User names that mark a credential, unique per process. Foundation's class can store nothing but a user name and a
    // password.
    private static let trustedUser = "trust \(UUID())"
    private static let identifiedUser = "identity \(UUID())"
}

/// A client identity in the form in which it is stored as the password of a credential.
private struct CodedIdentity: Codable {
    /// The certificates and the key, or a PKCS #12 archive alone.
    private let sources: [Source]
    private let passphrase: String?

    private struct Source: Codable {
        var path: String?
        var data: Data?

        init(_ source: FileOrData) {
            path = source.path
            if case .data(let bytes) = source { data = bytes }
        }

        var value: FileOrData { path.map(FileOrData.file) ?? .data(data ?? Data()) }
    }

    init(_ identity: ClientIdentity) {
        passphrase = identity.passphrase
        sources =
            switch identity.content {
            case .pem(let certificates, let key): [Source(certificates), Source(key)]
            case .pkcs12(let archive): [Source(archive)]
            }
    }

    /// The decoded identity.
    var identity: ClientIdentity? {
        switch sources.count {
        case 1: .pkcs12(sources[0].value, passphrase: passphrase ?? "")
        case 2: .pem(certificates: sources[0].value, key: sources[1].value, passphrase: passphrase)
        default: nil
        }
    }
}

/// A protection space with the certificates that a server presented.
final class TrustProtectionSpace: URLProtectionSpace, @unchecked Sendable {
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
    /// Creates a challenge.
    convenience init(
        _ space: URLProtectionSpace, proposing credential: URLCredential? = nil, failures: Int = 0,
        response: HTTPURLResponse? = nil
    ) {
        self.init(
            protectionSpace: space, proposedCredential: credential, previousFailureCount: failures,
            failureResponse: response, error: nil, sender: Sender())
    }

    /// Creates the challenge of a server or proxy that requests a credential.
    convenience init(_ challenge: AuthenticationChallenge) {
        let space = challenge.protectionSpace
        let method =
            switch space.scheme {
            case .basic: NSURLAuthenticationMethodHTTPBasic
            case .digest: NSURLAuthenticationMethodHTTPDigest
            case .ntlm: NSURLAuthenticationMethodNTLM
            case .negotiate: NSURLAuthenticationMethodNegotiate
            }
        let (host, port, scheme) = (space.host ?? "", space.port ?? 0, space.isSecure ? "https" : "http")
        let foundation =
            if space.isProxy {
                URLProtectionSpace(
                    proxyHost: host, port: port, type: scheme, realm: space.realm, authenticationMethod: method)
            } else {
                URLProtectionSpace(
                    host: host, port: port, protocol: scheme, realm: space.realm, authenticationMethod: method)
            }
        self.init(
            foundation,
            proposing: challenge.refusedCredential.map {
                URLCredential(user: $0.user, password: $0.password, persistence: .none)
            },
            failures: challenge.previousFailureCount, response: challenge.head.flatMap(HTTPURLResponse.make))
    }
}

/// A challenge sender that ignores answers: they are passed as return values or to a completion handler.
private final class Sender: NSObject, URLAuthenticationChallengeSender {
    func use(_ credential: URLCredential, for challenge: URLAuthenticationChallenge) {}
    func continueWithoutCredential(for challenge: URLAuthenticationChallenge) {}
    func cancel(_ challenge: URLAuthenticationChallenge) {}
    func performDefaultHandling(for challenge: URLAuthenticationChallenge) {}
    func rejectProtectionSpaceAndContinue(with challenge: URLAuthenticationChallenge) {}
}
