// SPDX-License-Identifier: MIT

/// The limits of a transport's connection pool.
public struct ConnectionLimits: Hashable, Sendable {
    /// The maximum number of connections to one host and port, active or idle; 6 by default, 0 or less for no limit.
    /// Further exchanges wait in a FIFO queue; see ``Timeouts/queue``.
    public var maximumConnectionsPerHost = 6
    /// The maximum number of connections in total, at least 1; `nil`, the default, for no limit. Further exchanges wait
    /// in a FIFO queue; see ``Timeouts/queue``.
    public var maximumConnections: Int?
    /// The maximum number of idle connections that are kept for reuse; 256 by default. 0 or less selects libcurl's own
    /// limit, which grows with the number of exchanges; see CURLMOPT_MAXCONNECTS(3).
    public var maximumIdleConnections = 256
    /// The maximum number of concurrent exchanges on one HTTP/2 connection, at least 1; 100 by default. The server may
    /// allow fewer.
    public var maximumStreamsPerConnection = 100
    /// The longest time that a connection may be idle and still be reused, rounded up to whole seconds, at least 1 s;
    /// 118 s by default.
    public var maximumIdleAge = Duration.seconds(118)
    /// The maximum age of a connection that is reused, rounded up to whole seconds, at least 1 s; `nil`, the default,
    /// for no limit.
    public var maximumAge: Duration?

    /// Creates the default limits.
    public init() {}
}
