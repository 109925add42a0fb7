// SPDX-License-Identifier: MIT

import CLinux

/// What the system's messages have told about interfaces, addresses, routes and rules; pure.
package struct NetworkState: Sendable {
    /// The links by their index.
    private(set) var links: [Int32: Link] = [:]
    /// The kinds of the links.
    private(set) var kinds: [Int32: InterfaceKind] = [:]
    /// The addresses by their interface.
    private(set) var addresses: [Int32: [InterfaceAddress]] = [:]
    private(set) var tables: [TableID: RouteTable] = [:]
    /// The rules of each family, in their order.
    private(set) var rules: [IPAddress.Family: [RoutingRule]] = [:]
    /// Tells the `DEVTYPE` of an interface by its name.
    private let deviceType: @Sendable (String) -> String?

    init(deviceType: @escaping @Sendable (String) -> String?) {
        self.deviceType = deviceType
    }

    struct TableID: Hashable {
        let family: IPAddress.Family
        let number: UInt32
    }

    /// What an event did.
    enum Effect: Hashable, Sendable {
        /// Nothing that was not known.
        case nothing
        /// All that changed is known.
        case changed
        /// The kernel drops routes with this and does not say which: what is known may be too much. So it is for IPv4 when
        /// an interface goes down, is removed, or loses an address.
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
