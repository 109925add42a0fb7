// SPDX-License-Identifier: MIT

import ANSystem
import Glibc

/// An observer of the network on an event loop, which reports the reachability of targets to subscribers.
///
/// It works from its creation until its last reference is released.
actor RouteWatcher: EventLoopSource {
    private nonisolated let loop: EventLoop
    private nonisolated let inbox = Lock(Inbox())
    private let resolver: NameResolver
    private var socket: RouteSocket
    /// The targets of the subscribers, and the subscribers of each target.
    private var targets: [Int: ReachabilityTarget] = [:]
    private var audiences: [ReachabilityTarget: Audience] = [:]
    private var hosts: [String: HostLookup] = [:]
    /// The paths to the Internet, at most one for each family; `nil` until they are known.
    private var defaultPaths: [NetworkPath]?
    /// The paths to the addresses of the targets, as far as they were requested since the network last changed; their values
    /// are `nil` for unreachable addresses.
    private var paths: [IPAddress: NetworkPath?] = [:]
    private var hasFailed = false

    /// Addresses that only a route to the Internet leads to: those of a root name server, see
    /// https://www.iana.org/domains/root/servers. Nothing is sent to them.
    private static let internetAddresses = ["198.41.0.4", "2001:503:ba3e::2:30"].compactMap(IPAddress.init)

    nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe loop.asUnownedSerialExecutor() }

    /// A message to the watcher.
    enum Message: Sendable {
        /// Adds a subscriber.
        case subscribe(Int, ReachabilityTarget, AsyncStream<ReachabilityReport>.Continuation)
        /// Removes a subscriber.
        case unsubscribe(Int)
        /// Delivers the result of a name lookup.
        case resolved(String, [IPAddress])
    }

    private struct Inbox {
        var messages: [Message] = []
        var isOpen = true
    }

    /// Watches a socket, and starts the loop's thread.
    init(socket: consuming RouteSocket, resolver: NameResolver) throws(ReachabilityError) {
        self.resolver = resolver
        do throws(SystemError) {
            loop = try EventLoop()
            self.socket = socket
            try loop.epoll.add(self.socket.changes.number, for: .readable)
            try loop.start(name: "ANReachability", source: self)
        } catch {
            throw ReachabilityError(error)
        }
    }

    deinit {
        loop.stop()
    }

    /// Queues a message and wakes the loop. Callable from any thread; never blocks.
    ///
    /// - Returns: Whether the message was accepted; `false` after the watcher has failed.
    @discardableResult
    nonisolated func post(_ message: Message) -> Bool {
        let isOpen = inbox.withLock { inbox in
            if inbox.isOpen { inbox.messages.append(message) }
            return inbox.isOpen
        }
        if isOpen { loop.wake() }
        return isOpen
    }

    // MARK: Turns of the loop

    nonisolated func turn(_ ready: [ReadyDescriptor]) -> Int32 {
        assumeIsolated { $0.takeTurn() }
    }

    private func takeTurn() -> Int32 {
        guard !hasFailed else { return -1 }
        do throws(ReachabilityError) {
            try receiveChanges()
            receiveMessages()
            try sendReports()
        } catch {
            fail(error)
            return -1
        }
        return retryLookups()
    }

    private func receiveChanges() throws(ReachabilityError) {
        guard try socket.receiveChanges() || defaultPaths == nil else { return }
        paths = [:]
        var found: [NetworkPath] = []
        for address in Self.internetAddresses {
            if let path = try path(to: address) { found.append(path) }
        }
        let isOfDefaultRoute = defaultPaths != nil && defaultPaths != found
        defaultPaths = found
        for name in hosts.keys where hosts[name]?.noteChange(ofDefaultRoute: isOfDefaultRoute) == true {
            startLookup(name)
        }
    }

    private func path(to address: IPAddress) throws(ReachabilityError) -> NetworkPath? {
        if let known = paths[address] { return known }
        let path = try socket.path(to: address)
        paths[address] = .some(path)
        return path
    }

    private func receiveMessages() {
        let messages = inbox.withLock { inbox in
            defer { inbox.messages = [] }
            return inbox.messages
        }
        for message in messages {
            switch message {
            case .subscribe(let id, let target, let continuation):
                let target = target.resolvingLiterals
                targets[id] = target
                audiences[target, default: Audience()].add(id, continuation)
                if case .host(let name) = target, hosts[name] == nil {
                    hosts[name] = HostLookup()
                    startLookup(name)
                }
            case .unsubscribe(let id):
                guard let target = targets.removeValue(forKey: id) else { break }
                audiences[target]?.remove(id)
                guard audiences[target]?.isEmpty == true else { break }
                audiences[target] = nil
                if case .host(let name) = target { hosts[name] = nil }
            case .resolved(let name, let addresses):
                if hosts[name]?.finish(addresses, at: .now) == true { startLookup(name) }
            }
        }
    }

    private func startLookup(_ name: String) {
        resolver.resolve(name) { [weak self] in self?.post(.resolved(name, $0)) }
    }

    /// Starts the lookups that are due, and returns the number of milliseconds until the next one; -1 if no
    /// lookup is scheduled.
    private func retryLookups() -> Int32 {
        let now = MonotonicInstant.now
        for name in hosts.keys where hosts[name]?.noteTime(now) == true { startLookup(name) }
        guard let next = hosts.values.compactMap(\.retryTime).min() else { return -1 }
        return Int32(clamping: now.duration(to: next).clampedNanoseconds / 1_000_000 + 1)
    }

    private func fail(_ error: ReachabilityError) {
        hasFailed = true
        inbox.withLock { $0.isOpen = false }
        receiveMessages()
        // A failed socket would be reported as ready in every turn.
        loop.epoll.remove(socket.changes.number)
        for audience in audiences.values { audience.sendAll(.failed(error)) }
    }

    // MARK: Reports

    /// The subscribers of one target.
    private struct Audience {
        private var continuations: [Int: AsyncStream<ReachabilityReport>.Continuation] = [:]
        /// Those that have had no report.
        private var new: Set<Int> = []
        /// The last report of the others.
        private var lastReport: ReachabilityReport?

        var isEmpty: Bool { continuations.isEmpty }

        mutating func add(_ id: Int, _ continuation: AsyncStream<ReachabilityReport>.Continuation) {
            continuations[id] = continuation
            new.insert(id)
        }

        mutating func remove(_ id: Int) {
            continuations[id] = nil
            new.remove(id)
        }

        /// Sends a report to the subscribers whose last one differs.
        mutating func send(_ report: ReachabilityReport) {
            if report != lastReport {
                sendAll(report)
            } else {
                for id in new { continuations[id]?.yield(report) }
            }
            (lastReport, new) = (report, [])
        }

        func sendAll(_ report: ReachabilityReport) {
            for continuation in continuations.values { continuation.yield(report) }
        }
    }

    /// Sends the reports on all targets, as far as they are known.
    private func sendReports() throws(ReachabilityError) {
        for target in audiences.keys {
            if let report = try report(on: target) { audiences[target]?.send(report) }
        }
        // Nobody asks for the others any more.
        let wanted = Set(audiences.keys.flatMap { addresses(of: $0) ?? [] })
        paths = paths.filter { wanted.contains($0.key) }
    }

    /// The addresses of a target, none for the default route; `nil` while those of a host are not known.
    private func addresses(of target: ReachabilityTarget) -> [IPAddress]? {
        switch target {
        case .defaultRoute: []
        case .address(let address): [address]
        case .host(let name): hosts[name]?.addresses
        }
    }

    /// Returns the report on a target; `nil` while the addresses of a host are not known.
    private func report(on target: ReachabilityTarget) throws(ReachabilityError) -> ReachabilityReport? {
        let defaultPath = defaultPaths?.first
        guard let addresses = addresses(of: target) else { return nil }
        if target == .defaultRoute {
            return .status(ReachabilityStatus(defaultPath), mayHaveRoute: defaultPath != nil)
        }
        for address in addresses {
            guard let path = try path(to: address) else { continue }
            return .status(ReachabilityStatus(path), mayHaveRoute: true)
        }
        // With a default route, the reason for a failed lookup is best found by an attempt.
        return .status(.notReachable, mayHaveRoute: addresses.isEmpty && defaultPath != nil)
    }
}

extension ReachabilityStatus {
    fileprivate init(_ path: NetworkPath?) {
        self = path.map { .reachable(via: $0.kind) } ?? .notReachable
    }
}
