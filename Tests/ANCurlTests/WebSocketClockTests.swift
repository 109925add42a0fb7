// SPDX-License-Identifier: MIT

import ANCurl
import ANHTTP
import ANSystem
import Testing

@Suite struct WebSocketClockTests {
    private let start = MonotonicInstant.now
    private var clock: WebSocketClock

    init() {
        var options = WebSocketOptions()
        options.pingInterval = .seconds(30)
        options.pingTimeout = .seconds(20)
        clock = WebSocketClock(options, now: start)
    }

    private func at(_ seconds: Int) -> MonotonicInstant { start.advanced(by: .seconds(seconds)) }

    @Test func `nothing is due before the connection is open`() {
        #expect(clock.limit(isPaused: false, now: start) == nil)
    }

    @Test func `a ping is due after the interval, and its answer after the timeout`() {
        var clock = clock
        clock.open()
        #expect(clock.step(at: at(29), isPaused: false, after: 0) == .none)
        #expect(clock.step(at: at(30), isPaused: false, after: 0) == .ping)
        #expect(clock.step(at: at(49), isPaused: false, after: 0) == .none)
        let limit = TransferClock.Limit(kind: .idle, duration: .seconds(20), since: at(30))
        #expect(clock.step(at: at(50), isPaused: false, after: 0) == .lost(limit))
    }

    @Test func `received bytes answer a ping and begin the interval again`() {
        var clock = clock
        clock.open()
        #expect(clock.step(at: at(30), isPaused: false, after: 0) == .ping)
        clock.noteInput(at: at(31))
        #expect(clock.step(at: at(60), isPaused: false, after: 0) == .none)
        #expect(clock.step(at: at(61), isPaused: false, after: 0) == .ping)
    }

    /// A look at the output 5 s after a ping behind 1,000 bytes, of which 100 were delivered before.
    @Test(
        arguments: [
            // The number of bytes that were delivered, whether others wait, and whether the ping's answer is still due
            // 20 s after the look.
            (100, true, false), (101, true, true), (101, false, true), (1000, false, true),
        ])
    func `a ping is not late while bytes before it are delivered`(count: Int, isBlocked: Bool, isPostponed: Bool) {
        var clock = clock
        clock.open()
        clock.noteDelivery(of: 100, isBlocked: true, at: at(30))
        #expect(clock.step(at: at(30), isPaused: false, after: 1000) == .ping)
        #expect(clock.isAwaitingAnswer)
        clock.noteDelivery(of: count, isBlocked: isBlocked, at: at(35))
        let limit = TransferClock.Limit(kind: .idle, duration: .seconds(20), since: at(isPostponed ? 35 : 30))
        #expect(clock.limit(isPaused: false, now: at(49)) == limit)
        #expect(clock.step(at: at(50), isPaused: false, after: 1000) == (isPostponed ? .none : .lost(limit)))
    }

    @Test(arguments: [true, false])
    func `a ping that was delivered is late if only the server's system receives bytes`(isBlocked: Bool) {
        var clock = clock
        clock.open()
        #expect(clock.step(at: at(30), isPaused: false, after: 1000) == .ping)
        clock.noteDelivery(of: 1006, isBlocked: false, at: at(31))
        // If bytes wait here, the server's system has no room for them until the server reads.
        clock.noteDelivery(of: 2000, isBlocked: isBlocked, at: at(40))
        #expect(clock.limit(isPaused: false, now: at(41))?.deadline == at(isBlocked ? 60 : 51))
    }

    @Test func `a ping without bytes before it is late after the timeout, whatever was delivered earlier`() {
        var clock = clock
        clock.open()
        clock.noteDelivery(of: 1000, isBlocked: false, at: at(30))
        #expect(clock.step(at: at(30), isPaused: false, after: 1000) == .ping)
        clock.noteDelivery(of: 1006, isBlocked: false, at: at(35))
        #expect(clock.limit(isPaused: false, now: at(35))?.deadline == at(50))
    }

    @Test func `a connection that is not read is not lost`() {
        var clock = clock
        clock.open()
        #expect(clock.step(at: at(30), isPaused: false, after: 0) == .ping)
        clock.pause()
        #expect(clock.step(at: at(1000), isPaused: true, after: 0) == .none)
        #expect(clock.limit(isPaused: true, now: at(1000))?.deadline == at(1030))
    }

    @Test func `a server has 5 s to answer a close frame`() {
        var clock = clock
        clock.open()
        clock.close(at: at(10), after: nil)
        clock.close(at: at(12), after: nil)
        clock.noteInput(at: at(13))
        #expect(clock.step(at: at(14), isPaused: false, after: 0) == .none)
        #expect(clock.step(at: at(15), isPaused: false, after: 0) == .closed)
    }

    /// A look at the output 4 s after a close frame, and a last one before it, when 100 bytes were delivered.
    @Test(
        arguments: [
            // The number of bytes that were delivered, those before the close frame, and those of them that were delivered
            // before it; none of the two if the server has sent a close frame.
            (100, (1000, 100), false), (101, (1000, 100), true), (1008, (1000, 100), true), (101, nil, false),
            (500, (1000, 500), false), (501, (1000, 500), true), (1008, (1000, 1000), false),
        ] as [(Int, (count: Int, delivered: Int)?, Bool)])
    func `a server has 5 s from the delivery of bytes before the close frame`(
        count: Int, output: (count: Int, delivered: Int)?, isPostponed: Bool
    ) {
        var clock = clock
        clock.open()
        clock.noteDelivery(of: 100, isBlocked: true, at: at(9))
        clock.close(at: at(10), after: output)
        let isDelivered = output.map { $0.delivered >= $0.count } ?? true
        #expect(clock.isAwaitingAnswer == !isDelivered)
        clock.noteDelivery(of: count, isBlocked: true, at: at(14))
        #expect(clock.limit(isPaused: false, now: at(14))?.deadline == at(isPostponed ? 19 : 15))
        // The server answers only what it has received.
        clock.noteDelivery(of: 1008, isBlocked: false, at: at(14))
        clock.noteDelivery(of: 1009, isBlocked: false, at: at(18))
        #expect(clock.limit(isPaused: false, now: at(18))?.deadline == at(isDelivered ? 15 : 19))
        #expect(!clock.isAwaitingAnswer)
    }
}
