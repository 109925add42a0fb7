// SPDX-License-Identifier: MIT

public import FoundationEssentials

/// The options for TLS connections, set in ``TransferOptions/tls``. By default the server is verified against the
/// system's trust store, with TLS 1.2 or later.
///
/// Versions and ciphers also apply to a proxy over TLS. Policies, identities, a ``keyLogPath`` and
/// ``TrustRoots/systemAnd(_:)`` require a libcurl that uses the same OpenSSL as this library; with another one,
/// requests over https that have them fail with ``TransportError/Reason/unsupported(_:)``.
public struct TLSOptions: Hashable, Sendable {
    /// The certificate authorities trusted for servers, for proxies over TLS and for a DNS-over-HTTPS server; those of
    /// the system by default. For servers, ``SecurityPolicy/trustRoots`` takes precedence. Roots that cannot be read
    /// fail requests; see ``TrustRoots``.
    public var trustRoots = TrustRoots.system
    /// The rules for servers; by default a valid chain and the right host name. ``hostPolicies`` take precedence.
    public var policy = SecurityPolicy()
    /// The rules for particular hosts, instead of ``policy``; the most specific pattern applies: a host before a
    /// wildcard, and a longer wildcard before a shorter one. Empty by default.
    ///
    /// If there are any, requests over https fail with ``TransportError/TLSFailure/badSecurityPolicy(_:)`` if a pattern
    /// is an invalid literal, or the host of the URL is not in ASCII.
    public var hostPolicies: [HostPattern: SecurityPolicy] = [:]
    /// The client's certificate, sent to every server that requests one, also after a redirect to another host; `nil`,
    /// the default, for none. ``hostIdentities`` take precedence. Without an identity, requests to a server that
    /// requires one fail with ``TransportError/TLSFailure/clientCertificateRefused``.
    public var identity: ClientIdentity?
    /// Selects an identity if a server requests one, and neither ``identity`` nor ``hostIdentities`` provides it.
    package var identityChooser: ClientIdentity.Chooser?
    /// The client's certificates for particular hosts, instead of ``identity``; the most specific pattern applies: a
    /// host before a wildcard, and a longer wildcard before a shorter one. Empty by default.
    ///
    /// If there are any, requests over https fail with ``TransportError/TLSFailure/badSecurityPolicy(_:)`` if a pattern
    /// is an invalid literal, or the host of the URL is not in ASCII.
    public var hostIdentities: [HostPattern: ClientIdentity] = [:]
    /// The minimum version; TLS 1.2 by default. With a server that supports no version from the minimum to the maximum,
    /// and with a minimum above the maximum, connections fail with ``TransportError/TLSFailure/handshake``.
    public var minimumVersion = TLSVersion.v1_2
    /// The maximum version; `nil`, the default, for the highest that OpenSSL supports. With a maximum below
    /// ``minimumVersion``, connections fail with ``TransportError/TLSFailure/handshake``.
    public var maximumVersion: TLSVersion?
    /// The ciphers for TLS 1.2 and earlier, as in openssl-ciphers(1); `nil`, the default, for libcurl's. If none of
    /// them is known, connections fail with ``TransportError/TLSFailure/handshake``.
    public var cipherList: String?
    /// The cipher suites for TLS 1.3, such as `TLS_AES_256_GCM_SHA384:TLS_AES_128_GCM_SHA256`; `nil`, the default, for
    /// OpenSSL's. If none of them is known, connections fail with ``TransportError/TLSFailure/handshake``. See
    /// SSL_CTX_set_ciphersuites(3).
    public var cipherSuites: String?
    /// The groups for the key exchange, such as `X25519:P-256`; `nil`, the default, for OpenSSL's. See
    /// SSL_CTX_set1_groups_list(3). An unknown one fails connections with ``TransportError/TLSFailure/handshake``.
    public var curves: String?
    /// Whether sessions are resumed (RFC 8446 §2.2), which makes handshakes cheaper; `true` by default. If `false`,
    /// each new connection performs a full handshake. Sessions are never resumed under a policy that differs from the
    /// default, or with other trusted authorities or another identity than those with which they were established.
    public var resumesSessions = true
    /// The path of a file to which the secrets of connections to servers are appended in NSS key log format, for tools
    /// such as Wireshark; `nil`, the default, for none.
    ///
    /// A missing file is created with mode 0600; one that cannot be opened fails requests over https with
    /// ``TransportError/TLSFailure/keyLog(path:)``, and later failures to write are ignored. With the file, recorded
    /// connections can be decrypted. The environment variable `SSLKEYLOGFILE` has no effect.
    ///
    /// With a libcurl that does not use the same OpenSSL as this library, requests over https fail with
    /// ``TransportError/Reason/unsupported(_:)``.
    public var keyLogPath: String?

