// SPDX-License-Identifier: MIT

public import ANHTTP
import ANSystem

/// Some tasks of one or more managers, taken together.
///
/// ```swift
/// let group = TransferGroup([first, second])
/// for await progress in group.progress { print(progress.fraction ?? 0) }
/// try await group.waitForAll()
/// ```
public struct TransferGroup: Sendable {
    /// The tasks.
    public let handles: [any TransferHandle]

    /// Creates a group.
    public init(_ handles: [any TransferHandle]) {
        self.handles = handles
    }

    /// Starts all tasks, or lets them go on.
    public func resume() {
        for handle in handles { handle.resume() }
    }

    /// Pauses all tasks.
    public func suspend() {
        for handle in handles { handle.suspend() }
    }

    /// Asks all tasks to end.
    public func cancel() {
        for handle in handles { handle.cancel() }
    }

    /// Waits until each task is over, in whatever way.
    ///
    /// - Throws: `CancellationError` when the calling task is cancelled; the tasks then go on.
    public func waitForAll() async throws {
        for handle in handles { await handle.core.waitForEnd() }
        try Task.checkCancellation()
    }

    /// The progress of all tasks together, each in its own direction: the latest sum first, then newer ones, until all
    /// are over.
    ///
    /// The total is nil until each task that is not over has one. A task that is over counts what it has moved, in the
    /// total too.
    public var progress: ProgressStream<TransferProgress> {
        let sum = Broadcast<TransferProgress>()
        let state = Lock(ProgressSum(count: handles.count))
        if handles.isEmpty { sum.finish() }
        for (index, handle) in handles.enumerated() {
            let own = handle.kind == .upload ? handle.core.uploads : handle.core.downloads
            // It ends with the task.
            own.observe { [weak sum] progress in
                guard let sum else { return }
                state.withLock { state in
                    if let progress { state.update(index, progress) } else { state.finish(index) }
                    sum.send(state.value)
                    if state.isOver { sum.finish() }
                }
            }
        }
        return ProgressStream(broadcast: sum)
    }
}

/// The sum of the progress of several tasks.
///
/// It is kept up to date by differences, so that thousands of tasks cost no more than one. Numbers that servers made up
/// wrap around instead of ending the program.
package struct ProgressSum: Sendable {
    private var parts: [Part]
    private var completed: Int64 = 0
    private var total: Int64 = 0
    private var rate = 0.0
    private var unknownTotals: Int
    private var unfinished: Int

    private struct Part {
        var progress: TransferProgress?
        var isOver = false

        var completed: Int64 { progress?.completedBytes ?? 0 }
        var total: Int64? { isOver ? completed : progress?.totalBytes }
        var rate: Double { isOver ? 0 : progress?.bytesPerSecond ?? 0 }
    }

    /// Creates the sum of so many tasks that have not begun.
    package init(count: Int) {
        parts = Array(repeating: Part(), count: count)
        unknownTotals = count
        unfinished = count
    }

    /// Whether all tasks are over.
    package var isOver: Bool { unfinished == 0 }

    /// A task has come so far.
    package mutating func update(_ index: Int, _ progress: TransferProgress) {
        change(index) { $0.progress = progress }
    }

    /// A task is over.
    package mutating func finish(_ index: Int) {
        guard !parts[index].isOver else { return }
        unfinished -= 1
        change(index) { $0.isOver = true }
    }

    private mutating func change(_ index: Int, _ body: (inout Part) -> Void) {
        let old = parts[index]
        body(&parts[index])
        let new = parts[index]
        completed = completed &+ new.completed &- old.completed
        total = total &+ (new.total ?? 0) &- (old.total ?? 0)
        unknownTotals += (new.total == nil ? 1 : 0) - (old.total == nil ? 1 : 0)
        rate += new.rate - old.rate
    }

    /// The sum.
    package var value: TransferProgress {
        var sum = TransferProgress(completedBytes: completed, totalBytes: unknownTotals == 0 ? total : nil)
        sum.bytesPerSecond = !isOver && rate > 0 ? rate : nil
        return sum
    }
}
