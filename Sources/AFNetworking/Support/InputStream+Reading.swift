// SPDX-License-Identifier: MIT

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
    /// returns.
    static func inputStream(
        _ stream: InputStream, length: Int64?, replace: (@Sendable () async -> UncheckedSendable<InputStream?>)?
    ) -> RequestBody {
        if let stream = stream as? BodyStream { return stream.body }
        let source = InputStreamSource(stream, replace: replace)
        return .stream(length: length, isReplayable: replace != nil) {
            var opened: UncheckedSendable<InputStream>?
            let queue = DispatchQueue(label: "com.alamofire.networking.body-stream")
            return BodyReader {
                let stream = if let opened { opened } else { try await source.next() }
                opened = stream
                return try await withCheckedThrowingContinuation { continuation in
                    queue.async { continuation.resume(with: Result { try stream.value.readChunk(upTo: 65_536) }) }
                }
            }
        }
    }
}
