// SPDX-License-Identifier: MIT

import ANSystem

/// An observer of whether the network, an address or a host is reachable.
///
/// ```swift
/// for try await status in ReachabilityMonitor.shared.statuses() {
///     print(status)
/// }
/// ```
///
/// Reachability is determined from the route that the kernel chooses for a target and from the interface of that route,
/// which are requested over netlink after each change of the network, see rtnetlink(7). Nothing is sent to the network
/// except name lookups for ``ReachabilityTarget/host(_:)``. The monitor uses one thread and a few descriptors while any
/// of its statuses are being iterated or awaited, and none otherwise; each name being looked up takes another thread.
/// All members may be used from any thread or task at any time.
///
/// Do not check reachability before a request: the result is outdated at once, and only the request can tell whether
/// the server responds. Use it after a failure, to explain the failure or to decide when to retry; see
/// ``waitForRoute(to:)``.
public final class ReachabilityMonitor: Sendable {
    /// The shared monitor of the process, with one thread for all of its observers. Sessions that wait for connectivity
    /// use it, too.
    public static let shared = ReachabilityMonitor()

    private let openSocket: @Sendable () throws(ReachabilityError) -> RouteSocket
    private let resolver: NameResolver
    private let state = Lock(State())

    /// Creates a monitor with a thread and sockets of its own, which exist only while statuses are being iterated or
    /// awaited.
    ///
    /// They are created again each time that this begins, and observe the network namespace of the thread on which it
    /// begins.
    public convenience init() {
        self.init(openSocket: { () throws(ReachabilityError) in try RouteSocket() }, lookUp: NameResolver.systemLookup)
    }

    /// Creates a monitor with its own source of messages and name lookup.
    ///
    /// - Parameters:
    ///   - openSocket: Opens the socket that messages are received from.
    ///   - lookUp: Returns the addresses of a name; it may block.
    package init(
        openSocket: @escaping @Sendable () throws(ReachabilityError) -> RouteSocket,
        lookUp: @escaping @Sendable (String) -> [IPAddress]
    ) {
        self.openSocket = openSocket
        resolver = NameResolver(lookUp)
    }

    /// Returns the status of a target as it changes: the current one first, then each new one.
    ///
    /// The target is observed from the creation of an iterator until its release. A slow reader misses intermediate
    /// statuses, but never the latest. The first status of a host follows the lookup of its name, which may take as
    /// long as resolv.conf(5) allows. Any number of tasks may iterate the sequence, each with an iterator of its own,
    /// which ends without an error when the iterating task is cancelled. If the network cannot be observed, it yields
    /// ``ReachabilityStatus/unknown`` and then throws a ``ReachabilityError``; a new iteration tries again.
    ///
    /// - Parameter target: The target to observe; ``ReachabilityTarget/defaultRoute`` by default.
    public func statuses(
        for target: ReachabilityTarget = .defaultRoute
    ) -> some AsyncSequence<ReachabilityStatus, ReachabilityError> & Sendable {
        ReachabilityStatuses(monitor: self, target: target)
    }

    /// Returns the current status of a target; that of a host after the lookup of its name, which may take as long as
    /// resolv.conf(5) allows.
    ///
    /// - Parameter target: The target to check; ``ReachabilityTarget/defaultRoute`` by default.
    /// - Returns: The status; ``ReachabilityStatus/unknown`` if the calling task is cancelled before it is known.
    /// - Throws: ``ReachabilityError`` if the network cannot be observed.
    public func status(
        of target: ReachabilityTarget = .defaultRoute
    ) async throws(ReachabilityError) -> ReachabilityStatus {
        var reports = ReachabilityReports(on: target, from: self)
        switch await reports.next(isolation: #isolation) {
        case .status(let status, _): return status
        case .failed(let error): throw error
        case nil: return .unknown
        }
    }

    /// Waits, without a time limit, until a target may be reachable, and returns at once if it already is; for a host,
    /// after the lookup of its name.
    ///
    /// It also returns if the network cannot be observed, and if a host's name cannot be looked up although there is a
    /// default route: only an attempt can then find out. A return is no guarantee of success, so callers that retry
    /// must limit the number of attempts.
    ///
    /// - Parameter target: The target to wait for; ``ReachabilityTarget/defaultRoute`` by default.
    /// - Throws: `CancellationError` if the calling task is cancelled before the wait ends.
    public func waitForRoute(to target: ReachabilityTarget = .defaultRoute) async throws(CancellationError) {
        var reports = ReachabilityReports(on: target, from: self)
        while let report = await reports.next(isolation: #isolation) {
            switch report {
            case .status(_, mayHaveRoute: true), .failed: return
            case .status: break
            }
        }
        throw CancellationError()
    }

    // MARK: Subscriptions

    private struct State {
        /// The watcher, which exists while there are subscribers and ends with its last reference.
        var watcher: RouteWatcher?
        var subscribers: Set<Int> = []
        var lastID = 0
    }

    func subscribe(
        to target: ReachabilityTarget, _ continuation: AsyncStream<ReachabilityReport>.Continuation
    ) -> Int {
        state.withLock { state in
            state.lastID += 1
            state.subscribers.insert(state.lastID)
            let message = RouteWatcher.Message.subscribe(state.lastID, target, continuation)
            // A watcher that has failed accepts no messages.
            if state.watcher?.post(message) != true {
                do throws(ReachabilityError) {
                    // Created under the lock so that there is never more than one; this takes a few system calls.
                    let watcher = try RouteWatcher(socket: openSocket(), resolver: resolver)
                    state.watcher = watcher
                    watcher.post(message)
                } catch {
                    continuation.yield(.failed(error))
                }
            }
            return state.lastID
        }
    }

    func unsubscribe(_ id: Int) {
        // The watcher may be released here, which must not happen under the lock.
        let unused = state.withLock { state -> RouteWatcher? in
            state.subscribers.remove(id)
            state.watcher?.post(.unsubscribe(id))
            guard state.subscribers.isEmpty else { return nil }
            defer { state.watcher = nil }
            return state.watcher
        }
        _ = consume unused
    }
}

/// A report to a subscriber.
enum ReachabilityReport: Hashable, Sendable {
    /// The target's status, and whether an attempt to reach it may succeed.
    case status(ReachabilityStatus, mayHaveRoute: Bool)
    /// The last report: the network can no longer be observed.
    case failed(ReachabilityError)
}

/// The reports of one subscription, which lasts as long as any copy of this value. A report that was not read is
/// replaced by a newer one.
struct ReachabilityReports {
    private let subscription: Subscription
    private var iterator: AsyncStream<ReachabilityReport>.Iterator

    init(on target: ReachabilityTarget, from monitor: ReachabilityMonitor) {
        let (reports, continuation) = AsyncStream.makeStream(
            of: ReachabilityReport.self, bufferingPolicy: .bufferingNewest(1))
        subscription = Subscription(monitor: monitor, id: monitor.subscribe(to: target, continuation))
        iterator = reports.makeAsyncIterator()
    }

    /// Returns the next report; `nil` if the task is cancelled.
    mutating func next(isolation actor: isolated (any Actor)?) async -> ReachabilityReport? {
        await iterator.next(isolation: actor)
    }

    /// A subscription that ends with its last reference.
    private final class Subscription: Sendable {
        private let monitor: ReachabilityMonitor
        private let id: Int

        init(monitor: ReachabilityMonitor, id: Int) {
            self.monitor = monitor
            self.id = id
        }

        deinit {
            monitor.unsubscribe(id)
        }
    }
}
