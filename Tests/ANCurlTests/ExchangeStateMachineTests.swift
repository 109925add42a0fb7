// SPDX-License-Identifier: MIT

import ANCurl
import AsyncNetworkingTesting
import Testing

@Suite struct ExchangeStateMachineTests {
    private typealias Machine = ExchangeStateMachine<String>

    // MARK: Waiting

    @Test func `a response may end before its exchange`() {
        var machine = ExchangeStateMachine<String>(reading: .streaming(capacity: 100))
        machine.receiveHead()
        #expect(machine.wait(for: .bytes, "reader", buffered: 0) == nil)
        machine.endResponse()
        #expect(machine.isResponseOver)
        #expect(machine.flush(buffered: 0) == "reader")
        #expect(machine.wait(for: .end, "reader", buffered: 0) == "reader")
        #expect(machine.close().mustCancel, "The request's body is still being sent.")
        #expect(machine.waitForEnd("scope") == nil)
        #expect(machine.end().closers == ["scope"])
        machine.endResponse()
        #expect(!machine.close().mustCancel)
    }

    @Test func `who waits for the head is woken when it is there`() {
        var machine = Machine(reading: .streaming(capacity: 100))
        #expect(machine.wait(for: .head, "reader", buffered: 0) == nil)
        #expect(machine.hasWaiter)
        #expect(machine.flush(buffered: 0) == nil)
        machine.receiveHead()
        #expect(machine.flush(buffered: 0) == "reader")
        #expect(machine.flush(buffered: 0) == nil, "It is handed out once.")
        #expect(!machine.hasWaiter)
    }

