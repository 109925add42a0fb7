// SPDX-License-Identifier: MIT

import CLinux
import Glibc

/// The route that the kernel chose for packets to an address.
package struct Route: Hashable, Sendable {
    enum Kind: Hashable, Sendable {
        /// A route over an interface.
        case unicast
        /// A route to this machine.
        case local
    }

    let kind: Kind
    package let interface: Int32
    package let gateway: IPAddress?
    /// The source address of packets unless the socket is bound; `nil` if no address of this machine is suitable.
    let source: IPAddress?
}

extension Route {
    /// Parses the answer to ``RouteRequest/route(to:from:)``, an `rtmsg` and its attributes; `nil` if it is malformed,
    /// or if requests cannot use the route: it rejects packets, or is for broadcasts or multicasts. See
    /// linux/rtnetlink.h.
    package init?(_ message: NetlinkMessage) {
        let payload = message.payload
        guard message.type == RTM_NEWROUTE, let type: UInt8 = payload.load(at: 7), payload.count >= 12 else {
            return nil
        }
        switch Int(type) {
        case RTN_UNICAST: kind = .unicast
        case RTN_LOCAL: kind = .local
        default: return nil
        }
        var interface: Int32?
        var gateway: IPAddress?
        var source: IPAddress?
        for (type, value) in NetlinkAttributes(payload.dropFirst(12)) {
            switch rtattr_type_t(UInt32(type)) {
            case RTA_OIF: interface = value.load(at: 0)
            case RTA_GATEWAY: gateway = IPAddress(bytes: value)
            // A gateway of the other family, preceded by the family's number.
            case RTA_VIA: gateway = IPAddress(bytes: value.dropFirst(2))
            case RTA_PREFSRC: source = IPAddress(bytes: value)
            default: break
            }
        }
        guard let interface, interface > 0 else { return nil }
        self.interface = interface
        self.gateway = gateway
        self.source = source
    }
}

/// A request to the kernel for one route or link. See rtnetlink(7).
package enum RouteRequest: Hashable, Sendable {
    /// The route that a TCP socket of the requesting user, without mark, takes to an address; `source` is the address that
    /// it is bound to, `nil` for none.
    case route(to: IPAddress, from: IPAddress?)
    /// An interface by index.
    case link(Int32)

    /// The netlink message of the request. See netlink(7).
    package func message(sequence: UInt32) -> [UInt8] {
        let (type, body) =
            switch self {
            case .route(let destination, let source): (RTM_GETROUTE, Self.routeBody(destination, source))
            case .link(let index): (RTM_GETLINK, Self.linkBody(index))
            }
        let header = nlmsghdr(
            nlmsg_len: UInt32(NetlinkMessage.headerSize + body.count), nlmsg_type: UInt16(type),
            nlmsg_flags: UInt16(NLM_F_REQUEST), nlmsg_seq: sequence, nlmsg_pid: 0)
        return Self.bytes(header) + body
    }

    private static func routeBody(_ destination: IPAddress, _ source: IPAddress?) -> [UInt8] {
        var route = rtmsg()
        route.rtm_family = UInt8(destination.family == .v4 ? AF_INET : AF_INET6)
        route.rtm_dst_len = UInt8(destination.family.bitCount)
        route.rtm_src_len = UInt8(source?.family.bitCount ?? 0)
        // Rules may select packets by protocol. The kernel adds the user.
        return bytes(route) + attribute(RTA_DST, destination.bytes)
            + (source.map { attribute(RTA_SRC, $0.bytes) } ?? [])
            + (destination.interface == 0 ? [] : attribute(RTA_OIF, bytes(destination.interface)))
            + attribute(RTA_IP_PROTO, [UInt8(IPPROTO_TCP)])
    }

    private static func linkBody(_ index: Int32) -> [UInt8] {
        var link = ifinfomsg()
        link.ifi_index = index
        return bytes(link)
    }

    private static func attribute(_ type: rtattr_type_t, _ payload: [UInt8]) -> [UInt8] {
        let header = rtattr(
            rta_len: UInt16(MemoryLayout<rtattr>.size + payload.count), rta_type: UInt16(type.rawValue))
        let padding = [UInt8](repeating: 0, count: payload.count.alignedForNetlink - payload.count)
        return bytes(header) + payload + padding
    }

    private static func bytes(_ structure: some BitwiseCopyable) -> [UInt8] {
        unsafe withUnsafeBytes(of: structure) { unsafe Array($0) }
    }
}

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
