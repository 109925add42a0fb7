// SPDX-License-Identifier: MIT

import ANReachability
import Testing

@Suite struct NetworkPathsTests {
    private var kernel = FakeKernel.usual()

    @Test func `own addresses use the loopback, others the interface`() {
        #expect(kernel.kind("127.0.0.1") == .loopback)
        #expect(kernel.kind("192.0.2.2") == .loopback)
        #expect(kernel.kind("192.0.2.77") == .wired)
        #expect(kernel.path("192.0.2.77")?.interface == 2)
        #expect(kernel.path("192.0.2.77")?.gateway == nil)
        #expect(kernel.kind("198.51.100.1") == .wired)
        #expect(kernel.path("198.51.100.1")?.gateway == IPAddress("192.0.2.1"))
        #expect(kernel.kind("::1") == .loopback)
        #expect(kernel.kind("fe80::77") == .wired)
        #expect(kernel.kind("2001:db8::1") == nil)
    }

    @Test mutating func `the longest prefix wins, then the lowest metric`() {
        kernel.tell(MessageType.newLink, Messages.link(3, "radio0"))
        kernel.tell(MessageType.newLink, Messages.link(4, "wg0", hardware: 65534, driver: "wireguard"))
        kernel.tell(MessageType.newRoute, Messages.route("10.0.0.0/8", over: 3, metric: 600))
        kernel.tell(MessageType.newRoute, Messages.route("10.0.0.0/8", over: 2, metric: 100))
        kernel.tell(MessageType.newRoute, Messages.route("10.1.0.0/16", over: 4, metric: 900))
        #expect(kernel.kind("10.2.0.1") == .wired)
        #expect(kernel.kind("10.1.0.1") == .tunnel)
        kernel.tell(MessageType.delRoute, Messages.route("10.0.0.0/8", over: 2, metric: 100))
        #expect(kernel.kind("10.2.0.1") == .wireless)
    }

    @Test mutating func `a route over an interface that cannot carry packets is ignored`() {
        kernel.tell(MessageType.newLink, Messages.link(3, "radio0"))
        kernel.tell(MessageType.newRoute, Messages.route("0.0.0.0/0", over: 3, via: "192.0.2.9", metric: 600))
        #expect(kernel.defaults == [2])
        kernel.tell(MessageType.newLink, Messages.link(2, "eth0", isRunning: false))
        #expect(kernel.defaults == [3])
        kernel.tell(MessageType.newLink, Messages.link(3, "radio0", isRunning: false))
        #expect(kernel.defaults == [])
        #expect(kernel.kind("192.0.2.2") == .loopback)
        kernel.tell(MessageType.newLink, Messages.link(2, "eth0"))
        #expect(kernel.defaults == [2])
    }

    @Test(arguments: [6, 7, 8])
    mutating func `a rejecting route hides wider ones`(type: UInt8) {
        kernel.tell(MessageType.newRoute, Messages.route("198.51.100.0/24", table: 254, type: type))
        #expect(kernel.kind("198.51.100.1") == nil)
        #expect(kernel.kind("203.0.113.1") == .wired)
    }

    @Test(arguments: [3, 4, 5])
    mutating func `route types that do not apply to requests are ignored`(type: UInt8) {
        kernel.tell(MessageType.newRoute, Messages.route("203.0.113.0/24", over: 9, type: type))
        #expect(kernel.reader.revision == 1)
    }

    @Test mutating func `a route for a type of service is ignored`() {
        kernel.tell(MessageType.newRoute, Messages.route("0.0.0.0/1", over: 9, service: 16))
        #expect(kernel.reader.revision == 1)
    }

