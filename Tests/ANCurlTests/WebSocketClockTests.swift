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
        #expect(clock.step(at: at(29), isPaused: false) == .none)
        #expect(clock.step(at: at(30), isPaused: false) == .ping)
        #expect(clock.step(at: at(49), isPaused: false) == .none)
        let limit = TransferClock.Limit(kind: .idle, duration: .seconds(20), since: at(30))
        #expect(clock.step(at: at(50), isPaused: false) == .lost(limit))
    }

    @Test func `received bytes answer a ping and begin the interval again`() {
        var clock = clock
        clock.open()
        #expect(clock.step(at: at(30), isPaused: false) == .ping)
        clock.noteInput(at: at(31))
        #expect(clock.step(at: at(60), isPaused: false) == .none)
        #expect(clock.step(at: at(61), isPaused: false) == .ping)
    }

    @Test func `a connection that is not read is not lost`() {
        var clock = clock
        clock.open()
        #expect(clock.step(at: at(30), isPaused: false) == .ping)
        clock.pause()
        #expect(clock.step(at: at(1000), isPaused: true) == .none)
        #expect(clock.limit(isPaused: true, now: at(1000))?.deadline == at(1030))
    }

    @Test func `a server has 5 s to answer a close frame`() {
        var clock = clock
        clock.open()
        clock.close(at: at(10))
        clock.close(at: at(12))
        clock.noteInput(at: at(13))
        #expect(clock.step(at: at(14), isPaused: false) == .none)
        #expect(clock.step(at: at(15), isPaused: false) == .closed)
    }
}
