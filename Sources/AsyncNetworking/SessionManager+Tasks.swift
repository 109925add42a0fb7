// SPDX-License-Identifier: MIT

// The manager's tasks.

extension SessionManager {
    /// The requests that have not ended, oldest first: those of async functions, and tasks with a handle, whether
    /// started or not.
    public var tasks: [SessionTask] { registry.tasks }

    /// Returns the requests of one kind that have not ended, oldest first.
    public func tasks(of kind: SessionTask.Kind) -> [SessionTask] {
        tasks.filter { $0.kind == kind }
    }

    /// Returns the tasks that have not ended and satisfy a predicate, oldest first.
    ///
    /// ```swift
    /// api.transfers { $0.request?.url.path.hasPrefix("/v1/images/") == true }.cancel()
    /// ```
    ///
    /// Requests of async functions are not included: their callers control them.
    ///
    /// - Parameter isIncluded: Whether to include a task; all tasks by default.
    public nonisolated func transfers(
        where isIncluded: (any TransferHandle) -> Bool = { _ in true }
    ) -> TransferGroup {
        TransferGroup(registry.tasks.compactMap(\.handle).filter(isIncluded))
    }

    /// Returns the tasks that have not ended and carry a tag, oldest first; see ``TransferHandle/tags``.
    public nonisolated func transfers(tagged tag: String) -> TransferGroup {
        transfers { $0.tags.contains(tag) }
    }
}
