// SPDX-License-Identifier: MIT

/// The addresses that connections may be made to; protects programs that fetch untrusted URLs from server-side request
/// forgery.
///
/// The policy is checked after name resolution, against the address of the actual connection, for every exchange:
/// redirects and reused connections are included. Neither a name that resolves to an internal address nor DNS rebinding
/// can bypass it. The first forbidden address that is tried ends the exchange with
/// ``TransportError/ConnectFailure/addressForbidden``; other addresses of the name are not tried.
///
/// With a proxy, only the proxy's address is checked, even if names are resolved locally: the proxy may connect to any
/// server. List an internal proxy as an exception. The address of a ``ConnectionOptions/dnsOverHTTPS`` server is not
/// checked.
public enum AddressPolicy: Hashable, Sendable {
    /// All addresses, the default.
    case any
    /// Public Internet addresses, and exceptions written as addresses (`10.1.2.3`) or networks (`10.1.0.0/16`); no
    /// exceptions by default.
    ///
    /// Forbidden are the special-purpose addresses of RFC 6890: loopback, private, link-local (used by cloud metadata
    /// services), carrier-grade NAT, multicast and reserved addresses, IPv6 addresses that contain such an IPv4 address
    /// (mapped, NAT64, 6to4), and those that contain none and are outside of 2000::/3. A Unix-domain socket, which only
    /// the program itself can choose, is allowed. An exception that is neither an address nor a network fails the
    /// request with ``TransportError/Reason/invalidRequest(_:)``.
    case publicOnly(except: [String] = [])
}
