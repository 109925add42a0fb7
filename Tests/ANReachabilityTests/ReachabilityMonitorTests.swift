// SPDX-License-Identifier: MIT

import ANReachability
import ANSystem
import Glibc
import TestSupport
import Testing

/// The monitor, tested in network namespaces.
@Suite(
    .enabled("Network namespaces cannot be created here.") { await NetworkNamespace.canBeCreated },
    .timeLimit(.minutes(5)))
struct ReachabilityMonitorTests {
    private let network: NetworkNamespace

    init() async throws {
        network = try await NetworkNamespace()
    }

    @Test func `an added, broken, restored and removed default route is reported`() async throws {
        try await network.addPair()
        var statuses = network.monitor().statuses().makeAsyncIterator()
        #expect(try await statuses.next() == .notReachable)
        try await network.ip("route add default via 10.9.0.1")
        #expect(try await statuses.next() == .reachable(via: .wired))
        try await network.ip("link set v1 down")
        #expect(try await statuses.next() == .notReachable)
        try await network.ip("link set v1 up")
        #expect(try await statuses.next() == .reachable(via: .wired))
        try await network.ip("route delete default")
        #expect(try await statuses.next() == .notReachable)
    }

    @Test func `routes that the kernel removes without notification are noticed`() async throws {
        try await network.addPair()
        try await network.ip("route add default via 10.9.0.1")
        try await network.ip("link add other type veth peer name peer")
        try await network.ip("link set other up")
        try await network.ip("link set peer up")
        try await network.ip("address add 192.0.2.2/24 dev other")
        var statuses = network.monitor().statuses().makeAsyncIterator()
        #expect(try await statuses.next() == .reachable(via: .wired))
        // The kernel removes the default route with the last address of the interface, even though another interface
        // has one.
        try await network.ip("address delete 10.9.0.2/24 dev v0")
        #expect(try await statuses.next() == .notReachable)
        try await network.ip("address add 10.9.0.2/24 dev v0")
        try await network.ip("route add default via 10.9.0.1")
        #expect(try await statuses.next() == .reachable(via: .wired))
        try await network.ip("link set v0 down")
        #expect(try await statuses.next() == .notReachable)
        // Enabling the interface restores the network of its address, but not the default route.
        try await network.ip("link set v0 up")
        let peer = try #require(IPAddress("10.9.0.1"))
        try await network.monitor().waitForRoute(to: .address(peer))
        #expect(try await network.monitor().status() == .notReachable)
    }

    @Test(.exitTest) func `paths to addresses that nobody asks for any more are not kept`() async {
        // In a process of its own, where no other test allocates memory.
        await #expect(processExitsWith: .success) {
            let monitor = ReachabilityMonitor()
            // The watcher stays while there is a subscriber.
            var statuses = monitor.statuses().makeAsyncIterator()
            _ = try await statuses.next()
            func ask(_ numbers: Range<Int>) async throws {
                for number in numbers {
                    let address = try #require(IPAddress("10.\(number >> 16).\(number >> 8 & 255).\(number & 255)"))
                    _ = try await monitor.status(of: .address(address))
                }
            }
            try await ask(0..<1_000)
            let before = try residentKilobytes()
            try await ask(1_000..<51_000)
            // A path takes more than 60 bytes.
            if !isSanitized { #expect(try residentKilobytes() - before < 2_000) }
            _ = statuses
        }
    }

    @Test func `two halves of a default route are a default route`() async throws {
        try await network.addPair()
        var statuses = network.monitor().statuses().makeAsyncIterator()
        #expect(try await statuses.next() == .notReachable)
        // A route to a smaller part of the Internet is not one.
        try await network.ip("route add 1.0.0.0/8 via 10.9.0.1")
        try await network.batch("route add 0.0.0.0/1 via 10.9.0.1\nroute add 128.0.0.0/1 via 10.9.0.1\n")
        #expect(try await statuses.next() == .reachable(via: .wired))
    }

    @Test func `the last change wins, even if the kernel announces it before it is complete`() async throws {
        try await network.addPair()
        let monitor = network.monitor()
        var statuses = monitor.statuses().makeAsyncIterator()
        #expect(try await statuses.next() == .notReachable)
        for _ in 0..<20 {
            try await network.batch("address replace 10.9.0.2/24 dev v0\nroute add default via 10.9.0.1\n")
            #expect(try await statuses.next() == .reachable(via: .wired))
            try await network.ip("address delete 10.9.0.2/24 dev v0")
            #expect(try await statuses.next() == .notReachable)
        }
    }

