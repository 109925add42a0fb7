// SPDX-License-Identifier: MIT

import ANSystem
import AsyncNetworking

/// The reachability of the network or of a host, with the raw values of AFNetworking.
public enum AFNetworkReachabilityStatus: Int, Sendable {
    /// The status has not been reported yet, or the network cannot be observed.
    case unknown = -1
    /// There is no route to the network or the host, or the name of the host cannot be resolved.
    case notReachable = 0
    /// There is a route through a cellular network.
    case reachableViaWWAN = 1
    /// There is a route through another kind of interface: Wi-Fi, Ethernet, a tunnel or the loopback interface.
    case reachableViaWiFi = 2
}

extension NSNotification.Name {
    /// Posted on the main queue when a reachability manager has reported a status, after its block was called; also for
    /// the first status. The object is the manager; the user info has the key
    /// ``AFNetworkingReachabilityNotificationStatusItem``.
    public static let AFNetworkingReachabilityDidChange = NSNotification.Name(
        "com.alamofire.networking.reachability.change")
}

/// The user info key for the status in `NSNotification.Name.AFNetworkingReachabilityDidChange`: an `NSNumber` with the
/// raw value of an ``AFNetworkReachabilityStatus``.
public let AFNetworkingReachabilityNotificationStatusItem = "AFNetworkingReachabilityNotificationStatusItem"

/// Returns a description of a reachability status, in English: `Not Reachable`, `Reachable via WWAN`,
/// `Reachable via WiFi` or `Unknown`.
public func AFStringFromNetworkReachabilityStatus(_ status: AFNetworkReachabilityStatus) -> String {
    switch status {
    case .notReachable: "Not Reachable"
    case .reachableViaWWAN: "Reachable via WWAN"
    case .reachableViaWiFi: "Reachable via WiFi"
    case .unknown: "Unknown"
    }
}

/// A monitor of the system's routes: of the default route, or of the route to one host or address.
///
/// Do not check reachability before sending a request: the request itself gives the more reliable answer. Changes are
/// reported on the main queue, which the program must serve. All members may be used from any thread.
open class AFNetworkReachabilityManager: NSObject, @unchecked Sendable {
    private let state = Lock(State())

    private struct State {
        var target = ReachabilityTarget.defaultRoute
        var reports = ReachabilityReports()
        var didChange: (@Sendable (AFNetworkReachabilityStatus) -> Void)?
        var monitoring: Task<Void, Never>?
    }

    private static let sharedManager = AFNetworkReachabilityManager()

    /// Creates a manager for the default route. It reports nothing until ``startMonitoring()`` is called.
    public override init() {
        super.init()
    }

    deinit {
        stopMonitoring()
    }

    /// Returns the shared manager for the default route. It reports nothing until ``startMonitoring()`` is called.
    open class func shared() -> AFNetworkReachabilityManager { sharedManager }

    /// Returns a new manager for the default route. It reports nothing until ``startMonitoring()`` is called.
    open class func manager() -> AFNetworkReachabilityManager { AFNetworkReachabilityManager() }

    /// Creates a manager for the route to a host. It reports nothing until ``startMonitoring()`` is called.
    ///
    /// - Parameter domain: The name of the host, or its IP address in text form, without scheme and port. While it is
    ///   monitored, a name is looked up at first, when the default route changes, and repeatedly after a failure, at
    ///   intervals of up to 30 s. One that cannot be looked up is not reachable.
    public convenience init(forDomain domain: String) {
        self.init()
        state.withLock { $0.target = .host(domain) }
    }

    /// Creates a manager for the route to an IP address, which is a string here and a `sockaddr` in AFNetworking. It
    /// reports nothing until ``startMonitoring()`` is called.
    ///
    /// - Parameter address: The IPv4 or IPv6 address in text form, without port. Other text is taken for a host name,
    ///   which is looked up.
    public convenience init(forAddress address: String) {
        self.init()
        state.withLock { $0.target = .host(address) }
    }

    /// The status that was reported last, even if monitoring has been stopped; `.unknown` before the first report.
    open var networkReachabilityStatus: AFNetworkReachabilityStatus { state.withLock { $0.reports.status } }

    /// Whether there is a route; `false` while the status is unknown.
    open var isReachable: Bool { isReachableViaWWAN || isReachableViaWiFi }

