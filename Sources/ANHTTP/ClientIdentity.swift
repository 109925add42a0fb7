// SPDX-License-Identifier: MIT

public import FoundationEssentials

/// A certificate and its private key, with which a client shows a server who it is (mutual TLS). See RFC 8446 §4.4.2.
///
/// Files are read when a request needs them and again when they have changed: new connections use the new identity, and no
/// request goes over a connection that was made with the old one. Its description never shows the key or the passphrase.
public struct ClientIdentity: Hashable, Sendable, CustomStringConvertible, CustomDebugStringConvertible,
    CustomReflectable
{
    package let content: Content
    package let passphrase: String?

    package enum Content: Hashable, Sendable {
        case pem(certificates: FileOrData, key: FileOrData)
        case pkcs12(FileOrData)
    }

    /// An identity in PEM.
    ///
    /// - Parameters:
    ///   - certificates: The certificate, and after it those between it and the authority that the server knows.
    ///   - key: The private key; nil where it stands in the same file as the certificate.
    ///   - passphrase: What the key is encrypted with; nil for one that is not.
    public static func pem(
        certificates: FileOrData, key: FileOrData? = nil, passphrase: String? = nil
    ) -> ClientIdentity {
        ClientIdentity(content: .pem(certificates: certificates, key: key ?? certificates), passphrase: passphrase)
    }

    /// An identity in PKCS #12, as files that end in `.p12` or `.pfx` are (RFC 7292).
    public static func pkcs12(_ bundle: FileOrData, passphrase: String = "") -> ClientIdentity {
        ClientIdentity(content: .pkcs12(bundle), passphrase: passphrase)
    }

    /// The files that it is read from.
    package var paths: [String] {
        switch content {
        case .pem(let certificates, let key): [certificates.path, key.path].compactMap(\.self)
        case .pkcs12(let bundle): [bundle.path].compactMap(\.self)
        }
    }

    /// Where the identity comes from.
    public var description: String {
        switch content {
        case .pem(let certificates, let key): "ClientIdentity(PEM, \(certificates), key \(key))"
        case .pkcs12(let bundle): "ClientIdentity(PKCS #12, \(bundle))"
        }
    }

    /// The same as the description.
    public var debugDescription: String { description }

    /// A mirror without secrets.
    public var customMirror: Mirror { Mirror(self, children: ["source": description]) }

    /// Chooses an identity when a server asks for one and none is set.
    ///
    /// It runs within the handshake on the thread of all connections, so it must return at once. It is equal to itself and its
    /// copies only.
    package struct Chooser: Hashable, Sendable {
        private let function: IdentifiedFunction<String, Choice>

        /// Creates a chooser, which is given the host.
        package init(_ choose: @escaping @Sendable (String) -> Choice) {
            function = IdentifiedFunction(choose)
        }

        package func choose(for host: String) -> Choice { function.call(host) }
    }

    /// What a ``Chooser`` chooses.
    package enum Choice: Hashable, Sendable {
        /// No identity is shown; the server may go on without one.
        case none
        /// This identity is shown.
        case identity(ClientIdentity)
        /// The connection is refused, for this reason.
        case refuse(String)
    }

    /// What is wrong with an identity.
    public enum Problem: Error, Hashable, Sendable {
        /// The file cannot be read.
        case unreadable(path: String, reason: String)
        /// There is no certificate in it.
        case noCertificate
        /// There is no private key in it.
        case noKey
        /// The key is encrypted, and no passphrase was given.
        case passphraseMissing
        /// The passphrase is not the right one.
        case wrongPassphrase
        /// The private key is not that of the certificate.
        case keyMismatch
        /// The certificate is past its end.
        case expired(since: Date)
        /// The certificate is not valid yet.
        case notYetValid(until: Date)
        /// It cannot be understood, for this reason of OpenSSL's.
        case malformed(String)
    }
}

extension ClientIdentity.Problem: CustomStringConvertible {
    /// What is wrong, as the end of a sentence.
    public var description: String {
        switch self {
        case .unreadable(let path, let reason): "\(path): \(reason)"
        case .noCertificate: "there is no certificate in it"
        case .noKey: "there is no private key in it"
        case .passphraseMissing: "its key is encrypted, and no passphrase was given"
        case .wrongPassphrase: "the passphrase is wrong"
        case .keyMismatch: "its private key belongs to another certificate"
        case .expired(let date): "its certificate expired at \(date.formatted(.iso8601))"
        case .notYetValid(let date): "its certificate is not valid before \(date.formatted(.iso8601))"
        case .malformed(let reason): "it cannot be understood: \(reason)"
        }
    }
}
