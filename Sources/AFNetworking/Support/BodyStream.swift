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
        return .stream(length: length, isReplayable: replace != nil) {
            var opened = first.set(\.self, to: nil)
            let queue = DispatchQueue(label: "com.alamofire.networking.body-stream")
            return BodyReader {
                if opened == nil { opened = await replace?().value.map(UncheckedSendable.init) }
                guard let stream = opened else { throw TransportError.RequestBodyFailure.notReplayable }
                return try await withCheckedThrowingContinuation { continuation in
                    queue.async { continuation.resume(with: Result { try stream.value.readChunk(upTo: 65_536) }) }
                }
            }
        }
    }
}