    @Test(arguments: [(nil, false, nil), (10, false, 11), (10, true, 0), (-1, false, 0)] as [(Int?, Bool, Int?)])
    func `a response that may be discarded is awaited up to a number of bytes`(
        patience: Int?, isOverdue: Bool, buffered: Int?
    ) {
        var machine = Machine(reading: .collecting(limit: 100))
        #expect(machine.wait(for: .response, "reader", buffered: 0) == nil)
        #expect(machine.flush(buffered: 0) == nil)
        machine.receiveHead(patience: patience)
        if isOverdue { machine.endPatience() }
        guard let buffered else {
            #expect(machine.flush(buffered: 100) == nil)
            #expect(machine.end().reader == "reader")
            return
        }
        if buffered > 0 { #expect(machine.flush(buffered: buffered - 1) == nil) }
        #expect(machine.flush(buffered: buffered) == "reader")
    }

    @Test func `who waits for the head is not woken by bytes before it, but by the end`() {
        var machine = Machine(reading: .streaming(capacity: 100))
        #expect(machine.wait(for: .head, "reader", buffered: 0) == nil)
        #expect(machine.flush(buffered: 5) == nil)
        #expect(machine.end().reader == "reader")
        #expect(machine.isResponseOver)
    }

    @Test func `what is there already needs no waiting`() {
        var machine = Machine(reading: .streaming(capacity: 100))
        machine.receiveHead()
        #expect(machine.wait(for: .head, "a", buffered: 0) == "a")
        #expect(machine.wait(for: .bytes, "b", buffered: 1) == "b")
        #expect(machine.wait(for: .bytes, "c", buffered: 0) == nil)
        #expect(machine.flush(buffered: 0) == nil)
        #expect(machine.flush(buffered: 3) == "c")
        #expect(machine.wait(for: .end, "d", buffered: 3) == nil)
        #expect(machine.flush(buffered: 3) == nil, "Bytes are not the end.")
        #expect(machine.end().reader == "d")
        #expect(machine.end().reader == nil)
    }

    @Test(arguments: [Machine.Interest.head, .bytes, .end])
    private func `after the end nobody waits`(interest: Machine.Interest) {
        var machine = Machine(reading: .streaming(capacity: 100))
        #expect(machine.end().reader == nil)
        #expect(machine.wait(for: interest, "late", buffered: 0) == "late")
        #expect(machine.waitForEnd("late") == "late")
        machine.receiveHead()
        #expect(machine.isResponseOver, "A head after the end changes nothing.")
    }

    @Test func `a second waiter comes back at once and the first one stays`() {
        var machine = Machine(reading: .streaming(capacity: 100))
        #expect(machine.wait(for: .head, "first", buffered: 0) == nil)
        #expect(machine.wait(for: .head, "second", buffered: 0) == "second")
        #expect(machine.end().reader == "first")
    }

    // MARK: Bytes

    @Test(arguments: [
        (1, 0, true), (100, 0, true), (101, 0, true), (1_000_000, 0, true),
        (1, 99, true), (2, 99, false), (1, 100, false), (50, 50, true), (51, 50, false),
    ])
    private func `a stream takes what fits, and anything when it is empty`(count: Int, buffered: Int, isTaken: Bool) {
        var machine = Machine(reading: .streaming(capacity: 100))
        #expect(machine.receiveBytes(count, buffered: buffered) == (isTaken ? .take : .pause))
    }

    @Test func `a reader who makes room tells the loop once`() {
        var machine = Machine(reading: .streaming(capacity: 100))
        machine.receiveHead()
        #expect(machine.resume() == false, "Nothing was paused.")
        #expect(machine.receiveBytes(200, buffered: 0) == .take)
        #expect(machine.receiveBytes(1, buffered: 200) == .pause)
        #expect(machine.resume() == true)
        #expect(machine.resume() == false)
        #expect(machine.receiveBytes(1, buffered: 200) == .pause)
        _ = machine.end()
        #expect(machine.resume() == false, "The loop no longer refers to it.")
    }

    @Test(arguments: [
        (10, 0, 10, true), (11, 0, 10, false), (5, 5, 10, true), (6, 5, 10, false), (1, 0, 0, false), (1, 0, -1, false),
        (1, 0, Int.min, false), (Int.max, 0, Int.max, true), (Int.max, 1, Int.max, false), (1, 5, Int.min, false),
    ])
    private func `a collection takes up to its limit`(count: Int, buffered: Int, limit: Int, isTaken: Bool) {
        var machine = Machine(reading: .collecting(limit: limit))
        #expect(machine.receiveBytes(count, buffered: buffered) == (isTaken ? .take : .refuse(limit: limit)))
    }

    @Test(arguments: [0, -1, Int.min])
    private func `a stream without capacity takes one piece at a time`(capacity: Int) {
        var machine = Machine(reading: .streaming(capacity: capacity))
        #expect(machine.receiveBytes(10, buffered: 0) == .take)
        #expect(machine.receiveBytes(10, buffered: 10) == .pause)
    }

    @Test func `collecting the rest of a paused stream tells the loop to go on`() {
        var machine = Machine(reading: .streaming(capacity: 10))
        machine.receiveHead()
        #expect(machine.receiveBytes(10, buffered: 0) == .take)
        #expect(machine.receiveBytes(10, buffered: 10) == .pause)
        #expect(machine.collect(upTo: 1000) == true)
        #expect(machine.receiveBytes(10, buffered: 10) == .take)
        #expect(machine.receiveBytes(981, buffered: 20) == .refuse(limit: 1000))
        #expect(machine.collect(upTo: 1000) == false)
    }

    // MARK: Closing

    @Test func `closing early cancels, wakes a stray reader and gives bytes up`() {
        var machine = Machine(reading: .streaming(capacity: 10))
        machine.receiveHead()
        #expect(machine.wait(for: .bytes, "stray", buffered: 0) == nil)
        let action = machine.close()
        #expect(action.mustCancel)
        #expect(action.strayReader == "stray")
        #expect(machine.isAbandoned)
        #expect(machine.receiveBytes(1, buffered: 0) == .abandon)
        #expect(machine.wait(for: .bytes, "late", buffered: 5) == "late", "Only the end can be waited for.")
        #expect(machine.wait(for: .end, "late", buffered: 0) == "late")
        #expect(machine.wait(for: .head, "late", buffered: 0) == "late")
        #expect(machine.waitForEnd("closer") == nil)
        #expect(machine.end().closers == ["closer"])
    }

    @Test func `closing after the end has nothing to cancel`() {
        var machine = Machine(reading: .collecting(limit: 10))
        machine.receiveHead()
        _ = machine.end()
        let action = machine.close()
        #expect(!action.mustCancel)
        #expect(action.strayReader == nil)
    }

    @Test func `closing twice is closing once`() {
        var machine = Machine(reading: .streaming(capacity: 10))
        #expect(machine.close().mustCancel)
        #expect(machine.close().mustCancel, "The loop ignores a second message.")
        #expect(machine.waitForEnd("closer") == nil)
    }

    @Test func `each of those who close an exchange waits for its end`() {
        var machine = Machine(reading: .streaming(capacity: 10))
        #expect(machine.close().mustCancel)
        #expect(machine.waitForEnd("first") == nil)
        let action = machine.close()
        #expect(action.mustCancel)
        #expect(action.strayReader == nil)
        #expect(machine.waitForEnd("second") == nil)
        let end = machine.end()
        #expect(end.reader == nil)
        #expect(end.closers == ["first", "second"])
        #expect(machine.end().closers.isEmpty, "They are handed out once.")
    }

    @Test func `a body that has escaped its scope cannot be collected`() {
        var machine = Machine(reading: .streaming(capacity: 10))
        machine.receiveHead()
        _ = machine.receiveBytes(10, buffered: 0)
        _ = machine.receiveBytes(10, buffered: 10)
        _ = machine.close()
        #expect(machine.collect(upTo: 100) == false)
        #expect(machine.isAbandoned)
        #expect(machine.receiveBytes(1, buffered: 10) == .abandon)
    }

    // MARK: All orders

    /// However the two sides interleave, each waiter is woken exactly once, at the latest by the end.
    @Test(arguments: 0..<20)
    func `every waiter is handed back exactly once`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        for _ in 0..<300 {
            var machine = ExchangeStateMachine<Int>(reading: .streaming(capacity: 10))
            var left = 0
            var woken: [Int] = []
            var buffered = 0
            func end() {
                let action = machine.end()
                woken += [action.reader].compactMap(\.self) + action.closers
            }
            for _ in 0..<30 {
                switch Int.random(in: 0..<7, using: &random) {
                case 0: machine.receiveHead(patience: Bool.random(using: &random) ? 5 : nil)
                case 1:
                    let count = Int.random(in: 1...8, using: &random)
                    if machine.receiveBytes(count, buffered: buffered) == .take { buffered += count }
                case 2: woken += [machine.flush(buffered: buffered)].compactMap(\.self)
                case 3:
                    let interest = [ExchangeStateMachine<Int>.Interest.head, .bytes, .end, .response]
                        .randomElement(using: &random)
                    woken += [machine.wait(for: interest ?? .end, left, buffered: buffered)].compactMap(\.self)
                    left += 1
                case 4:
                    buffered = 0
                    _ = machine.resume()
                case 5 where Int.random(in: 0..<5, using: &random) == 0:
                    woken += [machine.close().strayReader].compactMap(\.self)
                    woken += [machine.waitForEnd(left)].compactMap(\.self)
                    left += 1
                case 6 where Int.random(in: 0..<5, using: &random) == 0:
                    end()
                case 6: machine.endPatience()
                default: break
                }
            }
            end()
            #expect(woken.sorted() == Array(0..<left))
        }
    }
}
