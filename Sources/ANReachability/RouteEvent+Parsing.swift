// SPDX-License-Identifier: MIT

import CLinux
import Glibc

/// Parsers for the messages of rtnetlink(7), whose fields are defined in linux/rtnetlink.h, if_link.h, if_addr.h and
/// fib_rules.h.
extension RouteEvent {
    /// Creates the event that a message reports; `nil` if the message is malformed or irrelevant.
    init?(_ message: NetlinkMessage) {
        let payload = message.payload
        switch message.type {
        case RTM_NEWLINK, RTM_DELLINK:
            // Bridges send messages of the family AF_BRIDGE when a port is removed.
            guard payload.load(at: 0) == UInt8(AF_UNSPEC), let link = Link(payload) else { return nil }
            self = message.type == RTM_NEWLINK ? .link(link) : .linkRemoved(index: link.index)
        case RTM_NEWADDR, RTM_DELADDR:
            guard let address = InterfaceAddress(payload) else { return nil }
            self = message.type == RTM_NEWADDR ? .address(address) : .addressRemoved(address)
        case RTM_NEWROUTE, RTM_DELROUTE:
            let routes = Route.nextHops(payload)
            guard !routes.isEmpty else { return nil }
            self =
                message.type == RTM_NEWROUTE
                ? .route(routes, replaces: message.flags & NLM_F_REPLACE != 0) : .routeRemoved(routes)
        case RTM_NEWRULE, RTM_DELRULE:
            guard let rule = RoutingRule(payload) else { return nil }
            self = message.type == RTM_NEWRULE ? .rule(rule) : .ruleRemoved(rule)
        default:
            return nil
        }
    }
}

extension Link {
    /// Parses an `ifinfomsg` and its attributes.
    fileprivate init?(_ payload: ArraySlice<UInt8>) {
        guard let hardware: UInt16 = payload.load(at: 2), let index: Int32 = payload.load(at: 4), index > 0,
            let flags: UInt32 = payload.load(at: 8), payload.count >= 16
        else { return nil }
        var name = ""
        var driver: String?
        for (type, value) in NetlinkAttributes(payload.dropFirst(16)) {
            switch type {
            case IFLA_IFNAME: name = value.netlinkText
            case IFLA_LINKINFO:
                driver = NetlinkAttributes(value).first { $0.type == IFLA_INFO_KIND }?.payload.netlinkText
            default: break
            }
        }
        self.init(
            index: index, name: name, isUp: flags & UInt32(IFF_UP) != 0,
            isRunning: flags & UInt32(IFF_RUNNING) != 0, hardware: hardware, driver: driver)
    }
}

extension InterfaceAddress {
    /// Parses an `ifaddrmsg` and its attributes.
    fileprivate init?(_ payload: ArraySlice<UInt8>) {
        guard let prefixLength: UInt8 = payload.load(at: 1), let shortFlags: UInt8 = payload.load(at: 2),
            let scope: UInt8 = payload.load(at: 3), let interface: Int32 = payload.load(at: 4)
        else { return nil }
        var flags = Int32(shortFlags)
        var own: IPAddress?
        var peer: IPAddress?
        for (type, value) in NetlinkAttributes(payload.dropFirst(8)) {
            switch type {
            case IFA_LOCAL: own = IPAddress(bytes: value)
            case IFA_ADDRESS: peer = IPAddress(bytes: value)
            case IFA_FLAGS: flags = value.load(at: 0) ?? flags
            default: break
            }
        }
        // Without a peer, IFA_ADDRESS may be the only attribute and then holds the interface's own address.
        guard let address = own ?? peer else { return nil }
        let isTentative = flags & IFA_F_TENTATIVE != 0 && flags & IFA_F_OPTIMISTIC == 0
        self.init(
            interface: interface, address: address, prefixLength: prefixLength, scope: scope,
            isUsable: !isTentative && flags & IFA_F_DADFAILED == 0)
    }
}

