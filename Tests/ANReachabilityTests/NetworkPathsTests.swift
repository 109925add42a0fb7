// SPDX-License-Identifier: MIT

import ANReachability
import Testing

/// The paths that follow from the kernel's answers.
@Suite struct NetworkPathsTests {
    private let wired = Messages.link(2, "eth0")

    private func kind(
        _ destination: String, from source: String? = "192.0.2.2", type: UInt8 = 1, link: [UInt8]
    ) -> InterfaceKind? {
        let route = Messages.route(to: destination, from: source, type: type)
        return Messages.path(to: destination, route: route, link: link)?.kind
    }

    @Test func `the interface determines the kind`() {
        #expect(kind("203.0.113.1", link: wired) == .wired)
        #expect(kind("203.0.113.1", link: Messages.link(2, "radio0")) == .wireless)
        #expect(kind("203.0.113.1", link: Messages.link(2, "ppp0", hardware: 512)) == .cellular)
        #expect(kind("203.0.113.1", link: Messages.link(2, "wg0", hardware: 65534, driver: "wireguard")) == .tunnel)
    }

    @Test func `a local route is a path over the loopback if its interface is enabled`() {
        // RTN_LOCAL.
        #expect(kind("192.0.2.2", type: 2, link: wired) == .loopback)
        #expect(kind("192.0.2.2", type: 2, link: Messages.link(2, "eth0", isRunning: false)) == .loopback)
        #expect(kind("192.0.2.2", type: 2, link: Messages.link(2, "eth0", isUp: false)) == nil)
    }

    @Test func `a route over an interface that cannot carry packets is not a path`() {
        #expect(kind("203.0.113.1", link: Messages.link(2, "eth0", isRunning: false)) == nil)
        #expect(kind("203.0.113.1", link: Messages.link(2, "eth0", isUp: false)) == nil)
    }

    // RTN_UNSPEC, _BROADCAST, _ANYCAST, _MULTICAST, _BLACKHOLE, _UNREACHABLE, _PROHIBIT, _THROW, _NAT.
    @Test(arguments: [0, 3, 4, 5, 6, 7, 8, 9, 10, 255])
    func `route types that do not apply to requests are not paths`(type: UInt8) {
        #expect(kind("203.0.113.1", type: type, link: wired) == nil)
    }

    @Test(arguments: [
        ("203.0.113.1", nil, false), ("203.0.113.1", "192.0.2.2", true),
        // Some virtual machines have such an address and a gateway that translates it.
        ("203.0.113.1", "169.254.7.7", true),
        ("2001:db8::1", nil, false), ("2001:db8::1", "2001:db8:2::2", true), ("2001:db8::1", "fe80::2", false),
        ("2001:db8::1", "fec0::2", true), ("2001:db8::1", "::1", false), ("fe80::77", "fe80::2", true),
    ])
    func `a destination needs a source address that is valid there`(
        destination: String, source: String?, isPath: Bool
    ) {
        #expect((kind(destination, from: source, link: wired) != nil) == isPath)
    }
}

/// The kernel's choice of routes, tested in network namespaces.
@Suite(
    .enabled("Network namespaces cannot be created here.") { await NetworkNamespace.canBeCreated },
    .timeLimit(.minutes(5)))
struct KernelRoutesTests {
    /// A destination and the expected interface kind and gateway of its path; no kind if it is unreachable.
    struct Destination: Sendable {
        let address: String
        let kind: InterfaceKind?
        var gateway: String?

        init(_ address: String, _ kind: InterfaceKind?, via gateway: String? = nil) {
            self.address = address
            self.kind = kind
            self.gateway = gateway
        }
    }

    /// A configuration in the form of ip-batch commands, and its paths.
    struct Case: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let commands: String
        let destinations: [Destination]

