// SPDX-License-Identifier: MIT

import ANSystem
public import AsyncNetworking

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
    public func receive(_ event: TaskEvent, of task: AnyTransferTask) {
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
