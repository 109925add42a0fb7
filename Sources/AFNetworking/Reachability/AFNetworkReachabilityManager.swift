// SPDX-License-Identifier: MIT

import ANSystem
import AsyncNetworking

/// Whether the network can be reached, and how.
public enum AFNetworkReachabilityStatus: Int, Sendable {
    /// Nothing is known yet.
    case unknown = -1
    /// There is no route.
    case notReachable = 0
    /// There is a route through a mobile network.
    case reachableViaWWAN = 1
    /// There is a route through anything else, a cable among it.
    case reachableViaWiFi = 2
}

extension NSNotification.Name {
    /// The status of a reachability manager was reported; posted on the main queue, with the manager as its object.
    public static let AFNetworkingReachabilityDidChange = NSNotification.Name(
        "com.alamofire.networking.reachability.change")
}

/// The key of the status, as a number, in `NSNotification.Name.AFNetworkingReachabilityDidChange`.
public let AFNetworkingReachabilityNotificationStatusItem = "AFNetworkingReachabilityNotificationStatusItem"

/// A status for people, in English.
public func AFStringFromNetworkReachabilityStatus(_ status: AFNetworkReachabilityStatus) -> String {
    switch status {
    case .notReachable: "Not Reachable"
    case .reachableViaWWAN: "Reachable via WWAN"
    case .reachableViaWiFi: "Reachable via WiFi"
    case .unknown: "Unknown"
    }
}

/// Watches the routes of the system to anywhere, or to one host or address.
///
/// Do not ask it before a request: the request itself is the better question. Reports come on the main queue, which must
/// be served; all members may be used from any thread.
open class AFNetworkReachabilityManager: NSObject, @unchecked Sendable {
    private let target: ReachabilityTarget
    private let state = Lock(State())

    private struct State {
        var status = AFNetworkReachabilityStatus.unknown
        var didChange: Handover<(AFNetworkReachabilityStatus) -> Void>?
        var monitoring: Task<Void, Never>?
    }

    private static let sharedManager = AFNetworkReachabilityManager()

    /// Creates a manager of the way to anywhere.
    public override convenience init() {
        self.init(target: .defaultRoute)
    }

    init(target: ReachabilityTarget) {
        self.target = target
        super.init()
    }

    deinit {
        stopMonitoring()
    }

    /// The manager of the program; somebody has to start it.
    open class func shared() -> AFNetworkReachabilityManager { sharedManager }

    /// A new manager of the way to anywhere.
    open class func manager() -> AFNetworkReachabilityManager { AFNetworkReachabilityManager() }

    /// Creates a manager of the way to a host.
    public convenience init(forDomain domain: String) {
        self.init(target: .host(domain))
    }

    /// Creates a manager of the way to an address, in text form.
    public convenience init(forAddress address: String) {
        self.init(target: .host(address))
    }

    /// The last status that was reported; unknown before the first one.
    open var networkReachabilityStatus: AFNetworkReachabilityStatus { state.withLock { $0.status } }

    /// Whether there is a route; false while that is unknown.
    open var isReachable: Bool { isReachableViaWWAN || isReachableViaWiFi }

    /// Whether there is a route through a mobile network.
    open var isReachableViaWWAN: Bool { networkReachabilityStatus == .reachableViaWWAN }

    /// Whether there is a route through anything else.
    open var isReachableViaWiFi: Bool { networkReachabilityStatus == .reachableViaWiFi }

    /// Starts to watch, anew where it watches already; the present status is reported soon.
    open func startMonitoring() {
        stopMonitoring()
        let statuses = ReachabilityMonitor.shared.statuses(for: target)
        // It ends with `stopMonitoring()`, at the latest with the manager.
        let monitoring = Task { [weak self] in
            do {
                for try await status in statuses { self?.report(AFNetworkReachabilityStatus(status)) }
            } catch {
                // The status was unknown before the error came.
            }
        }
        state.withLock { $0.monitoring = monitoring }
    }

    /// Stops to watch; the status stays what it was.
    open func stopMonitoring() {
        state.withLock { state in
            defer { state.monitoring = nil }
            return state.monitoring
        }?.cancel()
    }

    /// The status for people, in English.
    open func localizedNetworkReachabilityStatusString() -> String {
        AFStringFromNetworkReachabilityStatus(networkReachabilityStatus)
    }

    /// Sets what is called on the main queue for each report; nil removes it.
    open func setReachabilityStatusChange(_ block: ((AFNetworkReachabilityStatus) -> Void)?) {
        state.set(\.didChange, to: block.map(Handover.init))
    }

    private func report(_ status: AFNetworkReachabilityStatus) {
        Outbox.main.send { [weak self] in
            guard let self else { return }
            let didChange = state.withLock { state in
                state.status = status
                return state.didChange
            }
            didChange?.value(status)
            NotificationCenter.default.post(
                name: .AFNetworkingReachabilityDidChange, object: self,
                userInfo: [AFNetworkingReachabilityNotificationStatusItem: NSNumber(value: status.rawValue)])
        }
    }
}

extension AFNetworkReachabilityStatus {
    /// The status that says the same.
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
