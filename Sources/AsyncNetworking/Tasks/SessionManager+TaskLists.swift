// SPDX-License-Identifier: MIT

// The manager's tasks.

extension SessionManager {
    /// The tasks that have not ended, oldest first: those that functions returned, whether started or not; the requests
    /// of async functions, which only their callers control; and validations of cached responses in the background. It
    /// is a snapshot.
    public nonisolated var tasks: [AnyTransferTask] { registry.tasks }

    /// Returns the tasks that have not ended and satisfy a predicate, oldest first.
    ///
    /// ```swift
    /// api.transfers { $0.request?.url.path.hasPrefix("/v1/images/") == true }.cancel()
    /// ```
    ///
    /// Requests of async functions are not included, because their callers control them, nor are validations of cached
    /// responses in the background. Tasks that are created later do not become part of the group.
    ///
    /// - Parameter isIncluded: Whether to include a task; all tasks by default.
    public nonisolated func transfers(where isIncluded: (AnyTransferTask) -> Bool = { _ in true }) -> TransferGroup {
        TransferGroup(registry.tasks.filter { $0.core != nil && isIncluded($0) })
    }

    /// Returns the tasks that have not ended and carry a tag, oldest first; the group may be empty. Tasks that are
    /// created or tagged later do not become part of the group. Requests of async functions have no tags.
    ///
    /// - Parameter tag: One of the task's ``AnyTransferTask/tags``.
    public nonisolated func transfers(tagged tag: String) -> TransferGroup {
        transfers { $0.tags.contains(tag) }
    }
}
