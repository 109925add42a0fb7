// SPDX-License-Identifier: MIT

public import FoundationEssentials

/// A certificate and its private key, with which the client authenticates itself to a server (mutual TLS). See RFC 8446
/// §4.4.2.
///
/// ``TLSOptions/identity`` and ``TLSOptions/hostIdentities`` determine the servers to which it is sent if they request
/// a certificate. It is never sent to a proxy.
///
/// Files are read when a request over https first needs them, and again after they change. New connections then use the
/// new identity, and requests no longer use connections made with the old one. Of a certificate and a key in two files, one is
/// replaced first: while they do not match, the identity that was loaded before is used as long as it is valid. If the identity cannot be used, or is
/// not valid at the current time or ``SecurityPolicy/verificationTime``, the request fails with
/// ``TransportError/TLSFailure/badClientIdentity(_:)``, even if the server requests no certificate. With a libcurl that
/// does not use the same OpenSSL as this library, it fails with ``TransportError/Reason/unsupported(_:)``.
///
/// The description never contains the key or the passphrase.
public struct ClientIdentity: Hashable, Sendable, CustomStringConvertible {
    package var content: Content { secretContent.value }
    package var passphrase: String? { secretPassphrase.value }
    private let secretContent: Secret<Content>
    private let secretPassphrase: Secret<String?>

    private init(content: Content, passphrase: String?) {
        secretContent = Secret(content)
        secretPassphrase = Secret(passphrase)
    }

    package enum Content: Hashable, Sendable {
        case pem(certificates: FileOrData, key: FileOrData)
        case pkcs12(FileOrData)
    }

    /// Creates an identity from a certificate and a key in PEM (RFC 7468), without reading them.
    ///
    /// If they cannot be used, requests over https fail with ``TransportError/TLSFailure/badClientIdentity(_:)``.
    ///
    /// - Parameters:
    ///   - certificates: The client's certificate in PEM, followed by any intermediate certificates; or the certificate
    ///     alone in DER, with the `key` apart.
    ///   - key: The private key in PEM; `nil`, the default, if it is in the same file or data as the certificate.
    ///   - passphrase: The passphrase of an encrypted key; `nil`, the default, for an unencrypted key. It is ignored if
    ///     the key is not encrypted.
    public static func pem(
        certificates: FileOrData, key: FileOrData? = nil, passphrase: String? = nil
    ) -> ClientIdentity {
        ClientIdentity(content: .pem(certificates: certificates, key: key ?? certificates), passphrase: passphrase)
    }

    /// Creates an identity from a PKCS #12 archive, such as a `.p12` or `.pfx` file (RFC 7292), without reading it.
    ///
    /// If it cannot be used, requests over https fail with ``TransportError/TLSFailure/badClientIdentity(_:)``. This
    /// includes archives that older tools encrypted with RC2, which OpenSSL 3 does not support by default.
    ///
    /// - Parameters:
    ///   - bundle: The archive, with a certificate, its private key, and any intermediate certificates.
    ///   - passphrase: The passphrase of the archive; empty by default, which also opens an archive without one.
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

    /// A description with the paths of the identity's files, or the sizes of its data in bytes, without secrets.
    public var description: String {
        switch content {
        case .pem(let certificates, let key): "ClientIdentity(PEM, \(certificates.label), key \(key.label))"
        case .pkcs12(let bundle): "ClientIdentity(PKCS #12, \(bundle.label))"
        }
    }

    /// A function that selects an identity when a server requests one and none is configured.
    ///
    /// It is called during the handshake on the thread of an event loop, so it must return immediately. Two choosers are
    /// equal only if one is a copy of the other.
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

    /// The reason why a client identity cannot be used, with which requests fail as
    /// ``TransportError/TLSFailure/badClientIdentity(_:)``.
    public enum LoadingError: Error, Hashable, Sendable {
        /// The private key in PEM is encrypted, and no passphrase was given.
        case passphraseMissing
        /// The passphrase does not decrypt the private key or the archive; also if an archive needs one, and the empty
        /// default was used.
        case wrongPassphrase
        /// The identity cannot be read or used, for the given reason: for example, a file is missing, the certificate
        /// has expired or is not valid yet, or the private key belongs to another certificate. The value is a clause
        /// for messages, such as `it contains no private key`.
        case unusable(String)
    }
}

extension ClientIdentity.LoadingError {
    /// Creates the error of a file that cannot be read.
    package static func unreadable(path: String, reason: String) -> Self { .unusable("\(path): \(reason)") }
    /// The error of a file or data without a certificate.
    package static let noCertificate = Self.unusable("it contains no certificate")
    /// The error of a file or data without a private key.
    package static let noKey = Self.unusable("it contains no private key")
    /// The error of a private key that does not belong to the certificate.
    package static let keyMismatch = Self.unusable("its private key belongs to another certificate")
    /// Creates the error of a certificate that has expired.
    package static func expired(since date: Date) -> Self {
        .unusable("its certificate expired at \(date.formatted(.iso8601))")
    }
    /// Creates the error of a certificate that is not valid yet.
    package static func notYetValid(until date: Date) -> Self {
        .unusable("its certificate is not valid before \(date.formatted(.iso8601))")
    }
    /// Creates the error of data that cannot be parsed, for the given reason from OpenSSL.
    package static func malformed(_ reason: String) -> Self { .unusable("it cannot be parsed: \(reason)") }
}

extension ClientIdentity.LoadingError: CustomStringConvertible, LocalizedError {
    /// The ``description``, which Foundation returns as `localizedDescription`.
    public var errorDescription: String? { description }

    /// The reason as a clause that can end a sentence, such as `the passphrase is wrong`.
    public var description: String {
        switch self {
        case .passphraseMissing: "its key is encrypted, and no passphrase was given"
        case .wrongPassphrase: "the passphrase is wrong"
        case .unusable(let reason): reason
        }
    }
}

/// Data such as certificates, keys or revocation lists, in a file or in memory.
public enum FileOrData: Hashable, Sendable {
    /// The path of a file, absolute or relative to the current directory of the process.
    ///
    /// Files of client identities and revocation lists are read when a request first needs them, and again after they
    /// change; if they cannot be read, requests fail with ``TransportError/TLSFailure/badClientIdentity(_:)`` or
    /// ``TransportError/TLSFailure/badSecurityPolicy(_:)``. `SecurityPolicy.certificates(in:)` reads the file once,
    /// when it is called, and throws an error if it cannot be read.
    case file(String)
    /// Bytes in memory, in one of the formats that a file may have for the same purpose, such as PEM or DER.
    case data(Data)

    /// The path, or the number of bytes: the bytes themselves may be secret.
    package var label: String {
        switch self {
        case .file(let path): path
        case .data(let bytes): "\(bytes.count) bytes"
        }
    }

    /// The path of the file; `nil` for data in memory.
    package var path: String? {
        if case .file(let path) = self { path } else { nil }
    }
}
