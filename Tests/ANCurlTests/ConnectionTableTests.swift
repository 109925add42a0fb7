// SPDX-License-Identifier: MIT

import ANCurl
import ANHTTP
import ANSystem
import Testing

@Suite struct ConnectionTableTests {
    private static let first = ends(50_000)
    private static let second = ends(50_001)

    private static func ends(_ port: Int) -> ConnectionTable.Ends {
        ConnectionTable.Ends(
            local: SocketAddress(host: "127.0.0.1", port: port), remote: SocketAddress(host: "127.0.0.1", port: 80))
    }

    @Test func `a connection is found by its ends until its socket is closed`() {
        var table = ConnectionTable()
        #expect(table.socket(of: Self.first) == nil)
        table.insert(Self.first, socket: 7)
        table.insert(Self.second, socket: 8)
        #expect(table.socket(of: Self.first) == 7)
        #expect(table.socket(of: Self.second) == 8)
        table.remove(7)
        #expect(table.socket(of: Self.first) == nil)
        #expect(!table.contains(7))
        #expect(table.contains(8))
    }

    @Test func `a connection keeps the local interface that it was made from`() {
        var table = ConnectionTable()
        table.insert(Self.first, socket: 7, from: "if!tun0")
        table.insert(Self.second, socket: 8)
        #expect(table.localInterface(of: 7) == "if!tun0")
        #expect(table.localInterface(of: 8) == nil)
        table.insert(Self.second, socket: 7)
        #expect(table.localInterface(of: 7) == nil)
    }

    @Test func `a socket that is used for another connection belongs to that one`() {
        var table = ConnectionTable()
        table.insert(Self.first, socket: 7)
        table.insert(Self.second, socket: 7)
        #expect(table.socket(of: Self.first) == nil)
        #expect(table.socket(of: Self.second) == 7)
    }

    @Test func `a connection is silent until bytes of a response come`() {
        var table = ConnectionTable()
        let start = MonotonicInstant.now
        table.insert(Self.first, socket: 7)
        #expect(table.isSilent(7, since: start))
        table.noteInput(7, at: start.advanced(by: .seconds(1)))
        #expect(!table.isSilent(7, since: start))
        #expect(!table.isSilent(7, since: start.advanced(by: .seconds(1))))
        #expect(table.isSilent(7, since: start.advanced(by: .seconds(2))))
        table.insert(Self.second, socket: 7)
        #expect(table.isSilent(7, since: start))
        table.insert(Self.first, socket: 8)
        table.suspect(7)
        #expect(table.isSuspect(7))
        #expect(!table.isSuspect(8))
        table.noteInput(7, at: start)
        #expect(!table.isSuspect(7))
        table.noteInput(9, at: start)
        #expect(!table.contains(9))
    }

    @Test(
        arguments: [
            ("timeout=5", 3999, false), ("timeout=5", 4000, true), ("timeout=1", 499, false), ("timeout=1", 500, true),
            ("Timeout = \"10\", max=100", 8999, false), ("max=100,timeout=10", 9000, true), ("timeout=0", 0, true),
            ("timeout=", 100_000, false), ("timeout=-1", 100_000, false), ("timeout=5s", 100_000, false),
            ("timeout=99999999999", 100_000, false), ("max=5", 100_000, false), ("", 100_000, false),
            (nil, 100_000, false),
        ] as [(String?, Int, Bool)])
    func `a connection expires before the server closes it, as it announced`(
        field: String?, milliseconds: Int, isExpired: Bool
    ) {
        var table = ConnectionTable()
        let end = MonotonicInstant.now
        table.insert(Self.first, socket: 7)
        table.noteKeepAlive(field, on: 7)
        #expect(!table.isExpired(7, at: end.advanced(by: .seconds(100))))
        table.noteEnd(7, at: end)
        #expect(table.isExpired(7, at: end.advanced(by: .milliseconds(milliseconds))) == isExpired)
    }
}
