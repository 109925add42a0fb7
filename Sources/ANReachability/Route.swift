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
