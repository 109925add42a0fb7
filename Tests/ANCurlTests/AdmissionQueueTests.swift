// SPDX-License-Identifier: MIT

import ANCurl
import TestSupport
import Testing

extension AdmissionQueue {
    /// Creates a queue for requests.
    fileprivate init(perOrigin: Int, total: Int, streams: Int) {
        self.init(perOrigin: perOrigin, longLivedPerOrigin: 1, total: total, streams: streams)
    }

    fileprivate mutating func enter(_ element: Element, _ origin: Origin) -> Int? {
        enter(element, .request, origin)
    }

    fileprivate mutating func leave(_ origin: Origin) {
        leave(.request, origin)
    }

    fileprivate mutating func giveUp(_ ticket: Int, _ origin: Origin) {
        giveUp(ticket, .request, origin)
    }
}

@Suite struct AdmissionQueueTests {
    private static let big = Int.max

    @Test func `up to the limit of an origin all are admitted, later ones in their order`() {
        var queue = AdmissionQueue<Int>(perOrigin: 2, total: Self.big, streams: 100)
        #expect((0..<5).map { queue.enter($0, "a") == nil } == [true, true, false, false, false])
        #expect(queue.next() == nil)
        queue.leave("a")
        #expect(queue.next() == 2)
        #expect(queue.next() == nil)
        queue.leave("a")
        queue.leave("a")
        #expect([queue.next(), queue.next(), queue.next()] == [3, 4, nil])
    }

