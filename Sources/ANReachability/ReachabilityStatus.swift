// SPDX-License-Identifier: MIT

package import ANSystem

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

/// A destination whose reachability a ``ReachabilityMonitor`` observes: the Internet by default, an address, or a host.
@nonexhaustive
public enum ReachabilityTarget: Hashable, Sendable {
    /// The Internet, over IPv4 or IPv6: the route to addresses of a root name server, usually the default route. If
    /// both families have one, the status is that of IPv4. Nothing is sent to these addresses.
    case defaultRoute
    /// A single IPv4 or IPv6 address, which is never looked up. Broadcast and multicast addresses are not reachable.
    case address(IPAddress)
    /// A host, given by its name or by an address in text form, which is not looked up unless it has a zone, such as
    /// `fe80::1%eth0`; an IPv6 address may be in brackets.
    ///
    /// A name is resolved by the system's resolver, see getaddrinfo(3), and reachable if any of its addresses is; an
    /// internationalized one must be in its ASCII form (`xn--…`). It is looked up when its first observer begins and when
    /// the default route changes; later observers of the same monitor share the result. After a failed lookup it is looked
    /// up again on any change of the network, and after 1, 2, 4, … at most 30 seconds. A name without an address is not
    /// reachable.
    case host(String)

    /// The target itself; for a host in brackets, without these; or its address if it is given by one in text form.
    var resolvingLiterals: ReachabilityTarget {
        guard case .host(let name) = self else { return self }
        let isBracketed = name.hasPrefix("[") && name.hasSuffix("]")
        let text = isBracketed ? String(name.dropFirst().dropLast()) : name
        return IPAddress(text).map(ReachabilityTarget.address) ?? .host(text)
    }
}

/// A failure to observe the network: netlink is unavailable, as in a locked-down container, or has failed, or the
/// process lacks descriptors, memory or threads. See netlink(7).
///
/// ``ReachabilityMonitor/status(of:)`` and the iteration of ``ReachabilityMonitor/statuses(for:)`` throw it. Both may
/// be called again, and then open new sockets.
public struct ReachabilityError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The system call that failed, such as `socket`.
    package let call: String
    /// The `errno` of the failed system call, such as `EPERM` or `EMFILE`; the name of the call is in the
    /// ``description``. See errno(3).
    public let code: Int32

    package init(_ cause: SystemError) {
        call = cause.call
        code = cause.code
    }

    /// Returns an error for a system call with the calling thread's `errno`.
    static func last(_ call: String) -> ReachabilityError {
        ReachabilityError(SystemError.last(call))
    }

    /// A sentence with the failed call, the system's message and the `errno`, and the advice to check that AF_NETLINK
    /// sockets are allowed, which is the same for every `errno`.
    public var description: String {
        "The network cannot be observed: \(SystemError(call: call, code: code)); "
            + "check that the container or sandbox allows AF_NETLINK sockets"
    }
}

/// The status of a target as it changes: the current one first, then each that differs from its predecessor.
///
/// See ``ReachabilityMonitor/statuses(for:)``.
struct ReachabilityStatuses: AsyncSequence, Sendable {
    let monitor: ReachabilityMonitor
    let target: ReachabilityTarget

    /// Creates an iterator and begins to observe the target.
    func makeAsyncIterator() -> Iterator {
        Iterator(ReachabilityReports(on: target, from: monitor))
    }

    /// An iterator over statuses; observation ends when it is released.
    struct Iterator: AsyncIteratorProtocol {
        private var reports: ReachabilityReports
        private var last: ReachabilityStatus?
        /// The error to throw after ``ReachabilityStatus/unknown`` was yielded.
        private var failure: ReachabilityError?
        private var hasEnded = false

        fileprivate init(_ reports: ReachabilityReports) {
            self.reports = reports
        }

        /// Returns the next status that differs from the last one; `nil` if the task is cancelled.
        ///
        /// - Throws: ``ReachabilityError``, after ``ReachabilityStatus/unknown``, if the network cannot be observed.
        mutating func next() async throws(ReachabilityError) -> ReachabilityStatus? {
            try await next(isolation: #isolation)
        }

        /// Returns the next status that differs from the last one; `nil` if the task is cancelled.
        ///
        /// - Parameter actor: The actor that the caller is isolated to.
        /// - Throws: ``ReachabilityError``, after ``ReachabilityStatus/unknown``, if the network cannot be observed.
        mutating func next(
            isolation actor: isolated (any Actor)?
        ) async throws(ReachabilityError) -> ReachabilityStatus? {
            if let failure {
                self.failure = nil
                throw failure
            }
            while !hasEnded, let report = await reports.next(isolation: actor) {
                switch report {
                case .status(let status, _):
                    guard status != last else { continue }
                    last = status
                    return status
                case .failed(let error):
                    hasEnded = true
                    guard last != .unknown else { throw error }
                    failure = error
                    return .unknown
                }
            }
            return nil
        }
    }
}
