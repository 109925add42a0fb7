// SPDX-License-Identifier: MIT

import ANReachability
import AsyncNetworkingTesting
import FoundationEssentials
import Testing

/// Malformed and random messages end the parsing, and never crash it.
@Suite struct HostileMessagesTests {
    private static let answers = Recording.answers.values.sorted { $0.lexicographicallyPrecedes($1) }
    private let link = Messages.link(2, "eth0")

    /// Returns everything that can be parsed from a datagram.
    private func parse(_ datagram: ArraySlice<UInt8>) -> [(route: Route?, link: Link?, paths: [NetworkPath?])] {
        NetlinkMessages(datagram).map { message in
            let (route, link) = (Route(message), Link(message))
            let paths = ["203.0.113.1", "2001:db8::1"].compactMap { IPAddress($0) }.map { address in
                route.flatMap { route in
                    link.flatMap { NetworkPath(to: address, over: route, link: $0) { _ in nil } }
                }
            }
            return (route, link, paths)
        }
    }

    @Test func `a truncated datagram counts up to its last complete message`() {
        for answer in Self.answers {
            let datagram = link + answer
            for count in stride(from: 0, to: datagram.count, by: max(1, datagram.count / 300)) {
                #expect(parse(datagram[..<count]).count == (count < link.count ? 0 : 1))
            }
            #expect(parse(datagram[...]).count == 2)
        }
    }

    @Test func `a truncated message with an adjusted length is at most one message`() {
        for answer in Self.answers {
            let wrong = (4...answer.count).filter { count in
                var cut = Array(answer[..<count])
                cut.replaceSubrange(0..<4, with: Messages.bytes(UInt32(count)))
                return parse(cut[...]).count != (count < 16 ? 0 : 1)
            }
            #expect(wrong == [])
        }
    }

    @Test(arguments: [0, 1, 15, 0x7FFF_FFFF, 0x8000_0000, UInt32.max])
    func `an impossible length ends the datagram`(length: UInt32) {
        var datagram = link + link
        datagram.replaceSubrange(0..<4, with: Messages.bytes(length))
        #expect(parse(datagram[...]).isEmpty)
    }

    @Test(arguments: [0, 1, 3, 0xFFFF])
    func `an impossible attribute length ends the attributes`(length: UInt16) {
        let broken = Messages.bytes(length) + Messages.bytes(UInt16(5)) + [192, 0, 2, 1]
        let route = Messages.route(to: "203.0.113.1", from: "192.0.2.2", broken)
        let path = Messages.path(to: "203.0.113.1", route: route, link: link)
        #expect(path?.kind == .wired)
        #expect(path?.gateway == nil)
    }

    @Test(arguments: [
        // RTA_OIF, RTA_PREFSRC and RTA_GATEWAY of impossible sizes, and an impossible interface.
        (4 as UInt16, [1, 2, 3] as [UInt8], false), (7, [192, 0, 2], false), (5, [1, 2, 3, 4, 5], true),
        (4, [0, 0, 0, 0], false), (4, [255, 255, 255, 255], false),
    ])
    func `an attribute of the wrong size is absent`(type: UInt16, payload: [UInt8], isPath: Bool) {
        let route = Messages.route(to: "203.0.113.1", from: "192.0.2.2", Messages.attribute(type, payload))
        #expect((Messages.path(to: "203.0.113.1", route: route, link: link) != nil) == isPath)
    }

    @Test func `a route without interface is not a path`() {
        let route = Messages.route(to: "203.0.113.1", over: nil, from: "192.0.2.2")
        #expect(Messages.path(to: "203.0.113.1", route: route, link: link) == nil)
    }

    @Test func `random bytes never crash the parsers`() {
        var generator = SplitMix64(seed: 42)
        var areFew = true
        for round in 0..<20_000 {
            var datagram = Self.answers[round % Self.answers.count]
            for _ in 0..<Int.random(in: 1...12, using: &generator) {
                let index = Int.random(in: 0..<datagram.count, using: &generator)
                datagram[index] = UInt8.random(in: 0...255, using: &generator)
            }
            areFew = areFew && parse(datagram[...]).count <= datagram.count / 16
        }
        #expect(areFew, "A message has at least 16 bytes.")
    }

    @Test(arguments: [
        "", "..", "../outside", "radio0/../../outside", String(repeating: "x", count: 5000), "\u{FFFD}\n",
    ])
    func `an interface name cannot lead out of the sysfs directory`(name: String) throws {
        let directory = URL.temporaryDirectory.appending(path: "an-\(UInt64.random(in: 0...UInt64.max))")
        defer { try? FileManager.default.removeItem(at: directory) }
        for interface in ["net/radio0", "outside", "net"] {
            let folder = directory.appending(path: interface)
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            try Data("INTERFACE=x\nDEVTYPE=wlan\n".utf8).write(to: folder.appending(path: "uevent"))
        }
        let path = directory.appending(path: "net").path
        #expect(DeviceTypes.type(of: "radio0", in: path) == "wlan")
        #expect(DeviceTypes.type(of: name, in: path) == nil)
    }
}
