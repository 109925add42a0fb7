// SPDX-License-Identifier: MIT

public import FoundationEssentials

/// A certificate and its private key, with which the client authenticates itself to a server (mutual TLS). See RFC 8446
/// §4.4.2.
///
/// Files are read when a request first needs them, and again after they change. New connections then use the new
/// identity, and requests no longer use connections made with the old one. The description never contains the key or
/// the passphrase.
public struct ClientIdentity: Hashable, Sendable, CustomStringConvertible,
    CustomReflectable
{
    package let content: Content
    package let passphrase: String?

    package enum Content: Hashable, Sendable {
        case pem(certificates: FileOrData, key: FileOrData)
        case pkcs12(FileOrData)
    }

    /// Creates an identity from PEM data.
    ///
    /// - Parameters:
    ///   - certificates: The client's certificate, followed by any intermediate certificates.
    ///   - key: The private key; `nil`, the default, if it is in the same file or data as the certificate.
    ///   - passphrase: The passphrase of an encrypted key; `nil`, the default, for an unencrypted key.
    public static func pem(
        certificates: FileOrData, key: FileOrData? = nil, passphrase: String? = nil
    ) -> ClientIdentity {
        ClientIdentity(content: .pem(certificates: certificates, key: key ?? certificates), passphrase: passphrase)
    }

    /// Creates an identity from a PKCS #12 archive, such as a `.p12` or `.pfx` file (RFC 7292).
    ///
    /// - Parameters:
    ///   - bundle: The archive.
    ///   - passphrase: The passphrase of the archive; empty by default.
    public static func pkcs12(_ bundle: FileOrData, passphrase: String = "") -> ClientIdentity {
        ClientIdentity(content: .pkcs12(bundle), passphrase: passphrase)
    }

    /// The paths of the files that the identity is read from.
    package var paths: [String] {
        switch content {
        case .pem(let certificates, let key): [certificates.path, key.path].compactMap(\.self)
        case .pkcs12(let bundle): [bundle.path].compactMap(\.self)
        }
    }

    /// A description with the sources of the identity, without secrets.
    public var description: String {
        switch content {
        case .pem(let certificates, let key): "ClientIdentity(PEM, \(certificates), key \(key))"
        case .pkcs12(let bundle): "ClientIdentity(PKCS #12, \(bundle))"
        }
    }

    /// A mirror that contains the description only.
    public var customMirror: Mirror { Mirror(self, children: ["source": description]) }

    /// A function that selects an identity when a server requests one and none is configured.
    ///
    /// It is called during the handshake on the thread that serves all connections, so it must return immediately. Two
    /// choosers are equal only if one is a copy of the other.
    package struct Chooser: Hashable, Sendable {
        private let function: IdentifiedFunction<String, Choice>

        /// Creates a chooser from a function that receives the host.
        package init(_ choose: @escaping @Sendable (String) -> Choice) {
            function = IdentifiedFunction(choose)
        }

        package func choose(for host: String) -> Choice { function.call(host) }
    }

    /// The result of a ``Chooser``.
    package enum Choice: Hashable, Sendable {
        /// No identity is sent; the server may continue without one.
        case none
        /// The identity to send.
        case identity(ClientIdentity)
        /// The connection is refused, for the given reason.
        case refuse(String)
    }

    /// An error while loading a client identity.
    public enum LoadingError: Error, Hashable, Sendable {
        /// A file cannot be read.
        case unreadable(path: String, reason: String)
        /// The file or data contains no certificate.
        case noCertificate
        /// The file or data contains no private key.
        case noKey
        /// The private key is encrypted, and no passphrase was given.
        case passphraseMissing
        /// The passphrase does not match.
        case wrongPassphrase
        /// The private key does not belong to the certificate.
        case keyMismatch
        /// The certificate has expired.
        case expired(since: Date)
        /// The certificate is not valid yet.
        case notYetValid(until: Date)
        /// The data cannot be parsed, for the given reason from OpenSSL.
        case malformed(String)
    }
}

extension ClientIdentity.LoadingError: CustomStringConvertible {
    /// The problem as a clause that can end a sentence.
    public var description: String {
        switch self {
        case .unreadable(let path, let reason): "\(path): \(reason)"
        case .noCertificate: "it contains no certificate"
        case .noKey: "it contains no private key"
        case .passphraseMissing: "its key is encrypted, and no passphrase was given"
        case .wrongPassphrase: "the passphrase is wrong"
        case .keyMismatch: "its private key belongs to another certificate"
        case .expired(let date): "its certificate expired at \(date.formatted(.iso8601))"
        case .notYetValid(let date): "its certificate is not valid before \(date.formatted(.iso8601))"
        case .malformed(let reason): "it cannot be parsed: \(reason)"
        }
    }
}
