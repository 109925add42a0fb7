// SPDX-License-Identifier: MIT

import ANCurl
import ANHTTP
import ANSystem
import Testing

@Suite struct ConnectionTableTests {
    private static let first = ends(50_000)
    private static let second = ends(50_001)
    private static let third = ends(50_002)
    private static let fourth = ends(50_003)

    private static func ends(_ port: Int) -> ConnectionTable.Ends {
        ConnectionTable.Ends(
            local: SocketAddress(host: "127.0.0.1", port: port), remote: SocketAddress(host: "127.0.0.1", port: 80))
    }

    private func origin(of connection: ConnectionTable.Ends, in table: ConnectionTable) -> ConnectionTable.Origin {
        table.origin(of: connection, opened: []) { _ in nil }
    }

    @Test func `a connection is found by its ends until its socket is closed`() {
        var table = ConnectionTable()
        #expect(origin(of: Self.first, in: table) == .foreign)
        table.insert(Self.first, socket: 7)
        table.insert(Self.second, socket: 8)
        #expect(origin(of: Self.first, in: table) == .known(7))
        #expect(origin(of: Self.second, in: table) == .known(8))
        table.remove(7)
        #expect(origin(of: Self.first, in: table) == .foreign)
        #expect(!table.contains(7))
        #expect(table.contains(8))
    }

    @Test func `a snapshot of sockets has the connections that were open at its time`() {
        var table = ConnectionTable()
        let start = MonotonicInstant.now
        table.insert(Self.first, socket: 7, origin: "http://a.example", at: start)
        table.insert(Self.second, socket: 9, origin: "http://b.example", at: start.advanced(by: .seconds(2)))
        #expect(table.socketLimit == 10)
        func ids(_ sockets: Range<Int>, after seconds: Int) -> [Int32] {
            table.snapshot(sockets, at: start.advanced(by: .seconds(seconds))).map(\.id)
        }
        #expect(ids(0..<64, after: 2) == [7, 9])
        #expect(ids(0..<8, after: 2) == [7])
        #expect(ids(8..<80, after: 2) == [9])
        #expect(ids(64..<128, after: 2) == [])
        #expect(ids(0..<64, after: 1) == [7])
        #expect(table.contains(9, openedBy: start.advanced(by: .seconds(2))))
        #expect(!table.contains(9, openedBy: start.advanced(by: .seconds(1))))
    }