    @Test func `an address is observed independently of the default route`() async throws {
        try await network.addPair()
        let monitor = network.monitor()
        var near = monitor.statuses(for: .address(try #require(IPAddress("10.9.0.1")))).makeAsyncIterator()
        var far = monitor.statuses(for: .address(try #require(IPAddress("198.51.100.1")))).makeAsyncIterator()
        var own = monitor.statuses(for: .host("[::1]")).makeAsyncIterator()
        #expect(try await near.next() == .reachable(via: .wired))
        #expect(try await far.next() == .notReachable)
        #expect(try await own.next() == .reachable(via: .loopback))
        try await network.ip("route add 198.51.100.0/24 via 10.9.0.1")
        #expect(try await far.next() == .reachable(via: .wired))
        try await network.ip("route add unreachable 198.51.100.1")
        #expect(try await far.next() == .notReachable)
        #expect(try await monitor.status(of: .address(try #require(IPAddress("198.51.100.2")))).isReachable)
    }

    @Test func `a link-local address with a zone is reached over that interface only`() async throws {
        try await network.batch(
            """
            link add d0 index 101 type veth peer name p0
            link add d1 index 102 type veth peer name p1
            link set d1 up
            link set p1 up
            address add fe80::2/64 dev d1 nodad

            """)
        let monitor = network.monitor(lookUp: NameResolver.systemLookup)
        try await monitor.waitForRoute(to: .host("[fe80::99%102]"))
        var statuses = monitor.statuses(for: .host("fe80::99%101")).makeAsyncIterator()
        #expect(try await statuses.next() == .notReachable)
        try await network.batch("link set d0 up\nlink set p0 up\naddress add fe80::3/64 dev d0 nodad\n")
        #expect(try await statuses.next() == .reachable(via: .wired))
    }

    @Test func `IPv6 alone makes the Internet reachable`() async throws {
        try await network.addPair()
        var statuses = network.monitor().statuses().makeAsyncIterator()
        #expect(try await statuses.next() == .notReachable)
        try await network.ip("address add 2001:db8:9::2/64 dev v0 nodad")
        try await network.ip("route add default via 2001:db8:9::1")
        #expect(try await statuses.next() == .reachable(via: .wired))
    }

    @Test func `a tunnel that a rule prefers is reported`() async throws {
        try await network.addPair()
        try await network.ip("route add default via 10.9.0.1")
        try await network.ip("link add t0 type vxlan id 7 dstport 4789 local 10.9.0.2 dev v0")
        try await network.ip("link set t0 up")
        try await network.ip("address add 10.7.0.2/32 dev t0")
        var statuses = network.monitor().statuses().makeAsyncIterator()
        #expect(try await statuses.next() == .reachable(via: .wired))
        try await network.ip("route add default dev t0 table 51820")
        try await network.ip("rule add not fwmark 51820 table 51820 priority 32765")
        #expect(try await statuses.next() == .reachable(via: .tunnel))
        try await network.ip("rule delete priority 32765")
        #expect(try await statuses.next() == .reachable(via: .wired))
    }

    @Test func `the status of a host follows its addresses`() async throws {
        try await network.addPair()
        let names = Lock<[String: [IPAddress]]>([:])
        let monitor = network.monitor { name in names.withLock { $0[name] ?? [] } }
        var statuses = monitor.statuses(for: .host("api.example.com")).makeAsyncIterator()
        // The name does not exist yet.
        #expect(try await statuses.next() == .notReachable)
        names.withLock { $0["api.example.com"] = [IPAddress("2001:db8::7"), IPAddress("10.9.0.7")].compactMap(\.self) }
        // Any change repeats the lookup.
        try await network.ip("address add 10.9.0.3/24 dev v0")
        #expect(try await statuses.next() == .reachable(via: .wired))
        try await network.ip("link set v1 down")
        #expect(try await statuses.next() == .notReachable)
    }

    @Test func `a name that was found is not looked up again while the default route stays the same`() async throws {
        try await network.addPair()
        let lookups = Lock(0)
        let address = try #require(IPAddress("10.9.0.7"))
        let monitor = network.monitor { _ in
            lookups.withLock { $0 += 1 }
            return [address]
        }
        var statuses = monitor.statuses(for: .host("api.example.com")).makeAsyncIterator()
        #expect(try await statuses.next() == .reachable(via: .wired))
        for _ in 0..<2 {
            try await network.ip("link set v1 down")
            #expect(try await statuses.next() == .notReachable)
            try await network.ip("link set v1 up")
            #expect(try await statuses.next() == .reachable(via: .wired))
        }
        #expect(lookups.withLock { $0 } == 1)
    }

    @Test func `concurrent lookups of a name are shared`() async throws {
        try await network.addPair()
        let lookups = Lock(0)
        let gate = try TestGate()
        let address = try #require(IPAddress("10.9.0.7"))
        let monitor = network.monitor { _ in
            lookups.withLock { $0 += 1 }
            gate.wait()
            return [address]
        }
        var iterators = (0..<20).map { _ in monitor.statuses(for: .host("api.example.com")).makeAsyncIterator() }
        gate.open()
        for index in iterators.indices {
            #expect(try await iterators[index].next() == .reachable(via: .wired))
        }
        #expect(lookups.withLock { $0 } == 1)
    }

    @Test func `every subscriber gets the current status first and then the changes`() async throws {
        try await network.addPair()
        let monitor = network.monitor()
        try await withThrowingTaskGroup { group in
            for _ in 0..<50 {
                group.addTask {
                    for try await status in monitor.statuses() where status.isReachable { return }
                    Issue.record("the sequence of statuses ended")
                }
            }
            var own = monitor.statuses().makeAsyncIterator()
            #expect(try await own.next() == .notReachable)
            try await network.ip("route add default via 10.9.0.1")
            try await group.waitForAll()
            #expect(try await own.next() == .reachable(via: .wired))
        }
        var late = monitor.statuses().makeAsyncIterator()
        #expect(try await late.next() == .reachable(via: .wired))
    }

    @Test func `a change that does not affect the target is not reported`() async throws {
        try await network.addPair()
        try await network.ip("route add default via 10.9.0.1")
        var statuses = network.monitor().statuses().makeAsyncIterator()
        #expect(try await statuses.next() == .reachable(via: .wired))
        try await network.batch((0..<50).map { "route add 192.0.2.\($0) via 10.9.0.1\n" }.joined())
        try await network.ip("route replace default via 10.9.0.3")
        try await network.ip("route delete default")
        #expect(try await statuses.next() == .notReachable)
    }

    @Test func `lost messages are compensated by new requests`() async throws {
        try await network.addPair()
        // The smallest receive buffer, which holds only one or two messages.
        let monitor = network.monitor(receiveBuffer: 1)
        let last = try #require(IPAddress("203.0.113.7"))
        var statuses = monitor.statuses(for: .address(last)).makeAsyncIterator()
        #expect(try await statuses.next() == .notReachable)
        for round in 0..<3 {
            let verb = round % 2 == 0 ? "add" : "delete"
            let batch = (0..<2_000).map { "route \(verb) 198.18.\($0 / 250).\($0 % 250) via 10.9.0.1\n" }.joined()
            try await network.batch(batch + "route \(verb) 203.0.113.7 via 10.9.0.1\n")
            #expect(try await statuses.next() == (round % 2 == 0 ? .reachable(via: .wired) : .notReachable))
        }
    }

    @Test func `waiting for a route ends when a default route appears`() async throws {
        try await network.addPair()
        let monitor = network.monitor()
        try await withThrowingTaskGroup { group in
            group.addTask { try await monitor.waitForRoute() }
            group.addTask { try await monitor.waitForRoute(to: .host("no.example.com")) }
            #expect(try await monitor.status() == .notReachable)
            // With a default route, only an attempt can find out what is wrong with the name.
            try await network.ip("route add default via 10.9.0.1")
            try await group.waitForAll()
        }
        #expect(try await monitor.status(of: .host("no.example.com")) == .notReachable)
        try await monitor.waitForRoute()
    }

    @Test func `waiting for a route ends when the task is cancelled`() async throws {
        let monitor = network.monitor()
        let waiting = Task { try await monitor.waitForRoute() }
        #expect(try await monitor.status() == .notReachable)
        waiting.cancel()
        await #expect(throws: CancellationError.self) { try await waiting.value }
    }

    @Test func `the sequence of statuses ends when the task is cancelled`() async throws {
        let monitor = network.monitor()
        let watching = Task {
            var seen: [ReachabilityStatus] = []
            for try await status in monitor.statuses() {
                seen.append(status)
                unsafe withUnsafeCurrentTask { unsafe $0?.cancel() }
            }
            return seen
        }
        #expect(try await watching.value == [.notReachable])
    }

    @Test func `the monitor has a socket only while it has subscribers`() async throws {
        let monitor = network.monitor()
        #expect(try await network.subscriberCount() == 0)
        do {
            var first = monitor.statuses().makeAsyncIterator()
            var second = monitor.statuses(for: .host("::1")).makeAsyncIterator()
            #expect(try await first.next() == .notReachable)
            #expect(try await second.next() == .notReachable)
            #expect(try await network.subscriberCount() == 1)
        }
        // The loop's thread releases the socket at the end of its turn.
        while try await network.subscriberCount() > 0 { await Task.yield() }
        #expect(try await monitor.status() == .notReachable)
    }
}

@Suite struct ReachabilityWithoutNetlinkTests {
    private let monitor = ReachabilityMonitor(
        openSocket: { () throws(ReachabilityError) in
            throw ReachabilityError(SystemError(call: "socket", code: EAFNOSUPPORT))
        }, lookUp: { _ in [] })

    @Test func `the sequence yields unknown and then throws`() async throws {
        var statuses = monitor.statuses().makeAsyncIterator()
        #expect(try await statuses.next(isolation: #isolation) == .unknown)
        let error = await #expect(throws: ReachabilityError.self) { try await statuses.next(isolation: #isolation) }
        #expect(error?.call == "socket")
        #expect(error?.code == EAFNOSUPPORT)
        #expect(error?.description.contains("AF_NETLINK") == true)
        #expect(try await statuses.next(isolation: #isolation) == nil)
    }

    @Test func `requesting the status once throws`() async {
        await #expect(throws: ReachabilityError.self) { try await monitor.status() }
    }

    @Test func `waiting for a route returns if the network cannot be observed`() async throws {
        try await monitor.waitForRoute(to: .host("example.com"))
    }
}
