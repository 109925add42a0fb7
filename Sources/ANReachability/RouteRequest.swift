// SPDX-License-Identifier: MIT

import CLinux
import Glibc

/// A request to the kernel for one route or link. See rtnetlink(7).
package enum RouteRequest: Hashable, Sendable {
    /// The route that a TCP socket of the requesting user, without mark or interface, takes to an address; `source` is
    /// the address that it is bound to, `nil` for none.
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
            + (source.map { attribute(RTA_SRC, $0.bytes) } ?? []) + attribute(RTA_IP_PROTO, [UInt8(IPPROTO_TCP)])
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
