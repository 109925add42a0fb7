// SPDX-License-Identifier: MIT

import CLinux
import Glibc

/// What a network interface is.
@nonexhaustive
public enum InterfaceKind: Hashable, Sendable, CaseIterable {
    /// Ethernet and what behaves like it: cables, bridges, VLANs, bonds, the interfaces of virtual machines and containers.
    case wired
    /// A wireless network, Wi-Fi.
    case wireless
    /// A modem for mobile networks, or a dial-up line.
    case cellular
    /// The machine itself.
    case loopback
    /// A tunnel: WireGuard, TUN and TAP, GRE, IP in IP, IPsec, and the like.
    case tunnel
}

extension InterfaceKind {
    /// Tells the kind by what the kernel knows, from the most certain to the least.
    ///
    /// - Parameters:
    ///   - hardware: The type of `ARPHRD_…`, as in the messages of rtnetlink(7).
    ///   - driver: The kind of a virtual interface, such as `wireguard`, as `ip -details link` shows it.
    ///   - device: The `DEVTYPE` of the interface in sysfs, such as `wlan`.
    ///   - name: The name, whose first letters systemd.net-naming-scheme(7) defines.
    package init(hardware: UInt16, driver: String?, device: String?, name: String) {
        if let kind = Self.kind(ofHardware: Int32(hardware)) {
            self = kind
        } else if let driver, Self.tunnelDrivers.contains(driver) {
            self = .tunnel
        } else if driver == "wwan" || driver == "rmnet" || device == "wwan" {
            self = .cellular
        } else if device == "wlan" {
            self = .wireless
        } else if driver != nil || device != nil {
            self = .wired
        } else if name.hasPrefix("wl") {
            self = .wireless
        } else if name.hasPrefix("ww") || name.hasPrefix("rmnet") {
            self = .cellular
        } else {
            self = .wired
        }
    }

    /// The hardware types that leave no doubt; Ethernet is not among them, because wireless networks have it too.
    private static func kind(ofHardware type: Int32) -> InterfaceKind? {
        switch type {
        case ARPHRD_LOOPBACK: .loopback
        case ARPHRD_PPP, ARPHRD_RAWIP, ARPHRD_SLIP, ARPHRD_CSLIP: .cellular
        case ARPHRD_TUNNEL, ARPHRD_TUNNEL6, ARPHRD_SIT, ARPHRD_IPGRE, ARPHRD_NONE: .tunnel
        // ARPHRD_IP6GRE, which glibc leaves out.
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
