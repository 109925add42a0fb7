// SPDX-License-Identifier: MIT

public import FoundationEssentials

/// The rules for TLS connections. By default the server is verified against the system's store, with TLS 1.2 or later.
public struct TLSOptions: Hashable, Sendable {
    /// Which authorities are trusted.
    public var trustRoots = TrustRoots.system
    /// The lowest version accepted; TLS 1.2 by default.
    public var minimumVersion = TLSVersion.v1_2
    /// The highest version accepted; nil for the highest that OpenSSL has.
    public var maximumVersion: TLSVersion?
    /// Whether HTTP versions are negotiated in the handshake (ALPN, RFC 7301); without it HTTP/1.1 is used.
    public var negotiatesProtocol = true

    /// Creates the default rules.
    public init() {}
}

/// The authorities whose certificates are trusted.
public enum TrustRoots: Hashable, Sendable {
    /// The system's store.
    case system
    /// The certificates of a PEM file, instead of the system's.
    case file(String)
    /// PEM certificates in memory, instead of the system's.
    case pem(Data)
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