    @Test func `a connection is used only for requests that would make it in the same way`() {
        let ways =
            [
                nil, .init(localInterface: "if!tun0"),
                .init(tunnelCredential: Credential(user: "ada", password: "a")),
                .init(tunnelCredential: Credential(user: "ada", password: "b")),
                .init(localInterface: "if!tun0", tunnelCredential: Credential(user: "ada", password: "a")),
                .init(tunnelFields: ["Bearer a"]), .init(tunnelFields: ["Bearer b"]),
            ] as [ConnectionTable.Way?]
        for made in ways {
            var table = ConnectionTable()
            table.insert(Self.first, socket: 7, made)
            for way in ways { #expect(table.wasMade(7, way) == (way == made)) }
            table.insert(Self.second, socket: 7)
            for way in ways { #expect(table.wasMade(7, way) == (way == nil)) }
            #expect(!table.wasMade(8, nil))
        }
    }

    @Test func `a socket that is used for another connection belongs to that one`() {
        var table = ConnectionTable()
        table.insert(Self.first, socket: 7)
        table.insert(Self.second, socket: 7)
        #expect(origin(of: Self.first, in: table) == .foreign)
        #expect(origin(of: Self.second, in: table) == .known(7))
    }

    @Test(
        arguments: [
            // The only socket, also if the connection is another one, which was made for something else.
            ([7], [7: 50_000], .new(7)), ([7], [7: 50_009], .foreign), ([], [:], .foreign),
            // Several addresses were tried; sockets of failed attempts are closed.
            ([7, 9], [7: 50_000], .new(7)), ([7, 9], [9: 50_000], .new(9)), ([7, 9], [7: 50_009, 9: 50_000], .new(9)),
            ([7, 9], [7: 50_009], .foreign),
            // The number of a closed socket was reused for a connection of another transfer, to another server.
            ([8, 9], [8: 50_000, 9: 50_000], .new(9)), ([9, 8], [8: 50_000, 9: 50_000], .new(9)),
            ([8], [8: 50_000], .foreign),
        ] as [([Int32], [Int32: Int], ConnectionTable.Origin)])
    func `a connection is new only if one of the transfer's sockets has its local port`(
        opened: [Int32], ports: [Int32: Int], expected: ConnectionTable.Origin
    ) {
        var table = ConnectionTable()
        table.insert(Self.second, socket: 8)
        #expect(table.origin(of: Self.first, opened: opened) { ports[$0] } == expected)
        // A connection that has carried a request is known, even if others were opened since.
        table.insert(Self.first, socket: 6)
        #expect(table.origin(of: Self.first, opened: opened) { ports[$0] } == .known(6))
    }

    /// Connections of a server, each with its generation and whether it may be dead.
    private static func table(_ connections: [(generation: Int?, isSuspect: Bool)]) -> ConnectionTable {
        var table = ConnectionTable()
        for (index, connection) in connections.enumerated() {
            let local = SocketAddress(host: "192.0.2.1", port: 50_000 + index)
            table.insert(
                .init(local: local, remote: SocketAddress(host: "192.0.2.2", port: 443)), socket: Int32(index),
                origin: "a", generation: connection.generation)
        }
        for (index, connection) in connections.enumerated() where connection.isSuspect { table.suspect(Int32(index)) }
        return table
    }

    @Test(
        arguments: [
            // The generations of connections, which may be dead, the one of new requests, and the connections that are
            // closed after their exchanges.
            ([], [], 0, []), ([(0, false)], [], 0, []), ([(0, true)], [], 1, [0]),
            ([(0, true), (1, false)], [], 1, [0]), ([(0, true), (1, true)], [], 2, [0, 1]),
            ([(0, false), (1, false)], [], 1, [0]), ([(0, true), (1, false), (2, true)], [], 1, [0, 2]),
            // Recovered ones.
            ([(0, true)], [0], 0, []), ([(0, true), (1, false)], [0], 1, [0]), ([(0, true), (1, true)], [0], 0, [1]),
            ([(0, true), (1, true)], [0, 1], 1, [0]),
            // Another one of the generation may be dead.
            ([(0, true), (0, true)], [1], 1, [0]), ([(0, true), (0, true)], [0, 1], 0, []),
            ([(0, true), (0, false), (1, false)], [], 1, [0, 1]),
            // None of the latest generation was made, or the one of it may be dead.
            ([(0, true), (1, false), (1, true)], [], 2, [0, 2]), ([(0, true), (1, false), (1, true)], [0], 0, [1, 2]),
            // libcurl cannot tell these apart, or they do not carry HTTP/2.
            ([(nil, true), (nil, false)], [], 0, [0]), ([(0, true), (nil, false)], [], 1, [0]),
            ([(0, true), (nil, false)], [0], 0, []),
        ] as [([(generation: Int?, isSuspect: Bool)], [Int32], Int, [Int32])])
    func `new requests use the latest generation of connections of which none may be dead`(
        connections: [(generation: Int?, isSuspect: Bool)], recovered: [Int32], generation: Int, replaced: [Int32]
    ) {
        var table = Self.table(connections)
        for socket in recovered { table.noteInput(socket, at: .now) }
        #expect(table.generation(of: "a") == generation)
        #expect(table.generation(of: "b") == 0)
        #expect(connections.indices.map(Int32.init).filter(table.isReplaced) == replaced)
    }

    @Test func `new requests do not use a connection that is too old, also after further input`() {
        var table = ConnectionTable()
        let (start, local) = (MonotonicInstant.now, SocketAddress(host: "192.0.2.1", port: 50_000))
        let ends = ConnectionTable.Ends(local: local, remote: SocketAddress(host: "192.0.2.2", port: 443))
        table.insert(ends, socket: 3, origin: "a", generation: 0, version: .http2, at: start)
        let end = start.advanced(by: .seconds(5))
        let isAged = table.noteAge(3, above: .seconds(5), at: end)
        #expect(!isAged && !table.isReplaced(3))
        let later = end.advanced(by: .seconds(1))
        let isAgedLater = table.noteAge(3, above: .seconds(5), at: later)
        #expect(isAgedLater)
        table.noteInput(3, at: later)
        #expect(table.generation(of: "a") == 1)
        #expect(table.isReplaced(3))
    }

    @Test func `a connection that its server closes is replaced, and others of its generation are used`() {
        var table = Self.table([(0, false), (0, false)])
        var changes = [table.takeChange()]
        for change in [
            { $0.noteClosing(0) }, { $0.noteClosing(0) }, { $0.noteInput(0, at: .now) }, { $0.noteLeft(1) },
            { $0.noteLeft(0) }, { $0.noteNeed() },
        ] as [(inout ConnectionTable) -> Void] {
            change(&table)
            changes.append(table.takeChange())
        }
        #expect(changes == [false, true, false, false, false, true, true])
        #expect(table.replaced == [0])
        #expect(table.generation(of: "a") == 0)
        // Its exchanges may leave it after it was closed.
        table.remove(0)
        let isChanged = table.takeChange()
        #expect(isChanged)
    }

    @Test func `exchanges may wait for the end of a connection without a generation that may be dead`() {
        var table = Self.table([(nil, false)])
        table.suspect(0)
        var changes = [table.takeChange(), table.takeChange()]
        table.remove(0)
        changes.append(table.takeChange())
        #expect(changes == [true, false, true])
    }

    @Test func `a connection is open to its origin as long as it takes new exchanges`() {
        var table = Self.table([(0, false)])
        #expect(table.isOpen(0, to: "a") && !table.isOpen(0, to: "b") && !table.isOpen(1, to: "a"))
        table.noteClosing(0)
        #expect(!table.isOpen(0, to: "a"))
    }

    @Test func `all connections of a generation may be dead`() {
        var table = Self.table([(0, false), (0, false), (nil, false)])
        table.suspect(1, of: "a")
        table.suspect(0, of: "b")
        #expect(table.generation(of: "a") == 0)
        table.suspect(0, of: "a")
        #expect(table.generation(of: "a") == 1 && table.replaced.sorted() == [0, 1])
        table.noteInput(0, at: .now)
        table.noteInput(1, at: .now)
        #expect(table.generation(of: "a") == 0)
    }

    @Test func `the generation of a server without connections is that of the first ones`() {
        var table = Self.table([(0, true), (1, false)])
        table.remove(0)
        #expect(table.generation(of: "a") == 1)
        table.suspect(1)
        #expect(table.generation(of: "a") == 2)
        table.remove(1)
        #expect(table.generation(of: "a") == 0)
        table.suspect(1)
        #expect(table.generation(of: "a") == 0)
    }

    @Test func `a connection is silent until bytes of a response come`() {
        var table = ConnectionTable()
        let start = MonotonicInstant.now
        table.insert(Self.first, socket: 7)
        #expect(table.isSilent(7, after: start))
        table.noteInput(7, at: start.advanced(by: .seconds(1)))
        #expect(!table.isSilent(7, after: start))
        #expect(table.isSilent(7, after: start.advanced(by: .seconds(1))))
        #expect(table.isSilent(7, after: start.advanced(by: .seconds(2))))
        table.insert(Self.second, socket: 7)
        #expect(table.isSilent(7, after: start))
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
