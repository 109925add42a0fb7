// SPDX-License-Identifier: MIT

public import ANHTTP

/// A recorder of the events of one exchange, for the argument `events` of `Transport.perform`.
///
/// Functions of a session that report events, such as `withResponse`, also accept one; it then has the events of all
/// exchanges of the call, such as those answered by redirects. All members may be used from any thread or task at any
/// time.
public final class EventRecorder: TransferEventSink {
    private let recorded = Observed([TransferEvent]())

    /// Creates a recorder without events. It belongs to one exchange; the events of further ones are appended.
    public init() {}

    /// Records an event and resumes the tasks that wait for it in ``first(where:)``; called by a transport, on any
    /// thread.
    public func receive(_ event: TransferEvent) {
        recorded.update { $0.append(event) }
    }

    /// The events recorded so far, in the order in which they were received; empty before the exchange, and kept after
    /// it.
    public var events: [TransferEvent] { recorded.value }

    /// The heads of the interim responses (status 100 to 199) recorded so far, in the order in which they were
    /// received; empty if there were no such responses.
    public var informationalHeads: [ResponseHead] {
        events.compactMap { if case .informational(let head) = $0 { head } else { nil } }
    }

    /// The metrics of the exchange, from the first event `TransferEvent.finished`; `nil` before the end of the
    /// exchange. After several exchanges, those of the first one.
    public var metrics: TransferMetrics? {
        events.lazy.compactMap { if case .finished(let metrics) = $0 { metrics } else { nil } }.first
    }

    /// Returns the first event that satisfies a condition. If it was not recorded yet, waits for it without a time
    /// limit, even after the exchange has ended.
    ///
    /// - Parameter matches: Whether an event is the one to return. It is evaluated for the recorded events when the
    ///   wait begins, and again after each new event, on the thread that records it. A lock is held meanwhile: it must
    ///   be fast and must not use the recorder.
    /// - Throws: `CancellationError` if the task is cancelled, even if the event was recorded before the call.
    public func first(where matches: @escaping @Sendable (TransferEvent) -> Bool) async throws -> TransferEvent {
        try await recorded.wait { $0.contains(where: matches) }
        guard let event = events.first(where: matches) else { throw CancellationError() }
        return event
    }
}
