// SPDX-License-Identifier: MIT

import AsyncNetworking
import Dispatch

/// The stream of a request whose body the library has made: it carries the body itself, which is what is sent.
final class BodyStream: InputStream {
    let body: RequestBody

    init(_ body: RequestBody) {
        self.body = body
        super.init(data: Data())
    }
}

extension InputStream {
    /// So many bytes. It may block.
    ///
    /// - Throws: The stream's error, or one for a stream that is too short.
    func read(exactly length: Int64) throws -> Data {
        var data = Data()
        while data.count < length {
            let wanted = min(Int(clamping: length) - data.count, 65_536)
            guard let chunk = try readChunk(upTo: wanted) else {
                throw NSError.requestSerialization(
                    .cannotDecodeContentData, reason: "The stream ended after \(data.count) of \(length) bytes.")
            }
            data += chunk
        }
        return data
    }
}

extension RequestBody {
    /// The bytes of a stream, and of those that `replace` makes each time that the body is sent again.
    static func inputStream(
        _ stream: InputStream, length: Int64?, replace: (@Sendable () -> Handover<InputStream?>)?
    ) -> RequestBody {
        if let stream = stream as? BodyStream { return stream.body }
        let source = InputStreamSource(stream, replace: replace)
        return .stream(length: length, isReplayable: replace != nil) {
            let stream = try source.next()
            let queue = DispatchQueue(label: "com.alamofire.networking.body-stream")
            return BodyReader {
                try await withCheckedThrowingContinuation { continuation in
                    queue.async { continuation.resume(with: Result { try stream.value.readChunk(upTo: 65_536) }) }
                }
            }
        }
    }
}
