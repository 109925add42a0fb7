// SPDX-License-Identifier: MIT

import ANReachability

/// Builders for answers of rtnetlink(7), byte by byte, with the numbers of the kernel's headers.
enum Messages {
    static let error: UInt16 = 2
    static let newLink: UInt16 = 16
    static let newRoute: UInt16 = 24

    static func message(_ type: UInt16, sequence: UInt32 = 1, _ payload: [UInt8]) -> [UInt8] {
        // Flags 0, port 4711.
        bytes(UInt32(16 + payload.count)) + bytes(type) + [0, 0] + bytes(sequence) + bytes(UInt32(4711)) + payload
    }

    static func attribute(_ type: UInt16, _ payload: [UInt8]) -> [UInt8] {
        bytes(UInt16(4 + payload.count)) + bytes(type) + payload
            + [UInt8](repeating: 0, count: (4 - payload.count % 4) % 4)
    }

    static func bytes(_ integer: some FixedWidthInteger) -> [UInt8] {
        unsafe withUnsafeBytes(of: integer) { unsafe Array($0) }
    }

    /// Returns an answer with a link; it is up and running by default.
    static func link(
        _ index: Int32, _ name: String, isUp: Bool = true, isRunning: Bool = true, hardware: UInt16 = 1,
        driver: String? = nil
    ) -> [UInt8] {
        // IFF_UP, IFF_RUNNING; IFLA_IFNAME 3, IFLA_LINKINFO 18 with IFLA_INFO_KIND 1.
        let flags: UInt32 = (isUp ? 1 : 0) | (isUp && isRunning ? 0x40 : 0)
        let kind = driver.map { attribute(18, attribute(1, Array($0.utf8) + [0])) } ?? []
        let header = [0, 0] + bytes(hardware) + bytes(index) + bytes(flags) + bytes(UInt32(0))
        return message(newLink, header + attribute(3, Array(name.utf8) + [0]) + kind)
    }

    /// Returns an answer with a route to an address.
    static func route(
        to destination: String, over interface: Int32? = 2, via gateway: String? = nil, from source: String? = nil,
        type: UInt8 = 1, _ attributes: [UInt8] = []
    ) -> [UInt8] {
        let address = address(destination)
        // RTA_DST 1, RTA_OIF 4, RTA_GATEWAY 5, RTA_PREFSRC 7.
        var payload: [UInt8] = [address.count == 16 ? 10 : 2, UInt8(address.count * 8), 0, 0, 254, 0, 0, type]
        payload += bytes(UInt32(0x200)) + attribute(1, address)
        if let interface { payload += attribute(4, bytes(interface)) }
        if let source { payload += attribute(7, Self.address(source)) }
        if let gateway { payload += attribute(5, Self.address(gateway)) }
        return message(newRoute, payload + attributes)
    }

    private static func address(_ text: String) -> [UInt8] {
        IPAddress(text)?.bytes ?? []
    }

    /// Returns the path that results from two answers.
    static func path(to destination: String, route: [UInt8], link: [UInt8]) -> NetworkPath? {
        guard let destination = IPAddress(destination),
            let route = NetlinkMessages(route[...]).first(where: { _ in true }).flatMap(Route.init),
            let link = NetlinkMessages(link[...]).first(where: { _ in true }).flatMap(Link.init)
        else { return nil }
        return NetworkPath(to: destination, over: route, link: link) { $0 == "radio0" ? "wlan" : nil }
    }
}
