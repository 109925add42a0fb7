// SPDX-License-Identifier: MIT

import ANSystem
import AsyncNetworking

/// A streamed body whose beginning can be read again without another stream: an exchange reads ahead of its handshake, and
/// nothing of it has been sent when that is refused.
final class RereadableBody: Sendable {
    /// More than an exchange reads ahead, which is 512 KiB and one chunk.
    private static let limit = 1 << 20

    private let makeOriginal: @Sendable () throws -> BodyReader
    private let state = Lock(State())

    private struct State: Sendable {
        var reader: Handover<BodyReader>?
        /// What was read; `nil` once it is more than is kept.
        var beginning: [Data]? = []
        var count = 0
    }

    private init(_ makeOriginal: @escaping @Sendable () throws -> BodyReader) {
        self.makeOriginal = makeOriginal
    }

    /// The same body, of which the beginning can be read again; one that is no stream as it is.
    static func of(_ body: RequestBody) -> RequestBody {
        guard case .stream(let length, let isReplayable, let makeReader) = body.content else { return body }
        let rereadable = RereadableBody(makeReader)
        return .stream(length: length, isReplayable: isReplayable) { try rereadable.makeReader() }
    }

    private func makeReader() throws -> BodyReader {
        guard var beginning = state.withLock({ $0.beginning })?[...] else { return try makeOriginal() }
        return BodyReader { if let chunk = beginning.popFirst() { chunk } else { try await self.next() } }
    }

    /// Reads on where the last reader has stopped; one is used at a time.
    private func next() async throws -> Data? {
        let known = state.withLock { $0.reader }
        let reader = if let known { known } else { Handover(try makeOriginal()) }
        state.withLock { $0.reader = reader }
        guard let chunk = try await reader.value.next() else { return nil }
        state.withLock { state in
            state.count += chunk.count
            if state.count > Self.limit { state.beginning = nil } else { state.beginning?.append(chunk) }
        }
        return chunk
    }
}
