// SPDX-License-Identifier: MIT

import CLinux
import Glibc

/// A network interface.
package struct Link: Hashable, Sendable {
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

extension Link {
    /// Parses the answer to ``RouteRequest/link(_:)``, an `ifinfomsg` and its attributes; `nil` if it is malformed. See
    /// linux/if_link.h.
    package init?(_ message: NetlinkMessage) {
        let payload = message.payload
        guard message.type == RTM_NEWLINK, let hardware: UInt16 = payload.load(at: 2),
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
            name: name, isUp: flags & UInt32(IFF_UP) != 0, isRunning: flags & UInt32(IFF_RUNNING) != 0,
            hardware: hardware, driver: driver)
    }
}
