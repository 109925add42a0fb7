// SPDX-License-Identifier: MIT

import ANSystem
import AsyncNetworking

/// The streams of one body: the first one, and replacements for each time that the body must be sent again.
final class InputStreamSource: Sendable {
    private let first: Lock<UncheckedSendable<InputStream>?>
    private let replace: (@Sendable () async -> UncheckedSendable<InputStream?>)?

    init(_ stream: InputStream, replace: (@Sendable () async -> UncheckedSendable<InputStream?>)?) {
        first = Lock(UncheckedSendable(stream))
        self.replace = replace
    }

    /// Returns the stream for the next reading of the body.
    ///
    /// - Throws: `RequestBodyFailure.notReplayable` if there is no replacement.
    func next() async throws -> UncheckedSendable<InputStream> {
        if let stream = first.withLock({ stream in
            defer { stream = nil }
            return stream
        }) {
            return stream
        }
        guard let stream = await replace?().value else { throw TransportError.RequestBodyFailure.notReplayable }
        return UncheckedSendable(stream)
    }
}
