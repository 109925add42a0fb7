// SPDX-License-Identifier: MIT

import AsyncNetworking
import AsyncNetworkingTesting
import Testing

/// The log without tasks that read it.
@Suite struct EventLogTests {
    private var log = EventLog<Int>()

    private func describe(after seen: Int, _ select: (Int) -> Int? = { $0 }) -> String {
        switch log.next(after: seen, select) {
        case .value(let value, let number): "value \(value) number \(number)"
        case .wait: "wait"
        case .end: "end"
        }
    }

    @Test func `before the first value, a reader waits`() {
        #expect(describe(after: 0) == "wait")
        #expect(log.elements.isEmpty)
    }

    @Test mutating func `a reader receives all values in order, each once`() {
        log.append(10)
        log.append(20)
        #expect(describe(after: 0) == "value 10 number 1")
        #expect(describe(after: 1) == "value 20 number 2")
        #expect(describe(after: 2) == "wait")
    }

    @Test mutating func `a reader receives the newest unseen value once, if each replaces the last`() {
        for value in [10, 20] { log.append(value) { _ in true } }
        #expect(describe(after: 0) == "value 20 number 2")
        #expect(describe(after: 1) == "value 20 number 2")
        #expect(describe(after: 2) == "wait")
        #expect(Array(log.elements) == [20])
    }

    @Test mutating func `a value replaces only those for which it is meant`() {
        for value in [1, 2, 3, 4] { log.append(value, replacing: value.isMultiple(of: 2) ? { $0 == value - 2 } : nil) }
        #expect(Array(log.elements) == [1, 3, 4])
        #expect(describe(after: 1) == "value 3 number 3")
        #expect(describe(after: 2) == "value 3 number 3")
        #expect(describe(after: 3) == "value 4 number 4")
    }

    @Test mutating func `of many details the newest are kept, and all other values`() {
        log.append(-1)
        for value in 1...2_000 {
            log.append(value, detail: value % 2)
            if value == 1_000 { log.append(-2) }
            #expect(log.elements.count <= 2 * EventLog<Int>.keptDetails + 2)
        }
        let details = log.elements.filter { $0 > 0 }
        #expect(details.count >= EventLog<Int>.keptDetails)
        #expect(Array(details) == Array((2_001 - details.count)...2_000))
        #expect(log.elements.filter { $0 < 0 } == [-1, -2])
        #expect(describe(after: 2) == "value -2 number 1002")
        #expect(describe(after: 2_000) == "value 1999 number 2001")
    }

    @Test mutating func `the newest detail of each kind is kept`() {
        for value in 1...3 { log.append(-value, detail: 1) }
        for value in 1...2_000 { log.append(value, detail: 0) }
        #expect(log.elements.filter { $0 < 0 } == [-3])
        #expect(log.elements.last == 2_000)
        #expect(log.elements.count <= 2 * EventLog<Int>.keptDetails + 1)
    }

    @Test mutating func `a reader skips values that it does not select`() {
        for value in 1...4 { log.append(value) }
        let isEven: (Int) -> Int? = { $0.isMultiple(of: 2) ? $0 : nil }
        #expect(describe(after: 0, isEven) == "value 2 number 2")
        #expect(describe(after: 2, isEven) == "value 4 number 4")
        #expect(describe(after: 4, isEven) == "wait")
    }

    @Test mutating func `the end follows the last value`() {
        log.append(10)
        log.finish()
        #expect(describe(after: 0) == "value 10 number 1")
        #expect(describe(after: 1) == "end")
    }

    @Test mutating func `no value follows the end`() {
        log.finish()
        let isAppended = log.append(10)
        #expect(!isAppended)
        #expect(describe(after: 0) == "end")
        #expect(log.elements.isEmpty)
    }
}

/// The list without tasks: strings take the place of continuations.
@Suite struct WaitersTests {
    private var waiters = Waiters<String>()

    @Test mutating func `each waiter is taken once`() {
        let tickets = [waiters.makeTicket(), waiters.makeTicket()]
        #expect(Set(tickets).count == 2)
        waiters.add("a", ticket: tickets[0])
        waiters.add("b", ticket: tickets[1])
        #expect(waiters.takeAll().sorted() == ["a", "b"])
        #expect(waiters.takeAll().isEmpty)
    }

    @Test mutating func `a removed waiter is not taken`() {
        let tickets = [waiters.makeTicket(), waiters.makeTicket()]
        waiters.add("a", ticket: tickets[0])
        waiters.add("b", ticket: tickets[1])
        #expect(waiters.remove(tickets[0]) == "a")
        #expect(waiters.remove(tickets[0]) == nil)
        #expect(waiters.takeAll() == ["b"])
    }
}