        init(_ name: String, _ commands: String, _ destinations: Destination...) {
            testDescription = name
            self.commands = commands
            self.destinations = destinations
        }
    }

    /// The configuration before the commands: `v0` with 10.9.0.2/24 and a default route via 10.9.0.1, and the tunnel
    /// `t0` with 10.7.0.2.
    private static let usual = """
        route add default via 10.9.0.1
        link add t0 type vxlan id 7 dstport 4789 local 10.9.0.2 dev v0
        link set t0 up
        address add 10.7.0.2/32 dev t0
        route add default dev t0 table 51820

        """

    private static let cases = [
        Case(
            "own addresses use the loopback, others the interface", "",
            Destination("127.0.0.1", .loopback), Destination("10.9.0.2", .loopback), Destination("10.7.0.2", .loopback),
            Destination("10.9.0.77", .wired), Destination("198.51.100.1", .wired, via: "10.9.0.1"),
            Destination("::1", .loopback), Destination("2001:db8::1", nil)),
        Case(
            "the longest prefix wins, then the lowest metric",
            """
            route add 10.0.0.0/8 dev t0 metric 600
            route add 10.0.0.0/8 via 10.9.0.1 metric 100
            route add 10.1.0.0/16 dev t0 metric 900
            route add 10.3.0.0/16 dev t0 metric 100
            route add 10.3.0.0/16 via 10.9.0.1 metric 200
            """,
            Destination("10.2.0.1", .wired, via: "10.9.0.1"), Destination("10.1.0.1", .tunnel),
            Destination("10.3.0.1", .tunnel)),
        Case(
            "a rejecting route hides wider ones",
            """
            route add unreachable 198.51.100.1
            route add prohibit 198.51.100.2
            route add blackhole 198.51.100.3
            """,
            Destination("198.51.100.1", nil), Destination("198.51.100.2", nil), Destination("198.51.100.3", nil),
            Destination("198.51.100.4", .wired, via: "10.9.0.1")),
        Case(
            "a broadcast address is unreachable", "", Destination("10.9.0.255", nil),
            Destination("255.255.255.255", nil), Destination("224.0.0.9", nil)),
        Case(
            "a route for a type of service is ignored", "route add 0.0.0.0/1 dev t0 tos 0x10",
            Destination("1.2.3.4", .wired, via: "10.9.0.1")),
        Case(
            "the next hop of a multipath route is used",
            "route add 203.0.113.0/24 nexthop via 10.9.0.7 nexthop via 10.9.0.7",
            Destination("203.0.113.1", .wired, via: "10.9.0.7")),
        Case(
            "a route replaces another with the same metric", "route replace default via 10.9.0.3",
            Destination("198.51.100.1", .wired, via: "10.9.0.3")),
        Case(
            "a gateway of the other family", "route add 203.0.113.0/24 via inet6 fe80::9 dev v0",
            Destination("203.0.113.1", .wired, via: "fe80::9")),
        Case(
            "an interface without address uses that of another interface",
            """
            link add x0 type vxlan id 8 dstport 4790 local 10.9.0.2 dev v0
            link set x0 up
            route add 203.0.113.0/24 dev x0
            """,
            Destination("203.0.113.1", .tunnel)),
        Case(
            "a route without any source address is unreachable",
            """
            address flush dev v0
            address flush dev t0
            route add 203.0.113.0/24 dev v0
            """,
            Destination("203.0.113.1", nil)),
        Case(
            "a link-local address does not reach beyond a gateway",
            """
            address flush dev v0
            address flush dev t0
            address add 169.254.7.7/16 dev v0 scope link
            route add default via 169.254.9.9 dev v0
            """,
            Destination("169.254.9.9", .wired), Destination("203.0.113.1", nil)),
        Case(
            "the address of a peer is not an own address",
            "address add 192.0.2.2 peer 192.0.2.1 dev v0", Destination("192.0.2.1", .wired),
            Destination("192.0.2.2", .loopback)),
        Case(
            "IPv6 destinations need a global source address",
            """
            address add fe80::2/64 dev v0 nodad
            route add fe80::77 dev v0
            route add default via fe80::1 dev v0
            """,
            Destination("2001:db8::1", nil), Destination("fe80::77", .wired)),
        Case(
            "IPv6 destinations are reachable with one",
            "address add 2001:db8:2::2/64 dev v0 nodad\nroute add default via fe80::1 dev v0",
            Destination("2001:db8::1", .wired, via: "fe80::1"), Destination("2001:db8:2::2", .loopback)),
        Case(
            "an IPv6 route for a source prefix is used",
            "address add 2001:db8:2::2/64 dev v0 nodad\nroute add default from 2001:db8:2::/48 via fe80::1 dev v0",
            Destination("2001:db8::1", .wired, via: "fe80::1")),
        // Rules.
        Case(
            "rules select the table, like those of wg-quick",
            """
            rule add lookup main suppress_prefixlength 0 priority 32764
            rule add not fwmark 51820 lookup 51820 priority 32765
            """,
            Destination("198.51.100.1", .tunnel), Destination("10.9.0.77", .wired), Destination("127.0.0.1", .loopback)),
        Case(
            "a rule may be limited to destinations", "rule add to 198.51.100.0/24 lookup 51820",
            Destination("198.51.100.1", .tunnel), Destination("203.0.113.1", .wired, via: "10.9.0.1")),
        Case(
            "a rule may reject packets",
            """
            rule add to 198.51.100.1 unreachable priority 1
            rule add to 198.51.100.2 prohibit priority 2
            rule add to 198.51.100.3 blackhole priority 3
            """,
            Destination("198.51.100.1", nil), Destination("198.51.100.2", nil), Destination("198.51.100.3", nil),
            Destination("203.0.113.1", .wired, via: "10.9.0.1")),
        Case(
            "a rule may jump to another",
            """
            rule add priority 100 goto 200
            rule add priority 150 lookup 51820
            rule add priority 200 nop
            """,
            Destination("198.51.100.1", .wired, via: "10.9.0.1")),
        Case(
            "a throw route continues with the next rule",
            "rule add priority 100 lookup 51820\nroute add throw 198.51.100.0/24 table 51820",
            Destination("198.51.100.1", .wired, via: "10.9.0.1"), Destination("203.0.113.1", .tunnel)),
    ]

    @Test(arguments: cases)
    func `the kernel decides on the path`(_ example: Case) async throws {
        let network = try await NetworkNamespace()
        try await network.addPair()
        try await network.batch(Self.usual + example.commands + "\n")
        for destination in example.destinations {
            let address = try #require(IPAddress(destination.address))
            // The kernel adds the local routes of IPv6 addresses asynchronously.
            let deadline = ContinuousClock.now + .seconds(30)
            while try network.path(to: address)?.kind != destination.kind, .now < deadline {
                try await Task.sleep(for: .milliseconds(1))
            }
            let path = try network.path(to: address)
            #expect(path?.kind == destination.kind, "\(destination.address)")
            #expect(path?.gateway == destination.gateway.flatMap { IPAddress($0) }, "\(destination.address)")
        }
    }

    @Test func `a rule applies if it matches a plain TCP socket`() async throws {
        let network = try await NetworkNamespace()
        try await network.addPair()
        try await network.batch(Self.usual)
        let destination = try #require(IPAddress("198.51.100.1"))
        // The tests run as the user 0. Not every system has a list of the names of protocols, such as TCP, 6, and UDP, 17.
        let conditions = [
            ("", true), ("iif lo", true), ("iif v0", false), ("oif v0", false), ("fwmark 1/1", false),
            ("fwmark 0/1", true), ("ipproto 6", true), ("ipproto 17", false), ("sport 80", false),
            ("dport 80", false), ("from 10.9.0.2", false), ("uidrange 0-0", true), ("uidrange 1-1999", false),
        ]
        for (condition, applies) in conditions {
            try await network.ip("rule add \(condition) lookup 51820 priority 100")
            #expect(try network.path(to: destination)?.kind == (applies ? .tunnel : .wired), "\(condition)")
            try await network.ip("rule delete priority 100")
        }
    }
}
