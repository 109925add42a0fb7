// SPDX-License-Identifier: MIT

package import ANSystem
import CLinux
import Glibc

/// A netlink socket for routing messages of the network namespace in which it was opened. See netlink(7), rtnetlink(7).
package struct RouteSocket: ~Copyable, Sendable {
    let descriptor: FileDescriptor
    /// The port number that identifies the socket to the kernel.
    let port: UInt32

    /// The result of receiving.
    enum Received: Hashable {
        /// A datagram, and its size in bytes.
        case datagram(Int)
        /// Messages arrived faster than they were read, and some were dropped.
        case loss
        /// No datagram is available.
        case nothing
    }

    /// Opens a socket that receives changes of links, addresses, routes and rules.
    package init() throws(ReachabilityError) {
        let type = Int32(SOCK_RAW.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
        let number = socket(AF_NETLINK, type, NETLINK_ROUTE)
        guard number >= 0 else { throw .last("socket") }
        let descriptor = FileDescriptor(takingOwnershipOf: number)

        var address = sockaddr_nl()
        address.nl_family = sa_family_t(AF_NETLINK)
        address.nl_groups = [
            RTNLGRP_LINK, RTNLGRP_IPV4_IFADDR, RTNLGRP_IPV6_IFADDR, RTNLGRP_IPV4_ROUTE, RTNLGRP_IPV6_ROUTE,
            RTNLGRP_IPV4_RULE, RTNLGRP_IPV6_RULE,
        ].reduce(0) { $0 | 1 << ($1.rawValue - 1) }
        let isBound = unsafe Self.withSocketAddress(&address) { address, length in
            unsafe bind(number, address, length.pointee) == 0
        }
        guard isBound else { throw .last("bind") }
        try self.init(takingOwnershipOf: descriptor)
    }

    /// Creates a route socket from a bound netlink socket.
    package init(takingOwnershipOf descriptor: consuming FileDescriptor) throws(ReachabilityError) {
        var address = sockaddr_nl()
        let isKnown = unsafe Self.withSocketAddress(&address) { address, length in
            unsafe getsockname(descriptor.number, address, length) == 0
        }
        guard isKnown else { throw .last("getsockname") }
        self.descriptor = descriptor
        port = address.nl_pid
    }

    /// Releases ownership of the socket's descriptor.
    package consuming func release() -> FileDescriptor {
        descriptor
    }

    private static func withSocketAddress<Result>(
        _ address: inout sockaddr_nl,
        _ body: (UnsafeMutablePointer<sockaddr>, UnsafeMutablePointer<socklen_t>) -> Result
    ) -> Result {
        var length = socklen_t(MemoryLayout<sockaddr_nl>.size)
        return unsafe withUnsafeMutablePointer(to: &address) { address in
            unsafe address.withMemoryRebound(to: sockaddr.self, capacity: 1) { unsafe body($0, &length) }
        }
    }

    /// Requests all links, addresses, routes or rules; the answers are received like notifications.
    func send(_ request: RouteReader.Request) throws(ReachabilityError) {
        let (type, bodySize) =
            switch request.section {
            case .links: (RTM_GETLINK, MemoryLayout<ifinfomsg>.size)
            case .addresses: (RTM_GETADDR, MemoryLayout<ifaddrmsg>.size)
            case .routes: (RTM_GETROUTE, MemoryLayout<rtmsg>.size)
            case .rules: (RTM_GETRULE, MemoryLayout<fib_rule_hdr>.size)
            }
        let header = nlmsghdr(
            nlmsg_len: UInt32(NetlinkMessage.headerSize + bodySize), nlmsg_type: UInt16(type),
            nlmsg_flags: UInt16(NLM_F_REQUEST | NLM_F_DUMP), nlmsg_seq: request.sequence, nlmsg_pid: port)
        // A body of zeros requests the entries of all families.
        let message = unsafe withUnsafeBytes(of: header) { unsafe Array($0) } + [UInt8](repeating: 0, count: bodySize)
        let count = retryingInterrupts { unsafe Glibc.send(descriptor.number, message, message.count, 0) }
        guard count == message.count else { throw .last("send") }
    }

    /// Receives a datagram from the kernel; the part that exceeds the buffer is discarded.
    func receive(into buffer: inout [UInt8]) throws(ReachabilityError) -> Received {
        while true {
            var sender = sockaddr_nl()
            let count = unsafe Self.withSocketAddress(&sender) { sender, length in
                retryingInterrupts {
                    unsafe recvfrom(descriptor.number, &buffer, buffer.count, 0, sender, length)
                }
            }
            if count >= 0 {
                // Other processes may send to this port; the kernel's port is 0.
                guard sender.nl_pid == 0 else { continue }
                return .datagram(count)
            }
            switch errno {
            case EAGAIN: return .nothing
            case ENOBUFS: return .loss
            default: throw .last("recvfrom")
            }
        }
    }
}