    /// Whether there is a route through a cellular network; `false` while the status is unknown.
    open var isReachableViaWWAN: Bool { networkReachabilityStatus == .reachableViaWWAN }

    /// Whether there is a route through another kind of interface: Wi-Fi, Ethernet, a tunnel or the loopback interface;
    /// `false` while the status is unknown.
    open var isReachableViaWiFi: Bool { networkReachabilityStatus == .reachableViaWiFi }

    /// Starts monitoring, or restarts it if it is active. The current status is reported on the main queue, for a host
    /// name after its lookup, then each new one, until ``stopMonitoring()`` is called or the manager is released. If
    /// the network cannot be observed, `.unknown` is reported and monitoring ends. A restart does not call
    /// ``stopMonitoring()``, and what was reported before it is not delivered any more.
    open func startMonitoring() {
        let statuses = ReachabilityMonitor.shared.statuses(for: state.withLock { $0.target })
        let previous = state.withLock { state in
            let number = state.reports.begin()
            let previous = state.monitoring
            // Ends with `stopMonitoring()`, which `deinit` calls, too.
            state.monitoring = Task { [weak self] in
                do {
                    for try await status in statuses { self?.report(AFNetworkReachabilityStatus(status), number) }
                } catch {
                    // The monitor reported `.unknown` before it threw the error.
                }
            }
            return previous
        }
        previous?.cancel()
    }

    /// Stops monitoring; has no effect if it is not active. The status keeps its last value. A report since the last start
    /// that is already scheduled on the main queue is still delivered.
    open func stopMonitoring() {
        state.set(\.monitoring, to: nil)?.cancel()
    }

    /// Returns a description of the current status, in English regardless of the locale, as does
    /// ``AFStringFromNetworkReachabilityStatus(_:)``.
    open func localizedNetworkReachabilityStatusString() -> String {
        AFStringFromNetworkReachabilityStatus(networkReachabilityStatus)
    }

    /// Sets the block to call on the main queue when a status is reported, in place of an earlier block.
    ///
    /// After ``startMonitoring()`` it is called with the current status first, then with each one that differs from its
    /// predecessor. A block that is set later is called from the next report on. Setting a block does not start
    /// monitoring.
    ///
    /// - Parameter block: Receives the status; `nil` removes the block.
    @preconcurrency
    open func setReachabilityStatusChange(_ block: (@Sendable (AFNetworkReachabilityStatus) -> Void)?) {
        state.set(\.didChange, to: block)
    }

    /// Reports a status of the monitoring with a number.
    private func report(_ status: AFNetworkReachabilityStatus, _ number: Int) {
        MainQueueBuffer.shared.send { [weak self] in
            guard let self else { return }
            let (isCurrent, didChange) = state.withLock { ($0.reports.receive(status, of: number), $0.didChange) }
            guard isCurrent else { return }
            didChange?(status)
            NotificationCenter.default.post(
                name: .AFNetworkingReachabilityDidChange, object: self,
                userInfo: [AFNetworkingReachabilityNotificationStatusItem: NSNumber(value: status.rawValue)])
        }
    }
}

/// The status that was reported last, and the monitoring that may report others.
///
/// A task whose monitoring was restarted may still report a status. The new one reports the current status first, and
/// would not repeat it after that of the old one.
package struct ReachabilityReports: Sendable {
    /// The status that was reported last; `.unknown` before the first report.
    package private(set) var status = AFNetworkReachabilityStatus.unknown
    /// The number of the monitoring that began last.
    private(set) var number = 0

    /// Creates the state before monitoring.
    package init() {}

    /// Begins to monitor, in place of what was monitored before. Returns the number of the monitoring.
    package mutating func begin() -> Int {
        number += 1
        return number
    }

    /// Takes a status of a monitoring; returns whether it counts, which it does not after a restart.
    package mutating func receive(_ status: AFNetworkReachabilityStatus, of number: Int) -> Bool {
        guard number == self.number else { return false }
        self.status = status
        return true
    }
}

extension AFNetworkReachabilityStatus {
    /// Creates the status that corresponds to the core's.
    init(_ status: ReachabilityStatus) {
        switch status {
        case .unknown: self = .unknown
        case .notReachable: self = .notReachable
        case .reachable(.cellular): self = .reachableViaWWAN
        case .reachable: self = .reachableViaWiFi
        @unknown default: self = .unknown
        }
    }
}
