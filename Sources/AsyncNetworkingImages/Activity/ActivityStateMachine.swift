// SPDX-License-Identifier: MIT

/// The decisions of an activity indicator, which appears only if activity lasts, and remains during short pauses.
///
/// | state | activity begins | activity ends | the timer fires |
/// |---|---|---|---|
/// | inactive | starts the activation timer: delaying start | | |
/// | delaying start | | | shows: active, or inactive without activity |
/// | active | | starts the completion timer: delaying end | |
/// | delaying end | cancels the timer: active | | hides: inactive |
///
/// Disabling leads from every state to inactive. Enabling has no effect until activity begins or ends. A pure value.
package struct ActivityStateMachine: Sendable {
    private var state = State.inactive
    private var hasActivity = false
    private var timer = 0

    /// Whether the indicator may be shown.
    package private(set) var isEnabled: Bool
    /// Whether the indicator is shown.
    package private(set) var isVisible = false

    /// A state of the indicator.
    private enum State: Sendable {
        /// Hidden, without activity.
        case inactive
        /// Hidden, until activity has lasted for the activation delay.
        case delayingStart
        /// Shown.
        case active
        /// Shown, until there was no activity for the completion delay.
        case delayingEnd
    }

    /// A delay.
    package enum Delay: Hashable, Sendable {
        /// The time for which activity must last before the indicator is shown.
        case activation
        /// The time without activity after which the indicator is hidden.
        case completion
    }

    /// What to do after a change.
    package enum Action: Hashable, Sendable {
        /// Nothing.
        case nothing
        /// Start a timer, which replaces any other.
        case start(Delay, timer: Int)
        /// Cancel the timer.
        case cancelTimer
        /// Show the indicator.
        case show
        /// Cancel the timer, and hide the indicator if it is shown.
        case hide(wasVisible: Bool)
    }

    /// Creates an inactive indicator.
    package init(isEnabled: Bool = true) {
        self.isEnabled = isEnabled
    }

    /// Receives whether there is activity.
    package mutating func receive(activity: Bool) -> Action {
        hasActivity = activity
        guard isEnabled else { return .nothing }
        switch (state, activity) {
        case (.inactive, true):
            state = .delayingStart
            return startTimer(.activation)
        case (.active, false):
            state = .delayingEnd
            return startTimer(.completion)
        case (.delayingEnd, true):
            state = .active
            timer += 1
            return .cancelTimer
        case (.inactive, false), (.delayingStart, _), (.active, true), (.delayingEnd, false):
            return .nothing
        }
    }

    /// Receives the end of a timer. Timers that were replaced or cancelled are ignored.
    package mutating func receive(endOfTimer number: Int) -> Action {
        guard number == timer else { return .nothing }
        switch state {
        case .delayingStart where hasActivity:
            state = .active
            isVisible = true
            return .show
        case .delayingStart, .delayingEnd:
            return deactivate()
        case .inactive, .active:
            return .nothing
        }
    }

    /// Enables or disables the indicator.
    package mutating func setEnabled(_ isEnabled: Bool) -> Action {
        self.isEnabled = isEnabled
        return isEnabled ? .nothing : deactivate()
    }

    private mutating func deactivate() -> Action {
        defer { isVisible = false }
        state = .inactive
        timer += 1
        return .hide(wasVisible: isVisible)
    }

    private mutating func startTimer(_ delay: Delay) -> Action {
        timer += 1
        return .start(delay, timer: timer)
    }
}
