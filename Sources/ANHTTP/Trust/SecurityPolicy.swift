// SPDX-License-Identifier: MIT

public import FoundationEssentials

/// The rules that a server's certificates must satisfy before a request is sent to it.
///
/// Set it in ``TLSOptions/policy`` or, for particular hosts, in ``TLSOptions/hostPolicies``. It does not apply to
/// proxies, to a ``ConnectionOptions/dnsOverHTTPS`` server, or to requests over http. `SecurityPolicy.evaluate(_:for:)`
/// applies it without a connection.
///
/// The policy is evaluated during the TLS handshake, on the chain verified by OpenSSL: if the server is refused, no
/// byte of the request has been sent. By default the chain must end at the ``TLSOptions/trustRoots``, and the
/// certificate must be valid for the host.
///
/// | pinned | `allowsInvalidCertificates` | the server is accepted if |
/// |---|---|---|
/// | `none` | no | the chain is valid |
/// | `none` | yes | always; with `validatesDomainName`, never: the name in an unverified certificate proves nothing |
/// | `publicKey` | no | the chain is valid, and one of its keys is pinned |
/// | `publicKey` | yes | a sent certificate with a pinned key is the server's or signed the chain; dates are ignored |
/// | `certificate` | no | the chain is valid, and there is a valid chain to a pinned certificate |
/// | `certificate` | yes | there is a valid chain to a pinned certificate |
///
/// In all cases the certificate must be valid for the host, unless `validatesDomainName` is off. A pinning mode without
/// pins refuses every server. After the expiry of the pins, a valid chain is required instead. The ``evaluator`` may change
/// the result, ``isAudited`` accepts servers in spite of some failures, and `stapling` may refuse a server in addition.
///
/// Connections are not shared between different policies, and a policy is not evaluated again for a reused connection.
/// TLS sessions are not resumed under a policy that differs from the default, because a resumed session presents no
/// certificates.
///
/// A policy that differs from the default requires a libcurl that uses the same OpenSSL as this library; with another
/// one, requests over https fail with ``TransportError/Reason/unsupported(_:)``.
public struct SecurityPolicy: Hashable, Sendable {
    /// The part of a chain that is compared with the pins; ``PinningMode/none`` by default.
    package var pinningMode = PinningMode.none
    /// The pinned certificates in DER; empty by default. In public-key mode, the keys of these certificates are pinned.
    /// One that cannot be parsed fails requests with ``TransportError/TLSFailure/badSecurityPolicy(_:)``, except in
    /// mode ``PinningMode/none``, which ignores them.
    package var pinnedCertificates: [Data] = []
    /// The pinned public keys, used in public-key mode only; empty by default.
    package var pins: [PublicKeyPin] = []
    /// Further pinned keys, for the day when the keys of ``pins`` must be replaced; empty by default. They are accepted
    /// in the same way as ``pins``, in public-key mode only; ``TrustResult/usesBackupPin`` reports whether the matching
    /// key was a backup.
    package var backupPins: [PublicKeyPin] = []
    /// The expiry of the pins and of the pinned certificates; `nil`, the default, for none.
    package var pinExpiry: Date?
    /// Whether a pinned chain is accepted even if it is not otherwise valid; `false` by default. Without pinning, every
    /// chain is accepted, provided that ``validatesDomainName`` is `false`; see the table of ``SecurityPolicy``.
    public var allowsInvalidCertificates = false
    /// Whether the certificate must be valid for the host of the URL and for TLS servers in general; `true` by default.
    /// The common name counts only if there are no alternative names, and a wildcard stands for one whole label (RFC
    /// 9525 §6.3). If neither a pin nor a host name is required, any server with a valid certificate is accepted.
    public var validatesDomainName = true
    /// The trusted certificate authorities; `nil`, the default, for those of ``TLSOptions/trustRoots``, or for those of
    /// the system in `SecurityPolicy.evaluate(_:for:)`. Roots that cannot be read fail requests with
    /// ``TransportError/TLSFailure/badTrustRoots``.
    public var trustRoots: TrustRoots?
    /// Whether failures are only reported to the ``observer``; `false`, the default, refuses the server.
    ///
    /// If `true`, pins, the ``evaluator`` and `stapling` can be tried out safely: their failures do not refuse the
    /// server. A wrong host name and an invalid chain do, and the validity of the chain includes ``trustRoots``,
    /// ``revocationLists`` and ``verificationTime``. Lists or pinned certificates that cannot be read fail requests as
    /// without auditing.
    public var isAudited = false
    /// The requirement for a stapled OCSP response; ``Stapling/ignored`` by default. See RFC 6066 §8.
    public var stapling = Stapling.ignored
    /// Certificate revocation lists (RFC 5280 §5), any number in PEM or one in DER; `nil`, the default, for none.
    ///
    /// If set, a current list of the authority that signed the server's certificate is required; without one, the
    /// server is refused with ``TransportError/TLSFailure/revocationUnknown``. The certificates of the authorities are
    /// checked only if their issuers have a list, which must be current, too. Lists that cannot be read completely fail
    /// requests with ``TransportError/TLSFailure/badSecurityPolicy(_:)``: in PEM, also if one of several blocks is
    /// damaged or cut off, or a line `-----BEGIN …-----` or `-----END …-----` has other text beside it.
    public var revocationLists: FileOrData?
    /// The time for which certificates, revocation lists, OCSP responses, pins and the client's identity are evaluated;
    /// `nil`, the default, for the current time.
    public var verificationTime: Date?
    /// A function that decides about a server after the rules of the policy were applied, except for `stapling`, which
    /// is checked later; `nil`, the default, for none.
    ///
    /// It is called during the handshake on the thread of an event loop, by several loops at the same time, so it must
    /// return immediately, without files or network access, and should depend on its argument only: its decision also
    /// holds for later requests on the same connection. `SecurityPolicy.evaluate(_:for:)` also calls it, on its caller's
    /// thread. Policies with evaluators are equal only if one is a copy of the other.
    public var evaluator: (@Sendable (ServerTrust) -> Decision)? {
        get { identifiedEvaluator?.call }
        set { identifiedEvaluator = newValue.map(IdentifiedFunction.init) }
    }
    /// A function that receives the result of every verification of a server's certificates, whether the server is
    /// accepted or refused; `nil`, the default, for none.
    ///
    /// It is called during the handshake as the evaluator. It is not called for a reused connection, nor by
    /// `SecurityPolicy.evaluate(_:for:)`. Policies with observers are equal only if one is a copy of the other.
    public var observer: (@Sendable (TrustResult) -> Void)? {
        get { identifiedObserver?.call }
        set { identifiedObserver = newValue.map(IdentifiedFunction.init) }
    }

