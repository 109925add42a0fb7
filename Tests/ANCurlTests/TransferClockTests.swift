// SPDX-License-Identifier: MIT

import ANCurl
import ANHTTP
import ANSystem
import Testing

@Suite struct TransferClockTests {
    @Test func `each step has its own limit`() {
        var clock = Self.makeClock(queue: 10, connect: 20, idle: 30, total: nil)
        #expect(clock.limit(at: 0) == .init(.queue, seconds: 10, since: 0))
        clock.leaveQueue(at: Self.at(5))
        #expect(clock.limit(at: 5) == .init(.connect, seconds: 20, since: 5))
        clock.leaveQueue(at: Self.at(7))
        #expect(clock.leftQueue == Self.at(5), "It leaves the queue once.")
        clock.connect(at: Self.at(9))
        #expect(clock.limit(at: 9) == .init(.idle, seconds: 30, since: 9))
        clock.noteActivity(at: Self.at(12))
        #expect(clock.limit(at: 13) == .init(.idle, seconds: 30, since: 12))
    }

    @Test func `a request that waits for a connection again has the whole limit of the queue again`() {
        var clock = Self.makeClock(queue: 10, connect: 20, idle: 30, total: nil)
        clock.connect(at: Self.at(15))
        clock.enterQueueAgain(at: Self.at(40))
        #expect(clock.limit(at: 41) == .init(.queue, seconds: 10, since: 40))
        #expect(clock.connected == nil && clock.leftQueue == nil)
        clock.leaveQueue(at: Self.at(45))
        #expect(clock.limit(at: 45) == .init(.connect, seconds: 20, since: 45))
    }

    @Test func `time in which the loop could not run does not count until the next event`() {
        var clock = Self.makeClock(queue: 10, connect: 20, idle: 30, total: 100)
        clock.leaveQueue(at: Self.at(5))
        clock.excuse(.seconds(3))
        #expect(clock.limit(at: 8) == .init(.connect, seconds: 20, since: 8))
        clock.connect(at: Self.at(9))
        #expect(clock.limit(at: 9) == .init(.idle, seconds: 30, since: 9))
        clock.excuse(.seconds(4))
        clock.excuse(.seconds(1))
        #expect(clock.limit(at: 14) == .init(.idle, seconds: 30, since: 14))
        clock.noteActivity(at: Self.at(15))
        #expect(clock.limit(at: 15) == .init(.idle, seconds: 30, since: 15))
        clock.excuse(.seconds(80))
        #expect(clock.limit(at: 95) == .init(.total, seconds: 100, since: 0))
    }

    @Test func `after the response the rest of the request has a short limit since the last byte`() {
        var clock = Self.makeClock(queue: 10, connect: 20, idle: 30, total: nil)
        clock.connect(at: Self.at(9))
        clock.noteActivity(at: Self.at(12))
        #expect(clock.limitAfterResponse.deadline == Self.at(13))
    }

    @Test(arguments: [(nil, 300), (10_000, 300), (1000, 250), (100, 25)] as [(Int?, Int)])
    func `a request waits for the handshakes of others for a part of its limit on connecting`(
        connect: Int?, wait: Int
    ) {
        var timeouts = Timeouts()
        timeouts.connect = connect.map { .milliseconds($0) }
        var clock = TransferClock(start: Self.at(0), timeouts: timeouts)
        let admitted = Self.at(5)
        #expect(clock.handshakeWaitEnd(since: admitted) == admitted.advanced(by: .milliseconds(wait)))
        clock.leaveQueue(at: Self.at(6))
        #expect(clock.handshakeWaitEnd(since: admitted) == nil)
    }

    /// Each is that of the loop, 20 s, and a fourth and 0.1 s.
    @Test(arguments: [false, true])
    func `libcurl's limit on connecting is later than that of the loop, however libcurl counts`(countsQueue: Bool) {
        var clock = Self.makeClock(queue: nil, connect: 20, idle: nil, total: nil)
        let admitted = countsQueue ? Self.at(100) : nil
        func limit(at seconds: Int64, isExcused lateness: Int = 0) -> Duration? {
            if lateness > 0 { clock.excuse(.seconds(lateness)) }
            return clock.connectLimit(countedSince: admitted, at: Self.at(seconds)).map { $0 - .milliseconds(100) }
        }
        #expect(limit(at: 100) == .seconds(25))
        #expect(limit(at: 160) == .seconds(countsQueue ? 85 : 25))
        #expect(clock.nextConnectLimit(at: Self.at(160)) == Self.at(165).advanced(by: .milliseconds(50)))
        clock.leaveQueue(at: Self.at(164))
        #expect(clock.nextConnectLimit(at: Self.at(164)) == nil)
        let queued = countsQueue ? 64 : 0
        #expect(limit(at: 164) == .seconds(25 + queued))
        #expect(limit(at: 170) == .seconds(25 + queued))
        #expect(limit(at: 182, isExcused: 8) == .seconds(33 + queued))
        // It is over, but the loop is behind.
        #expect(limit(at: 194) == .seconds(35 + queued))
        clock.connect(at: Self.at(195))
        #expect(limit(at: 195) == .seconds(25))
        clock.noteActivity(at: Self.at(5_000))
        clock.reconnect(at: Self.at(5_200))
        #expect(limit(at: 5_200) == .seconds(countsQueue ? 225 : 25))
        clock.enterQueueAgain(at: Self.at(5_300))
        clock.leaveQueue(at: Self.at(5_300))
        #expect(limit(at: 5_300) == .seconds(countsQueue ? 5_225 : 25))
    }

