// SPDX-License-Identifier: MIT

import ANSystem
import AsyncNetworking

/// The streams of one body: the first one, and others for each time that it is sent again.
final class InputStreamSource: Sendable {
    private let first: Lock<Handover<InputStream>?>
    private let replace: (@Sendable () -> Handover<InputStream?>)?

    init(_ stream: InputStream, replace: (@Sendable () -> Handover<InputStream?>)?) {
        first = Lock(Handover(stream))
        self.replace = replace
    }

    /// The stream to read now.
    func next() throws -> Handover<InputStream> {
        if let stream = first.withLock({ stream in
            defer { stream = nil }
            return stream
        }) {
            return stream
        }
        guard let stream = replace?().value else { throw TransportError.RequestBodyProblem.notReplayable }
        return Handover(stream)
    }
}
