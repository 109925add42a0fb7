// SPDX-License-Identifier: MIT

/// The routes of one family and table, looked up by longest prefix.
struct RouteTable: Sendable {
    /// The routes to each network, in ascending order of metric.
    private var routes: [Prefix: [Route]] = [:]
    /// The number of networks for each prefix length.
    private var lengths = [Int](repeating: 0, count: 129)

    /// Adds a route, and returns whether it was not present.
    mutating func insert(_ route: Route) -> Bool {
        let known = routes[route.destination] ?? []
        guard !known.contains(route) else { return false }
        if known.isEmpty { lengths[route.destination.length] += 1 }
        let index = known.firstIndex { $0.metric > route.metric } ?? known.endIndex
        routes[route.destination, default: []].insert(route, at: index)
        return true
    }

    /// Removes a route, and returns whether it was present.
    mutating func remove(_ route: Route) -> Bool {
        remove(from: route.destination) { $0 == route }
    }

    /// Removes the routes with the same destination, sources and metric as `route` except `kept`, and returns whether
    /// there were any.
    mutating func removeSiblings(of route: Route, except kept: [Route]) -> Bool {
        remove(from: route.destination) {
            $0.sources == route.sources && $0.metric == route.metric && !kept.contains($0)
        }
    }

    private mutating func remove(from destination: Prefix, where condition: (Route) -> Bool) -> Bool {
        guard let known = routes[destination] else { return false }
        let rest = known.filter { !condition($0) }
        guard rest.count < known.count else { return false }
        if rest.isEmpty { lengths[destination.length] -= 1 }
        routes[destination] = rest.isEmpty ? nil : rest
        return true
    }

    /// Returns the routes to an address, in descending order of prefix length and then in ascending order of metric.
    ///
    /// Prefixes of more than `longest` bits are omitted.
    func routes(to address: IPAddress, longest: Int) -> some Sequence<Route> {
        stride(from: min(longest, address.family.bitCount), through: 0, by: -1).lazy
            .filter { lengths[$0] > 0 }
            .flatMap { length in
                Prefix(address, length: length).flatMap { routes[$0] } ?? []
            }
    }
}
