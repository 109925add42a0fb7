// SPDX-License-Identifier: MIT

// What a manager is doing.

extension SessionManager {
    /// The requests that are not over, oldest first: those of async functions, and tasks, also such that were not started.
    public var tasks: [SessionTask] { registry.tasks }

    /// The requests of one kind that are not over, oldest first.
    public func tasks(of kind: SessionTask.Kind) -> [SessionTask] {
        tasks.filter { $0.kind == kind }
    }

    /// The tasks that are not over and meet a condition, oldest first: all of them unless told otherwise.
    ///
    /// ```swift
    /// api.transfers { $0.request?.url.path.hasPrefix("/v1/images/") == true }.cancel()
    /// ```
    ///
    /// Requests of async functions are not among them: their callers end them.
    public nonisolated func transfers(
        where isIncluded: (any TransferHandle) -> Bool = { _ in true }
    ) -> TransferGroup {
        TransferGroup(registry.tasks.compactMap(\.handle).filter(isIncluded))
    }

    /// The tasks that are not over and have a tag, oldest first.
    public nonisolated func transfers(tagged tag: String) -> TransferGroup {
        transfers { $0.tags.contains(tag) }
    }
}