extension Route {
    /// Parses an `rtmsg` and its attributes, and returns the next hops of the route; empty if the route is malformed or
    /// irrelevant.
    fileprivate static func nextHops(_ payload: ArraySlice<UInt8>) -> [Route] {
        guard let family = IPAddress.Family(payload.load(at: 0)), let length: UInt8 = payload.load(at: 1),
            let sourceLength: UInt8 = payload.load(at: 2),
            // Routes for a particular type of service do not apply to sockets without one.
            payload.load(at: 3) == UInt8(0), let shortTable: UInt8 = payload.load(at: 4),
            let scope: UInt8 = payload.load(at: 6), let kind = Kind(payload.load(at: 7)),
            let flags: UInt32 = payload.load(at: 8), flags & UInt32(RTM_F_CLONED) == 0
        else { return [] }
        var table = UInt32(shortTable)
        var destination = IPAddress.zero(family)
        var source = IPAddress.zero(family)
        var metric: UInt32 = 0
        var preferredSource: IPAddress?
        var hop = NextHop()
        var otherHops: [NextHop] = []
        for (type, value) in NetlinkAttributes(payload.dropFirst(12)) {
            switch rtattr_type_t(UInt32(type)) {
            case RTA_TABLE: table = value.load(at: 0) ?? table
            case RTA_DST: destination = IPAddress(bytes: value) ?? destination
            case RTA_SRC: source = IPAddress(bytes: value) ?? source
            case RTA_PRIORITY: metric = value.load(at: 0) ?? metric
            case RTA_PREFSRC: preferredSource = IPAddress(bytes: value)
            case RTA_MULTIPATH: otherHops = NextHop.all(value)
            default: hop.read(type, value)
            }
        }
        guard destination.family == family, let prefix = Prefix(destination, length: Int(length)) else { return [] }
        let sources = sourceLength == 0 ? nil : Prefix(source, length: Int(sourceLength))
        return (otherHops.isEmpty ? [hop] : otherHops).map { hop in
            Route(
                table: table, destination: prefix, sources: sources, metric: metric, kind: kind,
                scope: family == .v4 ? scope : 0, interface: hop.interface, gateway: hop.gateway,
                preferredSource: preferredSource)
        }
    }

    private struct NextHop {
        var interface: Int32 = 0
        var gateway: IPAddress?

        mutating func read(_ type: Int, _ value: ArraySlice<UInt8>) {
            switch rtattr_type_t(UInt32(type)) {
            case RTA_OIF: interface = value.load(at: 0) ?? 0
            case RTA_GATEWAY: gateway = IPAddress(bytes: value)
            // A gateway of the other family, preceded by the family's number.
            case RTA_VIA: gateway = IPAddress(bytes: value.dropFirst(2))
            default: break
            }
        }

        /// Parses a sequence of `rtnexthop` structures, each with its attributes.
        static func all(_ bytes: ArraySlice<UInt8>) -> [NextHop] {
            var hops: [NextHop] = []
            var rest = bytes
            while let length: UInt16 = rest.load(at: 0), length >= 8, length <= rest.count,
                let interface: Int32 = rest.load(at: 4)
            {
                var hop = NextHop(interface: interface)
                for (type, value) in NetlinkAttributes(rest.prefix(Int(length)).dropFirst(8)) { hop.read(type, value) }
                hops.append(hop)
                rest = rest.dropFirst((Int(length) + 3) & ~3)
            }
            return hops
        }
    }
}

