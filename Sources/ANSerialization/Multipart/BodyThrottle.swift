// SPDX-License-Identifier: MIT

package import ANHTTP
import ANSystem
import FoundationEssentials

/// A limit for the speed of sending a body: packets with a pause between them, for AFNetworking. For a limit in bytes per
/// second, see ``ANHTTP/SpeedLimit``.
///
/// It leaves bandwidth of a slow connection for other traffic. The bytes within a packet are sent at full speed.
/// Packets do not span chunks: those of a sequence or closure, and the pieces of at most 256 KiB in which files and
/// data are read. A smaller chunk, or the smaller rest of a chunk, is a packet.
///
/// It applies to the body with every transport.
package struct BodyThrottle: Hashable, Sendable {
    /// The maximum number of bytes that are sent at a time, at least 1.
    package let packetSize: Int
    private let delay: Duration

    /// Returns a throttle that sends packets with a pause after each but the last.
    ///
    /// A pause begins when the packet is handed to the transport, so that it includes the time in which the connection
    /// accepts the packet. If the request is cancelled, the pause ends with `CancellationError`.
    ///
    /// The defaults, 16 KiB and 0.2 s, are those that AFNetworking suggests for 3G.
    ///
    /// - Parameters:
    ///   - size: The size of a packet in bytes; 16 KiB by default. A value below 1 counts as 1; one above 256 KiB has
    ///     an effect only for larger chunks of a sequence or closure.
    ///   - delay: The pause between packets; 0.2 s by default, and a negative one counts as zero.
    package static func packets(of size: Int = 16 << 10, delay: Duration = .milliseconds(200)) -> BodyThrottle {
        BodyThrottle(packetSize: max(size, 1), delay: delay)
    }

    /// Returns a writer that passes its bytes on to another one at the limited speed.
    func pacing<Timer: Clock<Duration>>(
        _ writer: sending RequestBodyWriter, clock: Timer
    ) -> sending RequestBodyWriter {
        var due = clock.now
        return RequestBodyWriter { chunk in
            var rest = chunk
            while !rest.isEmpty {
                if clock.now < due { try await clock.sleep(until: due, tolerance: nil) }
                let packet = rest.prefix(packetSize)
                rest = rest.dropFirst(packet.count)
                due = max(due, clock.now).advanced(by: delay.bounded)
                try await writer.write(packet)
            }
        }
    }
}

extension RequestBody {
    /// Returns the body with its speed limited, each time it is sent.
    ///
    /// The length is that of the original body. The size of a file is determined by this call: if the file has become
    /// shorter when it is read, the request fails with `TransportError.RequestBodyFailure.source`, and bytes appended
    /// to it are not sent. A sequence or closure with another length than declared fails the request in the same way.
    /// The result is replayable if the body is; for `.none` it is an empty body, sent with `Content-Length: 0`. If the
    /// body is already throttled, both limits apply.
    ///
    /// - Parameter throttle: The packets.
    /// - Throws: ``ANSerialization/SerializationError/multipart(_:)`` for a file that cannot be opened.
    package func throttled(_ throttle: BodyThrottle) throws(SerializationError) -> RequestBody {
        try throttled(throttle, clock: ContinuousClock())
    }

    package func throttled(
        _ throttle: BodyThrottle, clock: some Clock<Duration>
    ) throws(SerializationError) -> RequestBody {
        var segment = BodySegment(self)
        if case .file(let path, nil) = segment {
            segment = try .file(path, isReplayable: isReplayable)
        }
        let stream = RequestBody.writer(length: segment.length, isReplayable: isReplayable) { [segment] writer in
            try await [segment].write(to: throttle.pacing(writer, clock: clock))
        }
        return afterEncoding(without: stream) { $0.body = try $0.body.throttled(throttle, clock: clock) }
            ?? stream.gated(as: self)
    }
}
