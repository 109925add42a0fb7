// SPDX-License-Identifier: MIT

import ANReachability
import FoundationEssentials
import Testing

/// Messages recorded from a kernel.
enum Recording {
    /// A datagram, and the name of the request or the action that caused it.
    struct Line {
        let name: String
        let datagram: [UInt8]
    }

    /// The port of the requesting socket.
    static let port: UInt32 = 3270

    static let veth: [Line] = {
        let path = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Recordings/veth.txt")
        let text = (try? String(contentsOf: path, encoding: .utf8)) ?? ""
        return text.split(separator: "\n").filter { !$0.hasPrefix("#") }.compactMap { line in
            let words = line.split(separator: " ")
            guard words.count == 2 else { return nil }
            let digits = Array(words[1].utf8)
            let bytes = stride(from: 0, to: digits.count - 1, by: 2).compactMap {
                UInt8(String(decoding: digits[$0...($0 + 1)], as: UTF8.self), radix: 16)
            }
            return Line(name: String(words[0]), datagram: bytes)
        }
    }()
}

@Suite struct RecordedMessagesTests {
    private var reader: RouteReader

    /// Reads the recorded initial state.
    init() {
        reader = RouteReader(port: Recording.port) { _ in nil }
        for section in ["links", "addresses", "rules", "routes"] {
            _ = reader.nextRequest()
            for line in Recording.veth where line.name == section { _ = reader.receive(line.datagram[...]) }
        }
    }

    private mutating func replay(_ name: String) {
        let lines = Recording.veth.filter { $0.name == "event-\(name)" }
        for line in lines { _ = reader.receive(line.datagram[...]) }
        #expect(!lines.isEmpty)
    }

    private func kind(_ address: String) -> InterfaceKind? {
        IPAddress(address).flatMap { reader.state.path(to: $0, user: 0)?.kind }
    }

    @Test func `a complete reading is parsed`() {
        #expect(Recording.veth.count > 30)
        #expect(reader.revision == 1)
        #expect(kind("127.0.0.1") == .loopback)
        #expect(kind("10.9.0.2") == .loopback)
        #expect(kind("10.9.0.77") == .wired)
        #expect(kind("198.51.100.1") == .wired)
        #expect(kind("2001:db8:9::77") == .wired)
        #expect(kind("2001:db8:1::1") == nil)
    }

    @Test mutating func `a lost and a restored carrier are recognized`() {
        replay("down")
        #expect(kind("198.51.100.1") == nil)
        #expect(kind("10.9.0.77") == nil)
        replay("up")
        #expect(kind("198.51.100.1") == .wired)
    }

    @Test mutating func `added, replaced and removed routes are recognized`() throws {
        let routed = try #require(IPAddress("198.51.100.1"))
        replay("multi")
        #expect(reader.state.path(to: routed, user: 0)?.gateway == IPAddress("10.9.0.7"))
        replay("delmulti")
        #expect(reader.state.path(to: routed, user: 0)?.gateway == IPAddress("10.9.0.1"))
        replay("repl")
        #expect(reader.state.path(to: routed, user: 0)?.gateway == IPAddress("10.9.0.9"))
        replay("v6")
        #expect(kind("2001:db8:1::1") == .wired)
        replay("delv6")
        #expect(kind("2001:db8:1::1") == nil)
        replay("v6m")
        #expect(kind("2001:db8:77::1") == .wired)
        replay("v6md")
        #expect(kind("2001:db8:77::1") == nil)
    }

    @Test mutating func `an added and removed rule is recognized`() {
        // `not fwmark 0xca6c lookup 51820`, whose table is empty.
        let before = reader.revision
        replay("rule")
        #expect(reader.revision == before + 1)
        #expect(kind("198.51.100.1") == .wired)
        replay("delrule")
        #expect(reader.revision == before + 2)
    }

    @Test mutating func `a removed address and interface are recognized and followed by a new reading`() {
        replay("addrdel")
        #expect(kind("198.51.100.1") == nil)
        #expect(reader.nextRequest()?.section == .links)
        replay("dellink")
        #expect(kind("2001:db8:9::77") == nil)
        #expect(kind("127.0.0.1") == .loopback)
    }
}
