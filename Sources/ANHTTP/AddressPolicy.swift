// SPDX-License-Identifier: MIT

/// Which addresses connections may be made to: a guard for programs that fetch URLs which others have written.
///
/// It is asked after a name was resolved, with the address that the connection would really be made to, for each exchange:
/// for redirects too, and for connections that are used again. So neither a name that leads to an inner address nor one that
/// changes its address in between gets past it. Where one address of a name is refused, the exchange fails with
/// ``TransportError/ConnectFailure/addressForbidden``.
///
/// Through a proxy it is the proxy's address that is checked, because the proxy resolves the names: a proxy that is trusted
/// to look after its own net is named as an exception. A Unix-domain socket has no address and is not checked.
public enum AddressPolicy: Hashable, Sendable {
    /// Any address.
    case any
    /// Addresses of the public internet and these others, written as addresses (`10.1.2.3`) or networks (`10.1.0.0/16`).
    ///
    /// Refused are all that the registries of special-purpose addresses hold back (RFC 6890): loopback, private and
    /// link-local addresses (where clouds keep their metadata), shared ones of carriers, multicast and reserved ones, and
    /// IPv6 addresses that hide such an IPv4 address (mapped, NAT64, 6to4). An exception that is no address or network
    /// fails the request.
    case publicOnly(except: [String] = [])
}
