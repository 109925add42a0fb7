// SPDX-License-Identifier: MIT

/// The limits of an engine's connection pool.
public struct ConnectionPool: Hashable, Sendable {
    /// The most connections to one host at a time, in use or idle; 6 by default. Further exchanges queue, first come first
    /// served. 0 means no limit.
    public var maximumConnectionsPerHost = 6
    /// The most connections at a time; nil for no limit.
    public var maximumConnections: Int?
    /// The most idle connections that are kept; 256 by default.
    public var maximumIdleConnections = 256
    /// The most exchanges that share one HTTP/2 connection; 100 by default. The server may allow fewer.
    public var maximumStreamsPerConnection = 100
    /// How long an idle connection may have been idle to be used again, in whole seconds; 118 s by default.
    public var maximumIdleAge = Duration.seconds(118)
    /// How old a connection may be to be used again, in whole seconds; nil for any age.
    public var maximumAge: Duration?

    /// Creates the default limits.
    public init() {}
}
