// SPDX-License-Identifier: MIT

public import ANHTTP
import ANSystem
import FoundationEssentials

/// How fast a body is sent at most: in packets with a pause between them, or by a rate.
///
/// It spares a slow connection that other traffic needs too. It does not spread bytes evenly below a packet.
public struct BodyThrottle: Hashable, Sendable {
    /// The most bytes that are handed over at a time.
    public let packetSize: Int
    private let pause: Pause

    private enum Pause: Hashable, Sendable {
        case delay(Duration)
        case rate(bytesPerSecond: Int)
    }

    /// Packets with a pause of this length after each but the last: 16 KiB and 0.2 s unless said otherwise, which
    /// AFNetworking suggests for 3G.
    public static func packets(of size: Int = 16 << 10, delay: Duration = .milliseconds(200)) -> BodyThrottle {
        BodyThrottle(packetSize: max(size, 1), pause: .delay(delay))
    }

    /// A number of bytes a second, in packets of a twentieth of it, at most 64 KiB.
    ///
    /// Time in which the connection took nothing is not made up for.
    public static func rate(bytesPerSecond: Int) -> BodyThrottle {
        let rate = max(bytesPerSecond, 1)
        return BodyThrottle(packetSize: min(max(rate / 20, 1), 64 << 10), pause: .rate(bytesPerSecond: rate))
    }

    /// A reader that yields another one's bytes at the pace.
    func pacing<Timer: Clock<Duration>>(_ reader: BodyReader, clock: Timer) -> BodyReader {
        var rest = Data()
        var due = clock.now
        return BodyReader {
            while rest.isEmpty {
                guard let chunk = try await reader.next() else { return nil }
                rest = chunk
            }
            if clock.now < due { try await clock.sleep(until: due, tolerance: nil) }
            let packet = rest.prefix(packetSize)
            rest = rest.dropFirst(packet.count)
            due = max(due, clock.now).advanced(by: length(ofPauseAfter: packet.count))
            return packet
        }
    }

    private func length(ofPauseAfter count: Int) -> Duration {
        switch pause {
        case .delay(let delay): delay
        case .rate(let bytesPerSecond): .seconds(Double(count) / Double(bytesPerSecond))
        }
    }
}

extension RequestBody {
    /// The same body, sent no faster than the throttle says, each time that it is sent. The size of a file is taken now.
    ///
    /// - Throws: ``ANSerialization/SerializationError/multipart(_:)`` for a file that cannot be opened.
    public func throttled(_ throttle: BodyThrottle) throws(SerializationError) -> RequestBody {
        try throttled(throttle, clock: ContinuousClock())
    }

    package func throttled(
        _ throttle: BodyThrottle, clock: some Clock<Duration>
    ) throws(SerializationError) -> RequestBody {
        var segment = BodySegment(self)
        if case .file(let path, nil) = segment {
            segment = .file(path: path, length: try RegularFile.open(path).size)
        }
        return .stream(length: segment.length, isReplayable: isReplayable) { [segment] in
            throttle.pacing(SegmentReader.make([segment]), clock: clock)
        }
    }
}
