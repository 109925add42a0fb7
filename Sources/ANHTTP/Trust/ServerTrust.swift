// SPDX-License-Identifier: MIT

public import FoundationEssentials

/// The certificates that a server presented in a handshake, and the result of their verification.
///
/// A ``SecurityPolicy/evaluator`` receives a value. It is also in the ``TrustResult`` of an observer or of
/// `SecurityPolicy.evaluate(_:for:)`, and in the ``FailureContext`` of a request whose server was not trusted.
public struct ServerTrust: Hashable, Sendable {
    /// The requested host in lower case, without a port, brackets or trailing dot; in a handshake, an internationalized
    /// name in its ASCII form; empty if `SecurityPolicy.evaluate(_:for:)` was called without a host.
    public var host: String
    /// The time for which the certificates were verified: ``SecurityPolicy/verificationTime``, or that of the handshake
    /// or of the call of `SecurityPolicy.evaluate(_:for:)`.
    public var date: Date
    /// The certificates in the order sent by the server, beginning with its own; empty if they cannot be parsed. Only
    /// the first is known to belong to the server.
    public var presented: [Certificate]
    /// The verified chain, from the server's certificate to a trusted or pinned one; empty if there is no valid chain,
    /// for example because the certificate has expired or is for another host, or if the policy accepts any chain.
    public var chain: [Certificate]
    /// The check that failed; `nil` if all passed.
    ///
    /// An ``SecurityPolicy/evaluator`` receives the result of the policy's rules. A ``TrustResult`` and
    /// ``FailureContext/serverTrust`` include the evaluator's decision: `nil` if it accepted the server in spite of a
    /// failure, and ``TransportError/TLSFailure/rejected(_:)`` if it refused the server.
    public var failure: TransportError.TLSFailure?
    /// The trusted certificate authorities.
    package var trustRoots = TrustRoots.system

    /// Creates a value for tests of evaluators. Nothing in it is verified; to verify certificates, see
    /// `SecurityPolicy.evaluate(_:for:)`.
    package init(
        host: String, date: Date, presented: [Certificate], chain: [Certificate] = [],
        failure: TransportError.TLSFailure? = nil
    ) {
        self.host = host
        self.date = date
        self.presented = presented
        self.chain = chain
        self.failure = failure
    }

    /// The parts of an X.509 certificate (RFC 5280 §4.1) that are relevant for the decision about a server.
    public struct Certificate: Hashable, Sendable {
        /// The complete certificate in DER, for comparison or for parsing by another library.
        public var der: Data
        /// The SHA-256 digest of the certificate's public key, which can be used as a pin.
        public var publicKey: PublicKeyPin
        /// The subject in the format of RFC 4514, such as `CN=example.com,O=Example`; empty if the certificate has
        /// none.
        public var subject: String
        /// The issuer in the format of RFC 4514; equal to ``subject`` for a self-signed certificate.
        public var issuer: String
        /// The serial number in lower-case hexadecimal, with two digits for each byte and without separators.
        public var serialNumber: String
        /// The DNS names that the certificate is valid for, from `subjectAltName`, possibly with wildcards; empty if it
        /// has no DNS names.
        public var dnsNames: [String]
        /// The IP addresses that the certificate is valid for, from `subjectAltName`, in canonical text form (RFC 5952
        /// for IPv6); empty if it has no addresses.
        public var ipAddresses: [String]
        /// The start of the validity period, inclusive; `Date.distantPast` if it is malformed.
        public var notBefore: Date
        /// The end of the validity period, inclusive; `Date.distantPast` if it is malformed.
        public var notAfter: Date

        /// Creates a value for tests of evaluators.
        package init(
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

/// The result of evaluating a ``SecurityPolicy``: in a handshake, received by its ``SecurityPolicy/observer``, or
/// without a connection, returned by `SecurityPolicy.evaluate(_:for:)`.
public struct TrustResult: Hashable, Sendable {
    /// The server's certificates; ``ServerTrust/failure`` is the check that failed, `nil` if all passed or the
    /// ``SecurityPolicy/evaluator`` accepted the server in spite of a failed one.
    public var trust: ServerTrust
    /// Whether the server was refused. A failure under ``SecurityPolicy/isAudited`` does not refuse a server whose
    /// chain and host name are valid.
    public var isRefused: Bool
    /// The pin that matched a key of the chain in public-key mode, the first one from the server's certificate on;
    /// `nil` if no key matched, if the pins were not compared because the chain or the host name is not valid, in other
    /// modes, and after the expiry of the pins.
    public var matchedPin: PublicKeyPin?
    /// Whether ``matchedPin`` is a backup and not one of the pins in use; `false` if it is `nil`.
    public var usesBackupPin: Bool

    /// Creates a result for tests of observers.
    package init(
        trust: ServerTrust, isRefused: Bool, matchedPin: PublicKeyPin? = nil, usesBackupPin: Bool = false
    ) {
        self.trust = trust
        self.isRefused = isRefused
        self.matchedPin = matchedPin
        self.usesBackupPin = usesBackupPin
    }
}

extension ServerTrust {
    /// Returns the expected and the actual value as a clause, for failures that result from a comparison; otherwise
    /// `nil`.
    package func comparison(for failure: TransportError.TLSFailure) -> String? {
        guard let leaf = presented.first else { return nil }
        switch failure {
        case .wrongHost:
            let names = leaf.dnsNames + leaf.ipAddresses
            return "expected \(host), got \(Self.list(names.isEmpty ? [leaf.subject] : names, separator: ", "))"
        case .certificateExpired, .certificateNotYetValid:
            let failing = presented.first { date < $0.notBefore || date > $0.notAfter } ?? leaf
            let interval = "\(Self.text(failing.notBefore)) to \(Self.text(failing.notAfter))"
            return "expected to be valid at \(Self.text(date)), got \(interval)"
        case .unknownAuthority, .selfSigned:
            return "expected a trusted authority, got \(Self.list([presented.last?.issuer ?? leaf.issuer]))"
        case .pinMismatch(let expected):
            let keys = chain.isEmpty ? presented : chain
            return
                "expected \(Self.list(expected.map(\.description))), got \(Self.list(keys.map(\.publicKey.description)))"
        case .certificateNotPinned:
            return
                "expected a chain to a pinned certificate, got \(Self.list([leaf.subject, leaf.issuer], separator: " of "))"
        default:
            return nil
        }
    }

    private static func text(_ date: Date) -> String { date.formatted(.iso8601) }

    /// Returns the first texts of a server's, which could be any number and of any length.
    private static func list(_ texts: [String], separator: String = " or ") -> String {
        let first = texts.prefix(10).map {
            $0.unicodeScalars.count > 200 ? String($0.unicodeScalars.prefix(200)) + "…" : $0
        }
        let others = texts.count - first.count
        return first.joined(separator: separator) + (others > 0 ? " and \(others) others" : "")
    }
}
