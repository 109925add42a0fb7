// SPDX-License-Identifier: MIT

package import ANSystem
import CLinux
import Glibc

/// A pair of netlink sockets, one for changes and one for requests, in the network namespace in which they were opened.
/// See netlink(7), rtnetlink(7).
package struct RouteSocket: ~Copyable, Sendable {
    /// The socket that becomes readable when links, addresses, routes or rules change.
    let changes: FileDescriptor
    /// The socket for requests. It is not subscribed to changes, so that its buffer always has room for an answer.
    private let requests: FileDescriptor
    private var sequence: UInt32 = 0
    /// The buffer for answers; the kernel's are never longer.
    private var buffer = [UInt8](repeating: 0, count: 64 << 10)

    /// Opens the sockets.
    package init() throws(ReachabilityError) {
        let groups = [
            RTNLGRP_LINK, RTNLGRP_IPV4_IFADDR, RTNLGRP_IPV6_IFADDR, RTNLGRP_IPV4_ROUTE, RTNLGRP_IPV6_ROUTE,
            RTNLGRP_IPV4_RULE, RTNLGRP_IPV6_RULE, RTNLGRP_NEXTHOP,
        ]
        self.init(
            changes: try Self.open(groups: groups.reduce(0) { $0 | 1 << ($1.rawValue - 1) }),
            requests: try Self.open(groups: 0))
    }

    /// Creates a route socket from bound netlink sockets.
    package init(changes: consuming FileDescriptor, requests: consuming FileDescriptor) {
        self.changes = changes
        self.requests = requests
    }

    /// Releases ownership of the sockets' descriptors.
    package consuming func release() -> (changes: Int32, requests: Int32) {
        (changes.release(), requests.release())
    }

    private static func open(groups: UInt32) throws(ReachabilityError) -> FileDescriptor {
        let type = Int32(SOCK_RAW.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
        let number = socket(AF_NETLINK, type, NETLINK_ROUTE)
        guard number >= 0 else { throw .last("socket") }
        let descriptor = FileDescriptor(takingOwnershipOf: number)
        var address = sockaddr_nl()
        address.nl_family = sa_family_t(AF_NETLINK)
        address.nl_groups = groups
        let isBound = unsafe withSocketAddress(&address) { address, length in
            unsafe bind(number, address, length.pointee) == 0
        }
        guard isBound else { throw .last("bind") }
        return descriptor
    }

    private static func withSocketAddress<Address, Result>(
        _ address: inout Address,
        _ body: (UnsafeMutablePointer<sockaddr>, UnsafeMutablePointer<socklen_t>) -> Result
    ) -> Result {
        var length = socklen_t(MemoryLayout<Address>.size)
        return unsafe withUnsafeMutablePointer(to: &address) { address in
            unsafe address.withMemoryRebound(to: sockaddr.self, capacity: 1) { unsafe body($0, &length) }
        }
    }

    // MARK: Changes

    /// Receives the available notifications, but at most 256, so that subscribers also get reports during a flood.
    ///
    /// - Returns: Whether the network may have changed, so that routes must be requested again.
    package mutating func receiveChanges() throws(ReachabilityError) -> Bool {
        var hasChanged = false
        var start: UInt8 = 0
        receiving: for _ in 0..<256 {
            // The content is irrelevant, and the rest of the datagram is discarded.
            if retryingInterrupts({ unsafe recv(changes.number, &start, 1, 0) }) < 0 {
                switch errno {
                case EAGAIN: break receiving
                // Notifications arrived faster than they were received, and some were lost.
                case ENOBUFS: break
                default: throw .last("recv")
                }
            }
            hasChanged = true
        }
        // The kernel announces some changes before they are complete, such as the removal of an address, after which it
        // removes routes without a notification. A request for a link waits for the change in progress, unlike one for
        // a route.
        if hasChanged { _ = try answer(to: .link(Self.loopback)) { Link($0) } }
        return hasChanged
    }

    /// The index of the loopback interface in every network namespace.
    private static let loopback: Int32 = 1

    // MARK: Requests

    /// Requests the path that packets to an address take now; `nil` if it is unreachable.
    package mutating func path(to destination: IPAddress) throws(ReachabilityError) -> NetworkPath? {
        var route = try answer(to: .route(to: destination, from: nil)) { Route($0) }
        // Without a source address, the kernel finds no IPv6 routes that are limited to some, unlike for a socket.
        if route == nil, let source = Self.source(for: destination) {
            route = try answer(to: .route(to: destination, from: source)) { Route($0) }
        }
        guard let route, let link = try answer(to: .link(route.interface), { Link($0) }) else { return nil }
        return NetworkPath(to: destination, over: route, link: link, deviceType: { DeviceTypes.type(of: $0) })
    }

    /// Returns the source address that a socket gets for an IPv6 destination; `nil` if the destination is unreachable.
    ///
    /// A UDP socket is connected for it, which sends nothing. See connect(2).
    private static func source(for destination: IPAddress) -> IPAddress? {
        guard destination.family == .v6 else { return nil }
        let number = socket(AF_INET6, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard number >= 0 else { return nil }
        let descriptor = FileDescriptor(takingOwnershipOf: number)
        var address = sockaddr_in6()
        address.sin6_family = sa_family_t(AF_INET6)
        // Any port.
        address.sin6_port = 1
        address.sin6_scope_id = UInt32(bitPattern: destination.interface)
        unsafe withUnsafeMutableBytes(of: &address.sin6_addr) { unsafe $0.copyBytes(from: destination.bytes) }
        let isConnected = unsafe withSocketAddress(&address) { address, length in
            unsafe connect(descriptor.number, address, length.pointee) == 0
                && getsockname(descriptor.number, address, length) == 0
        }
        guard isConnected else { return nil }
        return unsafe withUnsafeBytes(of: address.sin6_addr) { unsafe IPAddress(bytes: $0) }
    }

    /// Sends a request and returns the parsed answer; `nil` if the kernel answers with an error, as it does if there is
    /// no route.
    private mutating func answer<Answer>(
        to request: RouteRequest, _ parse: (NetlinkMessage) -> Answer?
    ) throws(ReachabilityError) -> Answer? {
        sequence &+= 1
        let message = request.message(sequence: sequence)
        let sent = retryingInterrupts { unsafe send(requests.number, message, message.count, 0) }
        guard sent == message.count else { throw .last("send") }
        // The kernel answers before `send` returns, so the socket never waits.
        while true {
            var sender = sockaddr_nl()
            let count = unsafe Self.withSocketAddress(&sender) { sender, length in
                retryingInterrupts { unsafe recvfrom(requests.number, &buffer, buffer.count, 0, sender, length) }
            }
            guard count >= 0 else { throw .last("recvfrom") }
            // Other processes may send to this socket; the kernel's port is 0.
            guard sender.nl_pid == 0,
                let message = NetlinkMessages(buffer[..<count]).first(where: { $0.sequence == sequence })
            else { continue }
            guard let code = message.errorCode else { return parse(message) }
            // All other errors mean that there is no such route or link.
            if [EPERM, ENOMEM, ENOBUFS].contains(code) {
                throw ReachabilityError(SystemError(call: "netlink", code: code))
            }
            return nil
        }
    }
}
