// SPDX-License-Identifier: MIT

import ANSystem
import AsyncNetworking

/// A streamed body whose beginning can be read again without a new stream. An exchange reads ahead during the TLS
/// handshake; if the handshake is refused, nothing that it read has been sent.
final class ReplayableBody: Sendable {
    /// The maximum number of bytes to keep. An exchange reads at most 512 KiB and one chunk ahead, which is less.
    private static let limit = 1 << 20

    private let makeOriginal: @Sendable () throws -> BodyReader
    private let state = Lock(State())

    private struct State: Sendable {
        var reader: UncheckedSendable<BodyReader>?
        /// The chunks read so far; `nil` once they exceed the limit.
        var beginning: [Data]? = []
        var count = 0
    }

    private init(_ makeOriginal: @escaping @Sendable () throws -> BodyReader) {
        self.makeOriginal = makeOriginal
    }

    /// Returns the body with a beginning that can be read again. Bodies that are not streams are returned unchanged.
    static func of(_ body: RequestBody) -> RequestBody {
        guard case .stream(let length, let isReplayable, let makeReader) = body.content else { return body }
        let replayable = ReplayableBody(makeReader)
        return .stream(length: length, isReplayable: isReplayable) { try replayable.makeReader() }
    }

    private func makeReader() throws -> BodyReader {
        guard var beginning = state.withLock({ $0.beginning })?[...] else { return try makeOriginal() }
        return BodyReader { if let chunk = beginning.popFirst() { chunk } else { try await self.next() } }
    }

    /// Reads the next chunk of the original body, continuing after the previous reader. Readers are used one at a time.
    private func next() async throws -> Data? {
        let known = state.withLock { $0.reader }
        let reader = if let known { known } else { UncheckedSendable(try makeOriginal()) }
        state.withLock { $0.reader = reader }
        guard let chunk = try await reader.value.next() else { return nil }
        state.withLock { state in
            state.count += chunk.count
            if state.count > Self.limit { state.beginning = nil } else { state.beginning?.append(chunk) }
        }
        return chunk
    }
}
