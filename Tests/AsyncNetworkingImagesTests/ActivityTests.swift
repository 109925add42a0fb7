// SPDX-License-Identifier: MIT

import ANSystem
import AsyncNetworking
import AsyncNetworkingImages
import AsyncNetworkingTesting
import Foundation
import Testing

@Suite struct ActivityStateMachineTests {
    /// An input of the machine.
    enum Input: Sendable {
        case begin, end, enable, disable
        case timer(Int)
    }

    @Test(
        arguments: [
            // Activity that lasts.
            ([.begin, .timer(1)], [.start(.activation, timer: 1), .show]),
            ([.begin, .timer(1), .begin], [.start(.activation, timer: 1), .show, .nothing]),
            // Activity that is too short, also if it pauses during the delay.
            ([.begin, .end, .timer(1)], [.start(.activation, timer: 1), .nothing, .hide(wasVisible: false)]),
            ([.begin, .end, .begin, .timer(1)], [.start(.activation, timer: 1), .nothing, .nothing, .show]),
            // Activity that ends.
            (
                [.begin, .timer(1), .end, .timer(2)],
                [.start(.activation, timer: 1), .show, .start(.completion, timer: 2), .hide(wasVisible: true)]
            ),
            // A pause that is shorter than the delay.
            (
                [.begin, .timer(1), .end, .begin, .timer(2), .end, .timer(4)],
                [
                    .start(.activation, timer: 1), .show, .start(.completion, timer: 2), .cancelTimer, .nothing,
                    .start(.completion, timer: 4), .hide(wasVisible: true),
                ]
            ),
            ([.end], [.nothing]),
            // Disabling hides from every state; late timers have no effect.
            ([.disable, .begin], [.hide(wasVisible: false), .nothing]),
            ([.begin, .disable, .timer(1)], [.start(.activation, timer: 1), .hide(wasVisible: false), .nothing]),
            ([.begin, .timer(1), .disable], [.start(.activation, timer: 1), .show, .hide(wasVisible: true)]),
            (
                [.begin, .timer(1), .end, .disable, .timer(2)],
                [
                    .start(.activation, timer: 1), .show, .start(.completion, timer: 2), .hide(wasVisible: true),
                    .nothing,
                ]
            ),
            // Enabling has no effect until activity begins or ends.
            (
                [.disable, .begin, .enable, .begin],
                [.hide(wasVisible: false), .nothing, .nothing, .start(.activation, timer: 2)]
            ),
        ] as [([Input], [ActivityStateMachine.Action])])
    func `an input leads to an action`(inputs: [Input], expected: [ActivityStateMachine.Action]) {
        var machine = ActivityStateMachine()
        let actions = inputs.map { input in
            switch input {
            case .begin: machine.receive(activity: true)
            case .end: machine.receive(activity: false)
            case .enable: machine.setEnabled(true)
            case .disable: machine.setEnabled(false)
            case .timer(let number): machine.receive(endOfTimer: number)
            }
        }
        #expect(actions == expected)
        let last = actions.last { $0 == .show || $0 == .hide(wasVisible: true) || $0 == .hide(wasVisible: false) }
        #expect(machine.isVisible == (last == .show))
    }
}

@Suite(.timeLimit(.minutes(5))) struct NetworkActivityMonitorTests {
    @Test func `a request of a session is shown after one second, and hidden 0.17 seconds after its end`() async throws
    {
        let clock = ManualClock()
        let monitor = NetworkActivityMonitor(clock: clock)
        let gate = try ScriptGate()
        let api = SessionManager {
            $0.transport = MockTransport(script: Script([.wait(gate), .reply(Reply())]))
            $0.eventMonitors = [monitor]
        }
        var visibility = monitor.visibility.makeAsyncIterator()
        #expect(await visibility.next() == false)
        async let first = api.get("http://localhost/1")
        #expect(try await clock.sleepers(count: 1) == [.seconds(1)])
        // A second request does not change anything.
        async let second = api.get("http://localhost/2")
        clock.advance(by: .seconds(1))
        #expect(await visibility.next() == true)
        #expect(monitor.isVisible)
        gate.open()
        _ = try await (first, second)
        #expect(try await clock.sleepers(count: 1) == [.milliseconds(170)])
        #expect(monitor.isVisible)
        clock.advance(by: .milliseconds(170))
        #expect(await visibility.next() == false)
        #expect(!monitor.isVisible)
    }

    @Test func `a delay is no longer than a clock can sleep`() async throws {
        let clock = ManualClock()
        let monitor = NetworkActivityMonitor(activationDelay: .seconds(Int64.max), clock: clock)
        let url = try #require(URL(string: "http://localhost/"))
        let task = SessionManager().makeDataTask(for: Request(url: url))
        monitor.receive(.began, of: task.erased)
        #expect(try await clock.sleepers(count: 1) == [.seconds(36_500 * 86_400)])
    }

    @Test func `a request counts once, whatever a session reports`() async throws {
        let clock = ManualClock()
        let monitor = NetworkActivityMonitor(clock: clock)
        let api = SessionManager()
        let url = try #require(URL(string: "http://localhost/"))
        let (first, second) = (api.makeDataTask(for: Request(url: url)), api.makeDataTask(for: Request(url: url)))
        monitor.receive(.began, of: first.erased)
        monitor.receive(.began, of: first.erased)
        monitor.receive(.began, of: second.erased)
        try await clock.sleepers(count: 1)
        clock.advance(by: .seconds(1))
        for await isVisible in monitor.visibility where isVisible { break }
        monitor.receive(.ended(.succeeded, CallMetrics()), of: first.erased)
        monitor.receive(.ended(.succeeded, CallMetrics()), of: first.erased)
        #expect(clock.sleepers == [])
        monitor.receive(.ended(.failed(CancellationError()), CallMetrics()), of: second.erased)
        try await clock.sleepers(count: 1)
    }

    @Test func `the stream ends when the monitor is released`() async {
        var monitor: NetworkActivityMonitor? = NetworkActivityMonitor(clock: ManualClock())
        let stream = monitor?.visibility
        monitor = nil
        var values: [Bool] = []
        if let stream {
            for await isVisible in stream { values.append(isVisible) }
        }
        #expect(values == [false])
    }
}
