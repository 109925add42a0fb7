// SPDX-License-Identifier: MIT

/// A network interface.
struct Link: Hashable, Sendable {
    let index: Int32
    let name: String
    /// Whether the interface is administratively enabled (`IFF_UP`).
    let isUp: Bool
    /// Whether the interface can carry packets: it is enabled, and its cable, radio or peer is connected
    /// (`IFF_RUNNING`).
    let isRunning: Bool
    /// The `ARPHRD_…` type.
    let hardware: UInt16
    /// The kind of a virtual interface, such as `wireguard`; `nil` for other interfaces.
    let driver: String?
}

/// An address of an interface.
struct InterfaceAddress: Hashable, Sendable {
    let interface: Int32
    let address: IPAddress
    let prefixLength: UInt8
    /// The scope in which the address is valid, from 0 (universe) to 254 (this host). See `RT_SCOPE_…` in rtnetlink(7).
    let scope: UInt8
    /// Whether packets may use the address as their source: duplicate address detection neither is in progress nor has
    /// failed.
    let isUsable: Bool

    /// Returns whether two values are the same address of an interface, possibly in different states.
    func hasIdentity(of other: InterfaceAddress) -> Bool {
        address == other.address && prefixLength == other.prefixLength
    }
}

/// One next hop of a route; a multipath route has several values.
struct Route: Hashable, Sendable {
    enum Kind: Hashable, Sendable {
        /// A route over an interface.
        case unicast
        /// A route to this machine.
        case local
        /// A route that rejects or drops packets.
        case refused
        /// A route that continues the lookup with the next rule.
        case skipped
    }

    let table: UInt32
    let destination: Prefix
    /// The source addresses that the route applies to; `nil` for all. IPv6 only.
    let sources: Prefix?
    /// The priority of the route among those with the same destination; the lowest metric wins.
    let metric: UInt32
    let kind: Kind
    /// The scope of the destination, with the numbers of ``InterfaceAddress/scope``; always 0 for IPv6.
    let scope: UInt8
    /// The index of the interface; 0 if absent.
    let interface: Int32
    let gateway: IPAddress?
    /// The source address of packets unless the socket is bound; `nil` if the route does not set one.
    let preferredSource: IPAddress?
}

/// A rule that selects a routing table. See ip-rule(8).
struct RoutingRule: Hashable, Sendable {
    enum Action: Hashable, Sendable {
        case look(table: UInt32)
        case refuse
        case goTo(priority: UInt32)
        case nothing
    }

    let family: IPAddress.Family
    /// The position of the rule; lower priorities are evaluated first.
    let priority: UInt32
    let action: Action
    var destination: Prefix?
    var users: ClosedRange<UInt32>?
    /// Whether the rule's other conditions hold for a TCP socket without bound address, mark or interface.
    var matchesPlainSockets = true
    /// Whether the rule applies to packets that do not match its conditions.
    var isInverted = false
    /// The prefix length up to which routes found by this rule are ignored; `nil` to ignore none.
    var ignoredPrefixLength: Int?

    /// Returns whether the rule applies to packets from a plain socket of a user to a destination.
    func matches(_ address: IPAddress, user: UInt32) -> Bool {
        let matches =
            matchesPlainSockets && destination?.contains(address) != false && users?.contains(user) != false
        return matches != isInverted
    }
}

/// A change of the network, reported by one message.
enum RouteEvent: Hashable, Sendable {
    case link(Link)
    case linkRemoved(index: Int32)
    case address(InterfaceAddress)
    case addressRemoved(InterfaceAddress)
    /// The next hops of one route, which possibly replace those with the same destination and metric.
    case route([Route], replaces: Bool)
    case routeRemoved([Route])
    case rule(RoutingRule)
    case ruleRemoved(RoutingRule)
}