    /// The ``evaluator`` with its identity, by which policies are compared.
    package var identifiedEvaluator: IdentifiedEvaluator?
    package typealias IdentifiedEvaluator = IdentifiedFunction<ServerTrust, Decision>
    private var identifiedObserver: IdentifiedFunction<TrustResult, Void>?

    /// Creates the default policy: no pins, a valid chain and the right host name.
    public init() {}

    /// Returns a policy that requires a valid chain with a pinned public key, and a matching name. Without any pins, it
    /// refuses every server.
    ///
    /// - Parameters:
    ///   - pins: The keys in use: the server's own, or preferably that of an authority above it.
    ///   - backups: Keys that are not in use yet. Without a backup, the loss of a key locks out all clients.
    ///     ``TrustResult/usesBackupPin`` reports whether the matching key was one.
    ///   - expiry: The expiry of the pins; `nil`, the default, for none. From then on, a valid chain is required instead,
    ///     even if ``allowsInvalidCertificates`` is set, so that programs that are no longer updated are not locked out.
    ///     The host name is validated only if ``validatesDomainName`` is `true`; otherwise any server with a valid
    ///     certificate is then accepted.
    public static func pinning(
        _ pins: [PublicKeyPin], backups: [PublicKeyPin], until expiry: Date? = nil
    ) -> SecurityPolicy {
        var policy = SecurityPolicy()
        policy.pinningMode = .publicKey
        policy.pins = pins
        policy.backupPins = backups
        policy.pinExpiry = expiry
        return policy
    }

