// SPDX-License-Identifier: MIT

/// The selection of a transfer's proxy, set in ``TransferOptions/proxy``; ``environment`` by default.
public enum ProxyPolicy: Hashable, Sendable {
    /// The proxy of the environment variables `http_proxy`, `https_proxy`, `all_proxy` and `no_proxy`, as interpreted
    /// by libcurl; none if they are not set. See ENVIRONMENT in curl(1).
    case environment
    /// No proxy; the environment is ignored.
    case none
    /// A specific proxy, except for the hosts of its ``Proxy/bypass``; the environment is ignored.
    case proxy(Proxy)
}

/// A proxy server, with its address, credential and exceptions, for ``ProxyPolicy/proxy(_:)``.
public struct Proxy: Hashable, Sendable {
    /// The protocol used with the proxy, which is not that of the URL.
    public var kind: Kind
    /// The host name or address of the proxy, without brackets around an IPv6 address.
    public var host: String
    /// The port of the proxy, from 1 to 65,535; there is no default, as it differs between proxies. With any other
    /// number, requests fail.
    public var port: Int
    /// The credential for the proxy; `nil`, the default, for none. It is sent with Basic unless ``Credential/schemes``
    /// says otherwise; SOCKS 5 uses the method of RFC 1929, never GSS-API, and SOCKS 4a sends the user name only.
    ///
    /// If the proxy requires a credential and does not accept this one, requests fail with
    /// ``TransportError/ProxyFailure/authenticationRequired``, or receive its 407 as the response to an http URL. A
    /// session first asks its `AuthenticationPolicy.challengeHandler`, except for SOCKS.
    ///
    /// A `Proxy-Authorization` field of the request replaces it for HTTP proxies.
    public var credential: Credential?
    /// The hosts that are contacted without the proxy: names including their subdomains, with or without `*.` before
    /// them, addresses in any spelling, CIDR blocks such as `fd00::/8`, or `*` for all. A name or an address may be
    /// followed by a port, as in `example.com:80` and `[::1]:80`. Empty by default. Names are compared with the host of
    /// the URL, which is not resolved for this.
    public var bypass: [String]

    /// Creates a proxy.
    ///
    /// - Parameters:
    ///   - kind: The protocol used with the proxy.
    ///   - host: The host name or address of the proxy, without brackets around an IPv6 address.
    ///   - port: The port of the proxy, from 1 to 65,535. With any other number, requests fail.
    ///   - credential: The credential for the proxy; `nil`, the default, for none.
    ///   - bypass: The hosts that are contacted without the proxy: names including their subdomains, addresses, CIDR
    ///     blocks, or `*` for all; empty by default.
    public init(_ kind: Kind, host: String, port: Int, credential: Credential? = nil, bypass: [String] = []) {
        self.kind = kind
        self.host = host
        self.port = port
        self.credential = credential
        self.bypass = bypass
    }

    /// A protocol used with a proxy, regardless of the scheme of the requested URL.
    public enum Kind: String, Hashable, Sendable {
        /// HTTP; the proxy forwards requests for http URLs, and opens a CONNECT tunnel for https URLs and WebSocket
        /// connections (RFC 9110 §9.3.6).
        case http
        /// HTTP over TLS; the proxy forwards requests for http URLs, and opens a CONNECT tunnel for https URLs and
        /// WebSocket connections. The proxy must be trusted by ``TLSOptions/trustRoots``; security policies and client
        /// identities do not apply to it. Fails with ``TransportError/Reason/unsupported(_:)`` if the linked libcurl
        /// lacks HTTPS proxies.
        case https
        /// SOCKS 4a; the proxy resolves host names.
        case socks4a
        /// SOCKS 5 (RFC 1928); host names are resolved locally.
        case socks5
        /// SOCKS 5 (RFC 1928); the proxy resolves host names.
        case socks5h
    }
}
