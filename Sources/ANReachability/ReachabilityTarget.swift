// SPDX-License-Identifier: MIT

/// A destination whose reachability a ``ReachabilityMonitor`` observes: the Internet by default, an address, or a host.
@nonexhaustive
public enum ReachabilityTarget: Hashable, Sendable {
    /// The Internet, over IPv4 or IPv6: the route to addresses of a root name server, usually the default route. If
    /// both families have one, the status is that of IPv4. Nothing is sent to these addresses.
    case defaultRoute
    /// A single IPv4 or IPv6 address, which is never looked up. Broadcast and multicast addresses are not reachable.
    case address(IPAddress)
    /// A host, given by its name or by an address in text form, which is not looked up; an IPv6 address may be in
    /// brackets.
    ///
    /// A name is resolved by the system's resolver, see getaddrinfo(3), and reachable if any of its addresses is. It is
    /// looked up when its first observer begins and when the default route changes; later observers of the same monitor
    /// share the result. After a failed lookup it is looked up again on any change of the network, and after 1, 2, 4, …
    /// at most 30 seconds. A name without an address is not reachable.
    case host(String)

    /// The target itself, or its address if it is a host given by an address in text form.
    var resolvingLiterals: ReachabilityTarget {
        guard case .host(let name) = self else { return self }
        let isBracketed = name.hasPrefix("[") && name.hasSuffix("]")
        let text = isBracketed ? String(name.dropFirst().dropLast()) : name
        return IPAddress(text).map(ReachabilityTarget.address) ?? self
    }
}
