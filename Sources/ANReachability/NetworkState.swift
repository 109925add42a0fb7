// SPDX-License-Identifier: MIT

import CLinux

/// The interfaces, addresses, routes and rules known from the kernel's messages, as a pure value.
package struct NetworkState: Sendable {
    /// The links by interface index.
    private(set) var links: [Int32: Link] = [:]
    /// The kinds of the links by interface index.
    private(set) var kinds: [Int32: InterfaceKind] = [:]
    /// The addresses by interface index.
    private(set) var addresses: [Int32: [InterfaceAddress]] = [:]
    private(set) var tables: [TableID: RouteTable] = [:]
    /// The rules of each family in order of priority.
    private(set) var rules: [IPAddress.Family: [RoutingRule]] = [:]
    /// Returns the `DEVTYPE` of an interface by name.
    private let deviceType: @Sendable (String) -> String?

    init(deviceType: @escaping @Sendable (String) -> String?) {
        self.deviceType = deviceType
    }

    struct TableID: Hashable {
        let family: IPAddress.Family
        let number: UInt32
    }

    /// The effect of an event on the state.
    enum Effect: Hashable, Sendable {
        /// The state is unchanged.
        case nothing
        /// The state has changed, and the event described the whole change.
        case changed
        /// The state has changed by more than the event described. The kernel removes IPv4 routes without a
        /// notification when an interface goes down, is removed, or loses an address, so the state may contain routes
        /// that no longer exist.
        case changedMoreThanSaid
    }

    mutating func apply(_ event: RouteEvent) -> Effect {
        switch event {
        case .link(let link): return add(link)
        case .linkRemoved(let index):
            kinds[index] = nil
            addresses[index] = nil
            return links.removeValue(forKey: index) == nil ? .nothing : .changedMoreThanSaid
        case .address(let address): return add(address)
        case .addressRemoved(let address):
            let count = addresses[address.interface]?.count
            addresses[address.interface]?.removeAll { $0.hasIdentity(of: address) }
            guard count != addresses[address.interface]?.count else { return .nothing }
            return address.address.family == .v4 ? .changedMoreThanSaid : .changed
        case .route(let routes, let replaces): return add(routes, replacing: replaces)
        case .routeRemoved(let routes):
            let changes = routes.map { tables[$0.tableID]?.remove($0) ?? false }
            return changes.contains(true) ? .changed : .nothing
        case .rule(let rule): return add(rule)
        case .ruleRemoved(let rule):
            guard let index = rules[rule.family]?.firstIndex(of: rule) else { return .nothing }
            rules[rule.family]?.remove(at: index)
            return .changed
        }
    }

    private mutating func add(_ link: Link) -> Effect {
        let old = links[link.index]
        guard old != link else { return .nothing }
        links[link.index] = link
        if kinds[link.index] == nil || old?.name != link.name || old?.driver != link.driver {
            kinds[link.index] = InterfaceKind(
                hardware: link.hardware, driver: link.driver, device: deviceType(link.name), name: link.name)
        }
        return old?.isUp == true && !link.isUp ? .changedMoreThanSaid : .changed
    }

    private mutating func add(_ address: InterfaceAddress) -> Effect {
        let index = addresses[address.interface]?.firstIndex { $0.hasIdentity(of: address) }
        guard let index else {
            addresses[address.interface, default: []].append(address)
            return .changed
        }
        guard addresses[address.interface]?[index] != address else { return .nothing }
        addresses[address.interface]?[index] = address
        return .changed
    }

    private mutating func add(_ routes: [Route], replacing: Bool) -> Effect {
        guard let first = routes.first else { return .nothing }
        var hasChanged = replacing && tables[first.tableID]?.removeSiblings(of: first, except: routes) == true
        for route in routes where tables[route.tableID, default: RouteTable()].insert(route) { hasChanged = true }
        return hasChanged ? .changed : .nothing
    }

    private mutating func add(_ rule: RoutingRule) -> Effect {
        var known = rules[rule.family] ?? []
        guard !known.contains(rule) else { return .nothing }
        known.insert(rule, at: known.firstIndex { $0.priority > rule.priority } ?? known.endIndex)
        rules[rule.family] = known
        return .changed
    }
}

extension Route {
    fileprivate var tableID: NetworkState.TableID {
        NetworkState.TableID(family: destination.address.family, number: table)
    }
}
