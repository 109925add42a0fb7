// SPDX-License-Identifier: MIT

import ANSystem
public import AsyncNetworking

/// The part of a certificate chain that is compared with pinned certificates.
public enum AFSSLPinningMode: UInt, Codable, Sendable {
    /// No pinning: pinned certificates are ignored, and the chain must end at a trusted certificate authority.
    /// ``AFSecurityPolicy/allowInvalidCertificates`` describes the exception.
    case none = 0
    /// A public key in the chain must be that of a pinned certificate, so that the server's certificate may be renewed
    /// with the same key. The chain must also be valid, unless ``AFSecurityPolicy/allowInvalidCertificates`` is `true`.
    case publicKey = 1
    /// The chain must contain a pinned certificate, the server's own or that of an authority, and be valid up to it. It
    /// must also end at a trusted certificate authority, unless ``AFSecurityPolicy/allowInvalidCertificates`` is
    /// `true`.
    case certificate = 2
}

/// The certificates that a server presented during its TLS handshake, and the result of their verification. On Linux
/// this is a value type of AsyncNetworking, `ServerTrust`. The protection space of a challenge provides it.
public typealias SecTrust = ServerTrust

extension SecTrust {
    /// Creates a trust for a test of a policy or of a challenge block. It counts as not verified, with a
    /// ``ANHTTP/ServerTrust/failure`` and an empty ``ANHTTP/ServerTrust/chain``, whatever the certificates are;
    /// ``AFNetworking/AFSecurityPolicy/evaluateServerTrust(_:forDomain:)`` verifies them.
    ///
    /// - Parameters:
    ///   - certificates: The certificates in DER, beginning with the server's own. If one cannot be parsed,
    ///     ``ANHTTP/ServerTrust/presented`` is empty, and no policy trusts the server.
    ///   - host: The host name or IP address of the server.
    public init(certificates: [Data], host: String) {
        self = SecurityPolicy().evaluate(certificates, for: host).trust
        chain = []
        failure = .rejected("The certificates were not presented in a handshake.")
    }
}

/// The rules for trusting servers: certificate pinning and validation. See ``ANHTTP/SecurityPolicy`` for how they are
/// applied.
///
/// The policy of a manager is read when a task starts, so that changes apply to later tasks. One that differs from the
/// default requires a libcurl that uses the same OpenSSL as this library; with another one, tasks over https fail with
/// -1 of `NSURLErrorDomain`. All members may be used from any thread.
open class AFSecurityPolicy: NSObject, NSSecureCoding, NSCopying, @unchecked Sendable {
    private let state = Lock(State())

    private struct State: Sendable {
        var rules = Rules()
        /// The evaluator that calls the overridable method of a subclass.
        var evaluator: SecurityPolicy.IdentifiedEvaluator?
    }

    private struct Rules: Codable, Sendable {
        var pinningMode = AFSSLPinningMode.none
        var pinnedCertificates: Set<Data>?
        var allowInvalidCertificates = false
        var validatesDomainName = true

        /// The core policy with these rules.
        var policy: SecurityPolicy {
            var policy = SecurityPolicy()
            policy.pinningMode =
                switch pinningMode {
                case .none: .none
                case .publicKey: .publicKey
                case .certificate: .certificate
                }
            policy.pinnedCertificates = (pinnedCertificates ?? []).sorted { $0.lexicographicallyPrecedes($1) }
            policy.allowsInvalidCertificates = allowInvalidCertificates
            policy.validatesDomainName = validatesDomainName
            return policy
        }
    }

    /// Creates a policy without pinning, as `default()` returns it: a valid certificate chain for the host name is
    /// required.
    public override init() {
        super.init()
    }

    /// Creates a policy that pins the certificates of the main bundle, which on Linux is the directory of the
    /// executable.
    ///
    /// If ``certificates(in:)`` finds none there, a pinning mode other than `.none` refuses every server.
    ///
    /// - Parameter pinningMode: The part of a certificate chain to compare; `.none` ignores the certificates.
    public convenience init(pinningMode: AFSSLPinningMode) {
        self.init(pinningMode: pinningMode, withPinnedCertificates: Self.certificates(in: .main))
    }

    /// Creates a policy that pins the given certificates.
    ///
    /// - Parameters:
    ///   - pinningMode: The part of a certificate chain to compare; `.none` ignores the certificates.
    ///   - certificates: The certificates, in DER. With an empty set, a pinning mode other than `.none` refuses every
    ///     server; with a certificate that cannot be parsed, it fails all tasks over https with -1200.
    public convenience init(pinningMode: AFSSLPinningMode, withPinnedCertificates certificates: Set<Data>) {
        self.init()
        state.withLock { state in
            state.rules.pinningMode = pinningMode
            state.rules.pinnedCertificates = certificates
        }
    }

    /// Returns a new policy without pinning, which requires a valid certificate chain for the host name.
    open class func `default`() -> AFSecurityPolicy { AFSecurityPolicy() }

    /// Returns the certificates, in DER, of the files with the extensions `.cer`, `.crt`, `.der` and `.pem` in the
    /// resources of a bundle. Files that cannot be read, and those without a certificate, are ignored; subdirectories
    /// are not searched.
    ///
    /// - Parameter bundle: The bundle. `Bundle.main` on Linux is the directory of the executable.
    open class func certificates(in bundle: Bundle) -> Set<Data> {
        guard let path = bundle.resourcePath else { return [] }
        return Set(SecurityPolicy.readableCertificates(inDirectory: path))
    }

