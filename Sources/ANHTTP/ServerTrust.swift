// SPDX-License-Identifier: MIT

public import FoundationEssentials

/// What a server showed in its handshake, and what the library thinks of it.
public struct ServerTrust: Hashable, Sendable {
    /// The host that was asked for.
    public var host: String
    /// The time at which the certificates were looked at.
    public var date: Date
    /// The certificates as the server sent them, its own first. Only the first one is known to be the server's.
    public var presented: [Certificate]
    /// The chain that was verified, from the server's certificate to a trusted one; empty where none could be built.
    public var chain: [Certificate]
    /// What failed; nil when nothing did.
    public var failure: TransportError.TLSFailure?
    /// The authorities that were trusted.
    package var trustRoots = TrustRoots.system

    /// Creates a description, as tests of evaluators need it. Nothing in it was verified: `SecurityPolicy.verdict(on:for:)`
    /// judges certificates.
    public init(
        host: String, date: Date, presented: [Certificate], chain: [Certificate] = [],
        failure: TransportError.TLSFailure? = nil
    ) {
        self.host = host
        self.date = date
        self.presented = presented
        self.chain = chain
        self.failure = failure
    }

    /// What one certificate says. See RFC 5280 §4.1.
    public struct Certificate: Hashable, Sendable {
        /// The whole certificate in DER.
        public var der: Data
        /// The digest of its public key.
        public var publicKey: PublicKeyPin
        /// Whom it is for, such as `CN=example.com,O=Example`.
        public var subject: String
        /// Who signed it.
        public var issuer: String
        /// Its number, in hexadecimal.
        public var serialNumber: String
        /// The host names that it is for.
        public var dnsNames: [String]
        /// The addresses that it is for.
        public var ipAddresses: [String]
        /// When it begins to be valid.
        public var notBefore: Date
        /// When it ends to be valid.
        public var notAfter: Date

        /// Creates a description, as tests of evaluators need it.
        public init(
            der: Data, publicKey: PublicKeyPin, subject: String, issuer: String, serialNumber: String = "",
            dnsNames: [String] = [], ipAddresses: [String] = [], notBefore: Date, notAfter: Date
        ) {
            self.der = der
            self.publicKey = publicKey
            self.subject = subject
            self.issuer = issuer
            self.serialNumber = serialNumber
            self.dnsNames = dnsNames
            self.ipAddresses = ipAddresses
            self.notBefore = notBefore
            self.notAfter = notAfter
        }
    }
}

/// What a ``SecurityPolicy`` came to in one handshake.
public struct TrustVerdict: Hashable, Sendable {
    /// What the server showed; its ``ServerTrust/failure`` says what failed.
    public var trust: ServerTrust
    /// Whether the connection was refused; an audited failure is only reported.
    public var isRefused: Bool
    /// The pin that the chain matched, in public-key mode.
    public var matchedPin: PublicKeyPin?
    /// Whether that is one of the ``SecurityPolicy/backupPins``.
    public var usesBackupPin: Bool

    /// Creates a verdict, as tests of observers need it.
    public init(
        trust: ServerTrust, isRefused: Bool, matchedPin: PublicKeyPin? = nil, usesBackupPin: Bool = false
    ) {
        self.trust = trust
        self.isRefused = isRefused
        self.matchedPin = matchedPin
        self.usesBackupPin = usesBackupPin
    }
}

extension ServerTrust {
    /// What was expected of the server, and what came instead, where the failure is one of comparing; as part of a sentence.
    package func comparison(for failure: TransportError.TLSFailure) -> String? {
        guard let leaf = presented.first else { return nil }
        switch failure {
        case .wrongHost:
            let names = leaf.dnsNames + leaf.ipAddresses
            return "expected \(host), got \(names.isEmpty ? leaf.subject : names.joined(separator: ", "))"
        case .certificateExpired, .certificateNotYetValid:
            let failing = presented.first { date < $0.notBefore || date > $0.notAfter } ?? leaf
            let interval = "\(Self.text(failing.notBefore)) to \(Self.text(failing.notAfter))"
            return "expected to be valid at \(Self.text(date)), got \(interval)"
        case .unknownAuthority, .selfSigned:
            return "expected a trusted authority, got \(presented.last?.issuer ?? leaf.issuer)"
        case .pinMismatch(let expected):
            let keys = chain.isEmpty ? presented : chain
            return "expected \(Self.list(expected)), got \(Self.list(keys.map(\.publicKey)))"
        case .certificateNotPinned:
            return "expected a chain to a pinned certificate, got \(leaf.subject) of \(leaf.issuer)"
        default:
            return nil
        }
    }

    private static func text(_ date: Date) -> String { date.formatted(.iso8601) }

    private static func list(_ pins: [PublicKeyPin]) -> String {
        pins.map(\.description).joined(separator: " or ")
    }
}