    /// Returns a policy that requires a valid chain and a matching name, and pins certificates in DER form.
    ///
    /// - Parameters:
    ///   - certificates: The certificates, as returned by `SecurityPolicy.certificates(in:)` and
    ///     `SecurityPolicy.certificates(inDirectory:)`. If the array is empty, every server is refused, and one that
    ///     cannot be parsed fails requests with ``TransportError/TLSFailure/badSecurityPolicy(_:)``, except with
    ///     ``PinningMode/none``.
    ///   - mode: Whether the certificates or only their public keys are pinned; ``PinningMode/certificate`` by default.
    ///     With ``PinningMode/none`` they are ignored.
    ///   - expiry: The expiry of the pinned certificates, as that of pins; `nil`, the default, for none.
    public static func pinning(
        certificates: [Data], mode: PinningMode = .certificate, until expiry: Date? = nil
    ) -> SecurityPolicy {
        var policy = SecurityPolicy()
        policy.pinningMode = mode
        policy.pinnedCertificates = certificates
        policy.pinExpiry = expiry
        return policy
    }

    /// The part of a chain that is compared with the pins.
    public enum PinningMode: Hashable, Sendable {
        /// Nothing is compared, and pins are ignored.
        case none
        /// The public keys of the chain, of which at least one must be among the pins, the backups or the keys of the
        /// pinned certificates.
        case publicKey
        /// The certificates of the chain: one of them, the server's own or that of an authority, must be among the pinned
        /// ones, and the chain must be valid up to it.
        case certificate
    }

    /// The requirement for a stapled OCSP response.
    public enum Stapling: Hashable, Sendable {
        /// No response is requested.
        case ignored
        /// A response is requested, and if the server sends one, it must be signed by the certificate's authority or
        /// its delegate, be current within 5 minutes, and state that the certificate is good; otherwise the server is
        /// refused with ``TransportError/TLSFailure/badStaple(_:)`` or ``TransportError/TLSFailure/revoked``.
        case preferred
        /// A response is requested and required: a server that sends none is refused with
        /// ``TransportError/TLSFailure/stapleMissing``. The response must be signed by the certificate's authority
        /// or its delegate, be current within 5 minutes, and state that the certificate is good; otherwise the server
        /// is refused with ``TransportError/TLSFailure/badStaple(_:)`` or ``TransportError/TLSFailure/revoked``.
        case required
    }

    /// The decision of an ``evaluator``.
    public enum Decision: Hashable, Sendable {
        /// The result of the rules applies: the server is trusted if ``ServerTrust/failure`` is `nil`.
        case followPolicy
        /// The server is trusted, regardless of the result of the rules; only a stapled OCSP response, which is checked
        /// later, may still refuse it. See `SecurityPolicy.stapling`.
        case accept
        /// The server is refused with ``TransportError/TLSFailure/rejected(_:)`` and the given reason; under an audited
        /// policy only if its chain or host name is not valid.
        case refuse(String)
    }

    /// The error of an invalid pin, host pattern, certificate file or other part of a security policy.
    ///
    /// The initializers of ``PublicKeyPin`` and ``HostPattern`` throw it, and so do `SecurityPolicy.certificates(in:)`
    /// and `SecurityPolicy.certificates(inDirectory:)`. In a request's error it is the value of
    /// ``TransportError/TLSFailure/badSecurityPolicy(_:)``.
    public struct ConfigurationError: LocalizedError, Hashable, Sendable, CustomStringConvertible {
        /// The problem as a clause that can end a sentence, such as `a pinned certificate cannot be parsed`.
        public let description: String

