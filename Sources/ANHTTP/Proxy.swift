// SPDX-License-Identifier: MIT

/// How a transfer chooses its proxy.
public enum ProxyPolicy: Hashable, Sendable {
    /// From `http_proxy`, `https_proxy`, `all_proxy` and `no_proxy`, as libcurl reads them. See curl(1), ENVIRONMENT.
    case environment
    /// No proxy, whatever the environment says.
    case none
    /// This proxy.
    case proxy(Proxy)
}

/// A proxy server.
public struct Proxy: Hashable, Sendable {
    /// The protocol spoken to the proxy.
    public var kind: Kind
    /// The proxy's host name or address.
    public var host: String
    /// The proxy's port.
    public var port: Int
    /// The user and password for the proxy; sent by Basic unless the credential names other schemes. SOCKS 5 has a way of
    /// its own (RFC 1929).
    public var credential: Credential?
    /// Hosts that are reached without the proxy: names with their subdomains, addresses, CIDR blocks, or `*`.
    public var bypass: [String]

    /// Creates a proxy.
    public init(_ kind: Kind, host: String, port: Int, credential: Credential? = nil, bypass: [String] = []) {
        self.kind = kind
        self.host = host
        self.port = port
        self.credential = credential
        self.bypass = bypass
    }

    /// The protocol spoken to a proxy.
    public enum Kind: String, Hashable, Sendable {
        /// HTTP; https URLs are tunnelled with CONNECT (RFC 9110 §9.3.6).
        case http
        /// HTTP over TLS.
        case https
        /// SOCKS 4a: the proxy resolves names.
        case socks4a
        /// SOCKS 5, RFC 1928: names are resolved here.
        case socks5
        /// SOCKS 5: the proxy resolves names.
        case socks5h
    }
}