    /// The part of a certificate chain that is compared with the pinned certificates, as set by the initializer;
    /// `.none` by default.
    open var sslPinningMode: AFSSLPinningMode { state.withLock { $0.rules.pinningMode } }

    /// The pinned certificates, in DER; `nil` by default. With `nil` or an empty set, a pinning mode other than `.none`
    /// refuses every server (-1202). In these modes, a certificate that cannot be parsed fails all tasks over https
    /// with -1200.
    open var pinnedCertificates: Set<Data>? {
        get { state.withLock { $0.rules.pinnedCertificates } }
        set { state.withLock { $0.rules.pinnedCertificates = newValue } }
    }

    /// Whether certificate chains that are not valid, such as self-signed ones, are accepted if they are pinned.
    /// Default: `false`.
    ///
    /// Without pinning, `true` accepts every chain if ``validatesDomainName`` is `false`, and none otherwise, because
    /// the name in an unverified certificate proves nothing. See the table of ``ANHTTP/SecurityPolicy``.
    open var allowInvalidCertificates: Bool {
        get { state.withLock { $0.rules.allowInvalidCertificates } }
        set { state.withLock { $0.rules.allowInvalidCertificates = newValue } }
    }

    /// Whether the certificate must be valid for the host name of the URL (RFC 9525 §6) and for use by TLS servers;
    /// `false` turns off both checks. Default: `true`.
    open var validatesDomainName: Bool {
        get { state.withLock { $0.rules.validatesDomainName } }
        set { state.withLock { $0.rules.validatesDomainName = newValue } }
    }

    /// Returns whether a server is trusted according to the rules of this policy.
    ///
    /// The certificates are verified on each call, for the given domain and against the certificate authorities of the
    /// session that received them; the verification result stored in the ``SecTrust`` is not used.
    ///
    /// An override is called during the TLS handshake, on the thread of an event loop, and must return at once. If the
    /// manager has a block for challenges, such as that of
    /// ``AFURLSessionManager/setAuthenticationChallengeHandler(_:)``, it is called only if the block leaves the decision
    /// to the policy.
    ///
    /// - Parameters:
    ///   - serverTrust: The certificates that the server presented, as received with a challenge or by an override.
    ///   - domain: The host name or IP address for which the certificate must be valid; `nil` for no check. It has no
    ///     effect if ``validatesDomainName`` is `false`.
    /// - Returns: `true` if the server is trusted; `false` also if a certificate cannot be parsed.
    open func evaluateServerTrust(_ serverTrust: SecTrust, forDomain domain: String?) -> Bool {
        var policy = overriddenRules.policy
        policy.trustRoots = serverTrust.trustRoots
        // A policy that verifies for the current time caches the certificate authorities that it has read.
        if abs(serverTrust.date.timeIntervalSinceNow) > 60 { policy.verificationTime = serverTrust.date }
        return !policy.evaluate(serverTrust.presented.map(\.der), for: domain).isRefused
    }

    /// The AsyncNetworking policy with the same rules, for use with a `SessionManager`. It is a copy: later changes of
    /// this object have no effect on it. For a subclass it calls the override of ``evaluateServerTrust(_:forDomain:)``
    /// as long as this object, which it does not retain, exists; afterwards the copied rules apply.
    public var policy: SecurityPolicy {
        guard type(of: self) != AFSecurityPolicy.self else { return state.withLock { $0.rules }.policy }
        var policy = overriddenRules.policy
        // The evaluator is created once: requests share connections only if their policies are equal.
        policy.identifiedEvaluator = state.withLock { state in
            let evaluator =
                state.evaluator
                ?? SecurityPolicy.IdentifiedEvaluator { [weak self] trust in
                    guard let self else { return .followPolicy }
                    let isTrusted = evaluateServerTrust(trust, forDomain: trust.host)
                    return isTrusted ? .accept : .refuse("the policy rejected it")
                }
            state.evaluator = evaluator
            return evaluator
        }
        return policy
    }

    /// The rules, including overrides in a subclass.
    private var overriddenRules: Rules {
        Rules(
            pinningMode: sslPinningMode, pinnedCertificates: pinnedCertificates,
            allowInvalidCertificates: allowInvalidCertificates, validatesDomainName: validatesDomainName)
    }

    // MARK: Copies and archives

    /// Creates a policy from an archive written by ``encode(with:)``; `nil` if its rules are missing or cannot be
    /// decoded, as in an archive of AFNetworking itself.
    public required init?(coder: NSCoder) {
        guard let rules = coder.decodeValue(Rules.self, forKey: "securityPolicy") else { return nil }
        super.init()
        state.withLock { $0.rules = rules }
    }

    /// Archives the rules of the policy: the pinning mode, the pinned certificates, whether invalid certificates are
    /// allowed, and whether the domain name is validated.
    open func encode(with coder: NSCoder) {
        coder.encodeValue(state.withLock { $0.rules }, forKey: "securityPolicy")
    }

    /// Always `true`: archives can be decoded with `requiresSecureCoding`.
    open class var supportsSecureCoding: Bool { true }

    /// Returns an ``AFSecurityPolicy`` with the same rules. A subclass must override this method; otherwise, its copy
    /// lacks its overrides.
    open func copy(with zone: NSZone? = nil) -> Any {
        let copy = AFSecurityPolicy()
        let own = state.withLock { $0.rules }
        copy.state.withLock { $0.rules = own }
        return copy
    }
}