    @Test func `without a limit on connecting libcurl has none`() {
        let clock = Self.makeClock(queue: nil, connect: nil, idle: nil, total: nil)
        #expect(clock.connectLimit(countedSince: nil, at: Self.at(5)) == nil)
        #expect(clock.nextConnectLimit(at: Self.at(5)) == nil)
    }

    @Test func `a reused connection leaves the queue and is connected at once`() {
        var clock = Self.makeClock(queue: 10, connect: 20, idle: 30, total: nil)
        clock.connect(at: Self.at(2))
        #expect(clock.leftQueue == Self.at(2))
        #expect(clock.connected == Self.at(2))
    }

    @Test func `a lost connection starts the limit on connecting anew`() {
        var clock = Self.makeClock(queue: 10, connect: 20, idle: 30, total: nil)
        clock.connect(at: Self.at(2))
        clock.reconnect(at: Self.at(50))
        #expect(clock.limit(at: 50) == .init(.connect, seconds: 20, since: 50))
        clock.connect(at: Self.at(55))
        #expect(clock.limit(at: 56) == .init(.idle, seconds: 30, since: 55))
    }

    @Test func `while this side keeps the transfer waiting, being idle does not count`() {
        var clock = Self.makeClock(queue: nil, connect: 20, idle: 30, total: nil)
        clock.connect(at: Self.at(0))
        #expect(clock.limit(at: 500, isWaitingForUs: true) == .init(.idle, seconds: 30, since: 500))
        clock.noteActivity(at: Self.at(501))
        #expect(clock.limit(at: 502) == .init(.idle, seconds: 30, since: 501))
    }

    @Test func `the total limit runs through all steps, whoever waits`() {
        var clock = Self.makeClock(queue: 10, connect: 20, idle: 30, total: 25)
        #expect(clock.limit(at: 0)?.kind == .queue)
        clock.leaveQueue(at: Self.at(9))
        #expect(clock.limit(at: 9) == .init(.total, seconds: 25, since: 0))
        clock.connect(at: Self.at(10))
        #expect(clock.limit(at: 20, isWaitingForUs: true) == .init(.total, seconds: 25, since: 0))
        #expect(clock.limit(at: 20)?.deadline == Self.at(25))
    }

    @Test func `of two limits that run out together the total one counts`() {
        let clock = Self.makeClock(queue: 10, connect: nil, idle: nil, total: 10)
        #expect(clock.limit(at: 0)?.kind == .total)
    }

    @Test func `without limits nothing expires, in any step`() {
        var clock = Self.makeClock(queue: nil, connect: nil, idle: nil, total: nil)
        #expect(clock.limit(at: 0) == nil)
        clock.leaveQueue(at: Self.at(1))
        #expect(clock.limit(at: 1) == nil)
        clock.connect(at: Self.at(2))
        #expect(clock.limit(at: 2) == nil)
    }

    @Test func `limits of zero, below it and beyond the clock are deadlines too`() {
        var timeouts = Timeouts()
        timeouts.total = .zero
        #expect(TransferClock(start: Self.at(5), timeouts: timeouts).limit(at: 5)?.deadline == Self.at(5))
        timeouts.total = .seconds(-1)
        #expect(TransferClock(start: Self.at(5), timeouts: timeouts).limit(at: 5)?.deadline == Self.at(4))
        timeouts = Timeouts()
        timeouts.total = Duration(secondsComponent: .max, attosecondsComponent: 0)
        timeouts.queue = Duration(secondsComponent: .max, attosecondsComponent: 0)
        let limit = TransferClock(start: Self.at(5), timeouts: timeouts).limit(at: 5)
        #expect(limit?.deadline == MonotonicInstant(nanoseconds: .max))
    }

    private static func at(_ seconds: Int64) -> MonotonicInstant {
        MonotonicInstant(nanoseconds: seconds * 1_000_000_000)
    }

    private static func makeClock(queue: Int?, connect: Int?, idle: Int?, total: Int?) -> TransferClock {
        var timeouts = Timeouts()
        timeouts.queue = queue.map { .seconds($0) }
        timeouts.connect = connect.map { .seconds($0) }
        timeouts.idle = idle.map { .seconds($0) }
        timeouts.total = total.map { .seconds($0) }
        return TransferClock(start: at(0), timeouts: timeouts)
    }
}

extension TransferClock {
    fileprivate func limit(at seconds: Int64, isWaitingForUs: Bool = false) -> Limit? {
        nextLimit(isWaitingForUs: isWaitingForUs, now: MonotonicInstant(nanoseconds: seconds * 1_000_000_000))
    }
}

extension TransferClock.Limit {
    fileprivate init(_ kind: Kind, seconds: Int, since: Int64) {
        self.init(
            kind: kind, duration: .seconds(seconds), since: MonotonicInstant(nanoseconds: since * 1_000_000_000))
    }
}

@Suite struct LoopLatenessTests {
    /// The numbers of ready descriptors in a late turn and in those that follow it, and whether each may hide bytes.
    @Test(
        arguments: [
            (0, [0, 0], [true, false]),
            (10, [0, 10, 0], [true, false, false]),
            (10, [10, 0], [true, false]),
            (300, [0, 128, 127, 44, 0], [true, true, true, false, false]),
            (300, [128, 128, 50], [true, true, false]),
            // Others become ready again.
            (130, [128, 128, 128, 128], [true, true, false, false]),
        ] as [(Int, [Int], [Bool])])
    func `limits wait for all descriptors after a late turn`(descriptors: Int, ready: [Int], isHiding: [Bool]) {
        var lateness = LoopLateness()
        let isLate = lateness.mayHideBytes(afterReadingFrom: 128)
        #expect(!isLate)
        lateness.begin(descriptors: descriptors)
        let answers = ready.map { lateness.mayHideBytes(afterReadingFrom: $0) }
        #expect(answers == isHiding)
    }
}
