// SPDX-License-Identifier: MIT

import ANSystem

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
            guard (try? await clock.sleep(for: min(duration, .longestSleep))) != nil else { return }
            self?.change { $0.receive(endOfTimer: number) }
        }
    }
}
