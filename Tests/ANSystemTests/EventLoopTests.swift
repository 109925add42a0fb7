// SPDX-License-Identifier: MIT

import ANSystem
import Glibc
import TestSupport
import Testing

@Suite struct EventLoopTests {
    @Test func `the jobs of an actor run on its loop's thread, one after the other`() async throws {
        try await withLoop("jobs") { loop, _ in
            let resident = Resident(loop)
            let threads = await withTaskGroup(of: UInt.self, returning: Set<UInt>.self) { group in
                for _ in 0..<500 { group.addTask { await resident.increment() } }
                return await group.reduce(into: []) { $0.insert($1) }
            }
            #expect(await resident.count == 500)
            #expect(threads.count == 1)
            #expect(!threads.contains(UInt(pthread_self())))
        }
    }

    @Test func `the loop reports isolation on its own thread only`() async throws {
        try await withLoop("isolation") { loop, probe in
            #expect(loop.isIsolatingCurrentContext() == false)
            let resident = Resident(loop)
            #expect(await resident.isIsolated())
            await withCheckedContinuation { continuation in
                probe.post(to: loop) {
                    // A closure that runs on the loop's thread is isolated, too.
                    resident.assumeIsolated { $0.reset() }
                    continuation.resume()
                }
            }
        }
    }

    @Test func `every closure posted by several threads runs, in the order of its thread`() async throws {
        try await withLoop("posts") { loop, probe in
            let seen = Lock([[Int]](repeating: [], count: 8))
            await withTaskGroup(of: Void.self) { group in
                for poster in 0..<8 {
                    group.addTask {
                        for number in 0..<5000 { probe.post(to: loop) { seen.withLock { $0[poster].append(number) } } }
                    }
                }
            }
            try await eventually { seen.withLock { $0.allSatisfy { $0.count == 5000 } } }
            #expect(seen.withLock { $0 } == [[Int]](repeating: Array(0..<5000), count: 8))
        }
    }

    @Test func `posting wakes a sleeping loop`() async throws {
        try await withLoop("wakes") { loop, probe in
            for _ in 0..<50 {
                try await eventually { Process.threadStates(named: "wakes") == ["S"] }
                await withCheckedContinuation { continuation in probe.post(to: loop) { continuation.resume() } }
            }
        }
    }

    @Test func `closures posted by a closure run`() async throws {
        try await withLoop("nested") { loop, probe in
            let depth: Int = await withCheckedContinuation { continuation in
                @Sendable func descend(_ depth: Int) {
                    guard depth < 100 else { return continuation.resume(returning: depth) }
                    probe.post(to: loop) { descend(depth + 1) }
                }
                probe.post(to: loop) { descend(0) }
            }
            #expect(depth == 100)
        }
    }

    @Test func `a turn reports ready descriptors, runs posted closures and then ends`() async throws {
        let probe = Probe()
        try await withLoop("turn", source: probe) { loop, _ in
            let (reader, writer) = try TestPipe().release()
            let source = FileDescriptor(takingOwnershipOf: reader)
            let sink = FileDescriptor(takingOwnershipOf: writer)
            try loop.epoll.add(reader, for: .readable)
            // While the loop is blocked, a descriptor becomes ready and another closure is posted.
            let mayGoOn = Lock(false)
            await withCheckedContinuation { continuation in
                probe.post(to: loop) {
                    continuation.resume()
                    while !mayGoOn.withLock({ $0 }) { sched_yield() }
                    probe.clear()
                }
            }
            try sink.write([1])
            probe.post(to: loop) {
                probe.note(.work)
                loop.epoll.remove(reader)
            }
            mayGoOn.withLock { $0 = true }
            try await eventually { probe.events.count >= 4 }
            #expect(probe.events == [.endOfTurn, .ready(reader), .work, .endOfTurn])
            #expect(try source.bytes(upTo: 1) == [1])
        }
    }

    @Test func `the timeout that a source returns ends the sleep`() async throws {
        let probe = Probe(milliseconds: 1)
        try await withLoop("timer", source: probe) { _, _ in
            try await eventually { probe.events.count { $0 == .endOfTurn } >= 20 }
        }
    }

    @Test func `a stopped loop runs what was posted before and ends its thread`() async throws {
        let loop = try EventLoop()
        let probe = Probe()
        let count = Lock(0)
        try loop.start(name: "stops", source: probe)
        for _ in 0..<100 { probe.post(to: loop) { count.withLock { $0 += 1 } } }
        loop.stop()
        try await eventually { count.withLock { $0 } == 100 }
        try await eventually { Process.threadStates(named: "stops").isEmpty }
    }