    @Test mutating func `each next hop of a route is a path`() {
        let route = Messages.route("203.0.113.0/24", hops: [(3, "192.0.2.7"), (2, "192.0.2.8")])
        kernel.tell(MessageType.newLink, Messages.link(3, "radio0"))
        kernel.tell(MessageType.newRoute, route)
        #expect(kernel.path("203.0.113.1")?.interface == 3)
        kernel.tell(MessageType.newLink, Messages.link(3, "radio0", isRunning: false))
        #expect(kernel.path("203.0.113.1")?.gateway == IPAddress("192.0.2.8"))
        kernel.tell(MessageType.delRoute, route)
        #expect(kernel.path("203.0.113.1")?.gateway == IPAddress("192.0.2.1"))
    }

    @Test mutating func `a route replaces another with the same metric`() {
        kernel.tell(MessageType.newRoute, Messages.route("0.0.0.0/0", over: 2, via: "192.0.2.5", metric: 9))
        // NLM_F_REPLACE.
        kernel.tell(MessageType.newRoute, Messages.route("0.0.0.0/0", over: 2, via: "192.0.2.3"), flags: 0x100)
        #expect(kernel.path("198.51.100.1")?.gateway == IPAddress("192.0.2.3"))
        kernel.tell(MessageType.delRoute, Messages.route("0.0.0.0/0", over: 2, via: "192.0.2.3"))
        #expect(kernel.path("198.51.100.1")?.gateway == IPAddress("192.0.2.5"))
    }

    @Test mutating func `two halves of a default route are a default route`() {
        kernel.tell(MessageType.newLink, Messages.link(4, "tun0", hardware: 65534))
        kernel.tell(MessageType.newRoute, Messages.route("0.0.0.0/1", over: 4))
        kernel.tell(MessageType.newRoute, Messages.route("128.0.0.0/1", over: 4))
        #expect(kernel.defaults == [4])
        // A route to a smaller part of the Internet is not a default route.
        kernel.tell(MessageType.newRoute, Messages.route("0.0.0.0/8", over: 3))
        #expect(kernel.defaults == [4])
    }

    @Test mutating func `IPv6 destinations need a source address that is valid there`() {
        kernel.tell(MessageType.newRoute, Messages.route("::/0", over: 2, via: "fe80::1", metric: 1024))
        #expect(kernel.kind("2001:db8::1") == nil)
        #expect(kernel.defaults == [2])
        // IFA_F_TENTATIVE: duplicate address detection is in progress.
        kernel.tell(MessageType.newAddress, Messages.address(2, "2001:db8:2::2/64", flags: 0x40))
        #expect(kernel.kind("2001:db8::1") == nil)
        kernel.tell(MessageType.newAddress, Messages.address(2, "2001:db8:2::2/64"))
        #expect(kernel.kind("2001:db8::1") == .wired)
        #expect(kernel.defaults == [2, 2])
        // IFA_F_DADFAILED.
        kernel.tell(MessageType.newAddress, Messages.address(2, "2001:db8:2::2/64", flags: 0x08))
        #expect(kernel.kind("2001:db8::1") == nil)
        // IFA_F_TENTATIVE and IFA_F_OPTIMISTIC: usable during duplicate address detection.
        kernel.tell(MessageType.newAddress, Messages.address(2, "2001:db8:2::2/64", flags: 0x44))
        #expect(kernel.kind("2001:db8::1") == .wired)
    }

    @Test mutating func `a route for a source prefix is used`() {
        kernel.tell(MessageType.newAddress, Messages.address(2, "2001:db8:2::2/64"))
        kernel.tell(
            MessageType.newRoute, Messages.route("::/0", over: 2, via: "fe80::1", from: "2001:db8:2::/48"))
        #expect(kernel.kind("2001:db8::1") == .wired)
    }

