// SPDX-License-Identifier: MIT

/// A one-time event between two jobs: the end of the first one's output, for which the second waits.
struct OneShotEvent: Sendable {
    private let stream: AsyncStream<Void>
    private let continuation: AsyncStream<Void>.Continuation

    init() {
        (stream, continuation) = AsyncStream.makeStream()
    }

    /// Waits for the event; returns early if the calling task is cancelled.
    func wait() async {
        for await _ in stream {}
    }

    /// Signals the event.
    func signal() {
        continuation.finish()
    }
}
