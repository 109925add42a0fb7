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
    /// The user and password for the proxy.
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

/// A user and password. Its description never shows the password.
public struct Credential: Hashable, Sendable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The user's name.
    public var user: String
    /// The password.
    public var password: String

    /// Creates a credential.
    public init(user: String, password: String) {
        self.user = user
        self.password = password
    }

    /// The user's name with the password left out.
    public var description: String { "Credential(user: \(user), password: …)" }
    /// The same as the description.
    public var debugDescription: String { description }
    /// A mirror without the password.
    public var customMirror: Mirror { Mirror(self, children: ["user": user]) }
}
