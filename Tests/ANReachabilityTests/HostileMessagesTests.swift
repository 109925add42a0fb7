// SPDX-License-Identifier: MIT

import ANReachability
import AsyncNetworkingTesting
import Testing

/// Malformed and random messages end the parsing, and never crash it.
@Suite struct HostileMessagesTests {
    private static let datagrams = Recording.veth.map(\.datagram)

    private func reader() -> RouteReader {
        FakeKernel.usual().reader
    }

    /// Returns the paths and the revision that a reader reports.
    private func report(_ reader: RouteReader) -> [String] {
        let paths = ["192.0.2.9", "198.51.100.1", "203.0.113.1", "::1", "2001:db8::1"].map { address in
            "\(address) \(String(describing: IPAddress(address).flatMap { reader.state.path(to: $0, user: 0) }))"
        }
        return paths + ["\(reader.state.defaultPaths(user: 0))", "\(reader.revision)"]
    }

    /// Returns the end of the last complete message, determined by the lengths alone. See netlink(7).
    private func endOfWholeMessages(_ datagram: ArraySlice<UInt8>) -> Int {
        var end = 0
        while end + 16 <= datagram.count {
            let length = datagram[end..<(end + 4)].reversed().reduce(0) { $0 << 8 | Int($1) }
            guard length >= 16, end + length <= datagram.count else { break }
            end = min(datagram.count, end + (length + 3) / 4 * 4)
        }
        return end
    }

    @Test func `a truncated datagram counts up to its last complete message`() {
        for datagram in Self.datagrams {
            for count in stride(from: 0, to: datagram.count, by: max(1, datagram.count / 200)) {
                var (cut, whole) = (reader(), reader())
                #expect(cut.receive(datagram[..<count]) == nil)
                #expect(whole.receive(datagram[..<endOfWholeMessages(datagram[..<count])]) == nil)
                #expect(report(cut) == report(whole))
            }
        }
    }

    @Test func `a truncated message with an adjusted length is at most one event`() {
        for datagram in Self.datagrams {
            for count in stride(from: 0, to: datagram.count, by: max(1, datagram.count / 200)) where count >= 4 {
                var reader = reader()
                var cut = Array(datagram[..<count])
                cut.replaceSubrange(0..<4, with: Messages.bytes(UInt32(count)))
                let before = report(reader)
                #expect(reader.receive(cut[...]) == nil)
                #expect(reader.revision <= 2)
                // A header alone changes nothing.
                if count <= 16 { #expect(report(reader) == before) }
            }
        }
    }

    @Test(arguments: [0, 1, 15, 17, 0x7FFF_FFFF, 0x8000_0000, UInt32.max])
    func `an impossible length ends the datagram`(length: UInt32) {
        var reader = reader()
        let link = Messages.message(MessageType.newLink, Messages.link(2, "eth0", isUp: false))
        var datagram = link + link
        datagram.replaceSubrange(0..<4, with: Messages.bytes(length))
        #expect(reader.receive(datagram[...]) == nil)
        #expect(reader.revision == 1)
    }

    @Test(arguments: [0, 1, 3, 0xFFFF])
    func `an impossible attribute length ends the attributes`(length: UInt16) {
        var kernel = FakeKernel.usual()
        var payload = Messages.address(2, "198.51.100.2/24")
        payload.replaceSubrange(8..<10, with: Messages.bytes(length))
        kernel.tell(MessageType.newAddress, payload)
        #expect(kernel.reader.revision == 1)
    }

    @Test(arguments: [0, 7, 9, 0xFFFF])
    func `an impossible next hop length ends the next hops`(length: UInt16) {
        var kernel = FakeKernel.usual()
        let hops = Messages.attribute(9, Messages.bytes(length) + [UInt8](repeating: 0, count: 6))
        kernel.tell(MessageType.newRoute, Messages.route("203.0.113.0/24", over: 2) + hops)
        #expect(kernel.path("203.0.113.1")?.gateway == nil)
    }

    @Test(arguments: [33, 64, 255])
    func `a prefix longer than its address is rejected`(length: UInt8) {
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

    @Test func `an address of the wrong size or family is rejected`() {
        var kernel = FakeKernel.usual()
        var payload = Messages.route("203.0.113.0/24", over: 9)
        payload[0] = 10
        kernel.tell(MessageType.newRoute, payload)
        kernel.tell(
            MessageType.newAddress, [2, 24, 0, 0] + Messages.bytes(Int32(2)) + Messages.attribute(2, [1, 2, 3]))
        #expect(kernel.reader.revision == 1)
    }

    @Test func `a reversed range of users is ignored`() {
        var kernel = FakeKernel.usual()
        let users = Messages.attribute(20, Messages.bytes(UInt32(5)) + Messages.bytes(UInt32(4)))
        kernel.tell(MessageType.newRule, Messages.rule(1, table: 254, users))
        #expect(kernel.reader.revision == 2)
    }

    @Test func `an interface name cannot lead out of the sysfs directory`() {
        for name in ["", "..", "../../proc/self", "a/b", String(repeating: "x", count: 5000), "\u{FFFD}\n"] {
            var kernel = FakeKernel.usual()
            kernel.tell(MessageType.newLink, Messages.link(2, name))
            #expect(kernel.defaults == [2])
        }
    }

    @Test func `a new reading restores the state after random bytes`() {
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
            // Everything but the revision.
            #expect(report(kernel.reader).dropLast() == expected)
        }
    }
}