    @Test(.exitTest) func `stopped loops leave no descriptor and no thread`() async {
        // In a process of its own, because other tests have loops, too.
        await #expect(processExitsWith: .success) {
            // The runtime opens and closes a few of its own meanwhile; a leak would be one of each loop.
            let baseline = Process.loopDescriptorCount()
            do {
                let probe = Probe()
                let loops = try (0..<50).map { _ in try EventLoop() }
                for loop in loops { try loop.start(name: "leaves", source: probe) }
                try await eventually { Process.threadStates(named: "leaves").count == 50 }
                #expect(Process.loopDescriptorCount() > baseline + 90)
                for loop in loops { loop.stop() }
            }
            try await eventually { Process.threadStates(named: "leaves").isEmpty }
            try await eventually { Process.loopDescriptorCount() < baseline + 10 }
        }
    }

    @Test func `a loop that was never started is freed`() throws {
        weak var weakLoop: EventLoop?
        do {
            let loop = try EventLoop()
            loop.wake()
            weakLoop = loop
        }
        #expect(weakLoop == nil)
    }

    @Test func `a sleeping loop does not retain its source`() async throws {
        let loop = try EventLoop()
        defer { loop.stop() }
        let isFreed = Lock(false)
        do {
            let probe = Probe(whenFreed: { isFreed.withLock { $0 = true } })
            try loop.start(name: "releases", source: probe)
            probe.post(to: loop) {}
            try await eventually { probe.events.contains(.endOfTurn) }
            try await eventually { Process.threadStates(named: "releases") == ["S"] }
        }
        try await eventually { isFreed.withLock { $0 } }
    }

    @Test func `an actor that owns its loop is freed on the loop and stops it`() async throws {
        let isFreed = Lock(false)
        do {
            let owner = try Owner { isFreed.withLock { $0 = true } }
            #expect(await owner.answer() == 42)
            try await eventually { Process.threadStates(named: "owner") == ["S"] }
        }
        try await eventually { isFreed.withLock { $0 } }
        try await eventually { Process.threadStates(named: "owner").isEmpty }
    }

    @Test func `a long thread name is cut to 15 bytes`() async throws {
        try await withLoop("123456789012345678") { _, _ in
            try await eventually { !Process.threadStates(named: "123456789012345").isEmpty }
        }
    }
}

/// Runs a closure with a running loop, and stops the loop.
private func withLoop(
    _ name: String, source: Probe = Probe(), _ body: (EventLoop, Probe) async throws -> Void
) async throws {
    let loop = try EventLoop()
    try loop.start(name: name, source: source)
    defer { loop.stop() }
    try await body(loop, source)
    withExtendedLifetime(source) {}
}

/// An actor whose executor is a loop.
private actor Resident {
    private nonisolated let loop: EventLoop
    private(set) var count = 0

    init(_ loop: EventLoop) {
        self.loop = loop
    }

    nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe loop.asUnownedSerialExecutor() }

    func increment() -> UInt {
        count += 1
        return UInt(pthread_self())
    }

    func reset() {
        count = 0
    }

    func isIsolated() -> Bool {
        loop.isIsolatingCurrentContext() == true
    }
}

/// An actor that owns its loop, like the transport engine.
private actor Owner: EventLoopSource {
    private nonisolated let loop: EventLoop
    private let whenFreed: @Sendable () -> Void

    init(whenFreed: @escaping @Sendable () -> Void) throws {
        loop = try EventLoop()
        self.whenFreed = whenFreed
        try loop.start(name: "owner", source: self)
    }

    isolated deinit {
        if loop.isIsolatingCurrentContext() == true { whenFreed() }
        loop.stop()
    }

    nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe loop.asUnownedSerialExecutor() }

    func answer() -> Int { 42 }

    nonisolated func turn(_ ready: [ReadyDescriptor]) -> Int32 { -1 }
}

/// A source that records the loop's events and runs posted closures.
private final class Probe: EventLoopSource {
    enum Event: Equatable {
        case ready(Int32)
        case work
        case endOfTurn
    }

    private let milliseconds: Int32
    private let whenFreed: @Sendable () -> Void
    private let log = Lock([Event]())
    private let mail = Lock([@Sendable () -> Void]())

    init(milliseconds: Int32 = -1, whenFreed: @escaping @Sendable () -> Void = {}) {
        self.milliseconds = milliseconds
        self.whenFreed = whenFreed
    }

    deinit {
        whenFreed()
    }

    var events: [Event] { log.withLock { $0 } }

    func note(_ event: Event) {
        log.withLock { $0.append(event) }
    }

    func clear() {
        log.withLock { $0 = [] }
    }

    /// Queues a closure for the loop's next turn.
    func post(to loop: EventLoop, _ work: @escaping @Sendable () -> Void) {
        mail.withLock { $0.append(work) }
        loop.wake()
    }

    func turn(_ ready: [ReadyDescriptor]) -> Int32 {
        for descriptor in ready { note(.ready(descriptor.number)) }
        for work in mail.withLock({ mail in
            defer { mail = [] }
            return mail
        }) { work() }
        note(.endOfTurn)
        return milliseconds
    }
}
