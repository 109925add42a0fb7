// SPDX-License-Identifier: MIT

import ANSystem
public import AsyncNetworking

/// An ``ActivityStateMachine`` with timers.
package final class ActivityIndicator: Sendable {
    private let state: Lock<State>
    private let clock: any Clock<Duration>
    /// Called under the lock, so that changes stay in order: it must return immediately.
    private let didChange: @Sendable (Bool) -> Void

    private struct State: Sendable {
        var machine: ActivityStateMachine
        var activationDelay: Duration
        var completionDelay: Duration
        /// Ends with its delay, when it is replaced, or when the indicator is released.
        var timer: Task<Void, Never>?
    }

    /// Creates an inactive indicator.
    ///
    /// - Parameters:
    ///   - activationDelay: The time for which activity must last before the indicator is shown.
    ///   - completionDelay: The time without activity after which the indicator is hidden.
    ///   - isEnabled: Whether the indicator may be shown.
    ///   - clock: The clock for the delays.
    ///   - didChange: Called when the indicator is shown (`true`) or hidden (`false`), in order. Must return
    ///     immediately and must not use the indicator.
    package init(
        activationDelay: Duration = .seconds(1), completionDelay: Duration = .milliseconds(170), isEnabled: Bool = true,
        clock: any Clock<Duration> = ContinuousClock(), didChange: @escaping @Sendable (Bool) -> Void
    ) {
        state = Lock(
            State(
                machine: ActivityStateMachine(isEnabled: isEnabled), activationDelay: activationDelay,
                completionDelay: completionDelay))
        self.clock = clock
        self.didChange = didChange
    }

    deinit {
        state.withLock { $0.timer }?.cancel()
    }

    /// Whether the indicator is shown.
    package var isVisible: Bool { state.withLock { $0.machine.isVisible } }

    /// Whether the indicator may be shown.
    package var isEnabled: Bool {
        get { state.withLock { $0.machine.isEnabled } }
        set { change { $0.setEnabled(newValue) } }
    }

    /// The time for which activity must last before the indicator is shown.
    package var activationDelay: Duration {
        get { state.withLock { $0.activationDelay } }
        set { state.withLock { $0.activationDelay = newValue } }
    }

    /// The time without activity after which the indicator is hidden.
    package var completionDelay: Duration {
        get { state.withLock { $0.completionDelay } }
        set { state.withLock { $0.completionDelay = newValue } }
    }

    /// Tells the indicator whether there is activity.
    package func receive(activity: Bool) {
        change { $0.receive(activity: activity) }
    }

    private func change(_ change: (inout ActivityStateMachine) -> ActivityStateMachine.Action) {
        let old = state.withLock { state -> Task<Void, Never>? in
            let old = state.timer
            switch change(&state.machine) {
            case .nothing:
                return nil
            case .start(let delay, let number):
                let duration =
                    switch delay {
                    case .activation: state.activationDelay
                    case .completion: state.completionDelay
                    }
                state.timer = makeTimer(duration, number)
            case .cancelTimer:
                state.timer = nil
            case .show:
                state.timer = nil
                didChange(true)
            case .hide(let wasVisible):
                state.timer = nil
                if wasVisible { didChange(false) }
            }
            return old
        }
        old?.cancel()
    }

    private func makeTimer(_ duration: Duration, _ number: Int) -> Task<Void, Never> {
        Task { [weak self, clock] in
            guard (try? await clock.sleep(for: duration.bounded)) != nil else { return }
            self?.change { $0.receive(endOfTimer: number) }
        }
    }
}

/// A monitor that says when to show an indicator of network activity.
///
/// ```swift
/// let activity = NetworkActivityMonitor()
/// let api = SessionManager { $0.eventMonitors = [activity] }
/// for await isVisible in activity.visibility { spinner.isHidden = !isVisible }
/// ```
///
/// By default the indicator is shown one second after a request began, if one is running then, so that short requests
/// do not flicker, and hidden after none has been running for 0.17 seconds, so that a series of requests shows it once.
/// Each request of the sessions counts once, from its beginning to its end, including retries, redirects and the waits
/// before them, and also if the response cache answers it. WebSocket connections and those of event sources count until
/// they end; an event source that waits to reconnect does not. A monitor may belong to several sessions, which retain
/// it.
public final class NetworkActivityMonitor: EventMonitor {
    private let running = Lock<Set<UInt64>>([])
    private let indicator: ActivityIndicator
    private let broadcast = Broadcast<Bool>()

    /// Creates a monitor, to be added to the `eventMonitors` of sessions.
    ///
    /// - Parameters:
    ///   - activationDelay: The time from the beginning of a request until the indicator is shown if one is running
    ///     then, the same or a later one; 1 second by default, and zero or a negative one for no delay.
    ///   - completionDelay: The time without requests after which the indicator is hidden; 0.17 seconds by default, and
    ///     zero or a negative one for no delay.
    ///   - clock: The clock for the delays; `ContinuousClock` by default.
    public init(
        activationDelay: Duration = .seconds(1), completionDelay: Duration = .milliseconds(170),
        clock: any Clock<Duration> = ContinuousClock()
    ) {
        indicator = ActivityIndicator(
            activationDelay: activationDelay, completionDelay: completionDelay, clock: clock
        ) { [broadcast] in broadcast.send($0) }
        broadcast.send(false)
    }

    deinit {
        broadcast.finish()
    }

    /// Whether the indicator is to be shown now: `true` from the end of the activation delay, if a request is running
    /// then, to the end of the completion delay; `false` at first.
    public var isVisible: Bool { indicator.isVisible }

    /// A stream of ``isVisible`` for any number of readers: the current value first, then the changes until the monitor
    /// is released, without a final `false`. A slow reader skips values, but never the last.
    public var visibility: BroadcastStream<Bool> { broadcast.stream }

    /// Counts the requests of the sessions from their `began` to their `ended` events, and ignores all others; called
    /// by sessions, on any thread, not by programs.
    public func receive(_ event: TaskEvent, of task: AnySessionTask) {
        switch event {
        case .began: change { $0.insert(task.id).inserted }
        case .ended: change { $0.remove(task.id) != nil }
        default: break
        }
    }

    private func change(_ change: (inout Set<UInt64>) -> Bool) {
        running.withLock { running in
            let wasActive = !running.isEmpty
            // Under the lock, so that the indicator receives changes in order.
            if change(&running), running.isEmpty == wasActive { indicator.receive(activity: !running.isEmpty) }
        }
    }
}