extension RoutingRule {
    /// Parses a `fib_rule_hdr` and its attributes.
    fileprivate init?(_ payload: ArraySlice<UInt8>) {
        guard let family = IPAddress.Family(payload.load(at: 0)), let destinationLength: UInt8 = payload.load(at: 1),
            let sourceLength: UInt8 = payload.load(at: 2), let service: UInt8 = payload.load(at: 3),
            let shortTable: UInt8 = payload.load(at: 4), let action: UInt8 = payload.load(at: 7),
            let flags: UInt32 = payload.load(at: 8)
        else { return nil }
        var table = UInt32(shortTable)
        var (priority, target, mark, mask): (UInt32, UInt32, UInt32, UInt32) = (0, 0, 0, 0)
        var destination: IPAddress?
        var users: ClosedRange<UInt32>?
        var ignoredPrefixLength: Int?
        var matchesPlainSockets = sourceLength == 0 && service == 0
        for (type, value) in NetlinkAttributes(payload.dropFirst(12)) {
            switch type {
            case FRA_DST: destination = IPAddress(bytes: value)
            case FRA_PRIORITY: priority = value.load(at: 0) ?? 0
            case FRA_TABLE: table = value.load(at: 0) ?? table
            case FRA_GOTO: target = value.load(at: 0) ?? 0
            case FRA_FWMARK: mark = value.load(at: 0) ?? 0
            case FRA_FWMASK: mask = value.load(at: 0) ?? 0
            case FRA_SUPPRESS_PREFIXLEN:
                // -1 means that no prefix is suppressed.
                ignoredPrefixLength = (value.load(at: 0) as Int32?).flatMap { $0 < 0 ? nil : Int($0) }
            case FRA_UID_RANGE:
                if let first: UInt32 = value.load(at: 0), let last: UInt32 = value.load(at: 4), first <= last {
                    users = first...last
                }
            // Packets sent by this machine have the input interface `lo`.
            case FRA_IIFNAME: if value.netlinkText != "lo" { matchesPlainSockets = false }
            case FRA_IP_PROTO: if value.load(at: 0) != UInt8(IPPROTO_TCP) { matchesPlainSockets = false }
            case FRA_L3MDEV: if value.load(at: 0) != UInt8(0) { matchesPlainSockets = false }
            case FRA_OIFNAME, FRA_TUN_ID, FRA_SPORT_RANGE, FRA_DPORT_RANGE: matchesPlainSockets = false
            default: break
            }
        }
        if mark & mask != 0 { matchesPlainSockets = false }
        let prefix = Prefix(destination ?? .zero(family), length: Int(destinationLength))
        guard let prefix, prefix.address.family == family else { return nil }
        self.init(
            family: family, priority: priority, action: Action(action, table: table, target: target),
            destination: destinationLength == 0 ? nil : prefix,
            users: users, matchesPlainSockets: matchesPlainSockets,
            isInverted: flags & UInt32(FIB_RULE_INVERT) != 0, ignoredPrefixLength: ignoredPrefixLength)
    }
}

extension RoutingRule.Action {
    fileprivate init(_ action: UInt8, table: UInt32, target: UInt32) {
        switch Int(action) {
        case FR_ACT_TO_TBL: self = .look(table: table)
        case FR_ACT_GOTO: self = .goTo(priority: target)
        case FR_ACT_BLACKHOLE, FR_ACT_UNREACHABLE, FR_ACT_PROHIBIT: self = .refuse
        default: self = .nothing
        }
    }
}

extension Route.Kind {
    /// Creates the kind for an `RTN_…` number; `nil` for types that do not apply to requests, such as multicast.
    fileprivate init?(_ type: UInt8?) {
        switch type.map(Int.init) {
        case RTN_UNICAST: self = .unicast
        case RTN_LOCAL: self = .local
        case RTN_BLACKHOLE, RTN_UNREACHABLE, RTN_PROHIBIT: self = .refused
        case RTN_THROW: self = .skipped
        default: return nil
        }
    }
}

extension IPAddress.Family {
    /// Creates the family for an `AF_…` number.
    fileprivate init?(_ number: UInt8?) {
        switch number.map(Int32.init) {
        case AF_INET: self = .v4
        case AF_INET6: self = .v6
        default: return nil
        }
    }
}
