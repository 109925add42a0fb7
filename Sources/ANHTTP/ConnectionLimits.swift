// SPDX-License-Identifier: MIT

/// The limits of a transport's connection pool. A session has one pool; see `SessionConfiguration.connectionLimits`.
public struct ConnectionLimits: Hashable, Sendable {
    /// The maximum number of connections to one host and port, active or idle; 6 by default, 0 or less for no limit.
    ///
    /// Further exchanges wait, first in, first out, unless they can share an HTTP/2 or HTTP/3 connection; see
    /// ``Timeouts/queue``. For http URLs through an HTTP proxy, the limit also applies to the proxy as a whole.
    public var maximumConnectionsPerHost = 6
    /// The maximum number of connections in total, active or idle; a value below 1 counts as 1, and `nil`, the default,
    /// is no limit.
    ///
    /// At the limit, the connection that has been idle longest is closed to make room for a new one. If all are active,
    /// further exchanges wait, first in, first out; see ``Timeouts/queue``.
    public var maximumConnections: Int?
    /// The number of connections, active ones included, above which idle ones are closed instead of kept for reuse, the
    /// one that has been idle longest first; 256 by default. 0 or less leaves the limit to libcurl: none in 7.88, four
    /// times the number of exchanges in recent versions. See CURLMOPT_MAXCONNECTS(3).
    public var maximumIdleConnections = 256
    /// The maximum number of concurrent exchanges on one HTTP/2 or HTTP/3 connection; 100 by default, and a value below
    /// 1 counts as 1. The server may allow fewer. See CURLMOPT_MAX_CONCURRENT_STREAMS(3).
    public var maximumStreamsPerConnection = 100
    /// The longest time that a connection may be idle and still be reused, rounded up to whole seconds, at least
    /// 1 s and at most about 24 days; 118 s by default. See CURLOPT_MAXAGE_CONN(3).
    ///
    /// Over HTTP/1.1, a shorter `timeout` in the `Keep-Alive` field of a response takes precedence; the connection is
    /// then reused until 1 s before that time, or until half of a `timeout` of 1 s.
    public var maximumIdleAge = Duration.seconds(118)
    /// The longest time after its establishment for which a connection is still reused, rounded up to whole seconds, at
    /// least 1 s and at most about 24 days; `nil`, the default, for no limit. Exchanges in progress are not
    /// interrupted. See CURLOPT_MAXLIFETIME_CONN(3).
    public var maximumAge: Duration?

    /// Creates the default limits: 6 connections per host without a limit on their total number, 256 idle ones, each
    /// for at most 118 s, and 100 concurrent exchanges on each HTTP/2 or HTTP/3 connection.
    public init() {}
}
