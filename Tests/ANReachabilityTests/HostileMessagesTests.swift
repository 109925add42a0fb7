// SPDX-License-Identifier: MIT

import ANReachability
import AsyncNetworkingTesting
import Testing

/// Whatever bytes come, reading them ends, and nothing else does.
@Suite struct HostileMessagesTests {
    private static let datagrams = Recording.veth.map(\.datagram)

    private func reader() -> RouteReader {
        FakeKernel.usual().reader
    }

    @Test func `messages that are cut off say nothing, or less`() {
        for datagram in Self.datagrams {
            for count in stride(from: 0, to: datagram.count, by: max(1, datagram.count / 200)) {
                var reader = reader()
                _ = reader.receive(datagram[..<count])
                var cut = Array(datagram[..<count])
                // The same as a message that claims to be whole.
                if count >= 4 { cut.replaceSubrange(0..<4, with: Messages.bytes(UInt32(count))) }
                _ = reader.receive(cut[...])
            }
        }
    }

    @Test(arguments: [0, 1, 15, 17, 0x7FFF_FFFF, 0x8000_0000, UInt32.max])
    func `a length that cannot be ends the datagram`(length: UInt32) {
        var reader = reader()
        let link = Messages.message(MessageType.newLink, Messages.link(2, "eth0", isUp: false))
        var datagram = link + link
        datagram.replaceSubrange(0..<4, with: Messages.bytes(length))
        #expect(reader.receive(datagram[...]) == nil)
        #expect(reader.revision == 1)
    }

    @Test(arguments: [0, 1, 3, 0xFFFF])
    func `an attribute's length that cannot be ends the attributes`(length: UInt16) {
        var kernel = FakeKernel.usual()
        var payload = Messages.address(2, "198.51.100.2/24")
        payload.replaceSubrange(8..<10, with: Messages.bytes(length))
        kernel.tell(MessageType.newAddress, payload)
        #expect(kernel.reader.revision == 1)
    }

    @Test(arguments: [0, 7, 9, 0xFFFF])
    func `a next hop's length that cannot be ends the next hops`(length: UInt16) {
        var kernel = FakeKernel.usual()
        let hops = Messages.attribute(9, Messages.bytes(length) + [UInt8](repeating: 0, count: 6))
        kernel.tell(MessageType.newRoute, Messages.route("203.0.113.0/24", over: 2) + hops)
        #expect(kernel.path("203.0.113.1")?.gateway == nil)
    }

    @Test(arguments: [33, 64, 255])
    func `a prefix that is longer than its address is refused`(length: UInt8) {
        var kernel = FakeKernel.usual()
        for type in [MessageType.newRoute, MessageType.newRule] {
            var payload =
                type == MessageType.newRoute
                ? Messages.route("203.0.113.0/24", over: 2) : Messages.rule(1, to: "203.0.113.0/24")
            payload[1] = length
            kernel.tell(type, payload)
        }
        #expect(kernel.kind("203.0.113.1") == .wired)
    }

    @Test func `an address of the wrong size or family is refused`() {
        var kernel = FakeKernel.usual()
        var payload = Messages.route("203.0.113.0/24", over: 9)
        payload[0] = 10
        kernel.tell(MessageType.newRoute, payload)
        kernel.tell(
            MessageType.newAddress, [2, 24, 0, 0] + Messages.bytes(Int32(2)) + Messages.attribute(2, [1, 2, 3]))
        #expect(kernel.reader.revision == 1)
    }

    @Test func `users from the last to the first are nobody in particular`() {
        var kernel = FakeKernel.usual()
        let users = Messages.attribute(20, Messages.bytes(UInt32(5)) + Messages.bytes(UInt32(4)))
        kernel.tell(MessageType.newRule, Messages.rule(1, table: 254, users))
        #expect(kernel.reader.revision == 2)
    }

    @Test func `names that would leave their folder are only names`() {
        for name in ["", "..", "../../proc/self", "a/b", String(repeating: "x", count: 5000), "\u{FFFD}\n"] {
            var kernel = FakeKernel.usual()
            kernel.tell(MessageType.newLink, Messages.link(2, name))
            #expect(kernel.defaults == [2])
        }
    }

    @Test func `bytes at random do no harm`() throws {
        let address = try #require(IPAddress("198.51.100.1"))
        var generator = SplitMix64(seed: 42)
        for round in 0..<20_000 {
            var reader = reader()
            var datagram = Self.datagrams[round % Self.datagrams.count]
            for _ in 0..<Int.random(in: 1...12, using: &generator) {
                let index = Int.random(in: 0..<datagram.count, using: &generator)
                datagram[index] = UInt8.random(in: 0...255, using: &generator)
            }
            _ = reader.receive(datagram[...])
            _ = reader.state.path(to: address, user: 0)
            _ = reader.state.defaultPaths(user: 0)
        }
    }
}
