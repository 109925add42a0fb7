// SPDX-License-Identifier: MIT

/// An alternative service that a transport should use for an exchange instead of the origin's own connection: HTTP/3 on
/// a port of the same host (RFC 7838).
///
/// A transport that cannot use it ignores it. One that fails to use it performs the exchange without it, and uses it
/// only for requests that may be repeated.
package struct AlternativeRoute: Sendable {
    /// The UDP port of the alternative.
    package let port: Int
    /// Whether HTTP/3 has already worked on this port. If not, the transport makes a new connection, and does not keep
    /// the exchange waiting if a TCP connection is established first.
    package let isProven: Bool
    /// Receives whether the alternative was used or failed, at most once for each connection that was attempted. Not
    /// called if neither is known. Callable from any thread.
    package let report: @Sendable (_ hasWorked: Bool) -> Void

    /// Creates a route.
    package init(port: Int, isProven: Bool, report: @escaping @Sendable (_ hasWorked: Bool) -> Void) {
        self.port = port
        self.isProven = isProven
        self.report = report
    }
}

/// A transport that cannot use alternative services in every environment.
package protocol AlternativeRouteTransport: Transport {
    /// Whether requests may use an alternative service; with `false`, none needs one.
    var usesAlternatives: Bool { get }
}

extension Transport {
    /// Whether an ``AlternativeRoute`` has an effect; `true` unless the transport states otherwise.
    package var usesAlternativeRoutes: Bool { (self as? any AlternativeRouteTransport)?.usesAlternatives ?? true }
}

extension AlternativeRoute: RequestAttribute {
    /// The attribute of a request that may use the origin only.
    package static var defaultValue: AlternativeRoute? { nil }
}
