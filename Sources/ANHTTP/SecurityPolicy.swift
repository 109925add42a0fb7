// SPDX-License-Identifier: MIT

public import FoundationEssentials

/// What a server must show before a request is sent to it.
///
/// It is evaluated within the TLS handshake, on the chain that OpenSSL verifies: when it refuses, no byte of the request has
/// left. By default the chain must end at the ``TLSOptions/trustRoots`` and the certificate must be for the host.
///
/// | `pinningMode` | `allowsInvalidCertificates` | the server is accepted when |
/// |---|---|---|
/// | `none` | no | the chain is valid |
/// | `none` | yes | always; with `validatesDomainName`, never: it would validate a name that anybody can claim |
/// | `publicKey` | no | the chain is valid, and one of its keys is pinned |
/// | `publicKey` | yes | a pinned key signed the chain, or is the server's own; dates do not count |
/// | `certificate` | no | the chain is valid, and a chain to a pinned certificate is |
/// | `certificate` | yes | a chain to a pinned certificate is valid |
///
/// In all cases the certificate must be for the host, unless `validatesDomainName` is off. A pinning mode without pins
/// accepts nobody.
///
/// Connections are not shared between policies that differ, and TLS sessions are not resumed under a policy, because a
/// resumed one shows no certificates.
public struct SecurityPolicy: Hashable, Sendable {
    /// What is pinned; fixed by how the policy was made.
    public var pinningMode = PinningMode.none
    /// The pinned certificates in DER, or, in public-key mode, those whose keys are pinned.
    public var pinnedCertificates: [Data] = []
    /// The pinned public keys; they count in public-key mode.
    public var pins: [PublicKeyPin] = []
    /// Pinned keys that are kept for the day when the others must be given up; a ``TrustVerdict`` says when one was needed.
    public var backupPins: [PublicKeyPin] = []
    /// When the pins end; nil for never. From then on only an ordinarily valid chain is asked for, so that a program that
    /// nobody updates any more is not locked out.
    public var pinExpiry: Date?
    /// Whether a chain that is not valid by itself is accepted for its pins.
    public var allowsInvalidCertificates = false
    /// Whether the certificate must be for the host of the URL, and for servers at all.
    public var validatesDomainName = true
    /// The authorities that are trusted; nil for those of ``TLSOptions/trustRoots``.
    public var trustRoots: TrustRoots?
    /// Whether failures refuse the server, or are only reported.
    public var enforcement = Enforcement.enforced
    /// Whether the server must show that its certificate was not revoked. See RFC 6066 §8.
    public var stapling = Stapling.ignored
    /// Lists of revoked certificates (RFC 5280 §5), in PEM or one in DER. There must be a current list of the authority
    /// that signed the server's certificate.
    public var revocationLists: FileOrData?
    /// The time at which certificates, lists and pins are looked at; nil for now.
    public var verificationTime: Date?
    /// Has the last word.
    public var evaluator: Evaluator?
    /// Is told every verdict.
    public var observer: Observer?

    /// Creates the default policy: no pins, a valid chain, the right name.
    public init() {}

    /// A policy that pins public keys of valid chains.
    ///
    /// - Parameters:
    ///   - pins: The keys that are in use: the server's own, or better that of an authority above it.
    ///   - backups: Keys that are not in use yet. Without one, a key that is lost locks all clients out.
    ///   - expiry: When the pins end; nil for never.
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

    /// A policy that pins certificates; ``certificates(in:)`` and ``certificates(inFolder:)`` read them.
    public static func pinning(certificates: [Data], mode: PinningMode = .certificate) -> SecurityPolicy {
        var policy = SecurityPolicy()
        policy.pinningMode = mode
        policy.pinnedCertificates = certificates
        return policy
    }

    /// What is compared with the pins.
    public enum PinningMode: Hashable, Sendable {
        /// Nothing.
        case none
        /// The public keys of the chain.
        case publicKey
        /// The certificates that the chain ends at.
        case certificate
    }

    /// What a failure leads to.
    public enum Enforcement: Hashable, Sendable {
        /// The connection is refused.
        case enforced
        /// The failure is reported, and the connection goes on where the chain is valid and the name is right: what the
        /// policy asks for beyond that is tried out.
        case audited
    }

    /// What is asked of a stapled OCSP response.
    public enum Stapling: Hashable, Sendable {
        /// It is not asked for.
        case ignored
        /// Where there is one, it must say that the certificate is good.
        case preferred
        /// There must be one, and it must say that the certificate is good.
        case required
    }

    /// Decides on a server after the rules did, as a pure function of what it showed.
    ///
    /// It runs within the handshake on the thread of all connections, so it must return at once: no locks, no files, no
    /// network. It is equal to itself and its copies only.
    public struct Evaluator: Hashable, Sendable {
        private let function: IdentifiedFunction<ServerTrust, Decision>

        /// Creates an evaluator.
        public init(_ evaluate: @escaping @Sendable (ServerTrust) -> Decision) {
            function = IdentifiedFunction(evaluate)
        }

        package func evaluate(_ trust: ServerTrust) -> Decision { function.call(trust) }
    }

    /// What an ``Evaluator`` decides.
    public enum Decision: Hashable, Sendable {
        /// The rules hold, whose outcome is ``ServerTrust/failure``.
        case followRules
        /// The server is trusted, whatever the rules say.
        case accept
        /// The server is refused, for this reason.
        case refuse(String)
    }

    /// Is told the verdict of every handshake, within it, on the thread of all connections, so it must return at once. It is
    /// equal to itself and its copies only.
    public struct Observer: Hashable, Sendable {
        private let function: IdentifiedFunction<TrustVerdict, Void>

        /// Creates an observer.
        public init(_ observe: @escaping @Sendable (TrustVerdict) -> Void) {
            function = IdentifiedFunction(observe)
        }

        package func observe(_ verdict: TrustVerdict) { function.call(verdict) }
    }

    /// What is wrong with a policy.
    public enum Problem: Error, Hashable, Sendable {
        /// The text is no pin: `sha256/` and 32 bytes in Base64.
        case pin(String)
        /// The file or folder cannot be read.
        case unreadable(path: String, reason: String)
        /// There is no certificate where pinned ones should be.
        case noCertificate(String)
        /// A pinned certificate is not one.
        case malformedCertificate
        /// There is no usable list of revoked certificates.
        case revocationLists
        /// The text is no ``HostPattern``.
        case hostPattern(String)
        /// A host in another script, while policies or identities are chosen by host: write its ASCII form, `xn--…`.
        case hostNotASCII(String)
    }
}

/// A function that is equal to itself only.
final class IdentifiedFunction<Input, Output>: Hashable, Sendable {
    let call: @Sendable (Input) -> Output

    init(_ call: @escaping @Sendable (Input) -> Output) {
        self.call = call
    }

    static func == (left: IdentifiedFunction, right: IdentifiedFunction) -> Bool { left === right }

    func hash(into hasher: inout Hasher) {
        hasher.combine(ObjectIdentifier(self))
    }
}
