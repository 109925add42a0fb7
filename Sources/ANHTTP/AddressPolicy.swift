// SPDX-License-Identifier: MIT

/// The addresses that connections may be made to; protects programs that fetch untrusted URLs from server-side request
/// forgery.
///
/// The policy is checked after name resolution, against the address of the actual connection, for every exchange:
/// redirects and reused connections are included. Neither a name that resolves to an internal address nor DNS rebinding
/// can bypass it. The first forbidden address that is tried fails the request with
/// ``TransportError/ConnectFailure/addressForbidden``; other addresses of the name are not tried. Set the policy in
/// ``ConnectionOptions/addresses``.
///
/// With a proxy, only the proxy's address is checked, even if names are resolved locally: the proxy may connect to any
/// server. List an internal proxy as an exception. The address of a ``ConnectionOptions/dnsOverHTTPS`` server is not
/// checked.
public enum AddressPolicy: Hashable, Sendable {
    /// All addresses, without a check; the default of ``ConnectionOptions/addresses``.
    case any
    /// Public Internet addresses, and exceptions written as IPv4 or IPv6 addresses (`10.1.2.3`) or networks
    /// (`10.1.0.0/16`, `fd00::/8`); no exceptions by default.
    ///
    /// The special-purpose addresses of RFC 6890 and multicast addresses are forbidden: loopback, private, link-local
    /// (used by cloud metadata services), carrier-grade NAT, documentation and reserved ones, IPv6 addresses that
    /// contain a forbidden IPv4 address (mapped, NAT64, 6to4), and those that contain no IPv4 address and are outside
    /// of 2000::/3. A Unix-domain socket, which only the program itself can choose, is allowed.
    ///
    /// An exception that is neither an address nor a network, such as a host name, fails all requests with
    /// ``TransportError/Reason/invalidRequest(_:)``.
    case publicOnly(except: [String] = [])
}
