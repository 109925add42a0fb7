// SPDX-License-Identifier: MIT

import ANCache
import ANSystem

/// What a session knows: values, guarded by one lock, because functions that create tasks, list them, or ask what is known
/// about hosts return at once.
///
/// A critical section neither calls code of the program nor takes another lock.
struct SessionState: Sendable {
    /// The tasks that have not ended, and whether new ones are accepted.
    var tasks = TaskRegistry.Tasks()
    /// The tasks that wait until others end; `nil` without a limit on concurrent tasks.
    var queue: TaskQueue<TaskScheduler.Waiter>?
    /// The credentials that servers and proxies accepted.
    var credentials = CredentialCache()
    /// The retry budget left for each host.
    var retryBudgets = RetryLedger()
    /// The hosts that require https.
    var strictTransport = HostTable<StrictTransportHost>()
    /// The alternative services that servers have offered.
    var alternativeServices = HostTable<AlternativeService>()
    /// The stored responses that are being validated in the background, by target.
    var validations: Set<CacheKey> = []

    /// Creates the state of a session with at most `limit` concurrent tasks; `nil` for no limit.
    static func make(maximumConcurrentTasks limit: Int?) -> Lock<SessionState> {
        Lock(SessionState(queue: limit.map { TaskQueue(limit: $0) }))
    }
}
