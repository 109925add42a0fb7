// SPDX-License-Identifier: MIT

import ANSystem
import CLinux
import Glibc

/// The kind of a network interface, as determined from its hardware type, its driver, the device type in sysfs(5), and
/// otherwise its name.
@nonexhaustive
public enum InterfaceKind: Hashable, Sendable, CaseIterable {
    /// Ethernet and interfaces that behave like it: cables, bridges, VLANs, bonds, the interfaces of virtual machines
    /// and containers. Also the kind of an interface that is recognized as no other.
    case wired
    /// Wi-Fi (IEEE 802.11), including interfaces in monitor mode.
    case wireless
    /// A modem for mobile networks, or any line that uses PPP or SLIP, such as a dial-up line or PPPoE.
    case cellular
    /// The loopback interface, which connects the machine with itself; also the kind for all addresses of the machine
    /// itself, regardless of the interface that they belong to.
    case loopback
    /// A tunnel, such as WireGuard, TUN, TAP, GRE, VXLAN, IP in IP, or IPsec.
    case tunnel
}

extension InterfaceKind {
    /// Determines the kind of an interface from what the kernel reports, in the order of reliability.
    ///
    /// - Parameters:
    ///   - hardware: The `ARPHRD_…` type from the messages of rtnetlink(7).
    ///   - driver: The kind of a virtual interface, such as `wireguard`, as shown by `ip -details link`; `nil` for
    ///     other interfaces.
    ///   - device: The `DEVTYPE` of the interface in sysfs, such as `wlan`; `nil` if absent.
    ///   - name: The name of the interface, whose prefix systemd.net-naming-scheme(7) defines.
    package init(hardware: UInt16, driver: String?, device: String?, name: String) {
        if let kind = Self.kind(ofHardware: Int32(hardware)) {
            self = kind
        } else if let driver, Self.tunnelDrivers.contains(driver) {
            self = .tunnel
        } else if driver == "wwan" || driver == "rmnet" || device == "wwan" {
            self = .cellular
        } else if device == "wlan" {
            self = .wireless
        } else if driver == nil, device == nil, name.hasPrefix("wl") {
            self = .wireless
        } else if driver == nil, device == nil, name.hasPrefix("ww") || name.hasPrefix("rmnet") {
            self = .cellular
        } else {
            self = Int32(hardware) == ARPHRD_NONE ? .tunnel : .wired
        }
    }

    /// Returns the kind for unambiguous hardware types. Ethernet is not one of them, since wireless interfaces have the
    /// same type, nor is no hardware, since modems that pass on IP packets have the type of a tunnel.
    private static func kind(ofHardware type: Int32) -> InterfaceKind? {
        switch type {
        case ARPHRD_LOOPBACK: .loopback
        case ARPHRD_PPP, ARPHRD_RAWIP, ARPHRD_SLIP, ARPHRD_CSLIP: .cellular
        case ARPHRD_TUNNEL, ARPHRD_TUNNEL6, ARPHRD_SIT, ARPHRD_IPGRE: .tunnel
        // ARPHRD_IP6GRE, which glibc does not define.
        case 823: .tunnel
        case ARPHRD_IEEE80211, ARPHRD_IEEE80211_PRISM, ARPHRD_IEEE80211_RADIOTAP: .wireless
        default: nil
        }
    }

    private static let tunnelDrivers: Set<String> = [
        "amt", "bareudp", "erspan", "geneve", "gre", "gretap", "gtp", "ip6erspan", "ip6gre", "ip6gretap", "ip6tnl",
        "ipip", "ovpn", "sit", "tun", "vti", "vti6", "vxlan", "wireguard", "xfrm",
    ]
}

/// The device types that sysfs reports for network interfaces, which distinguish Wi-Fi and modems from Ethernet. See
/// sysfs(5).
package enum DeviceTypes {
    /// Returns the `DEVTYPE` of an interface, such as `wlan`; `nil` if sysfs has none.
    package static func type(of interface: String, in directory: String = "/sys/class/net") -> String? {
        // The kernel allows neither name; they are rejected so that the path cannot leave the directory.
        guard !interface.isEmpty, interface != "..", !interface.contains("/"),
            let file = try? RegularFile(path: "\(directory)/\(interface)/uevent")
        else { return nil }
        var bytes = [UInt8](repeating: 0, count: 1024)
        var span = bytes.mutableSpan
        var buffer = unsafe span.mutableBytes
        guard let count = try? file.read(into: &buffer) else { return nil }
        let lines = String(decoding: bytes.prefix(count), as: UTF8.self).split(separator: "\n")
        return lines.first { $0.hasPrefix("DEVTYPE=") }.map { String($0.dropFirst("DEVTYPE=".count)) }
    }
}

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
