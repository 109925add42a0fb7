// SPDX-License-Identifier: MIT

import ANReachability
import FoundationEssentials
import Testing

/// Answers recorded from a kernel.
enum Recording {
    /// The answers by name: `route:` and an address, or `link:` and an interface.
    static let answers: [String: [UInt8]] = {
        let path = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Recordings/answers.txt")
        let text = (try? String(contentsOf: path, encoding: .utf8)) ?? ""
        let lines = text.split(separator: "\n").filter { !$0.hasPrefix("#") }.map { $0.split(separator: " ") }
        return Dictionary(uniqueKeysWithValues: lines.map { (String($0[0]), bytes(Array($0[1].utf8))) })
    }()

    private static func bytes(_ digits: [UInt8]) -> [UInt8] {
        stride(from: 0, to: digits.count - 1, by: 2).compactMap {
            UInt8(String(decoding: digits[$0...($0 + 1)], as: UTF8.self), radix: 16)
        }
    }
}

@Suite struct RecordedMessagesTests {
    private func path(_ destination: String, _ route: String? = nil, link: String) throws -> NetworkPath? {
        Messages.path(
            to: destination, route: try #require(Recording.answers["route:\(route ?? destination)"]),
            link: try #require(Recording.answers["link:\(link)"]))
    }

    @Test(arguments: [
        ("127.0.0.1", "lo", 1, nil, InterfaceKind.loopback), ("10.9.0.2", "lo", 1, nil, .loopback),
        ("::1", "lo", 1, nil, .loopback), ("2001:db8:9::2", "lo", 1, nil, .loopback),
        ("10.9.0.77", "v0", 3, nil, .wired), ("203.0.113.1", "v0", 3, "10.9.0.1", .wired),
        ("192.0.2.7", "v0", 3, "fe80::9", .wired), ("2001:db8:9::77", "v0", 3, nil, .wired),
        ("2001:db8:2::1", "v0", 3, "fe80::1", .wired),
        // The same route over another interface.
        ("10.9.0.77", "t0", 3, nil, .tunnel),
    ])
    func `a route and its interface are a path`(
        destination: String, link: String, interface: Int32, gateway: String?, kind: InterfaceKind
    ) throws {
        let path = try path(destination, link: link)
        #expect(path?.interface == interface)
        #expect(path?.gateway == gateway.flatMap { IPAddress($0) })
        #expect(path?.kind == kind)
    }

    @Test(arguments: ["10.9.0.255", "224.0.0.9", "ff02::1"])
    func `a broadcast or multicast route is not a path`(destination: String) throws {
        #expect(try path(destination, link: "v0") == nil)
    }

    @Test func `a route over an interface without carrier is not a path`() throws {
        #expect(try path("203.0.113.1", "without-carrier", link: "v0-without-carrier") == nil)
        #expect(try path("203.0.113.1", "without-carrier", link: "v0") != nil)
    }

    @Test func `a route without a suitable source address is not a path`() throws {
        #expect(try path("203.0.113.1", "without-source", link: "v0") == nil)
        #expect(try path("2001:db8:2::1", "link-local-source", link: "v0") == nil)
        #expect(try path("fe80::77", "link-local-source", link: "v0") != nil)
    }

    @Test(arguments: [
        // EHOSTUNREACH, EACCES, EINVAL, ENODEV.
        ("route:198.51.100.1", 113 as Int32), ("route:198.51.100.2", 13), ("route:198.51.100.3", 22),
        ("route:2001:db8:1::1", 113), ("link:gone", 19),
    ])
    func `an error has its errno`(name: String, code: Int32) throws {
        var messages = NetlinkMessages(try #require(Recording.answers[name])[...])
        let next = messages.next()
        let message = try #require(next)
        #expect(message.errorCode == code)
        #expect(Route(message) == nil)
        #expect(Link(message) == nil)
        #expect(messages.next() == nil)
    }

    @Test(arguments: [0, 1, -4096, .min, .max] as [Int32])
    func `a code that is not a negative errno is not an error`(code: Int32) {
        var messages = NetlinkMessages(Messages.message(Messages.error, Messages.bytes(code))[...])
        #expect(messages.next()?.errorCode == nil)
    }
}

@Suite struct RouteRequestTests {
    /// Requests as a kernel accepted them, see netlink(7) and rtnetlink(7).
    @Test(arguments: [
        (
            "10.9.0.77", nil,
            "2c0000001a000100070000000000000002200000000000000000000008000100" + "0a09004d" + "05001b0006000000"
        ),
        (
            "2001:db8:2::1", nil,
            "380000001a00010007000000000000000a800000000000000000000014000100" + "20010db8000200000000000000000001"
                + "05001b0006000000"
        ),
        (
            "2001:db8:2::1", "2001:db8::7",
            "4c0000001a00010007000000000000000a808000000000000000000014000100" + "20010db8000200000000000000000001"
                + "14000200" + "20010db8000000000000000000000007" + "05001b0006000000"
        ),
    ])
    func `a route is requested for a TCP socket`(destination: String, source: String?, expected: String) throws {
        let request = RouteRequest.route(
            to: try #require(IPAddress(destination)), from: source.flatMap { IPAddress($0) })
        #expect(hexadecimal(request.message(sequence: 7)) == expected)
    }

    @Test func `a link is requested by index`() {
        let expected = "2000000012000100" + "09000000" + "00000000" + "00000000" + "04000000" + "00000000" + "00000000"
        #expect(hexadecimal(RouteRequest.link(4).message(sequence: 9)) == expected)
    }

    private func hexadecimal(_ bytes: [UInt8]) -> String {
        bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }
}
