// SPDX-License-Identifier: MIT

import ANCurl
import ANSystem
import TestSupport
import Testing

@Suite struct LoopTableTests {
    /// A table of up to three loops, the second and third of which are added when the others have two exchanges.
    private static func table() -> LoopTable { LoopTable(maximum: 3, threshold: 2) }

    @Test func `with one loop there is no choice`() {
        var table = LoopTable(maximum: 1, threshold: 1)
        for sharing in ConnectionSharing.allCases { #expect(table.admit("a", sharing) == 0) }
        #expect(table.count == 1)
        #expect(!table.hasChoice)
    }

    @Test func `another loop is started when all have work, up to the maximum`() {
        var table = Self.table()
        let loops = (0..<9).map { table.admit("\($0)") }
        #expect(loops == [0, 0, 1, 1, 2, 2, 0, 1, 2])
        #expect(table.count == 3)
    }

    @Test func `a loop that cannot be added leaves those that are there, and is tried again after a pause`() {
        var table = Self.table()
        _ = (table.admit("a"), table.admit("b"))
        let start = MonotonicInstant(nanoseconds: 1)
        var begins = [table.beginLoop(at: start), table.beginLoop(at: start)]
        table.failLoop(at: start)
        #expect(table.admit("c", addsLoops: false) == 0)
        #expect(table.count == 1)
        let end = start.advanced(by: LoopTable.pause)
        begins += [table.beginLoop(at: start), table.beginLoop(at: end), table.beginLoop(at: end)]
        #expect(begins == [true, false, false, true, false])
        table.addLoop()
        #expect(table.admit("d", addsLoops: false) == 1)
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
        table.end("a", .successive, on: 1, connected: false)
        table.admit("a", to: 1)
        #expect(table.loop(for: "a", .successive, preferring: 0) == 0)
    }

    @Test func `exchanges that share a connection need no others`() {
        var table = LoopTable(maximum: 2, threshold: 1, total: 3)
        for _ in 0..<20 { #expect(table.admit("a", .multiplexed, to: 0) == nil || table.count > 1) }
        table.open("a", on: 0, isMultiplexed: true)
        for _ in 0..<20 { #expect(table.admit("a", .multiplexed, to: 0) == nil) }
        for _ in 0..<40 { table.end("a", .multiplexed, on: 0) }
        #expect(table.admit("b", to: 0) == nil, "Two connections.")
    }

    @Test func `a connection that exceeds a limit closes an idle one, first of all on another loop`() {
        var table = LoopTable(maximum: 2, threshold: 1, perOrigin: 2, total: 3)
        _ = (table.admit("a"), table.admit("a"))
        table.open("a", on: 0)
        table.open("a", on: 1)
        #expect(table.admit("a", to: 1) == nil, "All are in use.")
        table.leave(1)
        table.end("a", .successive, on: 1, connected: false)
        table.end("a", on: 0)
        #expect(table.admit("a", to: 1) == .init(loop: 0, origin: "a"), "Before the connection is made.")
        #expect(table.open("a", on: 1) == nil)
        table.close("a", on: 0)
        table.end("a", on: 1)
        #expect(table.admit("b", to: 0) == nil)
        #expect(table.admit("c", to: 0) == .init(loop: 1, origin: nil))
        #expect(table.open("a", on: 1) == .init(loop: 1, origin: "a"), "It could not use the one that was free.")
    }

    @Test func `where an origin multiplexes, exchanges over HTTP 1 count`() {
        var table = LoopTable(maximum: 2, threshold: 1, perOrigin: 2)
        _ = (table.admit("other"), table.admit("other"))
        table.admit("a", .multiplexed, to: 0)
        table.open("a", on: 0, isMultiplexed: true)
        #expect(table.admit("a", to: 1) == nil)
        table.open("a", on: 1)
        table.end("a", on: 1)
        #expect(table.loop(for: "a", .successive, preferring: 0) == 1, "A connection is free.")
        #expect(table.admit("a", to: 0) == .init(loop: 1, origin: "a"), "A third connection.")
    }

    @Test func `a connection that is about to be closed is neither free nor closed twice`() {
        var table = LoopTable(maximum: 2, threshold: 1, perOrigin: 2)
        _ = (table.admit("a"), table.admit("a"))
        for loop in [0, 1] { table.open("a", on: loop) }
        for loop in [0, 1] { table.end("a", on: loop) }
        table.admit("a", .none, to: 0)
        #expect(table.open("a", on: 0) == .init(loop: 1, origin: "a"))
        table.admit("a", .none, to: 0)
        #expect(table.open("a", on: 0) == .init(loop: 0, origin: "a"), "The other one is closed already.")
        #expect(table.loop(for: "a", .successive, preferring: 0) == 0, "None is free.")
        table.keep("a", on: 1)
        #expect(table.loop(for: "a", .successive, preferring: 0) == 1)
        table.close("a", on: 0)
        #expect(table.open("a", on: 0) == .init(loop: 1, origin: "a"))
        table.close("a", on: 1)
        #expect(table.loop(for: "a", .successive, preferring: 0) == 0)
    }

    @Test func `an origin that multiplexed and has ended counts no more`() {
        var table = LoopTable(maximum: 2, threshold: 1, total: 1)
        for number in 0..<200 {
            #expect(table.admit("\(number)", .multiplexed, to: 0) == nil)
            table.end("\(number)", .multiplexed, on: 0)
            // The response came whole.
            table.noteMultiplexing("\(number)", on: 0)
        }
    }

    @Test(arguments: 0..<UInt64(rounds(50, few: 10))) func `numbers fit at any time, and loops are used evenly`(
        seed: UInt64
    ) {
        var random = SeededGenerator(seed: seed)
        var table = LoopTable(maximum: 4, threshold: 2, perOrigin: 3, total: 40)
        var running: [(origin: String, sharing: ConnectionSharing, loop: Int)] = []
        var connections: [(origin: String, loop: Int)] = []
        for _ in 0..<2_000 {
            let origin = "\(Int.random(in: 0..<100, using: &random))"
            var excess: LoopTable.Excess?
            switch Int.random(in: 0..<4, using: &random) {
            case 0...1 where running.count < 60:
                let sharing: ConnectionSharing = Bool.random(using: &random) ? .successive : .none
                if table.beginLoop(at: .now) { table.addLoop() }
                let loop = table.loop(for: origin, sharing, preferring: nil)
                #expect((0..<table.count).contains(loop))
                excess = table.admit(origin, sharing, to: loop)
                running.append((origin, sharing, loop))
            case 2 where !running.isEmpty:
                let (origin, sharing, loop) = running.remove(at: Int.random(in: 0..<running.count, using: &random))
                table.leave(loop)
                table.end(origin, sharing, on: loop, connected: Bool.random(using: &random))
            case 3 where !running.isEmpty && Bool.random(using: &random):
                let (origin, _, loop) = running[Int.random(in: 0..<running.count, using: &random)]
                connections.append((origin, loop))
                excess = table.open(origin, on: loop)
            default:
                guard !connections.isEmpty else { break }
                let (origin, loop) = connections.remove(at: Int.random(in: 0..<connections.count, using: &random))
                table.close(origin, on: loop)
            }
            if let excess {
                #expect((0..<table.count).contains(excess.loop))
                #expect(excess.origin == nil || connections.contains { $0 == (excess.origin ?? "", excess.loop) })
            }
            let loads = (0..<table.count).map { loop in running.count { $0.loop == loop } }
            #expect(table.idlest == loads.firstIndex(of: loads.min() ?? 0))
        }
        #expect(table.count == 4)
    }
}

extension LoopTable {
    fileprivate init(maximum: Int, threshold: Int, perOrigin: Int = .max, total: Int = .max) {
        self.init(maximum: maximum, threshold: threshold, limits: Limits(perOrigin: perOrigin, total: total))
    }

    /// Chooses the loop of an exchange, admits it, and adds a loop if one is wanted.
    fileprivate mutating func admit(
        _ origin: String, _ sharing: ConnectionSharing = .successive, addsLoops: Bool = true
    ) -> Int {
        if addsLoops, beginLoop(at: .now) { addLoop() }
        let loop = loop(for: origin, sharing, preferring: nil)
        admit(origin, sharing, to: loop)
        return loop
    }

    @discardableResult
    fileprivate mutating func admit(
        _ origin: String, _ sharing: ConnectionSharing = .successive, to loop: Int
    ) -> Excess? {
        enter(loop)
        return begin(origin, sharing, on: loop)
    }

    fileprivate mutating func end(_ origin: String, _ sharing: ConnectionSharing = .successive, on loop: Int) {
        leave(loop)
        end(origin, sharing, on: loop, connected: true)
    }

    @discardableResult
    fileprivate mutating func open(
        _ origin: String, on loop: Int, isChoice: Bool = false, isMultiplexed: Bool = false
    ) -> Excess? {
        open(origin, on: loop, isChoice: isChoice, isMultiplexed: isMultiplexed, extra: 0)
    }
}
