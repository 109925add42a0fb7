// SPDX-License-Identifier: MIT

/// A moment that one job brings about and the next one waits for: the end of the first one's output.
struct Turn: Sendable {
    private let stream: AsyncStream<Void>
    private let continuation: AsyncStream<Void>.Continuation

    init() {
        (stream, continuation) = AsyncStream.makeStream()
    }

    /// Returns when the moment has come, or when the calling task is cancelled.
    func wait() async {
        for await _ in stream {}
    }

    /// Lets go whoever waits.
    func pass() {
        continuation.finish()
    }
}
