// SPDX-License-Identifier: MIT

import ANCache
public import ANHTTP
import HTTPTypes

/// A group of tasks of one or more managers that are controlled together. It is a fixed list, and releasing it has no
/// effect on tasks that were resumed.
///
/// ```swift
/// let group = SessionTaskGroup([first, second])
/// for await progress in group.progress { print(progress.fraction ?? 0) }
/// try await group.waitForAll()
/// ```
public struct SessionTaskGroup: Sendable {
    /// The group's tasks, in the order in which they were passed; tasks that have ended remain in it.
    public let tasks: [AnySessionTask]

    /// Creates a group of tasks, which may belong to different managers and have different values; see
    /// ``SessionTask/erased``. The tasks are not started.
    public init(_ tasks: [AnySessionTask]) {
        self.tasks = tasks
    }

    /// Creates a group of tasks with values of one type. The tasks are not started.
    public init<Value>(_ tasks: [SessionTask<Value>]) {
        self.init(tasks.map(\.erased))
    }

    /// Starts or continues all tasks that are suspended. Tasks in another state, and requests of async functions, are
    /// not affected.
    public func resume() {
        for task in tasks { task.resume() }
    }

    /// Suspends all tasks that are waiting or running: they stop transferring, but keep their connections open.
    /// Requests of async functions are not affected. See ``AnySessionTask/suspend()``.
    public func suspend() {
        // Those that wait come first: they would get the slots of the others, and begin.
        for task in tasks where task.status.state == .waiting { task.suspend() }
        for task in tasks { task.suspend() }
    }

    /// Cancels all tasks that have not ended, and returns without waiting for their end. Their values then throw
    /// `CancellationError`, except those of tasks that were already complete. Requests of async functions are not
    /// affected; their callers cancel them.
    public func cancel() {
        for task in tasks { task.cancel() }
    }

    /// Waits until all tasks have ended, successfully or not. The errors of tasks are not thrown. Suspended tasks must
    /// be resumed elsewhere; requests of async functions are not waited for. Returns immediately if there are no other
    /// tasks.
    ///
    /// - Throws: `CancellationError` if the calling task is cancelled; the group's tasks then continue.
    public func waitForAll() async throws {
        for task in tasks { await task.core?.waitForEnd() }
        try Task.checkCancellation()
    }

    /// The combined progress of all tasks: of the request's body for upload tasks, and of the response's body for
    /// others. Yields the latest sum first, then newer ones until all tasks have ended. No value precedes the first
    /// report or end of a task, unless ``AnySessionTask/expectedBytes`` of all tasks is known.
    ///
    /// The total is `nil` until it is known for every task that has not ended. A task that has not reported its total
    /// counts as its ``AnySessionTask/expectedBytes`` at the time when this property is read, unless more has arrived;
    /// see ``SessionManager/requestSizes(of:)``. A task that has ended counts as its completed bytes, in the total as well,
    /// so that the total may decrease. The speed is estimated from the sum of the bytes; `nil` while all tasks that
    /// have not ended are suspended. Requests of async functions do not count, and the stream of a group without other tasks ends
    /// at once.
    public var progress: BroadcastStream<TransferProgress> {
        let cores = tasks.compactMap(\.core)
        let sum = Broadcast<ProgressSum>()
        if cores.isEmpty { sum.finish() } else { sum.send(ProgressSum(expecting: cores.map(\.expectedBytes))) }
        let observers = cores.enumerated().map { index, core in
            let isUpload = core.kind == .upload
            return core.observe { event in
                let time = cores[0].stopwatch.elapsed
                var isOver = false
                sum.change { sum in
                    switch event {
                    case .ended: sum.finish(index)
                    case .created, .suspended: sum.setSuspended(index, true)
                    case .resumed: sum.setSuspended(index, false)
                    case .uploadProgress(let progress) where isUpload: sum.update(index, progress, at: time)
                    case .downloadProgress(let progress) where !isUpload: sum.update(index, progress, at: time)
                    default: return false
                    }
                    isOver = sum.isOver
                    return true
                }
                if isOver { sum.finish() }
            }
        }
        return sum.stream(\.value).keeping(Observation(of: cores, observers))
    }
}

/// The observers of several tasks, which are removed with this object.
private final class Observation: Sendable {
    private let cores: [TaskCore]
    private let observers: [UInt64]

    init(of cores: [TaskCore], _ observers: [UInt64]) {
        self.cores = cores
        self.observers = observers
    }

    deinit {
        for (core, observer) in zip(cores, observers) { core.removeObserver(observer) }
    }
}

