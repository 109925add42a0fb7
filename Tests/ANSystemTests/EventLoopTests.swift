// SPDX-License-Identifier: MIT

import ANSystem
import Glibc
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

    @Test func `isolation is known on the loop's thread and nowhere else`() async throws {
        try await withLoop("isolation") { loop, probe in
            #expect(loop.isIsolatingCurrentContext() == false)
            let resident = Resident(loop)
            #expect(await resident.isIsolated())
            await withCheckedContinuation { continuation in
                probe.post(to: loop) {
                    // Isolation is given to a closure on the thread too.
                    resident.assumeIsolated { $0.reset() }
                    continuation.resume()
                }
            }
        }
    }

    @Test func `what many threads post is run, all of it and in the order of each`() async throws {
        try await withLoop("posts") { loop, probe in
            let seen = Lock([[Int]](repeating: [], count: 8))
            await withTaskGroup(of: Void.self) { group in
                for poster in 0..<8 {
                    group.addTask {
                        for number in 0..<5000 { probe.post(to: loop) { seen.withLock { $0[poster].append(number) } } }
                    }
                }
            }
            #expect(await eventually { seen.withLock { $0.allSatisfy { $0.count == 5000 } } })
            #expect(seen.withLock { $0 } == [[Int]](repeating: Array(0..<5000), count: 8))
        }
    }

    @Test func `work wakes a loop that is asleep`() async throws {
        try await withLoop("wakes") { loop, probe in
            for _ in 0..<50 {
                #expect(await eventually { Process.threadStates(named: "wakes") == ["S"] })
                await withCheckedContinuation { continuation in probe.post(to: loop) { continuation.resume() } }
            }
        }
    }

    @Test func `work that is posted by work is run`() async throws {
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

    @Test func `a turn is: what is ready, what was posted, the end of the turn`() async throws {
        let probe = Probe()
        try await withLoop("turn", source: probe) { loop, _ in
            let (reader, writer) = try TestPipe().release()
            let source = FileDescriptor(takingOwnershipOf: reader)
            let sink = FileDescriptor(takingOwnershipOf: writer)
            try loop.epoll.add(reader, for: .readable)
            // While the loop is held, a descriptor becomes ready and more work is queued.
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
            #expect(await eventually { probe.events.count >= 4 })
            #expect(probe.events == [.endOfTurn, .ready(reader), .work, .endOfTurn])
            #expect(try source.bytes(upTo: 1) == [1])
        }
    }

    @Test func `a source's timer ends the sleep`() async throws {
        let probe = Probe(milliseconds: 1)
        try await withLoop("timer", source: probe) { _, _ in
            #expect(await eventually { probe.events.count { $0 == .endOfTurn } >= 20 })
        }
    }

    @Test func `a stopped loop runs what was posted before, and frees its thread`() async throws {
        let loop = try EventLoop()
        let probe = Probe()
        let count = Lock(0)
        try loop.start(name: "stops", source: probe)
        for _ in 0..<100 { probe.post(to: loop) { count.withLock { $0 += 1 } } }
        loop.stop()
        #expect(await eventually { count.withLock { $0 } == 100 })
        #expect(await eventually { Process.threadStates(named: "stops").isEmpty })
    }

    @Test func `loops that are gone leave no descriptor and no thread`() async {
        // In a process of its own: other tests have loops too.
        await #expect(processExitsWith: .success) {
            let baseline = Process.loopDescriptorCount()
            do {
                let probe = Probe()
                let loops = try (0..<50).map { _ in try EventLoop() }
                for loop in loops { try loop.start(name: "leaves", source: probe) }
                #expect(await eventually { Process.threadStates(named: "leaves").count == 50 })
                #expect(Process.loopDescriptorCount() == baseline + 100)
                for loop in loops { loop.stop() }
            }
            #expect(await eventually { Process.threadStates(named: "leaves").isEmpty })
            #expect(await eventually { Process.loopDescriptorCount() == baseline })
        }
    }

    @Test func `a loop that was never started leaves nothing`() throws {
        weak var weakLoop: EventLoop?
        do {
            let loop = try EventLoop()
            loop.wake()
            weakLoop = loop
        }
        #expect(weakLoop == nil)
    }

    @Test func `a sleeping loop does not keep its source`() async throws {
        let loop = try EventLoop()
        defer { loop.stop() }
        let isFreed = Lock(false)
        do {
            let probe = Probe(whenFreed: { isFreed.withLock { $0 = true } })
            try loop.start(name: "releases", source: probe)
            probe.post(to: loop) {}
            #expect(await eventually { probe.events.contains(.endOfTurn) })
            #expect(await eventually { Process.threadStates(named: "releases") == ["S"] })
        }
        #expect(await eventually(within: .seconds(5)) { isFreed.withLock { $0 } })
    }

    @Test func `an actor that is the source of its loop is freed on it and ends it`() async throws {
        let isFreed = Lock(false)
        do {
            let owner = try Owner { isFreed.withLock { $0 = true } }
            #expect(await owner.answer() == 42)
            #expect(await eventually { Process.threadStates(named: "owner") == ["S"] })
        }
        #expect(await eventually(within: .seconds(5)) { isFreed.withLock { $0 } })
        #expect(await eventually { Process.threadStates(named: "owner").isEmpty })
    }

    @Test func `a long name is cut to what the system takes`() async throws {
        try await withLoop("123456789012345678") { _, _ in
            #expect(
                await eventually {
                    !Process.threadStates(named: "123456789012345").isEmpty
                })
        }
    }
}

/// Lends a running loop, and stops it.
private func withLoop(
    _ name: String, source: Probe = Probe(), _ body: (EventLoop, Probe) async throws -> Void
) async throws {
    let loop = try EventLoop()
    try loop.start(name: name, source: source)
    defer { loop.stop() }
    try await body(loop, source)
    withExtendedLifetime(source) {}
}

/// An actor that lives on a loop.
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

/// An actor that owns its loop, as the engine does.
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

/// A source that notes what the loop does with it, and does what it is sent.
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

    /// Leaves work for a turn of the loop.
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
