// SPDX-License-Identifier: MIT

/// What is reachable, or not.
@nonexhaustive
public enum ReachabilityTarget: Hashable, Sendable {
    /// The world: whatever the default route leads to, by IPv4 or IPv6.
    case defaultRoute
    /// One address.
    case address(IPAddress)
    /// A host by its name, through the addresses that the system's resolver gives for it; or by its address in text form,
    /// where IPv6 may stand in brackets.
    ///
    /// The name is looked up when the watching begins, when the default route changes, and, after a look-up that failed,
    /// at any change and after 1, 2, 4, … at most 30 s. A name without address is not reachable.
    case host(String)

    /// The target, with the address in place of a host that is given by its address.
    var resolvingLiterals: ReachabilityTarget {
        guard case .host(let name) = self else { return self }
        let isBracketed = name.hasPrefix("[") && name.hasSuffix("]")
        let text = isBracketed ? String(name.dropFirst().dropLast()) : name
        return IPAddress(text).map(ReachabilityTarget.address) ?? self
    }
}
