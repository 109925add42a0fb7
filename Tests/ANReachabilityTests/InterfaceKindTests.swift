// SPDX-License-Identifier: MIT

import ANReachability
import Testing

@Suite struct InterfaceKindTests {
    @Test(arguments: [
        // Hardware types as in linux/if_arp.h: 1 Ethernet, 772 loopback, 512 PPP, 519 raw IP, 65534 none, 768 IP in IP,
        // 776 IPv6 in IPv4, 778 GRE, 823 GRE over IPv6, 801 Wi-Fi.
        (772, nil, nil, "lo", InterfaceKind.loopback),
        (1, nil, nil, "eth0", .wired),
        (1, nil, nil, "enp3s0", .wired),
        (1, "veth", nil, "wlan-like", .wired),
        (1, "bridge", "bridge", "br0", .wired),
        (1, "bond", "bond", "bond0", .wired),
        (1, nil, "wlan", "eth1", .wireless),
        (1, nil, nil, "wlp2s0", .wireless),
        (801, nil, nil, "mon0", .wireless),
        (1, nil, "wwan", "usb0", .cellular),
        (1, nil, nil, "wwan0", .cellular),
        (519, nil, nil, "rmnet_data0", .cellular),
        (1, nil, nil, "rmnet0", .cellular),
        (1, "wwan", nil, "mhi0", .cellular),
        (512, "ppp", "ppp", "ppp0", .cellular),
        (65534, "wireguard", "wireguard", "wg0", .tunnel),
        (65534, "tun", nil, "tun0", .tunnel),
        (1, "tun", nil, "tap0", .tunnel),
        (65534, nil, nil, "tailscale0", .tunnel),
        (65534, nil, "wwan", "wwan0", .cellular),
        (65534, nil, nil, "wwp0s20f0u6i12", .cellular),
        (65534, "wwan", nil, "mhi0", .cellular),
        (65534, "tun", nil, "wwan-like", .tunnel),
        (65534, "ipvlan", nil, "ipvl0", .tunnel),
        (768, "ipip", nil, "tunl0", .tunnel),
        (776, "sit", nil, "sit0", .tunnel),
        (778, "gre", nil, "gre0", .tunnel),
        (823, "ip6gre", nil, "ip6gre0", .tunnel),
        (1, "vxlan", "vxlan", "vx0", .tunnel),
        (9999, nil, nil, "", .wired),
    ])
    func `the kind follows the most reliable fact`(
        hardware: UInt16, driver: String?, device: String?, name: String, kind: InterfaceKind
    ) {
        #expect(InterfaceKind(hardware: hardware, driver: driver, device: device, name: name) == kind)
    }

    @Test(arguments: [
        (ReachabilityStatus.unknown, "Unknown", false, nil), (.notReachable, "Not Reachable", false, nil),
        (.reachable(via: .wireless), "Reachable via WiFi", true, InterfaceKind.wireless),
        (.reachable(via: .cellular), "Reachable via WWAN", true, .cellular),
        (.reachable(via: .wired), "Reachable via Ethernet", true, .wired),
        (.reachable(via: .tunnel), "Reachable via Tunnel", true, .tunnel),
        (.reachable(via: .loopback), "Reachable via Loopback", true, .loopback),
    ])
    func `a status describes itself`(status: ReachabilityStatus, text: String, isReachable: Bool, kind: InterfaceKind?)
    {
        #expect(status.description == text)
        #expect(status.isReachable == isReachable)
        #expect(status.interface == kind)
    }
}
