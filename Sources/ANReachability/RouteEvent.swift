// SPDX-License-Identifier: MIT

/// A network interface.
struct Link: Hashable, Sendable {
    let index: Int32
    let name: String
    /// Whether it was switched on.
    let isUp: Bool
    /// Whether it can carry packets: it is on, and so is its cable, radio or peer.
    let isRunning: Bool
    /// The type of `ARPHRD_…`.
    let hardware: UInt16
    /// The kind of a virtual interface, such as `wireguard`.
    let driver: String?
}

/// An address of an interface.
struct InterfaceAddress: Hashable, Sendable {
    let interface: Int32
    let address: IPAddress
    let prefixLength: UInt8
    /// How far the address means something, from 0, everywhere, to 254, on this machine. See `RT_SCOPE_…` in rtnetlink(7).
    let scope: UInt8
    /// Whether packets may have it as their source: it is not waiting for, or refused by, the detection of duplicates.
    let isUsable: Bool

    /// Whether the other one is this one in another state.
    func hasIdentity(of other: InterfaceAddress) -> Bool {
        address == other.address && prefixLength == other.prefixLength
    }
}

/// One way to a network; a route with several next hops is several of these.
struct Route: Hashable, Sendable {
    enum Kind: Hashable, Sendable {
        /// Over an interface.
        case unicast
        /// To this machine.
        case local
        /// Nowhere: packets are refused or dropped.
        case refused
        /// Look in another table.
        case skipped
    }

    let table: UInt32
    let destination: Prefix
    /// The sources that the route is for; of IPv6 only.
    let sources: Prefix?
    /// Lower ones come first.
    let metric: UInt32
    let kind: Kind
    /// How far the destination is, as in ``InterfaceAddress/scope``; always 0 with IPv6.
    let scope: UInt8
    /// 0 for none.
    let interface: Int32
    let gateway: IPAddress?
    /// The source that packets shall have.
    let preferredSource: IPAddress?
}

/// A rule that says which table routes are taken from. See ip-rule(8).
struct RoutingRule: Hashable, Sendable {
    enum Action: Hashable, Sendable {
        case look(table: UInt32)
        case refuse
        case goTo(priority: UInt32)
        case nothing
    }

    let family: IPAddress.Family
    /// Lower ones come first.
    let priority: UInt32
    let action: Action
    var destination: Prefix?
    var users: ClosedRange<UInt32>?
    /// Whether what else the rule asks for holds for a socket that has neither address, mark nor interface.
    var matchesPlainSockets = true
    /// Whether the rule is for what does not match.
    var isInverted = false
    /// Routes to networks with at most so many bits do not count.
    var ignoredPrefixLength: Int?

    /// Whether the rule is for packets of a plain socket to a destination.
    func matches(_ address: IPAddress, user: UInt32) -> Bool {
        let matches =
            matchesPlainSockets && destination?.contains(address) != false && users?.contains(user) != false
        return matches != isInverted
    }
}

/// What a message says about the network.
enum RouteEvent: Hashable, Sendable {
    case link(Link)
    case linkRemoved(index: Int32)
    case address(InterfaceAddress)
    case addressRemoved(InterfaceAddress)
    /// The next hops of one route; it may take the place of those with the same destination and metric.
    case route([Route], replaces: Bool)
    case routeRemoved([Route])
    case rule(RoutingRule)
    case ruleRemoved(RoutingRule)
}
