// SPDX-License-Identifier: MIT

import ANCurl
import TestSupport
import Testing

@Suite struct LoopTableTests {
    private static let noLimits = (perOrigin: Int.max / 2, total: Int.max)

    /// A table of up to three loops, the second and third of which are started when the others have two exchanges.
    private static func table() -> LoopTable { LoopTable(maximum: 3, threshold: 2) }

    @Test func `with one loop there is no choice`() {
        var table = LoopTable(maximum: 1, threshold: 1)
        for sharing in ConnectionSharing.allCases {
            #expect(table.loop(for: "a", sharing, preferring: nil) == 0)
            table.enter(0)
        }
        #expect(table.count == 1)
        #expect(!table.hasChoice)
    }

    @Test func `another loop is started when all have work, up to the maximum`() {
        var table = Self.table()
        let loops = (0..<9).map { table.admit("\($0)") }
        #expect(loops == [0, 0, 1, 1, 2, 2, 0, 1, 2])
        #expect(table.count == 3)
    }

    @Test func `a loop that cannot be started leaves those that are`() {
        var table = Self.table()
        _ = (table.admit("a"), table.admit("b"))
        #expect(table.loop(for: "c", .successive, preferring: nil) == 1)
        table.stopStarting()
        #expect(table.admit("c") == 0)
        #expect(table.count == 1)
    }

    @Test func `exchanges go where a connection is free`() {
        var table = Self.table()
        for origin in ["a", "b", "c"] { _ = table.admit(origin) }
        table.open("c", on: 1)
        table.end("c", on: 1)
        #expect(table.loop(for: "c", .successive, preferring: nil) == 1, "It has a connection, and fewer exchanges.")
        #expect(table.admit("c") == 1)
        #expect(table.loop(for: "c", .none, preferring: nil) == 1, "One that makes its own goes to the idlest loop.")
        _ = (table.admit("d"), table.admit("e"))
        #expect(table.loop(for: "f", .successive, preferring: nil) == 2)
        table.close("c", on: 1)
        table.end("c", on: 1)
        #expect(table.loop(for: "c", .successive, preferring: nil) == 1)
    }

    @Test func `a loop that is much busier than another one gets no more, although connections are free there`() {
        var table = LoopTable(maximum: 2, threshold: 1)
        _ = table.admit("other")
        _ = table.admit("other")
        for _ in 0..<7 { table.admit("a", to: 0) }
        for _ in 0..<8 { table.open("a", on: 0) }
        #expect(table.loop(for: "a", .successive, preferring: nil) == 0)
        table.admit("other", to: 0)
        #expect(table.loop(for: "a", .successive, preferring: nil) == 1)
    }

    @Test func `a task's own loop comes first, but not before a free connection elsewhere`() {
        var table = LoopTable(maximum: 2, threshold: 1)
        _ = (table.admit("a"), table.admit("b"))
        #expect(table.loop(for: "c", .successive, preferring: 1) == 1)
        table.open("a", on: 0)
        table.end("a", on: 0)
        #expect(table.loop(for: "a", .successive, preferring: 1) == 0)
        #expect(table.loop(for: "a", .none, preferring: 1) == 1)
    }

    @Test func `before it is known whether an origin multiplexes, its exchanges stay together`() {
        var table = LoopTable(maximum: 4, threshold: 1)
        _ = (table.admit("x"), table.admit("a", .multiplexed))
        for _ in 0..<20 { #expect(table.admit("a", .multiplexed) == 1) }
        table.open("a", on: 1, isMultiplexed: true)
        #expect(table.admit("a", .multiplexed) == 1, "It does.")
        #expect(table.admit("a", .successive) != 1, "Over HTTP/1.1 it makes no difference.")
        table.open("a", on: 1, isChoice: true)
        #expect(table.loop(for: "a", .multiplexed, preferring: nil) != 1, "It does not any more.")
    }

    @Test func `a connection that is being made counts, one that cannot be made does not`() {
        var table = LoopTable(maximum: 2, threshold: 1)
        _ = (table.admit("other"), table.admit("a"))
        table.admit("a", to: 1)
        table.open("a", on: 1)
        table.end("a", on: 1)
        #expect(table.loop(for: "a", .successive, preferring: 0) == 1, "One is free, and another one is being made.")
        table.leave(1)
        table.end("a", on: 1, connected: false)
        table.admit("a", to: 1)
        #expect(table.loop(for: "a", .successive, preferring: 0) == 0)
    }

    @Test func `a limit that is exceeded closes an idle connection on another loop`() {
        var table = LoopTable(maximum: 2, threshold: 1)
        _ = (table.admit("a"), table.admit("a"))
        table.open("a", on: 0)
        #expect(table.open("a", on: 1, perOrigin: 1)?.loop == nil, "Both are in use.")
        table.end("a", on: 0)
        let excess = table.open("a", on: 1, perOrigin: 2)
        #expect(excess?.loop == 0)
        #expect(excess?.origin == "a")
        table.close("a", on: 0)
        table.open("b", on: 0)
        let total = table.open("a", on: 1, total: 2)
        #expect(total?.loop == 0)
        #expect(total?.origin == nil)
    }

    @Test(arguments: 0..<50) func `numbers fit at any time, and loops are used evenly`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var table = LoopTable(maximum: 4, threshold: 2)
        var running: [(origin: String, loop: Int)] = []
        for _ in 0..<2_000 {
            if running.count < 60, Bool.random(using: &random) {
                let origin = "\(Int.random(in: 0..<100, using: &random))"
                let sharing: ConnectionSharing = Bool.random(using: &random) ? .successive : .none
                let loop = table.loop(for: origin, sharing, preferring: nil)
                #expect(loop <= table.count && loop < 4)
                table.admit(origin, sharing, to: loop)
                running.append((origin, loop))
            } else if !running.isEmpty {
                let (origin, loop) = running.remove(at: Int.random(in: 0..<running.count, using: &random))
                table.leave(loop)
                table.end(origin, on: loop, connected: Bool.random(using: &random))
            }
            if table.count == 4 {
                let loads = (0..<4).map { loop in running.count { $0.loop == loop } }
                #expect(table.loop(for: "new", .none, preferring: nil) == loads.firstIndex(of: loads.min() ?? 0))
            }
        }
        #expect(table.count == 4)
    }
}

extension LoopTable {
    /// Chooses the loop of an exchange, and admits it.
    fileprivate mutating func admit(_ origin: String, _ sharing: ConnectionSharing = .successive) -> Int {
        let loop = loop(for: origin, sharing, preferring: nil)
        admit(origin, sharing, to: loop)
        return loop
    }

    fileprivate mutating func admit(_ origin: String, _ sharing: ConnectionSharing = .successive, to loop: Int) {
        enter(loop)
        begin(origin, on: loop)
    }

    fileprivate mutating func end(_ origin: String, on loop: Int) {
        leave(loop)
        end(origin, on: loop, connected: true)
    }

    @discardableResult
    fileprivate mutating func open(
        _ origin: String, on loop: Int, isChoice: Bool = false, isMultiplexed: Bool = false,
        perOrigin: Int = .max / 2, total: Int = .max
    ) -> (loop: Int, origin: String?)? {
        open(origin, on: loop, isChoice: isChoice, isMultiplexed: isMultiplexed, limits: (perOrigin, total))
    }
}
