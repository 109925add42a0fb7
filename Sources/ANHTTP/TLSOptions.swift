// SPDX-License-Identifier: MIT

public import FoundationEssentials

/// The rules for TLS connections. By default the server is verified against the system's store, with TLS 1.2 or later.
public struct TLSOptions: Hashable, Sendable {
    /// Which authorities are trusted.
    public var trustRoots = TrustRoots.system
    /// What servers must show; by default a valid chain and the right name.
    public var policy = SecurityPolicy()
    /// What certain hosts must show instead of ``policy``; the most precise pattern decides.
    public var hostPolicies: [HostPattern: SecurityPolicy] = [:]
    /// Who the client is, for servers that ask; nil for nobody.
    public var identity: ClientIdentity?
    /// Asked when a server wants to know who the client is, and neither ``identity`` nor ``hostIdentities`` says so.
    package var identityChooser: ClientIdentity.Chooser?
    /// Who the client is for certain hosts instead of ``identity``; the most precise pattern decides.
    public var hostIdentities: [HostPattern: ClientIdentity] = [:]
    /// The lowest version accepted; TLS 1.2 by default.
    public var minimumVersion = TLSVersion.v1_2
    /// The highest version accepted; nil for the highest that OpenSSL has.
    public var maximumVersion: TLSVersion?
    /// The ciphers of TLS 1.2 and before, as in openssl-ciphers(1); nil for libcurl's.
    public var cipherList: String?
    /// The cipher suites of TLS 1.3, such as `TLS_AES_256_GCM_SHA384:TLS_AES_128_GCM_SHA256`; nil for all.
    public var cipherSuites: String?
    /// The groups for the key exchange, such as `X25519:P-256`; nil for OpenSSL's. See SSL_CTX_set1_groups_list(3).
    public var curves: String?
    /// Whether HTTP versions are negotiated in the handshake (ALPN, RFC 7301); without it HTTP/1.1 is used.
    public var negotiatesProtocol = true
    /// Whether sessions are resumed by their tickets (RFC 8446 §2.2), which saves the server and this side a signature. Under
    /// a policy or with an identity they are not.
    public var resumesSessions = true
    /// The file to which the secrets of connections are added, for Wireshark and its like; nil for none. Who has the file can
    /// read the connections. The variable `SSLKEYLOGFILE` alone has no effect.
    public var keyLogPath: String?

    /// Creates the default rules.
    public init() {}

    /// Whether more is asked for than a valid chain and the right name.
    package var hasSecurity: Bool {
        identity != nil || identityChooser != nil || keyLogPath != nil || !hostPolicies.isEmpty
            || !hostIdentities.isEmpty
            || policy != SecurityPolicy()
    }
}

/// The authorities whose certificates are trusted.
public enum TrustRoots: Hashable, Sendable {
    /// The system's store; where the program's environment has `SSL_CERT_FILE` or `SSL_CERT_DIR`, what these name.
    case system
    /// The certificates of a PEM file, instead of the system's.
    case file(String)
    /// PEM certificates in memory, instead of the system's.
    case pem(Data)
    /// PEM certificates in memory, besides the system's.
    case systemAnd(Data)
}

/// A version of TLS.
public enum TLSVersion: Hashable, Comparable, Sendable {
    /// TLS 1.0, obsolete (RFC 8996).
    case v1_0
    /// TLS 1.1, obsolete (RFC 8996).
    case v1_1
    /// TLS 1.2, RFC 5246.
    case v1_2
    /// TLS 1.3, RFC 8446.
    case v1_3
}
