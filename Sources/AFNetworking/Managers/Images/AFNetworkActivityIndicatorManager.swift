// SPDX-License-Identifier: MIT

import ANSystem
import AsyncNetworkingImages

/// A manager that says when to show an indicator of network activity.
///
/// It counts the tasks of all managers of this module from their start to their end or suspension, each task once, and
/// the calls of ``incrementActivityCount()``. There is no status bar on Linux: set a block with
/// ``setNetworkingActivityActionWith(_:)``. Tasks are counted by notifications, which the program's main queue must
/// deliver. All members may be used from any thread.
open class AFNetworkActivityIndicatorManager: NSObject, @unchecked Sendable {
    private let indicator: ActivityIndicator
    /// Shows or hides the indicator.
    private let action: Lock<(@Sendable (Bool) -> Void)?>
    private let activity = Lock(Activity())

    private struct Activity: Sendable {
        var count = 0
        var tasks: Set<ObjectIdentifier> = []
        var observers: [UncheckedSendable<any NSObjectProtocol>] = []

        var isActive: Bool { count > 0 || !tasks.isEmpty }
    }

    private static let sharedManager = AFNetworkActivityIndicatorManager()

    /// Creates a manager that is not enabled and has the default delays. It counts the tasks that start after its
    /// creation.
    public override init() {
        let action = Lock<(@Sendable (Bool) -> Void)?>(nil)
        self.action = action
        indicator = ActivityIndicator(isEnabled: false) { isVisible in
            MainQueueBuffer.shared.send { action.withLock { $0 }?(isVisible) }
        }
        super.init()
        observe(.AFNetworkingTaskDidResume) { $0.tasks.insert($1) }
        observe(.AFNetworkingTaskDidSuspend) { $0.tasks.remove($1) }
        observe(.AFNetworkingTaskDidComplete) { $0.tasks.remove($1) }
    }

    deinit {
        for observer in activity.withLock({ $0.observers }) {
            NotificationCenter.default.removeObserver(observer.value)
        }
    }

    /// Returns the shared manager, which is created at the first call and counts the tasks that start after it. It is
    /// not enabled until ``isEnabled`` is set.
    open class func shared() -> AFNetworkActivityIndicatorManager { sharedManager }

    /// Whether the indicator may be shown. Default: `false`. Enabling has no effect until the next activity begins or
    /// ends; disabling hides the indicator at once.
    open var isEnabled: Bool {
        get { indicator.isEnabled }
        set { indicator.isEnabled = newValue }
    }

    /// Whether the program should show the indicator at present, which follows activity with the ``activationDelay``
    /// and the ``completionDelay``. Always `false` while the manager is not enabled.
    open var isNetworkActivityIndicatorVisible: Bool { indicator.isVisible }

    /// The time in seconds from the beginning of activity until the indicator is shown, so that short requests do not
    /// show it. It is shown if there is activity when the delay ends, even if that was interrupted. Default: 1. A
    /// negative value counts as 0. A change does not apply to a delay that has begun.
    open var activationDelay: TimeInterval {
        get { indicator.activationDelay / .seconds(1) }
        set { indicator.activationDelay = newValue.delay }
    }

    /// The time in seconds without activity after which the indicator is hidden, so that it does not flicker between
    /// requests. Default: 0.17. A negative value counts as 0. A change does not apply to a delay that has begun.
    open var completionDelay: TimeInterval {
        get { indicator.completionDelay / .seconds(1) }
        set { indicator.completionDelay = newValue.delay }
    }

    /// Counts an activity that is not a task of this module, until ``decrementActivityCount()`` is called.
    open func incrementActivityCount() {
        change { $0.count += 1 }
    }

    /// Ends an activity counted by ``incrementActivityCount()``; without one, it has no effect.
    open func decrementActivityCount() {
        change { $0.count = max(0, $0.count - 1) }
    }

    /// Sets a block that shows or hides the indicator, in place of an earlier block. Without one, which is the default,
    /// only ``isNetworkActivityIndicatorVisible`` changes.
    ///
    /// - Parameter block: Called on the main queue, with `true` to show the indicator and `false` to hide it, whenever
    ///   ``isNetworkActivityIndicatorVisible`` changes; `nil` removes the block.
    @preconcurrency
    open func setNetworkingActivityActionWith(_ block: (@Sendable (Bool) -> Void)?) {
        action.set(\.self, to: block)
    }

    private func observe(
        _ name: NSNotification.Name, _ change: @escaping @Sendable (inout Activity, ObjectIdentifier) -> Void
    ) {
        let observer = NotificationCenter.default.addObserver(forName: name, object: nil, queue: nil) {
            [weak self] notification in
            guard let task = notification.object as? URLSessionTask, task.originalRequest?.url != nil else { return }
            // A data task and the download task that it becomes have one driver.
            let identifier = (task as? any DrivenTask).map { ObjectIdentifier($0.driver) } ?? ObjectIdentifier(task)
            self?.change { change(&$0, identifier) }
        }
        activity.withLock { $0.observers.append(UncheckedSendable(observer)) }
    }

    private func change(_ change: (inout Activity) -> Void) {
        activity.withLock { activity in
            change(&activity)
            // Under the lock, so that the indicator receives changes in order.
            indicator.receive(activity: activity.isActive)
        }
    }
}

extension TimeInterval {
    /// The duration of this number of seconds: zero for negative numbers, 30 years (10⁹ seconds) at most.
    fileprivate var delay: Duration { .seconds(self > 0 ? min(self, 1e9) : 0) }
}
