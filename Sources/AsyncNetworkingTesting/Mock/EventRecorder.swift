// SPDX-License-Identifier: MIT

public import ANHTTP

/// Collects the events of an exchange in their order.
public final class EventRecorder: TransferEventSink {
    private let recorded = Observed([TransferEvent]())

    /// Creates a recorder without events.
    public init() {}

    /// Takes note of an event.
    public func receive(_ event: TransferEvent) {
        recorded.update { $0.append(event) }
    }

    /// The events so far.
    public var events: [TransferEvent] { recorded.value }

    /// The interim heads so far.
    public var informationalHeads: [ResponseHead] {
        events.compactMap { if case .informational(let head) = $0 { head } else { nil } }
    }

    /// What the exchange cost; nil before it is over.
    public var metrics: TransferMetrics? {
        events.lazy.compactMap { if case .finished(let metrics) = $0 { metrics } else { nil } }.first
    }

    /// The first event that `matches`, waited for where it has not come yet.
    ///
    /// `matches` runs under a lock: it must be quick and must not use the recorder.
    ///
    /// - Throws: `CancellationError` when the task is cancelled.
    public func first(where matches: @escaping @Sendable (TransferEvent) -> Bool) async throws -> TransferEvent {
        try await recorded.wait { $0.contains(where: matches) }
        guard let event = events.first(where: matches) else { throw CancellationError() }
        return event
    }
}