    @Test func `a limit of streams that means none does not overflow`() {
        var queue = AdmissionQueue<Int>(perOrigin: 1, total: .max, streams: .max)
        #expect(queue.enter(1, "a") == nil)
        queue.noteMultiplexing("a")
        for element in 2...4 { #expect(queue.enter(element, "a") == nil) }
    }

    @Test func `an element that was admitted is not kept`() {
        final class Element {}
        var queue = AdmissionQueue<Element>(perOrigin: 1, total: Self.big, streams: 100)
        weak var admitted: Element?
        do {
            _ = queue.enter(Element(), "a")
            let element = Element()
            admitted = element
            _ = queue.enter(element, "a")
            _ = queue.enter(Element(), "a")
        }
        queue.leave("a")
        #expect(queue.next() != nil)
        #expect(admitted == nil)
    }

    @Test func `nobody overtakes those who wait`() {
        var queue = AdmissionQueue<Int>(perOrigin: 1, total: Self.big, streams: 100)
        #expect(queue.enter(0, "a") == nil)
        #expect(queue.enter(1, "a") != nil)
        queue.leave("a")
        #expect(queue.enter(2, "a") != nil)
        #expect(queue.next() == 1)
    }

    @Test func `a preferred element overtakes others, but none is overtaken more often than a few times`() {
        var queue = AdmissionQueue<Int>(perOrigin: 1, total: Self.big, streams: 100)
        for number in 0..<20 { _ = queue.enter(number, "a") }
        var order: [Int] = []
        for _ in 0..<8 {
            queue.leave("a")
            if let next = queue.next(preferring: { $0 % 2 == 0 }) { order.append(next) }
        }
        #expect(order == [2, 4, 6, 8, 1, 10, 3, 12])
    }

    @Test func `an element that arrived late is overtaken as seldom as the first one`() {
        var queue = AdmissionQueue<Int>(perOrigin: 1, total: Self.big, streams: 100)
        for number in 0..<100 { _ = queue.enter(number, "a") }
        var order: [Int] = []
        while order.count < 99 {
            queue.leave("a")
            guard let next = queue.next(preferring: { $0 % 3 == 0 }) else { break }
            order.append(next)
        }
        #expect(order.sorted() == Array(1..<100))
        for (place, element) in order.enumerated() {
            #expect(order[..<place].count { $0 > element } <= AdmissionQueue<Int>.maximumOvertakes)
        }
    }

    @Test func `a busy origin does not hold up another one`() {
        var queue = AdmissionQueue<Int>(perOrigin: 1, total: Self.big, streams: 100)
        for number in 0..<10 { _ = queue.enter(number, "busy") }
        #expect(queue.enter(100, "free") == nil)
        #expect(queue.enter(101, "free") != nil)
        queue.leave("free")
        #expect(queue.next() == 101)
        #expect(queue.next() == nil)
    }

    @Test func `under the limit for all, who has waited longest comes first`() {
        var queue = AdmissionQueue<Int>(perOrigin: 2, total: 2, streams: 100)
        #expect(queue.enter(0, "a") == nil)
        #expect(queue.enter(1, "a") == nil)
        #expect(queue.enter(2, "b") != nil)
        #expect(queue.enter(3, "a") != nil)
        #expect(queue.enter(4, "b") != nil)
        queue.leave("a")
        #expect([queue.next(), queue.next()] == [2, nil])
        queue.leave("a")
        #expect([queue.next(), queue.next()] == [3, nil])
        queue.leave("b")
        #expect([queue.next(), queue.next()] == [4, nil])
    }

    @Test func `who gives up is passed over`() throws {
        var queue = AdmissionQueue<Int>(perOrigin: 1, total: Self.big, streams: 100)
        let tickets = (0..<200).map { queue.enter($0, "a") }
        for (number, ticket) in tickets.enumerated() where number % 50 != 0 {
            queue.giveUp(try #require(ticket), "a")
            queue.giveUp(try #require(ticket), "a")
        }
        var order: [Int] = []
        for _ in 0..<5 {
            queue.leave("a")
            if let next = queue.next() { order.append(next) }
        }
        #expect(order == [50, 100, 150])
        #expect(queue.enter(1, "a") == nil)
    }

    @Test func `an origin that multiplexes takes as many as its connections have streams`() {
        var queue = AdmissionQueue<Int>(perOrigin: 2, total: 3, streams: 10)
        for number in 0..<30 { _ = queue.enter(number, "a") }
        #expect(queue.next() == nil)
        queue.noteMultiplexing("a")
        var admitted = 2
        while queue.next() != nil { admitted += 1 }
        #expect(admitted == 20)
        #expect(queue.enter(100, "b") == nil)
        #expect(queue.enter(101, "b") != nil, "Three connections are taken.")
        for _ in 0..<10 { queue.leave("a") }
        #expect(queue.next() == 20, "It has waited longer than the one for b.")
    }

    @Test(arguments: [(10, 20), (1, 2), (0, 2), (11, 20)])
    func `an origin takes no more for each connection than its server allows`(streams: Int, admitted: Int) {
        var queue = AdmissionQueue<Int>(perOrigin: 2, total: Self.big, streams: 10)
        for number in 0..<30 { _ = queue.enter(number, "a") }
        queue.noteMultiplexing("a", streams: streams)
        #expect(2 + (0..<30).count { _ in queue.next() != nil } == admitted)
    }

    @Test func `a server may change the number of exchanges for each connection`() {
        var queue = AdmissionQueue<Int>(perOrigin: 2, total: Self.big, streams: 10)
        for number in 0..<30 { _ = queue.enter(number, "a") }
        queue.noteMultiplexing("a", streams: 2)
        #expect([queue.next(), queue.next(), queue.next()] == [2, 3, nil])
        queue.noteMultiplexing("a", streams: 3)
        #expect([queue.next(), queue.next(), queue.next()] == [4, 5, nil])
        queue.noteMultiplexing("a", streams: 1)
        for _ in 0..<4 { queue.leave("a") }
        #expect(queue.next() == nil)
        queue.leave("a")
        #expect(queue.next() == 6)
    }

    @Test func `an origin that no longer multiplexes takes one for each connection`() {
        var queue = Self.queue()
        for number in 0..<4 { _ = queue.enter(number, .request, "a") }
        for number in 4..<8 { _ = queue.enter(number, .stream, "a") }
        let isUnknown = queue.noteSingleExchanges("a")
        queue.noteMultiplexing("a")
        while queue.next() != nil {}
        #expect(queue.longLived == 0)
        #expect(queue.enter(8, .request, "a") == nil)
        let isChange = queue.noteSingleExchanges("a")
        #expect(!isUnknown && isChange && queue.longLived == 4)
        #expect(queue.enter(9, .request, "a") != nil)
        #expect(queue.enter(10, .stream, "a") != nil)
        for _ in 0..<3 { queue.leave(.request, "a") }
        #expect(queue.next() == nil)
        queue.leave(.request, "a")
        queue.leave(.stream, "a")
        #expect([queue.next(), queue.next()] == [9, nil])
    }

    // MARK: Connections that take no new exchanges

    private static func draining(_ connections: [[ConnectionUse]]) -> DrainingConnections {
        connections.reduce(into: DrainingConnections()) { $0.add($1) }
    }

    /// With two connections for requests, three for long-lived exchanges and ten streams on each.
    @Test(
        arguments: [
            // The connections that take no new ones, and the numbers of requests and streams that are admitted beside them.
            ([[.request]], 10, 0), ([[.request], [.request]], 0, 0), ([[.request, .request]], 10, 0),
            ([[.stream]], 20, 1), ([[.stream], [.stream], [.stream]], 20, 3), ([[.stream, .request]], 20, 1),
            ([[.stream], [.request]], 10, 1), ([[.exclusiveRequest]], 10, 0), ([[.exclusiveStream]], 20, 1),
        ] as [([[ConnectionUse]], Int, Int)])
    func `new exchanges do not share a connection that takes none`(
        connections: [[ConnectionUse]], admitted: Int, longLived: Int
    ) {
        var queue = Self.queue()
        // As many were admitted when they shared one connection.
        _ = queue.enter(0, .request, "a")
        queue.noteMultiplexing("a")
        for use in connections.joined() { #expect(queue.enter(0, use, "a") == nil) }
        queue.note(Self.draining(connections), of: "a", on: 0)
        queue.leave(.request, "a")
        #expect(queue.longLived == longLived)
        let tickets = (1...25).map { queue.enter($0, .request, "a") }
        #expect(tickets.count { $0 == nil } == admitted)
        // Their ends leave the connections to others.
        for use in connections.joined() { queue.leave(use, "a", drainingOn: 0) }
        queue.note(nil, of: "a", on: 0)
        while queue.next() != nil {}
        #expect(queue.longLived == 0)
        #expect(queue.enter(26, .request, "a") != nil)
        queue.leave(.request, "a")
        #expect([queue.next(), queue.next()] == [21, nil])
    }

    @Test func `connections that take no new exchanges are counted for each loop, and until the origin has none`() {
        var queue = Self.queue()
        queue.note(Self.draining([[.stream]]), of: "a", on: 0)
        #expect(queue.longLived == 0, "It has no exchange.")
        _ = queue.enter(0, .stream, "a")
        _ = queue.enter(1, .stream, "a")
        queue.noteMultiplexing("a")
        queue.note(Self.draining([[.stream]]), of: "a", on: 0)
        queue.note(Self.draining([[.stream]]), of: "a", on: 1)
        #expect(queue.longLived == 2)
        queue.note(nil, of: "a", on: 0)
        #expect(queue.longLived == 1)
        queue.leave(.stream, "a", drainingOn: 1)
        queue.leave(.stream, "a", drainingOn: 1)
        #expect(queue.longLived == 0)
        for number in 2..<4 { #expect(queue.enter(number, .request, "a") == nil) }
        #expect(queue.enter(4, .request, "a") != nil)
    }

    @Test func `the limit for all counts connections that take no new exchanges`() {
        var queue = Self.queue(total: 2)
        _ = queue.enter(0, .stream, "a")
        queue.noteMultiplexing("a")
        queue.note(Self.draining([[.stream]]), of: "a", on: 0)
        #expect(queue.enter(1, .request, "a") == nil)
        #expect(queue.enter(2, .request, "a") == nil)
        #expect(queue.enter(3, .request, "b") != nil)
        queue.leave(.stream, "a", drainingOn: 0)
        #expect(queue.next() == nil, "Its connection is not known to be left.")
        queue.note(nil, of: "a", on: 0)
        #expect(queue.next() == 3)
    }

    // MARK: Long-lived exchanges

    /// A queue with two connections to an origin for requests and three for long-lived exchanges.
    private static func queue(total: Int = big, streams: Int = 10) -> AdmissionQueue<Int> {
        AdmissionQueue(perOrigin: 2, longLivedPerOrigin: 3, total: total, streams: streams)
    }

    @Test(arguments: [ConnectionUse.stream, .exclusiveStream])
    func `long-lived exchanges take no connection from requests, nor these from them`(use: ConnectionUse) {
        var queue = Self.queue()
        #expect((0..<4).map { queue.enter($0, use, "a") == nil } == [true, true, true, false])
        #expect((10..<13).map { queue.enter($0, .request, "a") == nil } == [true, true, false])
        #expect(queue.next() == nil)
        #expect(queue.longLived == 3)
        queue.leave(.request, "a")
        #expect([queue.next(), queue.next()] == [12, nil])
        queue.leave(use, "a")
        #expect([queue.next(), queue.next()] == [3, nil])
    }

    @Test func `streams and WebSockets share a limit, in the order in which they came`() throws {
        var queue = Self.queue()
        let uses: [ConnectionUse] = [.stream, .exclusiveStream, .stream, .exclusiveStream, .stream, .exclusiveStream]
        let tickets = uses.enumerated().map { queue.enter($0.offset, $0.element, "a") }
        #expect(tickets.map { $0 == nil } == [true, true, true, false, false, false])
        queue.giveUp(try #require(tickets[4]), .stream, "a")
        queue.leave(.stream, "a")
        #expect(queue.enter(6, .stream, "a") != nil, "It came last.")
        #expect([queue.next(), queue.next()] == [3, nil])
        queue.leave(.stream, "a")
        queue.leave(.exclusiveStream, "a")
        #expect([queue.next(), queue.next(), queue.next()] == [5, 6, nil])
    }

    @Test func `the limit for all counts long-lived exchanges`() {
        var queue = Self.queue(total: 4)
        for element in 0..<3 { #expect(queue.enter(element, .stream, "a") == nil) }
        #expect(queue.enter(3, .request, "b") == nil)
        #expect(queue.enter(4, .request, "a") != nil)
        #expect(queue.enter(5, .exclusiveStream, "c") != nil)
        #expect(queue.next() == nil)
        queue.leave(.stream, "a")
        #expect([queue.next(), queue.next()] == [4, nil])
        queue.leave(.stream, "a")
        #expect([queue.next(), queue.next()] == [5, nil])
    }

    @Test func `where an origin multiplexes, streams count as requests, and WebSockets do not`() {
        var queue = Self.queue(total: 4)
        for element in 0..<5 { _ = queue.enter(element, .stream, "a") }
        #expect(queue.enter(10, .exclusiveStream, "a") != nil)
        queue.noteMultiplexing("a")
        // The waiting streams share the first connection. The WebSocket takes one of those of long-lived exchanges.
        #expect([queue.next(), queue.next(), queue.next(), queue.next()] == [3, 4, 10, nil])
        #expect(queue.longLived == 1)
        for element in 20..<35 { #expect(queue.enter(element, .request, "a") == nil) }
        #expect(queue.enter(35, .request, "a") != nil, "Two connections carry ten each.")
        #expect(queue.enter(36, .stream, "a") != nil)
        #expect(queue.enter(37, .exclusiveStream, "a") == nil)
        #expect(queue.enter(38, .exclusiveStream, "a") != nil, "Four connections are taken.")
        queue.leave(.stream, "a")
        queue.leave(.request, "a")
        #expect([queue.next(), queue.next(), queue.next()] == [35, 36, nil])
    }

    @Test func `where an origin multiplexes, a request over HTTP 1 has a connection to itself`() {
        var queue = AdmissionQueue<Int>(perOrigin: 3, longLivedPerOrigin: 1, total: Self.big, streams: 10)
        #expect(queue.enter(0, .request, "a") == nil)
        queue.noteMultiplexing("a")
        #expect((1..<4).map { queue.enter($0, .exclusiveRequest, "a") == nil } == [true, true, false])
        #expect((10..<19).map { queue.enter($0, .request, "a") == nil } == .init(repeating: true, count: 9))
        #expect(queue.enter(19, .request, "a") != nil, "Three connections are taken.")
        queue.leave(.exclusiveRequest, "a")
        #expect([queue.next(), queue.next()] == [3, nil])
    }

    @Test(.timeLimit(.minutes(1)))
    func `the time for an admission does not grow with the number of origins whose streams wait`() {
        var queue = AdmissionQueue<Int>(perOrigin: 2, longLivedPerOrigin: 2, total: 4, streams: 100)
        let count = 50_000
        for number in 0..<count { _ = queue.enter(number, .stream, "\(number / 2)") }
        var order = Array(0..<4)
        for number in 0..<count {
            queue.leave(.stream, "\(number / 2)")
            while let next = queue.next() { order.append(next) }
        }
        #expect(order == Array(0..<count))
    }

    @Test(.timeLimit(.minutes(1)))
    func `the time for an admission does not grow with the number of origins that wait`() {
        var queue = AdmissionQueue<Int>(perOrigin: 2, total: 4, streams: 100)
        let count = 50_000
        for number in 0..<count { _ = queue.enter(number, "\(number)") }
        var order = Array(0..<4)
        for number in 0..<count {
            queue.leave("\(number)")
            while let next = queue.next() { order.append(next) }
        }
        #expect(order == Array(0..<count))
    }

    @Test(arguments: 0..<20)
    func `the first is admitted whose origin has capacity, as by a search of all`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var queue = AdmissionQueue<Int>(perOrigin: 2, total: 5, streams: 3)
        // By origin: the number of running elements, and whether a connection carries three.
        var running = [Int](repeating: 0, count: 6)
        var multiplexes = [Bool](repeating: false, count: 6)
        var waiting: [(element: Int, origin: Int, ticket: Int)] = []
        func connections(_ origin: Int, adding more: Int = 0) -> Int {
            multiplexes[origin] ? (running[origin] + more + 2) / 3 : running[origin] + more
        }
        func hasRoom(_ origin: Int) -> Bool {
            let taken = (0..<6).reduce(0) { $0 + connections($1) }
            let then = connections(origin, adding: 1)
            return then <= 2 && taken - connections(origin) + then <= 5
        }
        for element in 0..<600 {
            let origin = Int.random(in: 0..<6, using: &random)
            switch Int.random(in: 0..<10, using: &random) {
            case 0..<5:
                let mayStart = !waiting.contains { $0.origin == origin } && hasRoom(origin)
                let ticket = queue.enter(element, "\(origin)")
                #expect((ticket == nil) == mayStart)
                if let ticket { waiting.append((element, origin, ticket)) } else { running[origin] += 1 }
            case 5..<8 where running[origin] > 0:
                queue.leave("\(origin)")
                running[origin] -= 1
            case 8 where !waiting.isEmpty:
                let other = waiting.remove(at: Int.random(in: waiting.indices, using: &random))
                queue.giveUp(other.ticket, "\(other.origin)")
            case 9 where running[origin] > 0:
                queue.noteMultiplexing("\(origin)")
                multiplexes[origin] = true
            default: break
            }
            for origin in 0..<6 where running[origin] == 0 && !waiting.contains(where: { $0.origin == origin }) {
                multiplexes[origin] = false
            }
            while true {
                let index = waiting.firstIndex { hasRoom($0.origin) }
                let expected = index.map { waiting.remove(at: $0) }
                #expect(queue.next() == expected?.element)
                guard let expected else { break }
                running[expected.origin] += 1
            }
        }
    }
}