    @Test mutating func `an interface without address uses that of another interface`() {
        kernel.tell(MessageType.newLink, Messages.link(3, "ppp0", hardware: 512))
        kernel.tell(MessageType.newRoute, Messages.route("203.0.113.0/24", over: 3, scope: 253))
        #expect(kernel.kind("203.0.113.1") == .cellular)
        kernel.tell(MessageType.delAddress, Messages.address(2, "192.0.2.2/24"))
        #expect(kernel.kind("203.0.113.1") == nil)
        // A loopback address is not valid elsewhere, unlike a global address assigned to the loopback interface.
        kernel.tell(MessageType.newAddress, Messages.address(1, "203.0.113.200/32"))
        #expect(kernel.kind("203.0.113.1") == .cellular)
    }

    @Test mutating func `a route with a preferred source needs no address on its interface`() {
        kernel.tell(MessageType.delAddress, Messages.address(2, "192.0.2.2/24"))
        #expect(kernel.defaults == [])
        kernel.tell(MessageType.newRoute, Messages.route("203.0.113.0/24", over: 2, source: "192.0.2.2"))
        kernel.tell(
            MessageType.newRoute, Messages.route("2001:db8::/32", over: 2, via: "fe80::1", source: "2001:db8:2::2"))
        #expect(kernel.kind("203.0.113.1") == .wired)
        #expect(kernel.kind("2001:db8::1") == .wired)
        #expect(kernel.kind("198.51.100.1") == nil)
        #expect(kernel.kind("2001:db9::1") == nil)
    }

    @Test mutating func `a link-local address does not reach beyond a gateway`() {
        kernel.tell(MessageType.delAddress, Messages.address(2, "192.0.2.2/24"))
        kernel.tell(MessageType.newAddress, Messages.address(2, "169.254.7.7/16", scope: 253))
        kernel.tell(MessageType.newRoute, Messages.route("169.254.0.0/16", over: 2, scope: 253))
        #expect(kernel.defaults == [])
        #expect(kernel.kind("169.254.9.9") == .wired)
    }

    @Test mutating func `the address of a peer is not an own address`() {
        kernel.tell(MessageType.delAddress, Messages.address(2, "192.0.2.2/24"))
        kernel.tell(MessageType.newAddress, Messages.address(2, "192.0.2.2/32", peer: "192.0.2.1"))
        #expect(kernel.defaults == [2])
        kernel.tell(MessageType.delAddress, Messages.address(2, "192.0.2.2/32", peer: "192.0.2.1"))
        #expect(kernel.defaults == [])
    }

    // MARK: Rules

    /// The rules of a system without additional ones.
    private let usualRules = [
        Messages.rule(0, table: 255), Messages.rule(32766, table: 254), Messages.rule(32767, table: 253),
    ]

    /// Adds the default rules and further ones, and an interface and a table for WireGuard.
    private mutating func addRules(_ rules: [UInt8]...) {
        for rule in usualRules + rules { kernel.tell(MessageType.newRule, rule) }
        kernel.tell(MessageType.newLink, Messages.link(4, "wg0", hardware: 65534, driver: "wireguard"))
        kernel.tell(MessageType.newAddress, Messages.address(4, "10.7.0.2/32"))
        kernel.tell(MessageType.newRoute, Messages.route("0.0.0.0/0", over: 4, table: 51820, scope: 253))
    }

    @Test mutating func `rules select the table, like those of wg-quick`() {
        // FRA_SUPPRESS_PREFIXLEN 14, FRA_FWMARK 10, FRA_FWMASK 16.
        addRules(
            Messages.rule(32764, table: 254, Messages.attribute(14, Messages.bytes(UInt32(0)))),
            Messages.rule(
                32765, table: 51820, isInverted: true,
                Messages.attribute(10, Messages.bytes(UInt32(0xCA6C)))
                    + Messages.attribute(16, Messages.bytes(UInt32.max))))
        #expect(kernel.defaults == [4])
        #expect(kernel.kind("198.51.100.1") == .tunnel)
        #expect(kernel.kind("192.0.2.77") == .wired)
        #expect(kernel.kind("127.0.0.1") == .loopback)
        kernel.tell(
            MessageType.delRule,
            Messages.rule(
                32765, table: 51820, isInverted: true,
                Messages.attribute(10, Messages.bytes(UInt32(0xCA6C)))
                    + Messages.attribute(16, Messages.bytes(UInt32.max))))
        #expect(kernel.defaults == [2])
    }

