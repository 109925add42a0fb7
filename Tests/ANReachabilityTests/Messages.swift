// SPDX-License-Identifier: MIT

import ANReachability

/// Builders for messages of rtnetlink(7), byte by byte, with the numbers of the kernel's headers.
enum Messages {
    /// The port of the requesting socket in these tests.
    static let port: UInt32 = 4711

    static func message(
        _ type: UInt16, flags: UInt16 = 0, sequence: UInt32 = 0, port: UInt32 = 0, _ payload: [UInt8]
    ) -> [UInt8] {
        let padding = [UInt8](repeating: 0, count: (4 - payload.count % 4) % 4)
        return bytes(UInt32(16 + payload.count)) + bytes(type) + bytes(flags) + bytes(sequence) + bytes(port) + payload
            + padding
    }

    static func attribute(_ type: UInt16, _ payload: [UInt8]) -> [UInt8] {
        bytes(UInt16(4 + payload.count)) + bytes(type) + payload
            + [UInt8](repeating: 0, count: (4 - payload.count % 4) % 4)
    }

    static func bytes(_ integer: some FixedWidthInteger) -> [UInt8] {
        unsafe withUnsafeBytes(of: integer) { unsafe Array($0) }
    }

    /// Returns a link message; the link is up and running by default.
    static func link(
        _ index: Int32, _ name: String, isUp: Bool = true, isRunning: Bool = true, hardware: UInt16 = 1,
        driver: String? = nil, family: UInt8 = 0
    ) -> [UInt8] {
        // IFF_UP, IFF_RUNNING; IFLA_IFNAME 3, IFLA_LINKINFO 18 with IFLA_INFO_KIND 1.
        let flags: UInt32 = (isUp ? 1 : 0) | (isUp && isRunning ? 0x40 : 0)
        return [family, 0] + bytes(hardware) + bytes(index) + bytes(flags) + bytes(UInt32(0))
            + attribute(3, Array(name.utf8) + [0])
            + (driver.map { attribute(18, attribute(1, Array($0.utf8) + [0])) } ?? [])
    }

    /// Returns an address message for an address with its prefix length, such as `192.0.2.2/24`.
    static func address(
        _ interface: Int32, _ text: String, scope: UInt8 = 0, flags: UInt32 = 0x80, peer: String? = nil
    ) -> [UInt8] {
        let (address, length) = network(text)
        // IFA_ADDRESS 1, IFA_LOCAL 2, IFA_FLAGS 8.
        let isV6 = address.count == 16
        return [isV6 ? 10 : 2, length, UInt8(truncatingIfNeeded: flags), scope] + bytes(interface)
            + attribute(1, peer.map { network($0).bytes } ?? address)
            + (isV6 && peer == nil ? [] : attribute(2, address)) + attribute(8, bytes(flags))
    }

    /// Returns a route message for a network, such as `192.0.2.0/24`.
    static func route(
        _ destination: String, over interface: Int32? = nil, via gateway: String? = nil, metric: UInt32 = 0,
        table: UInt32 = 254, type: UInt8 = 1, scope: UInt8 = 0, source: String? = nil, service: UInt8 = 0,
        from sources: String? = nil, hops: [(interface: Int32, gateway: String)] = []
    ) -> [UInt8] {
        let (address, length) = network(destination)
        let from = sources.map(network)
        var payload: [UInt8] =
            [address.count == 16 ? 10 : 2, length, from?.length ?? 0, service, table < 256 ? UInt8(table) : 252, 3]
            + [scope, type] + bytes(UInt32(0))
        // RTA_DST 1, RTA_SRC 2, RTA_OIF 4, RTA_GATEWAY 5, RTA_PRIORITY 6, RTA_PREFSRC 7, RTA_MULTIPATH 9, RTA_TABLE 15.
        if length > 0 { payload += attribute(1, address) }
        if let from { payload += attribute(2, from.bytes) }
        payload += attribute(15, bytes(table))
        if let interface { payload += attribute(4, bytes(interface)) }
        if let gateway { payload += attribute(5, network(gateway).bytes) }
        if metric > 0 { payload += attribute(6, bytes(metric)) }
        if let source { payload += attribute(7, network(source).bytes) }
        if !hops.isEmpty {
            let list = hops.flatMap { hop in
                let gateway = attribute(5, network(hop.gateway).bytes)
                return bytes(UInt16(8 + gateway.count)) + [0, 0] + bytes(hop.interface) + gateway
            }
            payload += attribute(9, list)
        }
        return payload
    }

    /// Returns a rule message; attributes as in linux/fib_rules.h.
    static func rule(
        _ priority: UInt32, table: UInt32 = 0, action: UInt8 = 1, isInverted: Bool = false, isV6: Bool = false,
        to destination: String? = nil, fromLength: UInt8 = 0, _ attributes: [UInt8] = []
    ) -> [UInt8] {
        let to = destination.map(network)
        return [isV6 ? 10 : 2, to?.length ?? 0, fromLength, 0, table < 256 ? UInt8(table) : 252, 0, 0, action]
            + bytes(UInt32(isInverted ? 2 : 0)) + attribute(6, bytes(priority)) + attribute(15, bytes(table))
            + (to.map { attribute(1, $0.bytes) } ?? []) + attributes
    }

