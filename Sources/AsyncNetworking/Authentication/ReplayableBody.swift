// SPDX-License-Identifier: MIT

package import ANHTTP
import FoundationEssentials

/// A streamed body whose beginning can be read again without a new stream. An exchange reads ahead during the TLS
/// handshake; if the handshake is refused, nothing that it read has been sent.
package actor ReplayableBody {
    /// The maximum number of bytes to keep. An exchange reads at most 512 KiB and one chunk ahead, which is less.
    private static let limit = 1 << 20

    private let makeOriginal: @Sendable () throws -> BodyReader
    private var reader: BodyReader?
    /// The chunks read so far; `nil` once they exceed the limit.
    private var beginning: [Data]? = []
    private var count = 0

    private init(_ makeOriginal: @escaping @Sendable () throws -> BodyReader) {
        self.makeOriginal = makeOriginal
    }

    /// Returns the body with a beginning that can be read again. Bodies that are not streams are returned unchanged.
    package static func of(_ body: RequestBody) -> RequestBody {
        guard case .stream(let length, let isReplayable, let makeReader) = body.content else { return body }
        let replayable = ReplayableBody(makeReader)
        return .stream(length: length, isReplayable: isReplayable) {
            var index = 0
            return BodyReader {
                defer { index += 1 }
                return try await replayable.chunk(at: index)
            }
        }
    }

    /// Returns a chunk; `nil` at the end. A chunk that was not read before is the next of the original body. Readers
    /// are used one at a time.
    private func chunk(at index: Int) async throws -> Data? {
        if let beginning, index < beginning.count { return beginning[index] }
        if reader == nil || (beginning == nil && index == 0) { reader = try makeOriginal() }
        guard let chunk = try await reader?.next() else { return nil }
        count += chunk.count
        if count > Self.limit { beginning = nil } else { beginning?.append(chunk) }
        return chunk
    }
}
