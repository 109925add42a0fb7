// SPDX-License-Identifier: MIT

import CLinux
import Glibc

/// The first hop of packets to a destination.
package struct NetworkPath: Hashable, Sendable {
    package let interface: Int32
    package let gateway: IPAddress?
    package let kind: InterfaceKind
}

/// Route lookup as the kernel does it: rules, tables, the longest prefix, then the lowest metric.
///
/// There is one difference: a route over an interface that cannot carry packets at the moment is ignored, as the kernel
/// does only with `ignore_routes_with_linkdown`; a network manager will remove such a route soon.
extension NetworkState {
    /// Returns the paths to the Internet, at most one for each family.
    ///
    /// A path may result from a default route, or from one of the two half-sized routes that VPNs use to override it.
    package func defaultPaths(user: UInt32) -> [NetworkPath] {
        [
            path(to: .zero(.v4), longestPrefix: 1, user: user),
            // 2000::/3 contains all global unicast addresses.
            IPAddress("2000::").flatMap { path(to: $0, longestPrefix: 3, user: user) },
        ].compactMap(\.self)
    }

    /// Returns the path to an address; `nil` if it is unreachable.
    ///
    /// Routes with prefixes longer than `longestPrefix` bits are ignored.
    package func path(to address: IPAddress, longestPrefix: Int = .max, user: UInt32) -> NetworkPath? {
        let rules = rules[address.family] ?? Self.defaultRules(address.family)
        var index = 0
        while index < rules.count {
            let rule = rules[index]
            index += 1
            guard rule.matches(address, user: user) else { continue }
            switch rule.action {
            case .look(let table):
                switch look(for: address, longestPrefix: longestPrefix, table: table, rule: rule) {
                case .found(let path): return path
                case .refused: return nil
                case .notFound: break
                }
            case .refuse: return nil
            // A jump backwards would be a loop; the kernel refuses such rules.
            case .goTo(let target) where target > rule.priority:
                index = rules.firstIndex { $0.priority >= target } ?? rules.count
            case .goTo, .nothing: break
            }
        }
        return nil
    }

    private enum Finding {
        case found(NetworkPath)
        case refused
        case notFound
    }

    private func look(for address: IPAddress, longestPrefix: Int, table: UInt32, rule: RoutingRule) -> Finding {
        guard let table = tables[TableID(family: address.family, number: table)] else { return .notFound }
        for route in table.routes(to: address, longest: longestPrefix) {
            switch route.kind {
            case .refused: return .refused
            case .skipped: return .notFound
            case .unicast, .local:
                guard let path = path(over: route, to: address) else { continue }
                if let ignored = rule.ignoredPrefixLength, route.destination.length <= ignored { return .notFound }
                return .found(path)
            }
        }
        return .notFound
    }

    private func path(over route: Route, to address: IPAddress) -> NetworkPath? {
        guard let link = links[route.interface], link.isUp else { return nil }
        if route.kind == .local { return NetworkPath(interface: link.index, gateway: nil, kind: .loopback) }
        guard link.isRunning, hasSource(for: route, to: address), let kind = kinds[link.index] else { return nil }
        return NetworkPath(interface: link.index, gateway: route.gateway, kind: kind)
    }

    /// Returns whether packets of a route can have a source address: the preferred one, one of the interface, or one of
    /// another interface whose scope is wider than its link.
    private func hasSource(for route: Route, to destination: IPAddress) -> Bool {
        if route.preferredSource != nil { return true }
        let link = UInt8(RT_SCOPE_LINK.rawValue)
        // A destination beyond the link needs a source address that is valid there.
        let widest = destination.family == .v4 ? route.scope : destination.isLinkLocal ? link : link - 1
        return addresses.contains { interface, addresses in
            addresses.contains {
                $0.address.family == destination.family && $0.isUsable && $0.scope <= widest
                    && ($0.scope < link || interface == route.interface)
            }
        }
    }

    /// Returns the rules of a system without additional ones.
    private static func defaultRules(_ family: IPAddress.Family) -> [RoutingRule] {
        let local = RoutingRule(family: family, priority: 0, action: .look(table: RT_TABLE_LOCAL.rawValue))
        let main = RoutingRule(family: family, priority: 32766, action: .look(table: RT_TABLE_MAIN.rawValue))
        return [local, main]
    }
}
