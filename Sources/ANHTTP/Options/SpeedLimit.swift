// SPDX-License-Identifier: MIT

import Synchronization

/// A limit of the speed of transfers, shared fairly by all those that have it in ``TransferOptions/speedLimits``.
///
/// ```swift
/// let limit = SpeedLimit(bytesReceivedPerSecond: 1_000_000)
/// let api = SessionManager { $0.speedLimits = [limit] }
/// limit.bytesReceivedPerSecond = nil  // at night
/// ```
///
/// It limits the bytes of bodies, as transferred, of the transfers of one session: in a second session, the same limit
/// applies once more. libcurl's transport pauses the connections that have received or sent enough, so that the other side
/// slows down; over HTTP/2 and HTTP/3, libcurl buffers up to about 10 MB of what a server has already sent. Of a
/// connection that is paused, ``Timeouts/idle`` does not elapse. Other transports ignore it, and
/// messages of WebSocket connections are not limited.
public final class SpeedLimit: Sendable, Hashable {
    /// The host that is limited; `nil` for all.
    public let host: HostPattern?
    private let receiving: Atomic<Int>
    private let sending: Atomic<Int>

    /// Creates a limit.
    ///
    /// - Parameters:
    ///   - bytesReceivedPerSecond: The maximum number of body bytes received per second by all transfers together; `nil`,
    ///     the default, for no limit.
    ///   - bytesSentPerSecond: The maximum number of body bytes sent per second by all transfers together; `nil`, the
    ///     default, for no limit.
    ///   - host: The hosts whose transfers are limited; `nil`, the default, for all.
    public init(bytesReceivedPerSecond: Int? = nil, bytesSentPerSecond: Int? = nil, host: HostPattern? = nil) {
        self.host = host
        receiving = Atomic(Self.stored(bytesReceivedPerSecond))
        sending = Atomic(Self.stored(bytesSentPerSecond))
    }

    /// The maximum number of body bytes received per second by all transfers together; `nil` for no limit. A number below
    /// 1 counts as 1. It may be changed at any time, by any thread, and takes effect within 0.1 s.
    public var bytesReceivedPerSecond: Int? {
        get { Self.value(receiving.load(ordering: .relaxed)) }
        set { receiving.store(Self.stored(newValue), ordering: .relaxed) }
    }

    /// The maximum number of body bytes sent per second by all transfers together; `nil` for no limit. A number below 1
    /// counts as 1. It may be changed at any time, by any thread, and takes effect within 0.1 s.
    public var bytesSentPerSecond: Int? {
        get { Self.value(sending.load(ordering: .relaxed)) }
        set { sending.store(Self.stored(newValue), ordering: .relaxed) }
    }

    private static func stored(_ value: Int?) -> Int { value.map { max(1, $0) } ?? 0 }
    private static func value(_ stored: Int) -> Int? { stored == 0 ? nil : stored }

    /// Whether two limits are the same object, whose transfers share it.
    public static func == (left: SpeedLimit, right: SpeedLimit) -> Bool { left === right }

    /// Hashes the identity of the limit.
    public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}
