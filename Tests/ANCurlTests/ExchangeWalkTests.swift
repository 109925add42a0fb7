// SPDX-License-Identifier: MIT

import ANCurl
import TestSupport
import Testing

/// Random orders of the events of the machines between the loop and its tasks, legal and illegal ones.
@Suite struct ExchangeWalkTests {
    private static let interests: [ExchangeStateMachine<Int>.Interest] = [.head, .bytes, .end, .response]

    @Test(arguments: UInt64(1)...300)
    func `a waiter of an exchange is resumed exactly once, and no wait outlives the exchange`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var machine = ExchangeStateMachine<Int>(
            reading: Bool.random(using: &random) ? .streaming(capacity: 10) : .collecting(limit: 25))
        var (buffered, last) = (0, 0)
        var (waiting, closing): (Set<Int>, Set<Int>) = ([], [])
        var (isPaused, isResponseOver, isOver) = (false, false, false)
        func resumed(_ waiter: Int?) {
            guard let waiter else { return }
            #expect(waiting.remove(waiter) != nil, "It was resumed before.")
        }
        func end() {
            let action = machine.end()
            resumed(action.reader)
            #expect(Set(action.closers) == closing && action.closers.count == closing.count)
            closing = []
        }
        for _ in 0..<60 {
            switch Int.random(in: 0...10, using: &random) {
            case 0: machine.receiveHead()
            case 1 where !isResponseOver, 2 where !isResponseOver:
                let count = Int.random(in: 1...12, using: &random)
                switch machine.receiveBytes(count, buffered: buffered) {
                case .take: buffered += count
                case .pause:
                    #expect(buffered > 0, "Nothing would resume the transfer.")
                    isPaused = true
                case .refuse(let limit): #expect(buffered + count > limit)
                case .abandon: #expect(machine.isAbandoned)
                }
            case 3: resumed(machine.flush(buffered: buffered))
            case 4, 5:
                last += 1
                waiting.insert(last)
                let interest = Self.interests[Int.random(in: 0...3, using: &random)]
                resumed(machine.wait(for: interest, last, buffered: buffered))
            case 6:
                buffered = 0
                let mustNotify = machine.resume()
                #expect(mustNotify == (isPaused && !isOver))
                isPaused = false
            case 7:
                let mustNotify = machine.collect(upTo: 100)
                #expect(!mustNotify || isPaused)
                if !machine.isAbandoned { isPaused = false }
            case 8 where Int.random(in: 0...4, using: &random) == 0:
                end()
                (isResponseOver, isOver) = (true, true)
            case 9 where Int.random(in: 0...4, using: &random) == 0:
                let action = machine.close()
                resumed(action.strayReader)
                #expect(action.mustCancel == !isOver)
                last += 1
                if machine.waitForEnd(last) == nil { closing.insert(last) }
            case 10 where Int.random(in: 0...4, using: &random) == 0:
                // The request's body is still being sent.
                machine.endResponse()
                isResponseOver = true
                resumed(machine.flush(buffered: buffered))
            default: break
            }
            #expect(machine.isResponseOver == isResponseOver)
            #expect(waiting.count == (machine.hasWaiter ? 1 : 0))
            if isOver { resumed(machine.flush(buffered: buffered)) }
        }
        end()
        #expect(waiting.isEmpty)
    }

    @Test(arguments: UInt64(1)...300)
    func `the pump of an upload is resumed once, and the loop is notified if and only if it starves`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var machine = UploadStateMachine<Int>(capacity: 10)
        var (buffered, last) = (0, 0)
        // A machine has one pump, which waits in one place at a time.
        var waiting: Int?
        var (isStarving, isStopped, isDemanded) = (false, false, false)
        func resumed(_ waiter: Int?) {
            guard let waiter else { return }
            #expect(waiter == waiting)
            waiting = nil
        }
        for _ in 0..<60 {
            switch Int.random(in: 0...8, using: &random) {
            case 0 where waiting == nil:
                last += 1
                waiting = last
                resumed(machine.waitForDemand(last))
                if waiting != nil { #expect(!isDemanded && !isStopped) }
            case 1 where waiting == nil:
                last += 1
                waiting = last
                resumed(machine.wait(last, buffered: buffered))
                if machine.order != .goOn { #expect(waiting == nil, "A pump with another order does not wait.") }
            case 2 where waiting == nil && machine.order == .goOn:
                buffered += Int.random(in: 1...6, using: &random)
                let isNotified = machine.produce()
                #expect(isNotified == isStarving)
                isStarving = false
            case 3 where waiting == nil && machine.order == .goOn:
                let isFailure = Bool.random(using: &random)
                let isNotified = machine.finish(failed: isFailure)
                if isNotified { isStarving = false }
            case 4, 5:
                let supply = machine.look(buffered: buffered)
                isDemanded = true
                if buffered > 0 { #expect(supply == .bytes) }
                if supply == .starving { isStarving = true }
                if isStopped, buffered == 0 { #expect(supply == .failed) }
                buffered = max(0, buffered - Int.random(in: 0...8, using: &random))
                resumed(machine.consume(left: buffered))
            case 6:
                resumed(machine.rewind())
                if !isStopped, isDemanded {
                    buffered = 0
                    #expect(machine.order == .restart && waiting == nil)
                    machine.begin()
                    #expect(machine.order == .goOn)
                }
            case 7:
                resumed(machine.demand())
                isDemanded = true
            case 8 where Int.random(in: 0...5, using: &random) == 0:
                resumed(machine.stop())
                isStopped = true
                #expect(waiting == nil)
            default: break
            }
            if isStopped { #expect(machine.order == .stop) }
        }
        resumed(machine.stop())
        #expect(waiting == nil, "Nothing waits when the exchange is over.")
    }
}