        /// The ``description``, which Foundation returns as `localizedDescription`.
        public var errorDescription: String? { description }
    }
}

/// A function that is equal to itself only.
package final class IdentifiedFunction<Input, Output>: Hashable, Sendable {
    package let call: @Sendable (Input) -> Output
    /// Unlike an address, not that of a later function.
    private let id = UInt64.random(in: .min ... .max)

    package init(_ call: @escaping @Sendable (Input) -> Output) {
        self.call = call
    }

    package static func == (left: IdentifiedFunction, right: IdentifiedFunction) -> Bool { left === right }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(id)
    }
}

extension SecurityPolicy.ConfigurationError {
    /// Creates the error of a text that is not `sha256/` followed by 32 bytes in Base64.
    package static func pin(_ text: String) -> Self {
        Self(description: "“\(text)” is not a pin, which is sha256/ and 32 bytes in Base64")
    }
    /// Creates the error of a file or directory that cannot be read.
    package static func unreadable(path: String, reason: String) -> Self { Self(description: "\(path): \(reason)") }
    /// Creates the error of a source without certificates.
    package static func noCertificate(_ source: String) -> Self {
        Self(description: "\(source): it contains no certificate")
    }
    /// The error of a pinned certificate that cannot be parsed.
    package static let malformedCertificate = Self(description: "a pinned certificate cannot be parsed")
    /// The error of revocation lists that cannot be read or contain no usable list.
    package static let revocationLists = Self(description: "the certificate revocation lists cannot be read")
    /// Creates the error of a text that is not a valid ``HostPattern``.
    package static func hostPattern(_ text: String) -> Self {
        Self(description: "“\(text)” is neither a host in ASCII (xn--…) nor *. followed by a name")
    }
    /// Creates the error of a host name that is not ASCII although policies or identities are selected by host.
    package static func hostNotASCII(_ host: String) -> Self {
        Self(description: "settings by host require the ASCII form (xn--…) of “\(host)”")
    }
}

/// The SHA-256 digest of a public key (SubjectPublicKeyInfo in DER), the fingerprint of RFC 7469 §2.4. Its text form is
/// `sha256/` followed by Base64; the option `--pinnedpubkey` of curl(1) requires `sha256//` instead.
///
/// It takes effect in ``SecurityPolicy/pinning(_:backups:until:)``. The pin of a key remains valid when
/// its certificate is renewed with the same key.
public struct PublicKeyPin: Hashable, Sendable, CustomStringConvertible {
    /// The SHA-256 digest of the public key (SubjectPublicKeyInfo in DER), always 32 bytes.
    public let sha256: Data

    /// Parses a pin such as `sha256/AAAA…=`; curl's prefix `sha256//` is accepted, too.
    ///
    /// - Throws: ``SecurityPolicy/ConfigurationError`` for any other text.
    public init(_ text: String) throws(SecurityPolicy.ConfigurationError) {
        guard text.hasPrefix("sha256/") else { throw .pin(text) }
        var digits = text.dropFirst("sha256/".count)
        // A digest may itself begin with a slash: 32 bytes are 44 characters.
        if digits.hasPrefix("/"), digits.utf8.count == 45 { digits = digits.dropFirst() }
        guard let digest = Data(base64Encoded: String(digits)), digest.count == 32 else { throw .pin(text) }
        sha256 = digest
    }

    /// Creates a pin from a digest.
    ///
    /// - Parameter sha256: The SHA-256 of the public key (SubjectPublicKeyInfo in DER).
    /// - Throws: ``SecurityPolicy/ConfigurationError`` unless the digest has 32 bytes.
    public init(sha256: Data) throws(SecurityPolicy.ConfigurationError) {
        guard sha256.count == 32 else { throw .pin("\(sha256.count) bytes") }
        self.sha256 = sha256
    }

    /// The text form, `sha256/` followed by Base64, which ``init(_:)`` parses.
    public var description: String { "sha256/\(sha256.base64EncodedString())" }
}