    private static func network(_ text: String) -> (bytes: [UInt8], length: UInt8) {
        let parts = text.split(separator: "/")
        let bytes = IPAddress(String(parts[0]))?.bytes ?? []
        return (bytes, parts.count > 1 ? UInt8(parts[1]) ?? 0 : UInt8(bytes.count * 8))
    }
}

/// The types of netlink messages.
enum MessageType {
    static let error: UInt16 = 2
    static let done: UInt16 = 3
    static let newLink: UInt16 = 16
    static let delLink: UInt16 = 17
    static let newAddress: UInt16 = 20
    static let delAddress: UInt16 = 21
    static let newRoute: UInt16 = 24
    static let delRoute: UInt16 = 25
    static let newRule: UInt16 = 32
    static let delRule: UInt16 = 33
}

/// A simulated kernel that answers a reader's requests and sends it events.
struct FakeKernel {
    var reader = RouteReader(port: Messages.port) { $0 == "radio0" ? "wlan" : nil }
    private var pending: RouteReader.Request?

    /// Returns the reader's next request, or the one that is still unanswered.
    mutating func nextRequest() -> RouteReader.Request? {
        pending = reader.nextRequest() ?? pending
        return pending
    }

    /// Answers the last request with messages of one type, and ends the answer.
    mutating func answer(_ type: UInt16, _ payloads: [[UInt8]], flags: UInt16 = 2) -> Int32? {
        guard let request = pending else { return nil }
        let messages = payloads.flatMap {
            Messages.message(type, flags: flags, sequence: request.sequence, port: Messages.port, $0)
        }
        if let code = reader.receive(messages[...]) { return code }
        return end(0)
    }

    /// Ends an answer with a code, as the kernel does: a negative `errno`, or 0.
    mutating func end(_ code: Int32, type: UInt16 = MessageType.done, flags: UInt16 = 2) -> Int32? {
        guard let request = pending else { return nil }
        return reader.receive(
            Messages.message(
                type, flags: flags, sequence: request.sequence, port: Messages.port, Messages.bytes(code))[...])
    }

    /// Sends an event, such as a change made by another program.
    mutating func tell(_ type: UInt16, _ payload: [UInt8], flags: UInt16 = 0) {
        _ = reader.receive(Messages.message(type, flags: flags, sequence: 1, port: 99, payload)[...])
    }

    /// Answers all requests up to the end of a reading.
    mutating func answerAll(
        links: [[UInt8]] = [], addresses: [[UInt8]] = [], rules: [[UInt8]] = [], routes: [[UInt8]] = []
    ) {
        while true {
            switch nextRequest()?.section {
            case .links: _ = answer(MessageType.newLink, links)
            case .addresses: _ = answer(MessageType.newAddress, addresses)
            case .rules: _ = answer(MessageType.newRule, rules)
            case .routes:
                _ = answer(MessageType.newRoute, routes)
                return
            case nil: return
            }
        }
    }

    /// Returns a kernel with a typical configuration: `lo`, and `eth0` with a default route.
    static func usual() -> FakeKernel {
        var kernel = FakeKernel()
        kernel.answerAsUsual()
        return kernel
    }

    /// Answers all requests up to the end of a reading with the typical configuration.
    mutating func answerAsUsual() {
        answerAll(
            links: [Messages.link(1, "lo", hardware: 772), Messages.link(2, "eth0")],
            addresses: [
                Messages.address(1, "127.0.0.1/8", scope: 254), Messages.address(2, "192.0.2.2/24"),
                Messages.address(1, "::1/128", scope: 254), Messages.address(2, "fe80::2/64", scope: 253),
            ],
            routes: [
                Messages.route("127.0.0.0/8", over: 1, table: 255, type: 2, scope: 254),
                Messages.route("192.0.2.2/32", over: 2, table: 255, type: 2, scope: 254),
                Messages.route("192.0.2.0/24", over: 2, scope: 253, source: "192.0.2.2"),
                Messages.route("0.0.0.0/0", over: 2, via: "192.0.2.1"),
                Messages.route("::1/128", over: 1, table: 255, type: 2),
                Messages.route("fe80::/64", over: 2, metric: 256),
            ])
    }

    /// Returns the kind of interface that the path to an address uses; `nil` if there is no path.
    func kind(_ address: String, user: UInt32 = 0) -> InterfaceKind? {
        path(address, user: user)?.kind
    }

    func path(_ address: String, user: UInt32 = 0) -> NetworkPath? {
        IPAddress(address).flatMap { reader.state.path(to: $0, user: user) }
    }

    /// The interfaces of the default routes.
    var defaults: [Int32] { reader.state.defaultPaths(user: 0).map(\.interface) }
}