/// The sum of the progress of several tasks.
///
/// It is updated by differences, so that an update costs the same for any number of tasks. Additions wrap around, so
/// that implausible sizes sent by servers cannot trap.
package struct ProgressSum: Sendable {
    private var parts: [Part]
    private var completed: Int64 = 0
    private var total: Int64 = 0
    private var rate = RateEstimate()
    private var unknownTotals: Int
    /// Whether the total was known at the beginning, or a task has reported progress or ended since.
    private var isKnown: Bool
    private var unfinished: Int
    /// The number of tasks that have neither ended nor been suspended.
    private var running: Int

    private struct Part {
        var progress: TransferProgress?
        var expected: Int64?
        var isOver = false
        var isSuspended = false

        var isRunning: Bool { !isOver && !isSuspended }
        var completed: Int64 { progress?.completedBytes ?? 0 }
        /// The expected size counts until more has arrived.
        var total: Int64? {
            isOver ? completed : progress?.totalBytes ?? expected.flatMap { $0 < completed ? nil : $0 }
        }
    }

    /// Creates the sum for tasks that have not started, with the size that is expected of each of them; `nil` or a
    /// negative one if it is unknown.
    package init(expecting sizes: [Int64?]) {
        parts = sizes.map { Part(expected: $0) }
        total = parts.reduce(0) { $0 &+ ($1.total ?? 0) }
        unknownTotals = parts.count { $0.total == nil }
        isKnown = unknownTotals == 0
        unfinished = sizes.count
        running = sizes.count
    }

    /// Creates the sum for `count` tasks that have not started, and of which no size is expected.
    package init(count: Int) {
        self.init(expecting: Array(repeating: nil, count: count))
    }

    /// Whether all tasks have ended.
    package var isOver: Bool { unfinished == 0 }

    /// Replaces the progress of a task.
    package mutating func update(_ index: Int, _ progress: TransferProgress, at time: Duration) {
        isKnown = true
        change(index) { $0.progress = progress }
        rate.update(bytes: completed, at: time)
    }

    /// Records that a task was suspended or continued.
    package mutating func setSuspended(_ index: Int, _ isSuspended: Bool) {
        change(index) { $0.isSuspended = isSuspended }
    }

    /// Records that a task has ended.
    package mutating func finish(_ index: Int) {
        guard !parts[index].isOver else { return }
        unfinished -= 1
        isKnown = true
        change(index) { $0.isOver = true }
    }

    private mutating func change(_ index: Int, _ body: (inout Part) -> Void) {
        let old = parts[index]
        body(&parts[index])
        let new = parts[index]
        completed = completed &+ new.completed &- old.completed
        total = total &+ (new.total ?? 0) &- (old.total ?? 0)
        unknownTotals += (new.total == nil ? 1 : 0) - (old.total == nil ? 1 : 0)
        running += (new.isRunning ? 1 : 0) - (old.isRunning ? 1 : 0)
        // Until the next update, nothing is transferred.
        if running == 0 { rate.interrupt() }
    }

    /// The current sum; `nil` before the first report or end of a task, unless the total is known.
    package var value: TransferProgress? {
        guard isKnown else { return nil }
        var sum = TransferProgress(completedBytes: completed, totalBytes: unknownTotals == 0 ? total : nil)
        sum.bytesPerSecond = running > 0 ? rate.bytesPerSecond : nil
        return sum
    }
}

extension SessionManager {
    /// Requests the sizes of a group's downloads, so that the total of ``SessionTaskGroup/progress`` is known before the
    /// transfers begin.
    ///
    /// For each task without ``AnySessionTask/expectedBytes``, sends a HEAD request, with `Accept-Encoding: identity`
    /// unless the task's request has that field, and sets `expectedBytes` to the `Content-Length` of the response. At
    /// most eight requests are sent at a time. Uploads, tasks that have ended, requests with a body, and requests of
    /// async functions are skipped.
    ///
    /// If the request has a `Range`, it is the size of the range. A request that fails, has a status outside of 200–299 or no valid `Content-Length` leaves the size unknown; no
    /// error is thrown. If the calling task is cancelled, the sizes that have not arrived stay unknown. Read
    /// ``SessionTaskGroup/progress`` after this function returns: it uses the sizes known at that time.
    ///
    /// - Parameter group: The group. This manager sends the requests, also those for tasks of other managers.
    public nonisolated func requestSizes(of group: SessionTaskGroup) async {
        let open = group.tasks.filter { task in
            task.core != nil && task.expectedBytes == nil && task.kind != .upload && task.status.state != .finished
        }
        await withTaskGroup(of: Void.self) { children in
            for (index, task) in open.enumerated() {
                if index >= 8 { await children.next() }
                children.addTask {
                    guard let size = await self.size(of: task), task.expectedBytes == nil else { return }
                    task.expectedBytes = size
                }
            }
        }
    }

    /// Returns the size of a task's response according to a HEAD request; `nil` if it is unknown.
    private nonisolated func size(of task: AnySessionTask) async -> Int64? {
        guard var request = task.request, case .none = request.body.content else { return nil }
        request.method = .head
        if request.headers[.acceptEncoding] == nil { request.headers[.acceptEncoding] = "identity" }
        guard let head = try? await data(for: request).head, head.status.kind == .successful else { return nil }
        let ranges = request.headers[values: .range]
        guard !ranges.isEmpty, let length = head.contentLength else { return head.contentLength }
        // A range has no meaning for HEAD, so the length is that of the whole (RFC 9110 §14.2).
        guard ranges.count == 1, let positions = ByteRange(ranges[0])?.positions(in: length) else { return nil }
        return Int64(positions.count)
    }
}
