// SPDX-License-Identifier: MIT

/// Whether packets have a way to a target, as the system's interfaces, addresses and routes tell.
///
/// It is no promise: a server behind a route may be down, and what is not reachable now may be so in a moment.
///
/// | status | description |
/// |---|---|
/// | ``unknown`` | `Unknown` |
/// | ``notReachable`` | `Not Reachable` |
/// | ``reachable(via:)`` | `Reachable via WiFi`, `… WWAN`, `… Ethernet`, `… Tunnel`, `… Loopback` |
@nonexhaustive
public enum ReachabilityStatus: Hashable, Sendable, CustomStringConvertible {
    /// The system does not say.
    case unknown
    /// There is no way to the target.
    case notReachable
    /// There is a way, and it begins at an interface of this kind.
    case reachable(via: InterfaceKind)

    /// Whether there is a way; not so while it is unknown.
    public var isReachable: Bool { interface != nil }

    /// The kind of interface where the way begins; nil when there is none, or none that is known.
    public var interface: InterfaceKind? {
        switch self {
        case .unknown, .notReachable: nil
        case .reachable(let interface): interface
        }
    }

    /// The status as a text for people, in English.
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
