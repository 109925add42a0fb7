// SPDX-License-Identifier: MIT

import ANSystem
import AsyncNetworking
import Dispatch

/// The stream of a request whose body this library created. It is empty and carries the `RequestBody` that is sent
/// instead.
final class BodyStream: InputStream {
    let body: RequestBody

    init(_ body: RequestBody) {
        self.body = body
        super.init(data: Data())
    }
}

extension RequestBody {
    /// Returns a body that reads from a stream and, each time it must be sent again, from a new stream that `replace`
    /// returns. Without a new stream, reading fails with `RequestBodyFailure.notReplayable`.
    static func inputStream(
        _ stream: InputStream, length: Int64?, replace: (@Sendable () async -> UncheckedSendable<InputStream?>)?
    ) -> RequestBody {
        if let stream = stream as? BodyStream { return stream.body }
        let first = Lock<UncheckedSendable<InputStream>?>(UncheckedSendable(stream))
        return .writer(length: length, isReplayable: replace != nil) { writer in
            var opened = first.set(\.self, to: nil)
            if opened == nil { opened = await replace?().value.map(UncheckedSendable.init) }
            guard let stream = opened else { throw TransportError.RequestBodyFailure.notReplayable }
            let queue = DispatchQueue(label: "com.alamofire.networking.body-stream")
            while let chunk = try await stream.nextChunk(on: queue) { try await writer.write(chunk) }
        }
    }
}

extension UncheckedSendable<InputStream> {
    /// Reads the next chunk on a queue, since reading blocks; `nil` at the end. If the calling task is cancelled, it
    /// fails at once, although a blocked read still occupies the queue.
    fileprivate func nextChunk(on queue: DispatchQueue) async throws -> Data? {
        let cancelled = Result<Data?, any Error>.failure(CancellationError())
        return try await callback(fallback: cancelled) { callback in
            queue.async { callback(Result { try value.readChunk(upTo: 65_536) }) }
        }.get()
    }
}
