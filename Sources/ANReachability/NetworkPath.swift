// SPDX-License-Identifier: MIT

/// The first hop of packets to a destination.
package struct NetworkPath: Hashable, Sendable {
    package let interface: Int32
    package let gateway: IPAddress?
    package let kind: InterfaceKind
}

extension NetworkPath {
    /// Creates the path for a route and its interface; `nil` if packets cannot take it.
    ///
    /// The kernel also chooses routes over interfaces that cannot carry packets at the moment, unless its setting
    /// `ignore_routes_with_linkdown` is on, and IPv6 routes without a source address that is valid at the destination.
    ///
    /// - Parameter deviceType: Returns the `DEVTYPE` of an interface by name.
    package init?(
        to destination: IPAddress, over route: Route, link: Link, deviceType: (_ interface: String) -> String?
    ) {
        switch route.kind {
        case .local:
            guard link.isUp else { return nil }
            kind = .loopback
        case .unicast:
            guard link.isRunning, route.source?.isValidSource(for: destination) == true else { return nil }
            kind = InterfaceKind(
                hardware: link.hardware, driver: link.driver, device: deviceType(link.name), name: link.name)
        }
        interface = route.interface
        gateway = route.gateway
    }
}

extension IPAddress {
    /// Returns whether a destination can respond to this address. For IPv4 the kernel has compared their scopes.
    fileprivate func isValidSource(for destination: IPAddress) -> Bool {
        guard family == .v6 else { return true }
        // ::1 and fe80::/10, see RFC 4291 §2.5.
        let isLoopback = bits == 1
        return !isLoopback && (!isLinkLocal || destination.isLinkLocal)
    }

    private var isLinkLocal: Bool { bits >> 118 == 0xFE80 >> 6 }
}
