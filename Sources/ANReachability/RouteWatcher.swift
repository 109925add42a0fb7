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
    private let socket: RouteSocket
    private let user = getuid()

    private var reader: RouteReader
    /// The buffer for received datagrams; the kernel's are never longer.
    private var buffer = [UInt8](repeating: 0, count: 64 << 10)
    private var subscribers: [Int: Subscriber] = [:]
    private var hosts: [String: HostLookup] = [:]
    /// The revision of the state that subscribers were last informed of.
    private var reportedRevision = 0
    private var defaultPaths: [NetworkPath] = []
    private var failure: ReachabilityError?

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
        reader = RouteReader(port: socket.port, deviceType: DeviceTypes.type)
        do throws(SystemError) {
            loop = try EventLoop()
            self.socket = socket
            try loop.epoll.add(self.socket.descriptor.number, for: .readable)
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
        guard failure == nil else { return -1 }
        receiveMessages()
        do throws(ReachabilityError) {
            try receiveDatagrams()
            while let request = reader.nextRequest() {
                try socket.send(request)
                try receiveDatagrams()
            }
        } catch {
            fail(error)
            return -1
        }
        noteChanges()
        return retryLookups()
    }

    /// Receives the available datagrams, but at most 256, so that subscribers also get reports during a flood of
    /// messages.
    private func receiveDatagrams() throws(ReachabilityError) {
        for _ in 0..<256 {
            switch try socket.receive(into: &buffer) {
            case .datagram(let count):
                guard let code = reader.receive(buffer[..<count]) else { break }
                throw ReachabilityError(SystemError(call: "netlink", code: code))
            case .loss: reader.noteLoss()
            case .nothing: return
            }
        }
    }

    private func receiveMessages() {
        let messages = inbox.withLock { inbox in
            defer { inbox.messages = [] }
            return inbox.messages
        }
        for message in messages {
            switch message {
            case .subscribe(let id, let target, let continuation):
                let subscriber = Subscriber(target: target.resolvingLiterals, continuation: continuation)
                subscribers[id] = subscriber
                if case .host(let name) = subscriber.target, hosts[name] == nil {
                    hosts[name] = HostLookup()
                    startLookup(name)
                }
                report(to: id)
            case .unsubscribe(let id):
                guard case .host(let name) = subscribers.removeValue(forKey: id)?.target else { break }
                if !subscribers.values.contains(where: { $0.target == .host(name) }) { hosts[name] = nil }
            case .resolved(let name, let addresses):
                let mustStart = hosts[name]?.finish(addresses, at: .now)
                reportToAll { $0 == .host(name) }
                if mustStart == true { startLookup(name) }
            }
        }
    }

    private func startLookup(_ name: String) {
        resolver.resolve(name) { [weak self] in self?.post(.resolved(name, $0)) }
    }

    private func noteChanges() {
        guard reader.revision != reportedRevision else { return }
        let isFirst = reportedRevision == 0
        reportedRevision = reader.revision
        let paths = reader.state.defaultPaths(user: user)
        let isOfDefaultRoute = paths != defaultPaths && !isFirst
        defaultPaths = paths
        for name in hosts.keys where hosts[name]?.noteChange(ofDefaultRoute: isOfDefaultRoute) == true {
            startLookup(name)
        }
        reportToAll { _ in true }
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
        failure = error
        inbox.withLock { $0.isOpen = false }
        receiveMessages()
        // A failed socket would be reported as ready in every turn.
        loop.epoll.remove(socket.descriptor.number)
        reportToAll { _ in true }
    }

    // MARK: Reports

    private struct Subscriber {
        let target: ReachabilityTarget
        let continuation: AsyncStream<ReachabilityReport>.Continuation
        var lastReport: ReachabilityReport?
    }

    private func reportToAll(where condition: (ReachabilityTarget) -> Bool) {
        for (id, subscriber) in subscribers where condition(subscriber.target) { report(to: id) }
    }

    /// Sends a subscriber the report on its target if it differs from the last one.
    private func report(to id: Int) {
        guard let subscriber = subscribers[id], let report = report(on: subscriber.target),
            subscriber.lastReport != report
        else { return }
        subscribers[id]?.lastReport = report
        subscriber.continuation.yield(report)
    }

    /// Returns the report on a target; `nil` while it is not known yet.
    private func report(on target: ReachabilityTarget) -> ReachabilityReport? {
        if let failure { return .failed(failure) }
        guard reportedRevision > 0 else { return nil }
        let addresses: [IPAddress]
        switch target {
        case .defaultRoute: return .status(ReachabilityStatus(defaultPaths.first), mayHaveRoute: !defaultPaths.isEmpty)
        case .address(let address): addresses = [address]
        case .host(let name):
            guard let found = hosts[name]?.addresses else { return nil }
            addresses = found
        }
        let path = addresses.lazy.compactMap { [self] in reader.state.path(to: $0, user: user) }.first
        // With a default route, the reason for a failed lookup is best found by an attempt.
        let mayHaveRoute = path != nil || addresses.isEmpty && !defaultPaths.isEmpty
        return .status(ReachabilityStatus(path), mayHaveRoute: mayHaveRoute)
    }
}

extension ReachabilityStatus {
    fileprivate init(_ path: NetworkPath?) {
        self = path.map { .reachable(via: $0.kind) } ?? .notReachable
    }
}
