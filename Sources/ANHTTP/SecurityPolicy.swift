// SPDX-License-Identifier: MIT

public import FoundationEssentials

/// The rules that a server's certificates must satisfy before a request is sent to it.
///
/// The policy is evaluated during the TLS handshake, on the chain verified by OpenSSL: if the server is refused, no
/// byte of the request has been sent. By default the chain must end at the ``TLSOptions/trustRoots``, and the
/// certificate must be valid for the host.
///
/// | `pinningMode` | `allowsInvalidCertificates` | the server is accepted if |
/// |---|---|---|
/// | `none` | no | the chain is valid |
/// | `none` | yes | always; with `validatesDomainName`, never: the name in an unverified certificate proves nothing |
/// | `publicKey` | no | the chain is valid, and one of its keys is pinned |
/// | `publicKey` | yes | a pinned key signed the chain, or is the server's own; validity dates are ignored |
/// | `certificate` | no | the chain is valid, and there is a valid chain to a pinned certificate |
/// | `certificate` | yes | there is a valid chain to a pinned certificate |
///
/// In all cases the certificate must be valid for the host, unless `validatesDomainName` is off. A pinning mode without
/// pins refuses every server.
///
/// Connections are not shared between different policies. TLS sessions are not resumed under a policy that differs from
/// the default, because a resumed session presents no certificates.
public struct SecurityPolicy: Hashable, Sendable {
    /// The part of a chain that is compared with the pins; ``PinningMode/none`` by default.
    public var pinningMode = PinningMode.none
    /// The pinned certificates in DER; empty by default. In public-key mode, the keys of these certificates are pinned.
    /// One that cannot be parsed fails requests with ``TransportError/TLSFailure/badSecurityPolicy(_:)``.
    public var pinnedCertificates: [Data] = []
    /// The pinned public keys, used in public-key mode; empty by default.
    public var pins: [PublicKeyPin] = []
    /// Further pinned keys, for the day when the keys of ``pins`` must be replaced; empty by default.
    /// ``TrustResult/usesBackupPin`` reports when one was needed.
    public var backupPins: [PublicKeyPin] = []
    /// The expiry of the pins and of the pinned certificates; `nil`, the default, for none. From then on, only a valid
    /// chain and the right host name are required, so that programs that are no longer updated are not locked out.
    public var pinExpiry: Date?
    /// Whether a pinned chain is accepted even if it is not otherwise valid; `false` by default.
    public var allowsInvalidCertificates = false
    /// Whether the certificate must be valid for the host of the URL and for TLS servers in general; `true` by default.
    /// The common name counts only if there are no alternative names, and a wildcard stands for one whole label (RFC
    /// 9525 §6.3).
    public var validatesDomainName = true
    /// The trusted certificate authorities; `nil`, the default, for those of ``TLSOptions/trustRoots``.
    public var trustRoots: TrustRoots?
    /// Whether failures are only reported to the ``observer``; `false`, the default, refuses the server.
    ///
    /// If `true`, a failure refuses the server only if the chain is not valid or the host name is wrong, so that the
    /// additional rules of a policy can be tried out safely.
    public var isAudited = false
    /// The requirement for a stapled OCSP response; ``Stapling/ignored`` by default. See RFC 6066 §8.
    public var stapling = Stapling.ignored
    /// Certificate revocation lists (RFC 5280 §5), any number in PEM or one in DER; `nil`, the default, for none.
    ///
    /// If set, a current list of the authority that signed the server's certificate is required; without one, the
    /// server is refused with ``TransportError/TLSFailure/revocationUnknown``. Lists that cannot be read fail requests
    /// with ``TransportError/TLSFailure/badSecurityPolicy(_:)``.
    public var revocationLists: FileOrData?
    /// The time for which certificates, revocation lists and pins are evaluated; `nil`, the default, for the current
    /// time.
    public var verificationTime: Date?
    /// A function that decides about a server after the rules of the policy were applied; `nil`, the default, for none.
    ///
    /// It is called during the handshake on the thread that serves all connections, so it must return immediately,
    /// without locks, files or network access, and should depend on its argument only. Policies with evaluators are
    /// equal only if one is a copy of the other.
    public var evaluator: (@Sendable (ServerTrust) -> Decision)? {
        get { identifiedEvaluator?.call }
        set { identifiedEvaluator = newValue.map(IdentifiedFunction.init) }
    }
    /// A function that receives the result of every handshake, whether the server is accepted or refused; `nil`, the
    /// default, for none.
    ///
    /// It is called during the handshake on the thread that serves all connections, so it must return immediately.
    /// Policies with observers are equal only if one is a copy of the other.
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

    /// Returns a policy that requires a valid chain with a pinned public key.
    ///
    /// - Parameters:
    ///   - pins: The keys in use: the server's own, or preferably that of an authority above it.
    ///   - backups: Keys that are not in use yet. Without a backup, the loss of a key locks out all clients.
    ///   - expiry: The expiry of the pins; `nil`, the default, for none.
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
    ///   - certificates: The certificates, as returned by ``certificates(in:)`` and ``certificates(inDirectory:)``. If
    ///     the array is empty, every server is refused.
    ///   - mode: Whether the certificates or only their public keys are pinned; ``PinningMode/certificate`` by default.
    public static func pinning(certificates: [Data], mode: PinningMode = .certificate) -> SecurityPolicy {
        var policy = SecurityPolicy()
        policy.pinningMode = mode
        policy.pinnedCertificates = certificates
        return policy
    }

    /// The part of a chain that is compared with the pins.
    public enum PinningMode: Hashable, Sendable {
        /// Nothing is compared, and pins are ignored.
        case none
        /// The public keys of the chain, of which at least one must be pinned; see ``SecurityPolicy/pins``.
        case publicKey
        /// The certificate that the chain ends at, which must be one of the ``SecurityPolicy/pinnedCertificates``.
        case certificate
    }

    /// The requirement for a stapled OCSP response.
    public enum Stapling: Hashable, Sendable {
        /// No response is requested.
        case ignored
        /// A response is requested, and if the server sends one, it must be current and state that the certificate is
        /// good.
        case preferred
        /// A response is requested; the server must send one, which must be current and state that the certificate is
        /// good.
        case required
    }

    /// The decision of an ``evaluator``.
    public enum Decision: Hashable, Sendable {
        /// The result of the rules applies, see ``ServerTrust/failure``.
        case followPolicy
        /// The server is trusted, regardless of the result of the rules.
        case accept
        /// The server is refused with ``TransportError/TLSFailure/rejected(_:)`` and the given reason; under an audited
        /// policy only if its chain or host name is not valid.
        case refuse(String)
    }

    /// The error of an invalid pin, host pattern, certificate file or other part of a security policy.
    public struct ConfigurationError: Error, Hashable, Sendable, CustomStringConvertible {
        /// The problem as a clause that can end a sentence.
        public let description: String
    }
}

/// A function that is equal to itself only.
package final class IdentifiedFunction<Input, Output>: Hashable, Sendable {
    package let call: @Sendable (Input) -> Output

    package init(_ call: @escaping @Sendable (Input) -> Output) {
        self.call = call
    }

    package static func == (left: IdentifiedFunction, right: IdentifiedFunction) -> Bool { left === right }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(ObjectIdentifier(self))
    }
}