    @Test(arguments: [
        // FRA_IIFNAME 3, FRA_OIFNAME 17, FRA_FWMARK 10 and FRA_FWMASK 16, FRA_IP_PROTO 22, FRA_SPORT_RANGE 23,
        // FRA_DPORT_RANGE 24, FRA_L3MDEV 19.
        ([], true),
        (Messages.attribute(3, Array("lo\0".utf8)), true),
        (Messages.attribute(3, Array("eth0\0".utf8)), false),
        (Messages.attribute(17, Array("eth0\0".utf8)), false),
        (Messages.attribute(10, Messages.bytes(UInt32(1))) + Messages.attribute(16, Messages.bytes(UInt32(1))), false),
        (Messages.attribute(10, Messages.bytes(UInt32(0))) + Messages.attribute(16, Messages.bytes(UInt32(1))), true),
        (Messages.attribute(22, [6]), true),
        (Messages.attribute(22, [17]), false),
        (Messages.attribute(23, Messages.bytes(UInt32(0x0050_0050))), false),
        (Messages.attribute(24, Messages.bytes(UInt32(0x0050_0050))), false),
        (Messages.attribute(19, [1]), false),
    ])
    mutating func `a rule applies if it matches a plain TCP socket`(attributes: [UInt8], counts: Bool) {
        addRules(Messages.rule(100, table: 51820, attributes))
        #expect(kernel.kind("198.51.100.1") == (counts ? .tunnel : .wired))
    }

    @Test mutating func `a rule may be limited to destinations and users`() {
        // FRA_UID_RANGE 20.
        addRules(
            Messages.rule(100, table: 51820, to: "198.51.100.0/24"),
            Messages.rule(
                101, table: 51820,
                Messages.attribute(20, Messages.bytes(UInt32(1000)) + Messages.bytes(UInt32(1999)))))
        #expect(kernel.kind("198.51.100.1") == .tunnel)
        #expect(kernel.kind("203.0.113.1") == .wired)
        #expect(kernel.kind("203.0.113.1", user: 1000) == .tunnel)
        #expect(kernel.kind("203.0.113.1", user: 2000) == .wired)
    }

    @Test mutating func `a rule for a source prefix does not apply to an unbound socket`() {
        addRules(Messages.rule(100, table: 51820, fromLength: 24))
        #expect(kernel.kind("198.51.100.1") == .wired)
    }

    @Test(arguments: [6, 7, 8])
    mutating func `a rule may reject packets`(action: UInt8) {
        addRules(Messages.rule(100, action: action, to: "198.51.100.0/24"))
        #expect(kernel.kind("198.51.100.1") == nil)
        #expect(kernel.kind("203.0.113.1") == .wired)
    }

    @Test mutating func `a rule may jump forwards but not backwards`() {
        // FR_ACT_GOTO 2, FR_ACT_NOP 3; FRA_GOTO 4.
        addRules(
            Messages.rule(100, action: 2, Messages.attribute(4, Messages.bytes(UInt32(200)))),
            Messages.rule(150, table: 51820),
            Messages.rule(200, action: 3),
            Messages.rule(300, action: 2, Messages.attribute(4, Messages.bytes(UInt32(100)))))
        #expect(kernel.kind("198.51.100.1") == .wired)
    }

    @Test mutating func `a throw route continues with the next rule`() {
        addRules(Messages.rule(100, table: 51820))
        // RTN_THROW.
        kernel.tell(MessageType.newRoute, Messages.route("198.51.100.0/24", table: 51820, type: 9))
        #expect(kernel.kind("198.51.100.1") == .wired)
        #expect(kernel.kind("203.0.113.1") == .tunnel)
    }
}