    /// Creates the default options: the system's trust store, TLS 1.2 or later, and no client certificate.
    package init() {}

    /// Whether the options require more than a valid chain and the right host name.
    package var hasSecurity: Bool {
        identity != nil || identityChooser != nil || keyLogPath != nil || !hostPolicies.isEmpty
            || !hostIdentities.isEmpty
            || policy != SecurityPolicy()
    }

    /// Returns the identity for a host; `nil` for none.
    package func identity(for host: HostName) -> ClientIdentity? { hostIdentities.value(for: host) ?? identity }

    /// Returns the policy for a host.
    package func policy(for host: HostName) -> SecurityPolicy {
        hostPolicies.isEmpty ? policy : hostPolicies.value(for: host) ?? policy
    }

    /// Returns everything that decides whether a server is trusted as that of a host: the policy, with the certificate
    /// authorities that apply.
    package func trust(for host: HostName) -> SecurityPolicy {
        var trust = policy(for: host)
        trust.trustRoots = trust.trustRoots ?? trustRoots
        return trust
    }
}

/// The certificate authorities that are trusted, at which the chain of a server must end.
public enum TrustRoots: Hashable, Sendable {
    /// The system's trust store, whose location is compiled into libcurl, or instead of it the one named by the
    /// environment variables `SSL_CERT_FILE` and `SSL_CERT_DIR`, which are read once. A file that cannot be read fails
    /// requests with ``TransportError/TLSFailure/badTrustRoots``.
    case system
    /// The certificates of a file, in PEM or one in DER, instead of the system's. It is read once, and again for new
    /// connections after it changes. As with ``pem(_:)``, a file that cannot be read completely, or that contains no
    /// certificate, fails requests with ``TransportError/TLSFailure/badTrustRoots``.
    case file(String)
    /// PEM certificates in memory, or one in DER, instead of the system's. Data without a certificate, or with one that
    /// cannot be parsed, fails requests with ``TransportError/TLSFailure/badTrustRoots``.
    case pem(Data)
    /// PEM certificates in memory, or one in DER, in addition to the system's. Data without a certificate, or with one
    /// that cannot be parsed, fails requests with ``TransportError/TLSFailure/badTrustRoots``. It requires a libcurl
    /// that uses the same OpenSSL as this library; with another one, requests over https fail with
    /// ``TransportError/Reason/unsupported(_:)``. A proxy over TLS is verified with the system's directory of
    /// certificates, but not with its file.
    case systemAnd(Data)
}

/// A version of TLS, ordered from the oldest to the newest.
public enum TLSVersion: Hashable, Comparable, Sendable {
    /// TLS 1.0, obsolete (RFC 8996). OpenSSL's default security level may refuse it.
    case v1_0
    /// TLS 1.1, obsolete (RFC 8996). OpenSSL's default security level may refuse it.
    case v1_1
    /// TLS 1.2 (RFC 5246).
    case v1_2
    /// TLS 1.3 (RFC 8446).
    case v1_3
}
