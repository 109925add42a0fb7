// SPDX-License-Identifier: MIT

public import ANHTTP

/// A recorder of the events of an exchange, in order.
public final class EventRecorder: TransferEventSink {
    private let recorded = Observed([TransferEvent]())

    /// Creates a recorder without events.
    public init() {}

    /// Records an event.
    public func receive(_ event: TransferEvent) {
        recorded.update { $0.append(event) }
    }

    /// The events recorded so far.
    public var events: [TransferEvent] { recorded.value }

    /// The heads of the interim responses recorded so far.
    public var informationalHeads: [ResponseHead] {
        events.compactMap { if case .informational(let head) = $0 { head } else { nil } }
    }

    /// The metrics of the exchange; `nil` before its end.
    public var metrics: TransferMetrics? {
        events.lazy.compactMap { if case .finished(let metrics) = $0 { metrics } else { nil } }.first
    }

    /// Returns the first event that satisfies a condition, and waits for it if necessary.
    ///
    /// The condition is evaluated while a lock is held: it must be fast and must not use the recorder.
    ///
    /// - Throws: `CancellationError` if the task is cancelled.
    public func first(where matches: @escaping @Sendable (TransferEvent) -> Bool) async throws -> TransferEvent {
        try await recorded.wait { $0.contains(where: matches) }
        guard let event = events.first(where: matches) else { throw CancellationError() }
        return event
    }
}
