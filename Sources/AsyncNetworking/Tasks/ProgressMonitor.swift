// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem

/// Listens to the exchanges of a task and tells its readers: of progress by the newest value, of the rest by events.
///
/// The transport reports at most every 50 ms, so nothing here is on the way of the bytes.
final class ProgressMonitor: TransferEventSink {
    let uploads = Broadcast<TransferProgress>()
    let downloads = Broadcast<TransferProgress>()
    private let events: Broadcast<TaskEvent>
    private let stopwatch: Stopwatch
    private let tracker = Lock(ProgressTracker())

    init(events: Broadcast<TaskEvent>, stopwatch: Stopwatch) {
        self.events = events
        self.stopwatch = stopwatch
    }

    func receive(_ event: TransferEvent) {
        switch event {
        case .started(let request):
            events.send(.request(request))
            tracker.withLock { $0.beginExchange(at: stopwatch.elapsed) }
        case .informational(let head): events.send(.informational(head))
        case .uploadProgress(let progress): publish(on: uploads) { $0.send(progress, at: $1) }
        case .downloadProgress(let progress): publish(on: downloads) { $0.receive(progress, at: $1) }
        case .finished(let metrics): events.send(.metrics(metrics))
        case .head: break
        }
    }

    /// What this exchange receives is the task's response, after so many bytes that were there before.
    func accept(offset: Int64 = 0, total: Int64? = nil) {
        publish(on: downloads) { $0.accept(offset: offset, total: total, at: $1) }
        if offset > 0 { events.send(.continued(offset: offset, total: total)) }
    }

    /// The response is complete.
    func complete(_ size: Int64) {
        publish(on: downloads) { tracker, _ in tracker.complete(size) }
    }

    /// The task pauses.
    func interrupt() {
        tracker.withLock { $0.interrupt() }
    }

    /// The task is over.
    func finish() {
        uploads.finish()
        downloads.finish()
    }

    /// Values leave under the lock: an older one cannot overtake a newer one.
    private func publish(
        on broadcast: Broadcast<TransferProgress>, _ step: (inout ProgressTracker, Duration) -> TransferProgress?
    ) {
        let time = stopwatch.elapsed
        tracker.withLock { tracker in
            if let progress = step(&tracker, time) { broadcast.send(progress) }
        }
    }
}
