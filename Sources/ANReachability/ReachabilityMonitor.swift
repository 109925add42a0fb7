// SPDX-License-Identifier: MIT

import ANSystem

/// Tells whether the network, an address or a host is reachable, and when that changes.
///
/// ```swift
/// for try await status in ReachabilityMonitor.shared.statuses() {
///     print(status)
/// }
/// ```
///
/// The answer comes from the kernel's interfaces, addresses, routes and rules, which it tells over netlink: nothing is sent
/// to the network, except look-ups of names for ``ReachabilityTarget/host(_:)``. The monitor works while somebody iterates
/// its statuses, on a thread of its own; otherwise it has none. See rtnetlink(7).
///
/// Do not ask it before a request: the request itself is the better question. Ask it after a failure, to explain it or to
/// know when to try again; ``waitForRoute(to:)`` is for that.
public final class ReachabilityMonitor: Sendable {
    /// The monitor of the program.
    public static let shared = ReachabilityMonitor()

    private let openSocket: @Sendable () throws(ReachabilityError) -> RouteSocket
    private let resolver: NameResolver
    private let state = Lock(State())

    /// Creates a monitor; it costs nothing until its statuses are iterated.
    public convenience init() {
        self.init(openSocket: { () throws(ReachabilityError) in try RouteSocket() }, lookUp: NameResolver.systemLookup)
    }

    /// Creates a monitor of what a socket tells; `lookUp` gives the addresses of a name, and may block.
    package init(
        openSocket: @escaping @Sendable () throws(ReachabilityError) -> RouteSocket,
        lookUp: @escaping @Sendable (String) -> [IPAddress]
    ) {
        self.openSocket = openSocket
        resolver = NameResolver(lookUp)
    }

    /// The status of a target: the present one first, then each new one. Any number of tasks may iterate it.
    ///
    /// See ``ReachabilityStatuses`` for what it yields and when it ends.
    public func statuses(for target: ReachabilityTarget = .defaultRoute) -> ReachabilityStatuses {
        ReachabilityStatuses(monitor: self, target: target)
    }

    /// The present status of a target; unknown when the task is cancelled before it is known.
    ///
    /// - Throws: ``ReachabilityError`` where the system does not tell.
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

    /// Waits until there may be a route to a target; returns at once when there may be one now.
    ///
    /// There may be one when the status of the target is reachable or cannot be known, and when a host's name cannot be
    /// looked up although there is a default route: then only an attempt can tell. It is no promise: whoever tries again
    /// after this limits the number of tries.
    ///
    /// - Throws: `CancellationError` when the task is cancelled before.
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
        /// There is one while there are subscribers; it ends with the last reference.
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
            // One that has failed takes no more messages.
            if state.watcher?.post(message) != true {
                do throws(ReachabilityError) {
                    // Under the lock, so that there are never two; it takes a few system calls.
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
        // The watcher may end with this, which must not be under the lock.
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
