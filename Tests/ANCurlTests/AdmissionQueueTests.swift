// SPDX-License-Identifier: MIT

import ANCurl
import Testing

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
}
