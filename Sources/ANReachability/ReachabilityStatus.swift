// SPDX-License-Identifier: MIT

/// Whether there is a route to a target, according to the system's interfaces, addresses and routes.
///
/// The status does not guarantee that requests succeed or fail: a server behind a route may be down, and routes may
/// change at any time.
///
/// | status | description |
/// |---|---|
/// | ``unknown`` | `Unknown` |
/// | ``notReachable`` | `Not Reachable` |
/// | ``reachable(via:)`` | `Reachable via WiFi`, `… WWAN`, `… Ethernet`, `… Tunnel`, `… Loopback` |
@nonexhaustive
public enum ReachabilityStatus: Hashable, Sendable, CustomStringConvertible {
    /// The network cannot be observed, or the task that waited in ``ReachabilityMonitor/status(of:)`` was cancelled.
    case unknown
    /// There is no usable route to the target: the kernel has none or rejects the packets, the interface is disabled or
    /// not connected, or this machine has no suitable source address; or a host's name cannot be resolved.
    case notReachable
    /// There is a usable route to the target, over an interface of this kind. Of several addresses of a host, the first
    /// reachable one in the order of the resolver determines the kind.
    case reachable(via: InterfaceKind)

    /// Whether there is a usable route to the target; `false` if the status is ``unknown``.
    public var isReachable: Bool { interface != nil }

    /// The kind of the interface that the route uses; `nil` if there is no usable route or the status is ``unknown``.
    public var interface: InterfaceKind? {
        switch self {
        case .unknown, .notReachable: nil
        case .reachable(let interface): interface
        }
    }

    /// The status as an English text for users, such as `Reachable via WiFi`, regardless of the locale.
    public var description: String {
        switch self {
        case .unknown: "Unknown"
        case .notReachable: "Not Reachable"
        case .reachable(.wired): "Reachable via Ethernet"
        case .reachable(.wireless): "Reachable via WiFi"
        case .reachable(.cellular): "Reachable via WWAN"
        case .reachable(.loopback): "Reachable via Loopback"
        case .reachable(.tunnel): "Reachable via Tunnel"
        }
    }
}
