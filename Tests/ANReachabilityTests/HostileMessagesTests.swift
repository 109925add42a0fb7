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

    /// What a reader says of the network.
    private func report(_ reader: RouteReader) -> [String] {
        let paths = ["192.0.2.9", "198.51.100.1", "203.0.113.1", "::1", "2001:db8::1"].map { address in
            "\(address) \(String(describing: IPAddress(address).flatMap { reader.state.path(to: $0, user: 0) }))"
        }
        return paths + ["\(reader.state.defaultPaths(user: 0))", "\(reader.revision)"]
    }

    /// The end of the last message that is whole, found by the lengths alone. See netlink(7).
    private func endOfWholeMessages(_ datagram: ArraySlice<UInt8>) -> Int {
        var end = 0
        while end + 16 <= datagram.count {
            let length = datagram[end..<(end + 4)].reversed().reduce(0) { $0 << 8 | Int($1) }
            guard length >= 16, end + length <= datagram.count else { break }
            end = min(datagram.count, end + (length + 3) / 4 * 4)
        }
        return end
    }

    @Test func `of a datagram that is cut off the whole messages count, and nothing else`() {
        for datagram in Self.datagrams {
            for count in stride(from: 0, to: datagram.count, by: max(1, datagram.count / 200)) {
                var (cut, whole) = (reader(), reader())
                #expect(cut.receive(datagram[..<count]) == nil)
                #expect(whole.receive(datagram[..<endOfWholeMessages(datagram[..<count])]) == nil)
                #expect(report(cut) == report(whole))
            }
        }
    }

    @Test func `a message that is cut off and claims to be whole is at most one event`() {
        for datagram in Self.datagrams {
            for count in stride(from: 0, to: datagram.count, by: max(1, datagram.count / 200)) where count >= 4 {
                var reader = reader()
                var cut = Array(datagram[..<count])
                cut.replaceSubrange(0..<4, with: Messages.bytes(UInt32(count)))
                let before = report(reader)
                #expect(reader.receive(cut[...]) == nil)
                #expect(reader.revision <= 2)
                // A header alone says nothing.
                if count <= 16 { #expect(report(reader) == before) }
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

    @Test func `after bytes at random a new reading says what is true`() {
        let expected = report(reader()).dropLast()
        var generator = SplitMix64(seed: 42)
        for round in 0..<20_000 {
            var kernel = FakeKernel.usual()
            var datagram = Self.datagrams[round % Self.datagrams.count]
            for _ in 0..<Int.random(in: 1...12, using: &generator) {
                let index = Int.random(in: 0..<datagram.count, using: &generator)
                datagram[index] = UInt8.random(in: 0...255, using: &generator)
            }
            _ = kernel.reader.receive(datagram[...])
            _ = report(kernel.reader)
            kernel.reader.noteLoss()
            kernel.answerAsUsual()
            // All but the number of changes.
            #expect(report(kernel.reader).dropLast() == expected)
        }
    }
}
